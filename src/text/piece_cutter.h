// SPDX-License-Identifier: MIT
// PieceCutter: the pre-tokenizers of a tokenizer.json: they cut a text into the pieces that the
// model then reads one by one. JsonTokenizer uses it.
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
    bool first = false;  // begins where the text that the user gave begins
  };
  /// The pieces of one text, and the memory of those that are not parts of it.
  struct Pieces {
    std::vector<Piece> list;
    std::deque<std::string> made;
  };

  class Step;

  PieceCutter();
  PieceCutter(PieceCutter&&) noexcept;
  ~PieceCutter();
  /// Nothing is cut for null. Throws Error{kBadModel} naming the field, and the types that are
  /// supported where this one is not.
  explicit PieceCutter(const JsonField& field);

  /// Pieces of `text`, valid UTF-8 that outlives them; none is empty. Throws as
  /// Regex::Scanner::find.
  Pieces cut(std::string_view text, bool first) const;

  /// Whether the model's alphabet is byte_alphabet's: there is a pre-tokenizer ByteLevel. Pieces
  /// are plain bytes all the same.
  bool is_byte_level() const { return byte_level_; }

 private:
  void add(const JsonField& field);
  void add_byte_level(const JsonField& field);

  std::vector<std::unique_ptr<Step>> steps_;
  bool byte_level_ = false;
  bool spelled_ = false;  // steps after ByteLevel read its spelling
};

}  // namespace snapkv
