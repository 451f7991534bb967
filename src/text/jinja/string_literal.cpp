// SPDX-License-Identifier: MIT
#include "text/jinja/string_literal.h"

#include "base/error.h"
#include "base/utf8.h"
#include "text/jinja/text.h"

namespace snapkv::jinja {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

class Unescaper {
 public:
  Unescaper(std::string_view literal, int line) : rest_(literal), line_(line) {}

  std::string run() {
    std::string out;
    while (!rest_.empty()) {
      const char c = next();
      if (c == '\n') ++line_;
      if (c != '\\' || rest_.empty()) {
        out += c;
      } else {
        escape(out);
      }
    }
    return out;
  }

 private:
  char next() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  /// Reads `n` hexadecimal digits after the escape letter `name`.
  uint32_t hex(int n, char name) {
    int64_t value = 0;
    for (int i = 0; i < n; ++i) {
      const int digit = rest_.empty() ? -1 : hex_digit(rest_.front());
      if (digit < 0) {
        fail(ErrorCode::kUsage, "line {}: a string has \\{} with fewer than {} hexadecimal digits",
             line_, name, n);
      }
      value = value * 16 + digit;
      rest_.remove_prefix(1);
    }
    if (value > 0x10ffff) {
      fail(ErrorCode::kUsage, "line {}: a string has \\{} with {:x}, which is not a character",
           line_, name, value);
    }
    return static_cast<uint32_t>(value);
  }

  void character(uint32_t codepoint, std::string& out) {
    if (codepoint >= 0xd800 && codepoint < 0xdc00 && rest_.starts_with("\\u")) {
      rest_.remove_prefix(2);
      const uint32_t low = hex(4, 'u');
      if (low >= 0xdc00 && low < 0xe000) {
        return utf8::append(out, 0x10000 + ((codepoint - 0xd800) << 10) + (low - 0xdc00));
      }
    }
    if (codepoint >= 0xd800 && codepoint < 0xe000) {
      fail(ErrorCode::kUsage, "line {}: a string has half of a surrogate pair, \\u{:04x}", line_,
           codepoint);
    }
    utf8::append(out, codepoint);
  }

  void escape(std::string& out) {
    constexpr std::string_view kNames = "abfnrtv\\'\"";
    constexpr std::string_view kCharacters = "\a\b\f\n\r\t\v\\'\"";
    const char name = next();
    if (const size_t known = kNames.find(name); known != std::string_view::npos) {
      out += kCharacters[known];
    } else if (name == '\n') {
      ++line_;  // a backslash continues the line
    } else if (name == 'x') {
      character(hex(2, name), out);
    } else if (name == 'u') {
      character(hex(4, name), out);
    } else if (name == 'U') {
      character(hex(8, name), out);
    } else if (name >= '0' && name <= '7') {
      uint32_t value = name - '0';
      for (int i = 0; i < 2 && !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '7'; ++i) {
        value = value * 8 + (next() - '0');
      }
      character(value, out);
    } else if (name == 'N') {
      fail(ErrorCode::kUsage, "line {}: \\N in a string is not supported", line_);
    } else {
      out += '\\';
      out += name;
    }
  }

  std::string_view rest_;
  int line_;
};

}  // namespace

std::string unescape(std::string_view literal, int line) { return Unescaper(literal, line).run(); }

}  // namespace snapkv::jinja
