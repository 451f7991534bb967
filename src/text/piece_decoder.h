// SPDX-License-Identifier: MIT
// PieceDecoder: the decoders of a tokenizer.json: what bytes a token adds to the output, and what
// is taken off the beginning of a whole text. JsonTokenizer uses it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/json_file.h"

namespace snapkv {

class PieceDecoder {
 public:
  /// Tokens stay as they are for null, with a space between any two in a whole text. Throws
  /// Error{kBadModel} naming the field, and the types that are supported where this one is not.
  explicit PieceDecoder(const JsonField& field);

  /// The bytes of a token. An added token is spelled in plain characters, never in those that stand
  /// for bytes (ByteLevel); the other decoders apply to it too: Gemma's runs of spaces are added.
  std::string bytes_of(std::string_view token, bool added) const;
  /// What is between two tokens in a whole text.
  std::string_view separator() const { return separator_; }
  /// Bytes to leave out at the beginning of a text whose first piece is `piece`.
  size_t stripped(std::string_view piece) const;

 private:
  void add(const JsonField& field);
  void add_strip(const JsonField& field);

  std::vector<std::pair<std::string, std::string>> replacements_;
  std::string_view separator_;
  bool byte_level_ = false;
  bool byte_tokens_ = false;
  bool fused_ = false;
  std::string strip_;  // a character, up to n_strip_ times
  int64_t n_strip_ = 0;
};

}  // namespace snapkv
