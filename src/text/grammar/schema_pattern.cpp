// SPDX-License-Identifier: MIT
#include "text/grammar/schema_pattern.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/utf8.h"
#include "snapkv/grammar.h"
#include "text/grammar/schema_rules.h"

namespace snapkv::grammar {
namespace {

constexpr int kMostPatternNesting = 50;
constexpr size_t kMostPatternBytes = 20000;

CharSet set_of(std::initializer_list<CharSet::Range> ranges) {
  CharSet set;
  for (const auto& [first, last] : ranges) set.add(first, last);
  return set;
}

// The classes that ECMA-262 denotes by a letter.
std::optional<CharSet> named_class(char letter) {
  switch (letter) {
    case 'd':
      return set_of({{'0', '9'}});
    case 'D':
      return named_class('d')->negated();
    case 'w':
      return set_of({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
    case 'W':
      return named_class('w')->negated();
    case 's':
      return set_of({{'\t', '\r'},
                     {' ', ' '},
                     {0xa0, 0xa0},
                     {0x1680, 0x1680},
                     {0x2000, 0x200a},
                     {0x2028, 0x2029},
                     {0x202f, 0x202f},
                     {0x205f, 0x205f},
                     {0x3000, 0x3000},
                     {0xfeff, 0xfeff}});
    case 'S':
      return named_class('s')->negated();
    default:
      return std::nullopt;
  }
}

// An expression for one character of a set as written in a JSON string.
std::string in_json_string(const CharSet& set) {
  static const CharSet kEscaped = set_of({{0, 0x1f}, {'"', '"'}, {'\\', '\\'}});
  std::string text;
  const auto add = [&](const std::string& way) { text += (text.empty() ? "" : " | ") + way; };
  const CharSet plain = set.without(kEscaped);
  if (!plain.empty()) add(gbnf_class(plain));
  for (uint32_t c = 0; c <= '\\'; ++c) {
    if (!kEscaped.contains(c) || !set.contains(c)) continue;
    const std::string_view letters = "\b\t\n\f\r\"\\", names = "btnfr\"\\";
    const size_t named = letters.find(static_cast<char>(c));
    add(gbnf_literal(named == std::string_view::npos ? fmt::format("\\u{:04x}", c)
                                                     : fmt::format("\\{}", names[named])));
  }
  return "(" + text + ")";
}

class PatternReader {
 public:
  /// Of what the expression tells: strings of JSON in which it matches, or whole texts.
  enum class Form { json_strings, whole_texts };
  PatternReader(std::string_view pattern, const std::string& place, bool* left_out,
                Form form = Form::json_strings)
      : pattern_(pattern), place_(place), left_out_(left_out), form_(form) {}

  std::string run() {
    if (pattern_.size() > kMostPatternBytes) {
      reject(fmt::format("{} bytes; at most {} are supported", pattern_.size(), kMostPatternBytes));
    }
    at_ = utf8::valid_prefix(pattern_);
    if (!at_end()) fail(ErrorCode::kUsage, "{}: byte {}: not UTF-8", place_, at_ + 1);
    at_ = 0;
    std::string text = top_alternative();
    while (take('|')) text += " | " + top_alternative();
    if (at_ < pattern_.size()) reject("a ) without its (");
    return text;
  }

  /// The pattern as one character that is repeated; nothing where it is more than that.
  struct Repeated {
    std::string character;
    int64_t least = 1;
    std::optional<int64_t> most = 1;
  };
  std::optional<Repeated> repeated() {
    if (!take('^') || at_end() || std::string_view("(|)$*+?{^").find(peek()) != std::string::npos) {
      return std::nullopt;
    }
    if (peek() == '\\' && (pattern_.substr(at_, 2) == "\\b" || pattern_.substr(at_, 2) == "\\B")) {
      return std::nullopt;
    }
    Repeated result;
    result.character = item(0);
    const std::string times = repetition();
    if (!take('$') || !at_end()) return std::nullopt;
    if (times == "*" || times == "?") result.least = 0;
    if (times == "*" || times == "+") result.most.reset();
    if (times.starts_with('{')) {
      const size_t comma = times.find(',');
      result.least = std::stoll(times.substr(1));
      result.most = result.least;
      if (comma != std::string::npos) result.most.reset();
      if (comma != std::string::npos && times[comma + 1] != '}') {
        result.most = std::stoll(times.substr(comma + 1));
      }
    }
    return result;
  }

 private:
  [[noreturn]] void reject(const std::string& what) const {
    fail(ErrorCode::kUsage, "{}: pattern '{}', character {}: {}", place_, pattern_, at_ + 1, what);
  }
  [[noreturn]] void unsupported(const std::string& what) const {
    reject(what + " is not supported");
  }

  bool at_end() const { return at_ >= pattern_.size(); }
  char peek() const { return at_end() ? '\0' : pattern_[at_]; }
  bool take(char c) {
    if (at_end() || pattern_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view text) {
    if (pattern_.substr(at_, text.size()) != text) return false;
    at_ += text.size();
    return true;
  }

  /// One of the alternatives of the whole pattern; only these may have anchors. At an end without
  /// an anchor, any part of a JSON string may precede or follow the match.
  std::string top_alternative() {
    const bool at_begin = take('^');
    const std::string match = sequence(0);
    const bool to_end = take('$');
    if (!at_end() && peek() != '|' && peek() != ')') reject("$ is supported at the end only");
    if (form_ == Form::whole_texts) return "(" + match + ")";
    return fmt::format("{}({}){}", at_begin ? "" : "char* ", match, to_end ? "" : " char*");
  }

  std::string alternatives(int nesting) {
    std::string text = sequence(nesting);
    while (take('|')) text += " | " + sequence(nesting);
    return text;
  }

  std::string sequence(int nesting) {
    std::string text;
    while (!at_end() && peek() != '|' && peek() != ')' && peek() != '$') {
      if (left_out_ != nullptr && skip_assertion()) continue;
      const std::string one = item(nesting);
      text += (text.empty() ? "" : " ") + one + repetition();
    }
    return text;
  }

  /// Passes over look-around and word boundaries.
  bool skip_assertion() {
    if (take("\\b") || take("\\B")) {
      *left_out_ = true;
      return true;
    }
    if (!take("(?=") && !take("(?!") && !take("(?<=") && !take("(?<!")) return false;
    *left_out_ = true;
    bool in_class = false;
    for (int open = 1; open > 0; ++at_) {
      if (at_end()) reject("expected )");
      if (peek() == '\\') {
        ++at_;
      } else if (in_class) {
        in_class = peek() != ']';
      } else if (peek() == '[') {
        in_class = true;
      } else {
        open += peek() == '(' ? 1 : peek() == ')' ? -1 : 0;
      }
    }
    return true;
  }

  std::string one_of(const CharSet& set) const {
    return form_ == Form::json_strings ? in_json_string(set) : gbnf_class(set);
  }

  std::string item(int nesting) {
    if (take('(')) {
      if (nesting == kMostPatternNesting)
        reject(fmt::format("more than {} groups inside each other", nesting));
      if (take('?') && !take(':')) {
        if (peek() != '<' || pattern_.substr(at_, 2) == "<=" || pattern_.substr(at_, 2) == "<!") {
          unsupported("look-ahead and look-behind (?=, ?!, ?<=, ?<!)");
        }
        while (!at_end() && !take('>')) ++at_;  // a group's name has no meaning here
      }
      const std::string inside = alternatives(nesting + 1);
      if (peek() == '$') unsupported("$ inside a group");
      if (!take(')')) reject("expected )");
      return "(" + inside + ")";
    }
    if (take('.')) {
      return one_of(set_of({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}).negated());
    }
    if (take('[')) return one_of(character_class());
    switch (peek()) {
      case '^':
        unsupported("^ inside the pattern");
      case '*':
      case '+':
      case '?':
      case '{':
        reject(fmt::format("there is nothing that {} repeats", peek()));
      default:
        return one_of(character());
    }
  }

  std::string repetition() {
    std::string text;
    if (peek() == '*' || peek() == '+' || peek() == '?') {
      text = pattern_[at_++];
    } else if (take('{')) {
      text = "{" + count();
      if (take(',')) text += "," + (peek() == '}' ? "" : count());
      if (!take('}')) reject("expected }");
      text += "}";
    }
    if (!text.empty()) take('?');  // a lazy match has the same texts
    return text;
  }

  std::string count() {
    std::string digits;
    while (peek() >= '0' && peek() <= '9') digits += pattern_[at_++];
    if (digits.empty() || digits.size() > 6) reject("expected a number of repetitions");
    return digits;
  }

  /// Takes one character, or a class such as \d.
  CharSet character() {
    if (take('\\')) return escape(false);
    CharSet set;
    const uint32_t c = take_code_point();
    set.add(c, c);
    return set;
  }

  uint32_t take_code_point() {
    const size_t length = utf8::valid_length(pattern_.substr(at_));
    const uint32_t c = utf8::code_point(pattern_.data() + at_, length);
    at_ += length;
    return c;
  }

  CharSet escape(bool in_class) {
    if (at_end()) reject("nothing after the last \\");
    const char c = peek();
    if (const std::optional<CharSet> named = named_class(c)) {
      ++at_;
      return *named;
    }
    CharSet set;
    constexpr std::string_view kLetters = "nrtfv0", kMeanings = {"\n\r\t\f\v\0", 6};
    if (const size_t i = kLetters.find(c); i != std::string_view::npos) {
      ++at_;
      set.add(static_cast<uint32_t>(kMeanings[i]), static_cast<uint32_t>(kMeanings[i]));
      return set;
    }
    if (c == 'b' && in_class) {
      ++at_;
      set.add('\b', '\b');
      return set;
    }
    if (c == 'b' || c == 'B') unsupported("the word boundary \\b");
    if (c == 'p' || c == 'P') unsupported("the Unicode property \\p");
    if (c == 'k' || (c >= '1' && c <= '9')) unsupported("a reference to a group");
    if (c == 'c') unsupported("\\c");
    if (c == 'x' || c == 'u') {
      ++at_;
      const uint32_t value = hex(c == 'x' ? 2 : 4);
      set.add(value, value);
      if (set.empty()) reject("a surrogate is not a character");
      return set;
    }
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      unsupported(fmt::format("\\{}", c));
    }
    const uint32_t itself = take_code_point();
    set.add(itself, itself);
    return set;
  }

  uint32_t hex(int n_digits) {
    uint32_t value = 0;
    for (int i = 0; i < n_digits; ++i, ++at_) {
      const size_t digit = std::string_view("0123456789abcdef0123456789ABCDEF").find(peek());
      if (at_end() || digit == std::string_view::npos) reject("expected hexadecimal digits");
      value = value * 16 + static_cast<uint32_t>(digit % 16);
    }
    return value;
  }

  CharSet character_class() {
    const bool negated = take('^');
    CharSet set;
    while (!take(']')) {
      if (at_end()) reject("expected ]");
      const CharSet first = class_character();
      if (peek() == '-' && pattern_.substr(at_, 2) != "-]") {
        ++at_;
        const CharSet last = at_end() ? CharSet() : class_character();
        const auto is_one = [](const CharSet& s) {
          return s.ranges().size() == 1 && s.ranges()[0].first == s.ranges()[0].second;
        };
        if (!is_one(first) || !is_one(last) || last.ranges()[0].first < first.ranges()[0].first) {
          reject("no range of characters");
        }
        set.add(first.ranges()[0].first, last.ranges()[0].first);
      } else {
        set.add(first);
      }
    }
    if (negated) set = set.negated();
    if (set.empty()) reject("no character is allowed here");
    return set;
  }

  CharSet class_character() {
    if (take('\\')) return escape(true);
    CharSet set;
    const uint32_t c = take_code_point();
    set.add(c, c);
    return set;
  }

  std::string_view pattern_;
  const std::string& place_;
  bool* const left_out_;  // null: nothing may be
  const Form form_;
  size_t at_ = 0;
};

}  // namespace

std::string pattern_to_gbnf(std::string_view pattern, const std::string& place, bool* left_out) {
  return PatternReader(pattern, place, left_out).run();
}

std::string whole_text_pattern_to_gbnf(std::string_view pattern, const std::string& place) {
  return PatternReader(pattern, place, nullptr, PatternReader::Form::whole_texts).run();
}

std::optional<std::string> pattern_with_lengths(std::string_view pattern,
                                                const PatternLengths& lengths,
                                                const std::string& place) {
  const auto repeated = PatternReader(pattern, place, nullptr).repeated();
  if (!repeated) return std::nullopt;
  const int64_t least = std::max(lengths.least, repeated->least);
  const std::optional<int64_t> most = lengths.most && repeated->most
                                          ? std::min(*lengths.most, *repeated->most)
                                      : lengths.most ? lengths.most
                                                     : repeated->most;
  if (most && least > *most) {
    fail(ErrorCode::kUsage, "{}: pattern '{}': no string has it and minLength or maxLength", place,
         pattern);
  }
  return fmt::format("{}{{{},{}}}", repeated->character, least, most ? std::to_string(*most) : "");
}

}  // namespace snapkv::grammar
