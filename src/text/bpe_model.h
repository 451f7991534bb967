// SPDX-License-Identifier: MIT
// BpeModel: byte pair encoding of words (Sennrich et al. 2016, arXiv 1508.07909): a word's bytes or
// characters join, the pair first whose merge comes first in the vocabulary's list. The tokenizers
// of GGUF files and of tokenizer.json cut texts into words and give them to it.
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
  /// What words are made of at first, and what stands for those parts that have no token.
  enum class Alphabet {
    bytes,       // in byte_alphabet's spelling
    characters,  // of UTF-8; where they are no tokens, "<0x0A>" for each byte, or the unknown token
  };
  struct Options {
    Alphabet alphabet = Alphabet::bytes;
    bool ignore_merges = false;    // a word that is a token is that token
    bool whole_newlines = false;   // so is a word of newlines
    bool last_merge_wins = false;  // of those of one pair; else the first
    bool strict_merges = false;    // of texts that are no tokens are an error
    bool byte_tokens = true;       // of "<0x0A>"'s spelling are used
    bool fuse_unknown = false;     // several unknown tokens in a row in a word become one
    int32_t unknown = -1;
  };
  using Merges = std::vector<std::pair<std::string_view, std::string_view>>;

  /// `text_may_be[id]`: whether a word may become that token; merges into others are left out.
  /// Texts of `merges` are copied. Keeps a reference to `vocab`. Throws Error{kBadModel} that
  /// begins with `origin`.
  BpeModel(const Vocab& vocab, const Merges& merges, std::vector<bool> text_may_be,
           const Options& options, std::string origin);

  class Encoder;

 private:
  int32_t intern(std::string_view text);
  int32_t find_whole(std::string_view word) const;
  void add_merges(const Merges& merges);
  void index_first_symbols();
  void note_neighbours(std::string_view left, std::string_view right);
  /// Whether some merge joins a symbol that ends in `a` and one that begins with `b`, characters of
  /// the alphabet in raw bytes. Where none does, words can be cut.
  bool may_join(std::string_view a, std::string_view b) const;
  std::string_view first_character(std::string_view word) const;
  int32_t first_symbol(std::string_view character) const;

  const Vocab& vocab_;
  std::vector<bool> text_may_be_;
  Options options_;
  std::string origin_;
  MergeTable merges_;
  uint32_t n_merges_ = 0;
  // Symbols that are no tokens: parts of merges, in the vocabulary's spelling, numbered from
  // vocab_.size() on.
  std::unordered_map<std::string, int32_t> extra_symbols_;
  std::array<int32_t, 256> byte_symbols_{};                  // Alphabet::bytes
  std::unordered_map<uint32_t, int32_t> character_symbols_;  // Alphabet::characters
  std::array<int32_t, 256> byte_tokens_{};                   // for what has no token; -1
  std::bitset<65536> neighbour_bytes_;                       // characters of one byte: a * 256 + b
  std::unordered_set<uint64_t> neighbours_;                  // all others
  mutable std::atomic<bool> warned_ = false;                 // of parts that are left out
};

/// Encodes the words of one text; remembers what words became. Belongs to one thread.
class BpeModel::Encoder {
 public:
  /// Appends to `out`. Words are views of memory that outlives the Encoder, and take about
  /// `text_bytes` together.
  Encoder(const BpeModel& model, size_t text_bytes, std::vector<int32_t>& out);

  /// A part of the word for which there is no token, no byte tokens and no unknown token is left
  /// out, and the log says so once per model.
  void add(std::string_view word);

 private:
  static constexpr size_t kLongWord = 32;
  /// `whole`: a word, not a piece of one.
  void add_cached(std::string_view text, bool whole);
  void add_new(std::string_view text, bool whole);
  void add_pieces(std::string_view word);
  void merge(std::string_view text);
  void add_without_token(std::string_view bytes);

  const BpeModel& model_;
  std::vector<int32_t>& out_;
  size_t word_begin_ = 0;  // in out_
  bool met_unknown_ = false;
  SymbolMerger merger_;
  WordCache cache_;
};

}  // namespace snapkv
