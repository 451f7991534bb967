// SPDX-License-Identifier: MIT
// SentencePieceOracle: loads libsentencepiece with the vocabulary of a GGUF file, to compare ids
// with it. The code writes the model in protobuf's wire format; the field numbers are those of
// sentencepiece_model.proto.
#pragma once

#include <gtest/gtest.h>
#include <sentencepiece_processor.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "format/gguf.h"

namespace snapkv::test {

class SentencePieceOracle {
 public:
  explicit SentencePieceOracle(const GgufFile& file) {
    const auto& tokens = file.get_strings("tokenizer.ggml.tokens");
    const auto scores = file.get_floats("tokenizer.ggml.scores");
    const auto types = file.get_ints("tokenizer.ggml.token_type");
    std::string model;
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::string piece;
      put_bytes(piece, 1, tokens[i]);
      put_float(piece, 2, static_cast<float>(scores[i]));
      put_int(piece, 3, static_cast<uint64_t>(types[i]));
      put_bytes(model, 1, piece);
    }
    std::string trainer;
    put_int(trainer, 3, 2);   // model_type = BPE
    put_int(trainer, 35, 1);  // byte_fallback
    put_bytes(model, 2, trainer);
    std::string normalizer;
    put_bytes(normalizer, 1, "identity");
    put_int(normalizer, 3, 1);  // add_dummy_prefix
    put_int(normalizer, 4, 0);  // remove_extra_whitespaces
    put_int(normalizer, 5, 1);  // escape_whitespaces
    put_bytes(model, 3, normalizer);
    const auto status = processor_.LoadFromSerializedProto(model);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }

  std::vector<int> encode(const std::string& text) const {
    std::vector<int> ids;
    EXPECT_TRUE(processor_.Encode(text, &ids).ok());
    return ids;
  }

 private:
  static void put_varint(std::string& out, uint64_t value) {
    for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
    out += static_cast<char>(value);
  }
  static void put_int(std::string& out, int field, uint64_t value) {
    put_varint(out, static_cast<uint64_t>(field) << 3);
    put_varint(out, value);
  }
  static void put_bytes(std::string& out, int field, std::string_view value) {
    put_varint(out, static_cast<uint64_t>(field) << 3 | 2);
    put_varint(out, value.size());
    out += value;
  }
  static void put_float(std::string& out, int field, float value) {
    put_varint(out, static_cast<uint64_t>(field) << 3 | 5);
    char bytes[4];
    std::memcpy(bytes, &value, 4);
    out.append(bytes, 4);
  }

  sentencepiece::SentencePieceProcessor processor_;
};

/// Valid UTF-8: words, punctuation, digits, runs of spaces and line ends, and characters from all
/// of Unicode except U+2581 (SentencePiece's space).
inline std::string random_text(uint32_t seed, size_t n_items) {
  uint32_t state = seed * 2654435761u + 1;
  const auto below = [&](uint32_t n) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
  };
  static constexpr const char* kWords[] = {"the",
                                           "secret",
                                           "number",
                                           "of",
                                           "Paris",
                                           "is",
                                           "lord",
                                           "and",
                                           "thou",
                                           "12345",
                                           "question",
                                           ":",
                                           ".",
                                           ",",
                                           "\n",
                                           "\n\n",
                                           "  ",
                                           "    ",
                                           "\t",
                                           "'s",
                                           "don't",
                                           "(a+b)",
                                           "{",
                                           "};",
                                           "caf\xc3\xa9",
                                           "\xd0\xbd\xd0\xb5\xd1\x89\xd0\xbe",
                                           "\xe6\x88\x91\xe6\x83\xb3",
                                           "\xf0\x9f\x9a\x80",
                                           "e\xcc\x81"};
  std::string text;
  for (size_t i = 0; i < n_items; ++i) {
    const uint32_t kind = below(12);
    if (kind < 8) {
      text += kWords[below(std::size(kWords))];
      if (kind < 6) text += ' ';
    } else if (kind < 11) {
      for (uint32_t n = below(6); n > 0; --n) text += static_cast<char>(32 + below(95));
    } else {
      const uint32_t c = 0x80 + below(0x1ff80);
      if ((c >= 0xd800 && c < 0xe000) || c == 0x2581) continue;
      const auto put = [&](uint32_t byte) { text += static_cast<char>(byte); };
      if (c < 0x800) {
        put(0xc0 | c >> 6);
      } else {
        if (c < 0x10000) {
          put(0xe0 | c >> 12);
        } else {
          put(0xf0 | c >> 18);
          put(0x80 | (c >> 12 & 0x3f));
        }
        put(0x80 | (c >> 6 & 0x3f));
      }
      put(0x80 | (c & 0x3f));
    }
  }
  return text;
}

}  // namespace snapkv::test
