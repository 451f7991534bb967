// SPDX-License-Identifier: MIT
#include "cli/common/plain_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "base/utf8.h"

namespace snapkv::cli {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// Length of the complete UTF-8 character at the beginning; 0 if there is none, or if it is a
/// control character of C1.
size_t character_length(std::string_view text) {
  const bool is_c1 = text.size() > 1 && text[0] == '\xc2' && text[1] < '\xa0';
  return is_c1 ? 0 : utf8::valid_length(text);
}

std::string escaped(char c) {
  if (c == '\n') return "\\n";
  if (c == '\t') return "\\t";
  return fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
}

/// Returns the last two hexadecimal digits of U+20xx if the character changes the writing
/// direction, else 0.
unsigned direction_mark(std::string_view character) {
  if (character.size() != 3 || character[0] != '\xe2') return 0;
  const auto second = static_cast<unsigned char>(character[1]);
  const auto third = static_cast<unsigned char>(character[2]);
  if (second == 0x80 && third >= 0xaa && third <= 0xae) return third - 0x80U;
  if (second == 0x81 && third >= 0xa6 && third <= 0xa9) return third - 0x40U;
  return 0;
}

/// Escapes `bytes`. `kept`: control characters that are left as they are.
std::string escape(std::string_view bytes, std::string_view kept) {
  std::string text;
  while (!bytes.empty()) {
    const char c = bytes.front();
    const size_t n = character_length(bytes);
    const bool is_control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (n == 0 || (is_control && kept.find(c) == std::string_view::npos)) {
      text += escaped(c);
      bytes.remove_prefix(1);
      continue;
    }
    const std::string_view character = bytes.substr(0, n);
    if (const unsigned mark = direction_mark(character)) {
      text += fmt::format("\\u20{:02x}", mark);
    } else {
      text += character;
    }
    bytes.remove_prefix(n);
  }
  return text;
}

/// Escapes at most `most` bytes, cut between characters; if some are left out, adds the total
/// number.
std::string escape_and_cut(std::string_view bytes, std::string_view kept, size_t most) {
  if (bytes.size() <= most) return escape(bytes, kept);
  size_t end = most;
  while (end > 0 && most - end < 4 && is_continuation(bytes[end])) --end;
  return escape(bytes.substr(0, end), kept) + fmt::format("... ({} bytes)", bytes.size());
}

}  // namespace

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;  // try the next variable
    std::string lower(value);
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
  }
  return false;
}

std::string printable(std::string_view bytes, bool keep_lines) {
  return escape(bytes, keep_lines ? "\n" : "");
}

std::string safe_output(std::string_view bytes) { return escape(bytes, "\n\t"); }

std::string terminal_text(std::string_view bytes, size_t most) {
  return escape_and_cut(bytes, "", most);
}

std::string message_text(std::string_view message) {
  constexpr size_t kMost = 4000;
  return escape_and_cut(message, "\n", kMost);
}

size_t n_columns(std::string_view utf8) {
  // {fmt} pads by its estimate of the columns (wide scripts take two), which never exceeds the
  // bytes
  return 2 * utf8.size() - fmt::format("{:<{}}", utf8, utf8.size()).size();
}

std::string wrapped(std::string_view text, size_t width) {
  constexpr std::string_view kIndent = "    ";
  std::string out;
  size_t column = 0;
  while (!text.empty()) {
    // take a word with the blanks before it, or a newline
    if (text.front() == '\n') {
      out += '\n';
      column = 0;
      text.remove_prefix(1);
      continue;
    }
    const size_t begin = std::min(text.find_first_not_of(' '), text.size());
    const size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    size_t n = n_columns(word);
    for (size_t at = 0; (at = word.find('\x1b', at)) != std::string_view::npos; ++at) {
      const size_t last = std::min(word.find('m', at), word.size() - 1);  // end of "\x1b[1m"
      n -= std::min(n, last - at + 1);
    }
    if (column > 0 && column + begin + n > width && !word.empty()) {
      out += '\n';
      out += kIndent;
      column = kIndent.size();
    } else {
      out.append(begin, ' ');
      column += begin;
    }
    out += word;
    column += n;
    text.remove_prefix(end);
  }
  return out;
}

std::string fit(std::string_view utf8, size_t width, std::string_view ellipsis) {
  const size_t columns = n_columns(utf8);
  if (columns <= width) return std::string(utf8) + std::string(width - columns, ' ');
  const size_t room = width - std::min(width, n_columns(ellipsis));
  size_t end = 0;
  for (size_t next = 0; next <= utf8.size(); ++next) {
    if (next < utf8.size() && is_continuation(utf8[next])) continue;
    if (n_columns(utf8.substr(0, next)) > room) break;
    end = next;
  }
  const size_t rest = room - n_columns(utf8.substr(0, end));  // room for half of a wide character
  return std::string(utf8.substr(0, end)) + std::string(ellipsis) + std::string(rest, ' ');
}

std::string Drawing::bar(double fraction, int width) const {
  static constexpr std::array<const char*, 7> kEighths = {"▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double filled = std::clamp(fraction, 0.0, 1.0) * width;
  std::string bar;
  int columns = 0;
  if (utf8_) {
    const int eighths = static_cast<int>(std::lround(filled * 8));
    for (; columns < eighths / 8; ++columns) bar += "█";
    if (eighths % 8 > 0) {
      bar += kEighths[static_cast<size_t>(eighths % 8 - 1)];
      ++columns;
    }
  } else {
    for (; columns < static_cast<int>(std::lround(filled)); ++columns) bar += '#';
  }
  return bar + std::string(static_cast<size_t>(width - columns), ' ');
}

std::string Drawing::profile(std::span<const float> values, double max) const {
  static constexpr std::array<const char*, 9> kBlocks = {" ", "▁", "▂", "▃", "▄",
                                                         "▅", "▆", "▇", "█"};
  static constexpr std::array<const char*, 9> kAscii = {" ", ".", ":", "-", "=",
                                                        "+", "*", "%", "@"};
  std::string text;
  for (const float value : values) {
    const double fraction = max > 0 ? std::clamp(value / max, 0.0, 1.0) : 0.0;
    const auto level = static_cast<size_t>(std::ceil(fraction * 8 - 0.5));
    text += (utf8_ ? kBlocks : kAscii)[std::min<size_t>(level, 8)];
  }
  return text;
}

}  // namespace snapkv::cli
