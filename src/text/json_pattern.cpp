// SPDX-License-Identifier: MIT
#include "text/json_pattern.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"

namespace snapkv {
namespace {

// The property White_Space. PCRE2's \s also matches U+180E.
constexpr std::string_view kSpaces =
    R"(\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
// Oniguruma's word characters. PCRE2's \w includes all numbers, but no marks.
constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
constexpr std::string_view kHexDigit = "0-9A-Fa-f";

/// The characters of a shorthand that the two libraries read differently, as written in brackets.
std::optional<std::string_view> class_of(char shorthand) {
  switch (shorthand) {
    case 's':
      return kSpaces;
    case 'w':
      return kWord;
    case 'h':
      return kHexDigit;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string on_pcre2(std::string_view in, const std::string& origin) {
  const auto unsupported = [&](std::string_view what) {
    fail(ErrorCode::kBadModel, "{}: the pattern '{}' has {}, which is not supported", origin, in,
         what);
  };
  std::string out;
  bool inside = false;  // inside brackets
  for (size_t at = 0; at < in.size(); ++at) {
    const char c = in[at];
    if (c == '\\' && at + 1 < in.size()) {
      const char next = in[++at];
      const auto lower = static_cast<char>(next >= 'A' && next <= 'Z' ? next + 32 : next);
      const auto characters = class_of(lower);
      if (!characters) {
        (out += c) += next;
      } else if (next != lower && inside) {
        if (next != 'S') unsupported(fmt::format("\\{} in brackets", next));
        out += R"(\S)";  // differs from Oniguruma's in U+180E alone
      } else if (inside) {
        out += *characters;
      } else {
        (out += next == lower ? "[" : "[^") += *characters;
        out += ']';
      }
    } else if (inside && c == '&' && in.substr(at).starts_with("&&")) {
      unsupported("an intersection (&&)");
    } else if (inside && c == '[' && !in.substr(at).starts_with("[:")) {
      unsupported("brackets in brackets");
    } else if (inside && c == '[') {
      const size_t end = in.find(":]", at);
      if (end == std::string_view::npos) unsupported("an unfinished [:");
      out += in.substr(at, end + 2 - at);
      at = end + 1;
    } else {
      if (c == '[' && !inside) {
        inside = true;
        out += c;
        // A closing bracket that comes first is an ordinary character.
        if (in.substr(at + 1).starts_with('^')) out += in[++at];
        if (in.substr(at + 1).starts_with(']')) (out += '\\') += in[++at];
        continue;
      }
      if (c == ']') inside = false;
      out += c;
    }
  }
  return out;
}

JsonPattern::JsonPattern(const JsonField& field) {
  if (field.has("String")) {
    literal_ = field["String"].string();
    if (literal_.empty()) field["String"].fail_expected("a string that is not empty");
  } else if (field.has("Regex")) {
    const std::string& pattern = field["Regex"].string();
    regex_.emplace(on_pcre2(pattern, field.place()), Regex::Alphabet::unicode, field.place());
  } else {
    field.fail_expected("{\"String\": ...} or {\"Regex\": ...}");
  }
}

JsonPattern::JsonPattern(std::string_view regex, const std::string& origin)
    : regex_(Regex(on_pcre2(regex, origin), Regex::Alphabet::unicode, origin)) {}

JsonPattern JsonPattern::literal(std::string text) {
  JsonPattern pattern;
  pattern.literal_ = std::move(text);
  return pattern;
}

JsonPattern::Scanner::Scanner(const JsonPattern& pattern, std::string_view text)
    : pattern_(pattern) {
  if (pattern_.regex_) scanner_.emplace(*pattern_.regex_);
  set_text(text);
}

void JsonPattern::Scanner::set_text(std::string_view text) {
  text_ = text;
  at_ = 0;
  last_end_.reset();
  if (scanner_) scanner_->set_text(text);
}

std::optional<RegexMatch> JsonPattern::Scanner::next() {
  while (at_ <= text_.size() && !text_.empty()) {
    std::optional<RegexMatch> match;
    if (scanner_) {
      match = scanner_->find(at_);
    } else if (const size_t at = text_.find(pattern_.literal_, at_); at != text_.npos) {
      match = RegexMatch{at, at + pattern_.literal_.size()};
    }
    if (!match) break;
    const bool again = match->begin == match->end && last_end_ == match->end;
    if (again) {
      at_ += at_ < text_.size() ? utf8::length_by_lead(text_[at_]) : 1;
    } else {
      at_ = match->end;
      last_end_ = match->end;
      return match;
    }
  }
  at_ = text_.size() + 1;
  return std::nullopt;
}

}  // namespace snapkv
