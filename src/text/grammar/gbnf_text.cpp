// SPDX-License-Identifier: MIT
#include "text/grammar/gbnf_text.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"

namespace snapkv::grammar {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// "'x'" for the character at the place, or a description if there is none.
std::string found_at(std::string_view text, size_t at) {
  if (at >= text.size()) return "the end";
  if (text[at] == '\n' || text[at] == '\r') return "the end of the line";
  const size_t length = std::max<size_t>(1, utf8::valid_length(text.substr(at)));
  return fmt::format("'{}'", text.substr(at, length));
}

}  // namespace

GbnfText::GbnfText(std::string_view text, const std::string& name) : text_(text), name_(name) {
  for (size_t at = 0; at < text_.size();) {
    const size_t length = utf8::valid_length(text_.substr(at));
    if (length == 0) reject(at, "a byte that is not part of UTF-8");
    if (text_[at] == '\0') reject(at, "a zero byte");
    at += length;
  }
}

void GbnfText::reject(size_t at, const std::string& what) const {
  const std::string_view before = text_.substr(0, at);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_start = before.rfind('\n') == std::string_view::npos ? 0  //
                                                                         : before.rfind('\n') + 1;
  fail(ErrorCode::kUsage, "{}: line {}, column {}: {}", name_, line, at - line_start + 1, what);
}

void GbnfText::expected(const char* what) const {
  reject(at_, fmt::format("expected {}, found {}", what, found_at(text_, at_)));
}

bool GbnfText::at_name() const { return !at_end() && is_name_character(text_[at_]); }

bool GbnfText::take(char c) {
  if (at_end() || text_[at_] != c) return false;
  ++at_;
  return true;
}

bool GbnfText::take(std::string_view text) {
  if (text_.substr(at_, text.size()) != text) return false;
  at_ += text.size();
  return true;
}

void GbnfText::skip_space(bool lines) {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '#') {
      while (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '\r') ++at_;
    } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
      ++at_;
    } else {
      return;
    }
  }
}

std::string_view GbnfText::take_name(const char* what) {
  const size_t begin = at_;
  while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
  if (at_ == begin) expected(what);
  return text_.substr(begin, at_ - begin);
}

int GbnfText::take_count(int most) {
  const size_t begin = at_;
  int64_t value = 0;
  while (peek() >= '0' && peek() <= '9') {
    value = value * 10 + (text_[at_++] - '0');
    if (value > most) {
      reject(begin, fmt::format("more than {} repetitions", most));
    }
  }
  if (at_ == begin) expected("a number of repetitions");
  return static_cast<int>(value);
}

std::string GbnfText::take_literal() {
  const size_t begin = at_++;
  std::string bytes;
  while (peek() != '"') {
    if (at_ >= text_.size() || text_[at_] == '\n') {
      reject(begin, "this text has no \" at its end");
    }
    utf8::append(bytes, take_character());
  }
  ++at_;
  return bytes;
}

CharSet GbnfText::take_class() {
  const size_t begin = at_++;
  const bool negated = take('^');
  CharSet set;
  while (peek() != ']') {
    if (at_ >= text_.size() || text_[at_] == '\n') {
      reject(begin, "these characters have no ] at their end");
    }
    const size_t from = at_;
    const uint32_t first = take_character();
    uint32_t last = first;
    if (text_.substr(at_, 1) == "-" && text_.substr(at_, 2) != "-]") {
      ++at_;
      if (at_ >= text_.size()) reject(begin, "these characters have no ] at their end");
      last = take_character();
    }
    if (last < first) reject(from, "a range of characters whose last is before its first");
    set.add(first, last);
  }
  ++at_;
  if (negated) set = set.negated();
  if (set.empty()) reject(begin, "no character is allowed here");
  return set;
}

/// Takes one character or escape of a quoted text or class.
uint32_t GbnfText::take_character() {
  if (!take('\\')) {
    const size_t length = utf8::valid_length(text_.substr(at_));
    const uint32_t c = utf8::code_point(text_.data() + at_, length);
    at_ += length;
    return c;
  }
  const size_t begin = at_ - 1;
  const char c = peek();
  ++at_;
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case '\\':
    case '"':
    case '[':
    case ']':
    case '-':
    case '^':
      return static_cast<uint32_t>(c);
    case 'x':
      return take_hex(begin, 2);
    case 'u':
      return take_hex(begin, 4);
    case 'U':
      return take_hex(begin, 8);
    default:
      at_ = begin + 1;
      expected("n, r, t, x, u, U, \\, \", [, ], - or ^ after \\");
  }
}

uint32_t GbnfText::take_hex(size_t begin, int n_digits) {
  uint64_t value = 0;
  for (int i = 0; i < n_digits; ++i, ++at_) {
    const int digit = hex_digit(peek());
    if (digit < 0)
      expected(n_digits == 2   ? "2 hexadecimal digits"  //
               : n_digits == 4 ? "4 hexadecimal digits"
                               : "8 hexadecimal digits");
    value = value * 16 + static_cast<uint64_t>(digit);
  }
  if (value > kMostCodePoint || (value >= 0xd800 && value <= 0xdfff)) {
    reject(begin, fmt::format("U+{:04X} is not a character", value));
  }
  return static_cast<uint32_t>(value);
}

}  // namespace snapkv::grammar
