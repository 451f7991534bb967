// SPDX-License-Identifier: MIT
// PieceDecoder: the decoders of a tokenizer.json: the bytes that a token adds to the output, and
// the bytes that are removed from the start of a whole text.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/json_file.h"

namespace snapkv {

class PieceDecoder {
 public:
  /// If `field` is null, tokens stay as they are, and a whole text has a space between tokens.
  /// Throws Error{kBadModel} naming the field, and the supported types if this one is not
  /// supported.
  explicit PieceDecoder(const JsonField& field);

  /// The bytes of a token. ByteLevel does not apply to an added token, which is spelled in plain
  /// characters; the other decoders do, since Gemma's runs of spaces are added tokens.
  std::string bytes_of(std::string_view token, bool added) const;
  /// The text between two tokens of a whole text.
  std::string_view separator() const { return separator_; }
  /// How many bytes to leave out at the start of a text whose first piece is `piece`.
  size_t stripped(std::string_view piece) const;

 private:
  void add(const JsonField& field);
  void add_strip(const JsonField& field);

  std::vector<std::pair<std::string, std::string>> replacements_;
  std::string_view separator_;
  bool byte_level_ = false;
  bool byte_tokens_ = false;
  bool fused_ = false;
  std::string strip_;  // a character that is removed up to n_strip_ times
  int64_t n_strip_ = 0;
};

}  // namespace snapkv
