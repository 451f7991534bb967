// SPDX-License-Identifier: MIT
#include "text/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "text/jinja/string_literal.h"
#include "text/jinja/text.h"
#include "text/jinja/unicode.h"

namespace snapkv::jinja {
namespace {

// The longer ones come first.
constexpr std::array<std::string_view, 26> kOperators = {
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

/// The source with \r\n and \r replaced by \n, without one newline at its end.
std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : owned_(std::move(source)), source_(owned_) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) lex_data();
    add(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  enum class Sign { none, minus, plus };

  [[noreturn]] void fail_here(const std::string& what) {
    fail(ErrorCode::kUsage, "line {}: {}", line_, what);
  }
  bool ahead(std::string_view text) const { return source_.substr(at_).starts_with(text); }
  bool ahead(std::string_view text, size_t at) const {
    return at <= source_.size() && source_.substr(at).starts_with(text);
  }

  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, line_, std::move(text)}); }

  void advance(size_t end) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    line_starting_ = end > at_ && source_[end - 1] == '\n';
    at_ = end;
  }

  size_t skip_space(size_t at) const {
    while (at < source_.size() && is_space(decode_char(source_, at))) at += char_bytes(source_[at]);
    return at;
  }

  Sign sign_at(size_t at) const {
    if (ahead("-", at)) return Sign::minus;
    return ahead("+", at) ? Sign::plus : Sign::none;
  }

  /// Adds the text before a tag at `end`, without the white space that the tag drops.
  void add_data(size_t end, Sign sign, bool is_variable) {
    std::string_view data = source_.substr(at_, end - at_);
    if (sign == Sign::minus) {
      while (!data.empty()) {
        size_t last = data.size() - 1;
        while (last > 0 && (data[last] & 0xc0) == 0x80) --last;
        if (!is_space(decode_char(data, last))) break;
        data = data.substr(0, last);
      }
    } else if (sign == Sign::none && !is_variable) {
      const size_t newline = data.rfind('\n');
      const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
      if ((begin > 0 || line_starting_) && skip_space(at_ + begin) >= end) {
        data = data.substr(0, begin);
      }
    }
    if (!data.empty()) add(TokenKind::data, std::string(data));
    advance(end);
  }

  /// Reads the text up to the next tag, and the beginning of that tag.
  void lex_data() {
    size_t tag = at_;
    while ((tag = source_.find('{', tag)) != std::string_view::npos) {
      if (ahead("{%", tag) || ahead("{{", tag) || ahead("{#", tag)) break;
      ++tag;
    }
    if (tag == std::string_view::npos) {
      add(TokenKind::data, std::string(source_.substr(at_)));
      advance(source_.size());
      return;
    }
    const char kind = source_[tag + 1];
    const Sign sign = sign_at(tag + 2);
    add_data(tag, sign, kind == '{');
    const size_t inside = tag + 2 + (sign == Sign::none ? 0 : 1);
    if (kind == '#') {
      lex_comment(inside);
    } else if (const size_t raw = kind == '%' ? end_of_raw_begin(inside) : 0; raw > 0) {
      lex_raw(raw);
    } else {
      add(kind == '{' ? TokenKind::variable_begin : TokenKind::block_begin, "");
      advance(inside);
      lex_tag(kind == '{' ? "}}" : "%}");
    }
  }

  /// Where a tag end at `at` ("%}", "-%}", "+%}") stops, including the white space that it drops; 0
  /// if there is no tag end.
  size_t end_of_tag(size_t at, std::string_view closing) const {
    if (ahead("-", at) && ahead(closing, at + 1)) return skip_space(at + 1 + closing.size());
    if (closing != "}}" && ahead("+", at) && ahead(closing, at + 1)) return at + 1 + closing.size();
    if (!ahead(closing, at)) return 0;
    at += closing.size();
    return closing != "}}" && ahead("\n", at) ? at + 1 : at;
  }

  void lex_comment(size_t at) {
    while (at < source_.size()) {
      if (const size_t end = end_of_tag(at, "#}")) return advance(end);
      ++at;
    }
    fail_here("a comment is not closed: '#}' is missing");
  }

  /// Where "raw %}" ends, searched after the tag's beginning and sign; 0 for other statements.
  size_t end_of_raw_begin(size_t at) const {
    at = skip_space(at);
    if (!ahead("raw", at)) return 0;
    at = skip_space(at + 3);
    if (ahead("-%}", at)) return skip_space(at + 3);
    return ahead("%}", at) ? at + 2 : 0;
  }

  void lex_raw(size_t begin) {
    const int line = line_;
    advance(begin);
    for (size_t tag = at_; (tag = source_.find("{%", tag)) != std::string_view::npos; ++tag) {
      const Sign sign = sign_at(tag + 2);
      size_t at = skip_space(tag + 2 + (sign == Sign::none ? 0 : 1));
      if (!ahead("endraw", at)) continue;
      const size_t end = end_of_tag(skip_space(at + 6), "%}");
      if (end == 0) continue;
      add_data(tag, sign, false);
      advance(end);
      return;
    }
    line_ = line;
    fail_here("a raw block is not closed: '{% endraw %}' is missing");
  }

  /// Reads the inside of {{ }} or {% %}, and its end.
  void lex_tag(std::string_view closing) {
    while (true) {
      advance(skip_space(at_));
      if (at_ >= source_.size()) return;  // the parser reports what is missing
      if (brackets_.empty()) {
        if (const size_t end = end_of_tag(at_, closing)) {
          add(closing == "}}" ? TokenKind::variable_end : TokenKind::block_end, "");
          return advance(end);
        }
      }
      lex_token();
    }
  }

  void lex_token() {
    const char first = source_[at_];
    if (is_ascii_digit(first)) return lex_number();
    if (first == '\'' || first == '"') return lex_string();
    if (is_name_char(decode_char(source_, at_))) return lex_name();
    for (const std::string_view op : kOperators) {
      if (!ahead(op)) continue;
      match_bracket(op);
      add(TokenKind::op, std::string(op));
      return advance(at_ + op.size());
    }
    fail_here(fmt::format("unexpected character '{}'", source_.substr(at_, char_bytes(first))));
  }

  void match_bracket(std::string_view op) {
    if (op == "(") brackets_ += ')';
    if (op == "[") brackets_ += ']';
    if (op == "{") brackets_ += '}';
    if (op != ")" && op != "]" && op != "}") return;
    if (brackets_.empty()) fail_here(fmt::format("unexpected '{}'", op));
    if (brackets_.back() != op[0]) {
      fail_here(fmt::format("unexpected '{}', expected '{}'", op, brackets_.back()));
    }
    brackets_.pop_back();
  }

  void lex_name() {
    size_t end = at_;
    while (end < source_.size() && is_name_char(decode_char(source_, end))) {
      end += char_bytes(source_[end]);
    }
    add(TokenKind::name, std::string(source_.substr(at_, end - at_)));
    advance(end);
  }

  /// The end of digits with optional single underscores between them; `at` if there are none.
  size_t skip_digits(size_t at) const {
    while (at < source_.size() &&
           (is_ascii_digit(source_[at]) ||
            (source_[at] == '_' && at + 1 < source_.size() && is_ascii_digit(source_[at + 1])))) {
      ++at;
    }
    return at;
  }

  void lex_number() {
    size_t end = skip_digits(at_);
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
    bool real = false;
    if (!after_dot) {
      if (ahead(".", end) && end + 1 < source_.size() && is_ascii_digit(source_[end + 1])) {
        end = skip_digits(end + 1);
        real = true;
      }
      if (ahead("e", end) || ahead("E", end)) {
        const size_t digits = end + 1 + (ahead("+", end + 1) || ahead("-", end + 1) ? 1 : 0);
        if (digits < source_.size() && is_ascii_digit(source_[digits])) {
          end = skip_digits(digits);
          real = true;
        }
      }
    }
    if (!real) end = end_of_integer();
    std::string digits(source_.substr(at_, end - at_));
    digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
    add(real ? TokenKind::real : TokenKind::integer, std::move(digits));
    advance(end);
  }

  size_t end_of_integer() const {
    constexpr std::string_view kHex = "0123456789abcdefABCDEF_";
    if (source_[at_] == '0' && at_ + 2 < source_.size()) {
      const char base = static_cast<char>(source_[at_ + 1] | 0x20);
      const std::string_view digits = base == 'x'   ? kHex
                                      : base == 'o' ? std::string_view("01234567_")
                                      : base == 'b' ? std::string_view("01_")
                                                    : std::string_view();
      if (!digits.empty() && digits.find(source_[at_ + 2]) != std::string_view::npos) {
        const size_t end = source_.find_first_not_of(digits, at_ + 2);
        return end == std::string_view::npos ? source_.size() : end;
      }
    }
    if (source_[at_] == '0') {  // 007 is not one number, but 00 and then 7
      const size_t end = source_.find_first_not_of("0_", at_);
      return end == std::string_view::npos ? source_.size() : end;
    }
    return skip_digits(at_);
  }

  void lex_string() {
    const char quote = source_[at_];
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail_here("a string is not closed");
    add(TokenKind::string, unescape(source_.substr(at_ + 1, end - at_ - 1), line_));
    advance(end + 1);
  }

  const std::string owned_;
  const std::string_view source_;
  std::vector<Token> tokens_;
  std::string brackets_;  // the closing brackets of the open ones
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // whether the last text ended a line
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(normalized(source)).run(); }

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::data:
      return "text";
    case TokenKind::variable_begin:
      return "'{{'";
    case TokenKind::variable_end:
      return "'}}'";
    case TokenKind::block_begin:
      return "'{%'";
    case TokenKind::block_end:
      return "'%}'";
    case TokenKind::string:
      return "a string";
    case TokenKind::name:
    case TokenKind::integer:
    case TokenKind::real:
    case TokenKind::op:
      return fmt::format("'{}'", token.text);
    case TokenKind::end:
      return "the end of the template";
  }
  return "";
}

}  // namespace snapkv::jinja
