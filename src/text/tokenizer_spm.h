// SPDX-License-Identifier: MIT
// SpmTokenizer: SentencePiece's BPE (`tokenizer.ggml.model` = "llama"): spaces become U+2581, a
// text starts with one, adjacent symbols are merged in the order of their scores, and a symbol that
// is not a token is spelled in bytes.
//
// `snapkv.tokenizer.user_defined_pieces`, which only folders with a tokenizer.model have, names
// SentencePiece's user-defined pieces. From the text's beginning on, the longest of them each time
// is cut out before anything is merged. (GGUF's user-defined tokens are llama.cpp's: the longest of
// the whole text first, and a space before what follows one.)
//
// The merges are done here rather than by libsentencepiece, which replaces invalid UTF-8, so that
// bytes would be lost, and refuses vocabularies that converters write (without a token of type
// unknown). The tests use it as the oracle.
#pragma once

#include <array>
#include <bitset>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "text/split_tokenizer.h"
#include "text/symbol_merger.h"
#include "text/token_matcher.h"

namespace snapkv {

class SpmTokenizer final : public SplitTokenizer {
 public:
  explicit SpmTokenizer(const GgufFile& file);

  std::string piece(int32_t id, bool special) const override;
  std::string description() const override { return "SentencePiece BPE"; }

 private:
  class Merger;
  void index_ranks();
  void index_pieces();
  void index_bytes(const GgufFile& file);
  void index_user_defined(const GgufFile& file);
  /// Appends the tokens of a text without user-defined pieces, with spaces spelled as in pieces.
  void merge_stretches(std::string_view text, Merger& merger) const;
  /// Whether symbol `b` follows symbol `a` in some piece. If not, no merge crosses their border.
  bool adjacent(std::string_view a, std::string_view b) const;
  /// The id of a piece that merges may form; -1 if there is none.
  int32_t find_piece(std::string_view text) const;
  void encode_fragment(std::string_view text, bool after_special,
                       std::vector<int32_t>& out) const override;

  std::vector<uint32_t> ranks_;  // [n_vocab]: 0 for the best score; equal scores share a rank
  uint32_t n_ranks_ = 0;
  std::unordered_map<std::string_view, int32_t> pieces_;  // keys are views of vocab_.tokens
  size_t max_piece_bytes_ = 0;
  std::bitset<65536> adjacent_bytes_;              // symbols of one byte: a * 256 + b
  std::unordered_set<uint64_t> adjacent_symbols_;  // all other pairs
  std::array<int32_t, 256> byte_ids_{};
  TokenMatcher user_defined_;  // empty for most vocabularies
  bool has_user_defined_ = false;
};

}  // namespace snapkv
