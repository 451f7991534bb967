// SPDX-License-Identifier: MIT
// SpmVocab: a small SentencePiece vocabulary for tests: unknown, <s>, </s>, the 256 bytes (ids 3 to
// 258), then the tokens that a test adds.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/gguf_writer.h"

namespace snapkv::test {

struct SpmVocab {
  enum Type : int32_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

  explicit SpmVocab(bool with_bytes = true) {
    add("<unk>", 0, kUnknown);
    add("<s>", 0, kControl);
    add("</s>", 0, kControl);
    for (int i = 0; with_bytes && i < 256; ++i) add(fmt::format("<0x{:02X}>", i), 0, kByte);
  }

  /// Returns the token's id.
  int32_t add(std::string_view text, float score, Type type = kNormal) {
    tokens.emplace_back(text);
    scores.push_back(score);
    types.push_back(type);
    return static_cast<int32_t>(tokens.size()) - 1;
  }

  /// Adds `text` and each of its prefixes, which is enough to merge it into one token.
  int32_t add_with_prefixes(std::string_view text, float score) {
    for (size_t n = 1; n < text.size(); ++n) {
      const std::string_view prefix = text.substr(0, n);
      bool present = false;
      for (const std::string& token : tokens) present |= token == prefix;
      if (!present) add(prefix, score);
    }
    return add(text, score);
  }

  GgufWriter& write_to(GgufWriter& writer) const {
    return writer.add("tokenizer.ggml.model", "llama")
        .add("tokenizer.ggml.tokens", tokens)
        .add("tokenizer.ggml.scores", scores)
        .add("tokenizer.ggml.token_type", types);
  }

  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<int32_t> types;
};

}  // namespace snapkv::test
