// SPDX-License-Identifier: MIT
// GbnfText: the smallest parts of GBNF: names, texts in quotes, sets of characters, numbers, and
// the messages about them. The parser is made of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "text/grammar/char_set.h"

namespace snapkv::grammar {

class GbnfText {
 protected:
  /// `name` begins messages; both must outlive this object. Throws Error{kUsage} unless the text is
  /// UTF-8 without zero bytes.
  GbnfText(std::string_view text, const std::string& name);

  [[noreturn]] void reject(size_t at, const std::string& what) const;
  /// "expected ..., found ..." at the place that has been reached.
  [[noreturn]] void expected(const char* what) const;

  bool at_end() const { return at_ >= text_.size(); }
  bool at_line_end() const { return at_end() || text_[at_] == '\n' || text_[at_] == '\r'; }
  bool at_name() const;
  /// The next byte; zero at the end.
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  bool take(char c);
  bool take(std::string_view text);
  /// Spaces and comments; also the ends of lines.
  void skip_space(bool lines);
  std::string_view take_name(const char* what);
  int take_count(int most);
  /// What is in quotes, which are next.
  std::string take_literal();
  /// What is in brackets, which are next.
  CharSet take_class();

  size_t at_ = 0;

 private:
  uint32_t take_character();
  uint32_t take_hex(size_t begin, int n_digits);

  const std::string_view text_;
  const std::string& name_;
};

}  // namespace snapkv::grammar
