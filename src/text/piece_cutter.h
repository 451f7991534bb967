// SPDX-License-Identifier: MIT
// PieceCutter: the pre-tokenizers of a tokenizer.json. They cut a text into the pieces that the
// model reads one by one.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/json_file.h"

namespace snapkv {

class PieceCutter {
 public:
  struct Piece {
    std::string_view text;
    bool first = false;  // starts where the user's text starts
  };
  /// The pieces of one text, and the memory of the pieces that are not views of it.
  struct Pieces {
    std::vector<Piece> list;
    std::deque<std::string> made;
  };

  class Step;

  PieceCutter();
  PieceCutter(PieceCutter&&) noexcept;
  ~PieceCutter();
  /// Cuts nothing if `field` is null. Throws Error{kBadModel} naming the field, and the supported
  /// types if this one is not supported.
  explicit PieceCutter(const JsonField& field);

  /// Cuts `text`, which is valid UTF-8 and outlives the pieces. No piece is empty. Throws as
  /// Regex::Scanner::find does.
  Pieces cut(std::string_view text, bool first) const;

  /// Whether the model's alphabet is byte_alphabet's, that is, there is a ByteLevel pre-tokenizer.
  /// The pieces are plain bytes in any case.
  bool is_byte_level() const { return byte_level_; }

 private:
  void add(const JsonField& field);
  void add_byte_level(const JsonField& field);

  std::vector<std::unique_ptr<Step>> steps_;
  bool byte_level_ = false;
  bool spelled_ = false;  // the steps after ByteLevel read its spelling
};

}  // namespace snapkv
