// SPDX-License-Identifier: MIT
// BpeVocab: a small byte-level BPE vocabulary for tests: the 256 bytes (ids 0 to 255), then the
// tokens that a test adds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/gguf_writer.h"
#include "text/byte_alphabet.h"

namespace snapkv::test {

struct BpeVocab {
  enum Type : int32_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

  BpeVocab() {
    for (const std::string& spelling : byte_alphabet::spellings()) add_spelled(spelling);
  }

  /// Adds a token as it is spelled in a file. Returns its id.
  int32_t add_spelled(std::string_view spelling, Type type = kNormal) {
    tokens.emplace_back(spelling);
    types.push_back(type);
    return static_cast<int32_t>(tokens.size()) - 1;
  }
  /// Adds a token with these bytes.
  int32_t add(std::string_view bytes, Type type = kNormal) {
    std::string spelling;
    byte_alphabet::append(spelling, bytes);
    return add_spelled(spelling, type);
  }
  /// Adds a merge of two tokens, given by their bytes, and the token that they form.
  int32_t merge(std::string_view left, std::string_view right) {
    std::string line;
    byte_alphabet::append(line, left);
    line += ' ';
    byte_alphabet::append(line, right);
    merges.push_back(line);
    return add(std::string(left) + std::string(right));
  }

  GgufWriter& write_to(GgufWriter& writer, std::string_view pre = "gpt-2") const {
    writer.add("tokenizer.ggml.model", "gpt2").add("tokenizer.ggml.tokens", tokens);
    if (!pre.empty()) writer.add("tokenizer.ggml.pre", pre);
    return writer.add("tokenizer.ggml.token_type", types).add("tokenizer.ggml.merges", merges);
  }

  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<std::string> merges;
};

}  // namespace snapkv::test
