// SPDX-License-Identifier: MIT
// Writes small tokenizer.model files: SentencePiece's ModelProto in the binary format of Protocol
// Buffers. It checks nothing, so that it can write broken files too.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace snapkv::test {

/// The fields of one message.
class MessageWriter {
 public:
  MessageWriter& integer(uint64_t number, uint64_t value) {
    varint(number << 3);
    varint(value);
    return *this;
  }
  MessageWriter& f32(uint64_t number, float value) {
    varint(number << 3 | 5);
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(bits >> shift & 0xff);
    return *this;
  }
  /// A text or a message.
  MessageWriter& bytes(uint64_t number, std::string_view value) {
    varint(number << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  const std::string& str() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

/// A model of BPE with tokens of bytes, and with user-defined pieces.
struct PieceModel {
  struct Piece {
    std::string text;
    float score = 0;
    uint64_t type = 1;
  };

  PieceModel() {
    pieces = {{"<unk>", 0, 2}, {"<s>", 0, 3}, {"</s>", 0, 3}};
    for (int i = 0; i < 256; ++i) pieces.push_back({fmt::format("<0x{:02X}>", i), 0, 6});
    for (const char* text : {"<AI>", "abcd", "bcdefg", "\u2581\u2581"}) {
      pieces.push_back({text, 0, 4});
    }
    float score = 0;
    for (const char* text : {"\u2581t", "he", "in", "\u2581a", "\u2581the", "er", "\u2581th", "an",
                             "bc", "\u2581in"}) {
      pieces.push_back({text, score--, 1});
    }
    score = -100;
    for (const char* text :
         {"\u2581", "e", "t", "a", "n", "h", "i", "r", "b", "c", "d", "\u00e9", "\u4f60"}) {
      pieces.push_back({text, score--, 1});
    }
    trainer.integer(3, 2).integer(35, 1);
    normalizer.bytes(1, "identity").integer(4, 0);
  }

  std::string file() const {
    MessageWriter model;
    for (const Piece& p : pieces) {
      MessageWriter piece;
      piece.bytes(1, p.text).f32(2, p.score);
      if (p.type != 1) piece.integer(3, p.type);
      model.bytes(1, piece.str());
    }
    return model.bytes(2, trainer.str()).bytes(3, normalizer.str()).str();
  }

  std::vector<Piece> pieces;
  MessageWriter trainer;     // further fields replace what is there
  MessageWriter normalizer;  // the same
};

}  // namespace snapkv::test
