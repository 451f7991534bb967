// SPDX-License-Identifier: MIT
// SpmTokenizer: SentencePiece's BPE (`tokenizer.ggml.model` = "llama"): spaces become U+2581, a
// text starts with one, adjacent symbols merge best score first, what is no token is spelled in
// bytes. Made by Tokenizer::from_gguf.
//
// The merges are done here, not by libsentencepiece: that replaces invalid UTF-8, so bytes would be
// lost, and refuses vocabularies that converters write (no token of type unknown). The tests use
// it as the oracle.
#pragma once

#include <array>
#include <bitset>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "text/special_splitter.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

namespace snapkv {

class SpmTokenizer final : public Tokenizer {
 public:
  explicit SpmTokenizer(const GgufFile& file);

  std::vector<int32_t> encode(std::string_view text, bool add_special,
                              bool parse_special) const override;
  std::string piece(int32_t id, bool special) const override;
  std::string decode(std::span<const int32_t> ids, bool special) const override;
  int64_t n_vocab() const override { return vocab_.size(); }
  const SpecialTokens& special() const override { return vocab_.special; }
  bool is_end_of_generation(int32_t id) const override {
    return vocab_.contains(id) && vocab_.ends[static_cast<size_t>(id)];
  }

 private:
  class Merger;
  void index_pieces();
  void index_bytes(const GgufFile& file);
  /// Whether some piece has symbol `b` right after symbol `a`. Where none has, no merge can cross.
  bool adjacent(std::string_view a, std::string_view b) const;
  /// Id of a piece that merges may form, -1 if there is none.
  int32_t find_piece(std::string_view text) const;
  void encode_text(std::string_view text, bool space_prefix, std::vector<int32_t>& out) const;

  Vocab vocab_;
  SpecialSplitter splitter_;
  std::unordered_map<std::string_view, int32_t> pieces_;  // views of vocab_.tokens
  size_t max_piece_bytes_ = 0;
  std::bitset<65536> adjacent_bytes_;              // symbols of one byte each: a * 256 + b
  std::unordered_set<uint64_t> adjacent_symbols_;  // all others
  std::array<int32_t, 256> byte_ids_{};
};

}  // namespace snapkv
