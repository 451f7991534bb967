// SPDX-License-Identifier: MIT
// SplitTokenizer: the base of the tokenizers of GGUF files. It cuts a text at special tokens; a
// derived class tokenizes the text between them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/special_splitter.h"
#include "text/vocab_tokenizer.h"

namespace snapkv {

class SplitTokenizer : public VocabTokenizer {
 public:
  std::vector<int32_t> encode(std::string_view text, bool add_special,
                              bool parse_special) const final;
  std::vector<int32_t> encode_chat(const RenderedChat& chat, bool add_bos) const final;

 protected:
  explicit SplitTokenizer(Vocab vocab) : VocabTokenizer(std::move(vocab)), splitter_(vocab_) {}

  /// Appends the ids of text between special tokens. `after_special`: the text is the beginning of
  /// the whole text or directly follows a special token.
  virtual void encode_fragment(std::string_view text, bool after_special,
                               std::vector<int32_t>& out) const = 0;

 private:
  void encode_fragments(std::span<const SpecialSplitter::Fragment> fragments, bool after_special,
                        std::vector<int32_t>& out) const;

  SpecialSplitter splitter_;
};

}  // namespace snapkv
