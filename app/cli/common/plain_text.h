// SPDX-License-Identifier: MIT
// Text for a terminal: makes bytes of files, models and users safe and short, fits them to columns,
// and draws bars in Unicode blocks or ASCII.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace snapkv::cli {

/// Whether the locale in the environment (LC_ALL, LC_CTYPE, LANG) is UTF-8.
bool locale_is_utf8();

/// Makes bytes safe for a terminal: control characters (C0, DEL, C1), marks that change the writing
/// direction (U+202A to U+202E, U+2066 to U+2069) and invalid UTF-8 become \n, \t, \x1b or \u202e.
/// `keep_lines`: newlines stay.
std::string printable(std::string_view bytes, bool keep_lines = false);
/// The same for a whole output: newlines and tabs stay.
std::string safe_output(std::string_view bytes);
/// printable() of at most `most` bytes; what is longer ends in "... (1048576 bytes)".
std::string terminal_text(std::string_view bytes, size_t most);
/// An error message, which may quote a file's contents: keeps its lines, limits its length.
std::string message_text(std::string_view message);
/// Approximate columns on a terminal: two for a character of a wide script.
size_t n_columns(std::string_view utf8);
/// Pads with blanks to `width` columns; longer text is cut and ends in `ellipsis`.
std::string fit(std::string_view utf8, size_t width, std::string_view ellipsis);
/// Breaks the lines of `text` at blanks so that none is wider than `width` columns, unless one word
/// is; continuation lines are indented by four blanks. Colours take no columns.
std::string wrapped(std::string_view text, size_t width);

class Drawing {
 public:
  explicit Drawing(bool utf8) : utf8_(utf8) {}
  /// A bar of `width` columns, padded with blanks; `fraction` is clamped to 0 ... 1.
  std::string bar(double fraction, int width) const;
  /// One column per value, higher for higher values; `max` and above are the highest.
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
