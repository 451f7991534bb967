// SPDX-License-Identifier: MIT
// Text for a terminal: bytes of files, models and users made safe and short, columns, and bars in
// Unicode blocks or in ASCII. Used by terminal.h, which lets nothing else through, and by views.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace snapkv::cli {

/// Whether the locale's environment (LC_ALL, LC_CTYPE, LANG) says UTF-8.
bool locale_is_utf8();

/// Bytes as a terminal may show them: control characters (C0, DEL, C1), marks that turn the
/// direction of writing (U+202A to U+202E, U+2066 to U+2069) and what is not UTF-8 as \n, \t, \x1b
/// or \u202e. `keep_lines`: newlines stay.
std::string printable(std::string_view bytes, bool keep_lines = false);
/// The same, but newlines and tabs stay: a whole output.
std::string safe_output(std::string_view bytes);
/// printable() of at most `most` bytes; what is longer ends in "... (1048576 bytes)".
std::string terminal_text(std::string_view bytes, size_t most);
/// An error's message, which may quote what a file holds: its lines stay, its length is bounded.
std::string message_text(std::string_view message);
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
