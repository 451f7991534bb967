// SPDX-License-Identifier: MIT
// BpeModel: byte pair encoding of words (Sennrich et al. 2016, arXiv 1508.07909). A word starts as
// its bytes or characters; neighbours are joined, always the pair whose merge stands first in the
// vocabulary's list. The caller has cut the text into words.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "text/merge_table.h"
#include "text/symbol_merger.h"
#include "text/vocab.h"
#include "text/word_cache.h"

namespace snapkv {

class BpeModel {
 public:
  /// The symbols that a word starts as, and what replaces the ones that are not tokens.
  enum class Alphabet {
    bytes,       // in the spelling of byte_alphabet
    characters,  // UTF-8; one that is not a token becomes "<0x0A>" per byte, or the unknown token
  };
  struct Options {
    Alphabet alphabet = Alphabet::bytes;
    bool ignore_merges = false;    // a word that is a token becomes that token
    bool whole_newlines = false;   // the same, for words that consist of newlines
    bool last_merge_wins = false;  // when a pair is listed twice; otherwise the first
    bool strict_merges = false;    // a merge of texts that are not tokens is an error
    bool byte_tokens = true;       // use tokens spelled "<0x0A>"
    bool fuse_unknown = false;     // consecutive unknown tokens of a word become one
    int32_t unknown = -1;
  };
  using Merges = std::vector<std::pair<std::string_view, std::string_view>>;

  /// `text_may_be[id]`: whether a word may become that token; merges into other tokens are left
  /// out. Copies the texts of `merges`; keeps a reference to `vocab`. Throws Error{kBadModel} with
  /// a message that begins with `origin`.
  BpeModel(const Vocab& vocab, const Merges& merges, std::vector<bool> text_may_be,
           const Options& options, std::string origin);

  class Encoder;

 private:
  int32_t intern(std::string_view text);
  int32_t find_whole(std::string_view word) const;
  void add_merges(const Merges& merges);
  void index_first_symbols();
  void note_neighbours(std::string_view left, std::string_view right);
  /// Whether some merge joins a symbol that ends in `a` with one that begins with `b`, both
  /// characters of the alphabet as raw bytes. If none does, a word can be cut between them.
  bool may_join(std::string_view a, std::string_view b) const;
  std::string_view first_character(std::string_view word) const;
  int32_t first_symbol(std::string_view character) const;

  const Vocab& vocab_;
  std::vector<bool> text_may_be_;
  Options options_;
  std::string origin_;
  MergeTable merges_;
  uint32_t n_merges_ = 0;
  // Symbols that are not tokens: parts of merges in the vocabulary's spelling, numbered from
  // vocab_.size() on.
  std::unordered_map<std::string, int32_t> extra_symbols_;
  std::array<int32_t, 256> byte_symbols_{};                  // Alphabet::bytes
  std::unordered_map<uint32_t, int32_t> character_symbols_;  // Alphabet::characters
  std::array<int32_t, 256> byte_tokens_{};                   // for text without a token; -1: none
  std::bitset<65536> neighbour_bytes_;                       // one-byte characters: a * 256 + b
  std::unordered_set<uint64_t> neighbours_;                  // all other pairs
  mutable std::atomic<bool> warned_ = false;                 // left-out text was logged
};

/// Encodes the words of one text and remembers the results. Belongs to one thread.
class BpeModel::Encoder {
 public:
  /// Ids are appended to `out`. The words are views of memory that outlives the Encoder;
  /// `text_bytes` is roughly their total size.
  Encoder(const BpeModel& model, size_t text_bytes, std::vector<int32_t>& out);

  /// Appends the ids of a word. A part of it that has no token, no byte tokens and no unknown token
  /// is left out; this is logged once per model.
  void add(std::string_view word);

 private:
  static constexpr size_t kLongWord = 32;
  /// `whole`: `text` is a whole word, not a piece of one.
  void add_cached(std::string_view text, bool whole);
  void add_new(std::string_view text, bool whole);
  void add_pieces(std::string_view word);
  void merge(std::string_view text);
  void add_without_token(std::string_view bytes);

  const BpeModel& model_;
  std::vector<int32_t>& out_;
  size_t word_begin_ = 0;  // index into out_
  bool met_unknown_ = false;
  SymbolMerger merger_;
  WordCache cache_;
};

}  // namespace snapkv
