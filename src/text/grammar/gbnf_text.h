// SPDX-License-Identifier: MIT
// GbnfText: reads the smallest parts of GBNF (names, quoted texts, sets of characters, numbers) and
// writes the messages about them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "text/grammar/char_set.h"

namespace snapkv::grammar {

class GbnfText {
 protected:
  /// Messages begin with `name`. Both arguments must outlive this object. Throws Error{kUsage}
  /// unless the text is UTF-8 without zero bytes.
  GbnfText(std::string_view text, const std::string& name);

  [[noreturn]] void reject(size_t at, const std::string& what) const;
  /// Fails with "expected ..., found ..." at the current place.
  [[noreturn]] void expected(const char* what) const;

  bool at_end() const { return at_ >= text_.size(); }
  bool at_line_end() const { return at_end() || text_[at_] == '\n' || text_[at_] == '\r'; }
  bool at_name() const;
  /// The next byte; zero at the end.
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  bool take(char c);
  bool take(std::string_view text);
  /// Skips spaces and comments, and line ends if `lines`.
  void skip_space(bool lines);
  std::string_view take_name(const char* what);
  int take_count(int most);
  /// Takes a quoted text, which comes next, and returns what is in the quotes.
  std::string take_literal();
  /// Takes a class in brackets, which comes next, and returns its characters.
  CharSet take_class();

  size_t at_ = 0;

 private:
  uint32_t take_character();
  uint32_t take_hex(size_t begin, int n_digits);

  const std::string_view text_;
  const std::string& name_;
};

}  // namespace snapkv::grammar
