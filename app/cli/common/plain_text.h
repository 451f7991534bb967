// SPDX-License-Identifier: MIT
// What `explain` draws with: text of tokens made safe for a terminal, and bars in Unicode blocks or
// in ASCII. Used by explain/view.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace snapkv::cli {

/// Whether the locale's environment (LC_ALL, LC_CTYPE, LANG) says UTF-8.
bool locale_is_utf8();

/// Bytes as a terminal may show them: control characters and what is not UTF-8 as \n, \t or \x1b.
/// `keep_lines`: newlines stay.
std::string printable(std::string_view bytes, bool keep_lines = false);
/// Columns of a terminal, about: two for a character of a wide script.
size_t n_columns(std::string_view utf8);
/// Padded with blanks to `width` columns; longer text is cut to end in `ellipsis`.
std::string fit(std::string_view utf8, size_t width, std::string_view ellipsis);
/// `text` with its lines broken at blanks so that none is wider than `width` columns, as far as its
/// words allow; what continues a line is indented by four blanks. Colours take no columns.
std::string wrapped(std::string_view text, size_t width);

class Drawing {
 public:
  explicit Drawing(bool utf8) : utf8_(utf8) {}
  /// A bar of value / max (clamped to 0 ... 1) of `width` columns, padded with blanks.
  std::string bar(double fraction, int width) const;
  /// One column for each value, higher for higher ones; `max` and more is the highest.
  std::string profile(std::span<const float> values, double max) const;
  const char* dot() const { return utf8_ ? "·" : "."; }
  const char* ellipsis() const { return utf8_ ? "…" : "..."; }
  const char* block() const { return utf8_ ? "█" : "#"; }
  const char* rule() const { return utf8_ ? "─" : "-"; }
  const char* times() const { return utf8_ ? "×" : "x"; }
  const char* arrow() const { return utf8_ ? "→" : "->"; }

 private:
  bool utf8_;
};

}  // namespace snapkv::cli
