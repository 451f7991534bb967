// SPDX-License-Identifier: MIT
#include "text/split_rules.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "base/utf8.h"
#include "text/unicode.h"

namespace snapkv {
namespace {

// The bytes of characters outside ASCII: 0x80 + 8 * (number of the set + 1, or 0) + category.
constexpr char kWhiteSpace = '\x0b';
constexpr size_t kBytesPerSet = 8;
constexpr size_t kMaxSets = 15;

/// A category as patterns write it, and its ASCII members as they are written in brackets.
struct CategoryClass {
  std::string_view name;
  unicode::Category category;
  std::string_view ascii;
};
constexpr CategoryClass kCategories[] = {
    {"L", unicode::Category::letter, "A-Za-z"},
    {"Lu", unicode::Category::letter, "A-Z"},
    {"Ll", unicode::Category::letter, "a-z"},
    {"M", unicode::Category::mark, ""},
    {"N", unicode::Category::number, "0-9"},
    {"P", unicode::Category::punctuation, R"(!-#%-*,-/:-;?-@\[-\]_\{\})"},
    {"S", unicode::Category::symbol, R"($+<->\^`\|~)"},
};

/// The byte of a category's members in set number `set` - 1, or in no set if `set` is 0.
constexpr char byte_of(unicode::Category category, size_t set) {
  return static_cast<char>(0x80 + kBytesPerSet * set + static_cast<size_t>(category));
}
constexpr char kNumber = byte_of(unicode::Category::number, 0);

bool contains(const CodePointSet& set, uint32_t c) {
  return std::any_of(set.begin(), set.end(),
                     [&](const auto& range) { return c >= range.first && c <= range.second; });
}

char byte_of(uint32_t c, const std::vector<CodePointSet>& sets) {
  if (unicode::is_white_space(c)) return kWhiteSpace;
  for (size_t i = 0; i < sets.size(); ++i) {
    if (contains(sets[i], c)) return byte_of(unicode::category(c), i + 1);
  }
  return byte_of(unicode::category(c), 0);
}

/// Reads "\x{HEX}" at `at` and moves past it.
uint32_t read_code_point(std::string_view pattern, size_t& at) {
  const size_t close = pattern.find('}', at);
  SNAPKV_CHECK(pattern.substr(at, 3) == "\\x{" && close != std::string_view::npos);
  uint32_t c = 0;
  const auto [end, error] = std::from_chars(pattern.data() + at + 3, pattern.data() + close, c, 16);
  SNAPKV_CHECK(error == std::errc() && end == pattern.data() + close && c >= 0x80);
  at = close + 1;
  return c;
}

/// Reads "\x{HEX}" or "\x{HEX}-\x{HEX}".
std::pair<uint32_t, uint32_t> read_range(std::string_view pattern, size_t& at) {
  const uint32_t first = read_code_point(pattern, at);
  uint32_t last = first;
  if (pattern.substr(at).starts_with("-\\x{")) last = read_code_point(pattern, ++at);
  SNAPKV_CHECK(last >= first);
  return {first, last};
}

/// The sets in a pattern's brackets, each listed once.
std::vector<CodePointSet> sets_of(std::string_view pattern) {
  std::vector<CodePointSet> sets;
  CodePointSet set;
  for (size_t at = 0; at < pattern.size();) {
    if (pattern.substr(at).starts_with("\\x{")) {
      set.push_back(read_range(pattern, at));
      continue;
    }
    if (pattern[at] == ']' && !set.empty()) {
      if (std::find(sets.begin(), sets.end(), set) == sets.end()) sets.push_back(set);
      set.clear();
    }
    at += pattern[at] == '\\' ? 2 : 1;
  }
  SNAPKV_CHECK(sets.size() <= kMaxSets);
  return sets;
}

void put_category(std::string_view name, size_t n_sets, bool inside, std::string& out) {
  const auto* found = std::find_if(std::begin(kCategories), std::end(kCategories),
                                   [&](const CategoryClass& c) { return c.name == name; });
  SNAPKV_CHECK(found != std::end(kCategories));
  if (!inside) out += '[';
  for (size_t set = 0; set <= n_sets; ++set) out += byte_of(found->category, set);
  out += found->ascii;
  if (!inside) out += ']';
}

/// `text` with one byte per character.
std::string shortened(std::string_view text, const std::vector<CodePointSet>& sets) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t ascii = utf8::ascii_prefix(text);
    out += text.substr(0, ascii);
    text.remove_prefix(ascii);
    while (!text.empty() && (text[0] & 0x80) != 0) {
      const size_t n = utf8::length_by_lead(text[0]);
      out += byte_of(utf8::code_point(text.data(), n), sets);
      text.remove_prefix(n);
    }
  }
  return out;
}

void put(std::vector<uint32_t>& lengths, size_t length) {
  if (length > 0) lengths.push_back(static_cast<uint32_t>(length));
}

void cut_by_pattern(std::string_view piece, Regex::Scanner& scanner,
                    std::vector<uint32_t>& lengths) {
  scanner.set_text(piece);
  size_t done = 0;
  for (size_t from = 0; from < piece.size();) {
    const auto match = scanner.find(from);
    if (!match) break;
    put(lengths, match->begin - done);
    put(lengths, match->end - match->begin);
    done = match->end;
    from = std::max(match->end, match->begin + 1);
  }
  put(lengths, piece.size() - done);
}

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
/// For a text that was shortened without sets.
bool is_digit_or_number(char c) { return is_ascii_digit(c) || c == kNumber; }

/// The end of the run of characters from `from` on that satisfy `predicate`.
template <typename Predicate>
size_t run_end(std::string_view piece, size_t from, Predicate predicate) {
  while (from < piece.size() && predicate(piece[from])) ++from;
  return from;
}

void cut_digit_groups(std::string_view piece, std::vector<uint32_t>& lengths) {
  size_t done = 0;
  for (size_t at = 0; at < piece.size();) {
    const size_t end = run_end(piece, at, is_digit_or_number);
    if (end == at) {
      ++at;
      continue;
    }
    for (size_t cut = at + ((end - at) % 3 != 0 ? (end - at) % 3 : 3); cut <= end; cut += 3) {
      put(lengths, cut - done);
      done = cut;
    }
    at = end;
  }
  put(lengths, piece.size() - done);
}

void cut_thousands(std::string_view piece, std::vector<uint32_t>& lengths) {
  size_t done = 0;
  for (size_t at = 0; at < piece.size();) {
    const size_t end = run_end(piece, at, is_ascii_digit);
    for (size_t cut = at + (end - at) % 3; cut < end; cut += 3) {
      put(lengths, cut - done);
      done = cut;
    }
    at = std::max(end, at + 1);
  }
  put(lengths, piece.size() - done);
}

}  // namespace

std::string expand_pattern(std::string_view pattern, std::vector<CodePointSet>& sets) {
  sets = sets_of(pattern);
  std::string out;
  bool inside = false;  // inside brackets
  CodePointSet set;
  for (size_t at = 0; at < pattern.size();) {
    const std::string_view rest = pattern.substr(at);
    if (rest.starts_with("\\p{")) {
      const std::string_view name = rest.substr(3, rest.find('}') - 3);
      put_category(name, sets.size(), inside, out);
      at += name.size() + 4;
    } else if (rest.starts_with("\\x{")) {
      SNAPKV_CHECK(inside);
      set.push_back(read_range(pattern, at));
    } else if (rest[0] == '\\') {
      out += rest.substr(0, 2);
      at += 2;
    } else {
      const char c = rest[0];
      if (c == ']' && !set.empty()) {
        const auto number = std::find(sets.begin(), sets.end(), set) - sets.begin() + 1;
        for (size_t i = 0; i < kBytesPerSet; ++i) {
          out += byte_of(static_cast<unicode::Category>(i), static_cast<size_t>(number));
        }
        set.clear();
      }
      if (c == '[') inside = true;
      if (c == ']') inside = false;
      out += c;
      ++at;
    }
  }
  SNAPKV_CHECK(!inside);
  return out;
}

SplitRules::SplitRules(std::span<const SplitRule> rules, const std::string& origin) {
  for (const SplitRule& rule : rules) {
    Step step = {rule.kind, {}, {}};
    if (rule.kind == SplitRule::Kind::pattern) {
      const std::string bytes = expand_pattern(rule.pattern, step.sets);
      step.regex.emplace_back(bytes, Regex::Alphabet::bytes, origin);
    }
    steps_.push_back(std::move(step));
  }
}

std::vector<uint32_t> SplitRules::split(std::string_view text) const {
  std::vector<uint32_t> lengths;  // in characters, converted to bytes at the end
  if (text.empty()) return lengths;
  const bool ascii = utf8::ascii_prefix(text) == text.size();
  std::string without_sets;
  std::string with_sets;
  std::string_view characters = text;
  if (!ascii) {
    without_sets = shortened(text, {});
    characters = without_sets;
  }
  lengths.push_back(static_cast<uint32_t>(characters.size()));
  std::vector<uint32_t> next;
  for (const Step& step : steps_) {
    std::string_view rest = characters;
    if (!ascii && !step.sets.empty()) rest = with_sets = shortened(text, step.sets);
    std::optional<Regex::Scanner> scanner;
    if (!step.regex.empty()) scanner.emplace(step.regex[0]);
    next.clear();
    next.reserve(lengths.size());
    for (const uint32_t length : lengths) {
      const std::string_view piece = rest.substr(0, length);
      rest.remove_prefix(length);
      if (scanner) {
        cut_by_pattern(piece, *scanner, next);
      } else if (step.kind == SplitRule::Kind::digit_groups) {
        cut_digit_groups(piece, next);
      } else {
        cut_thousands(piece, next);
      }
    }
    std::swap(lengths, next);
  }
  if (ascii) return lengths;
  const char* at = text.data();
  for (uint32_t& length : lengths) {
    const char* begin = at;
    for (uint32_t i = 0; i < length; ++i) at += utf8::length_by_lead(*at);
    length = static_cast<uint32_t>(at - begin);
  }
  return lengths;
}

}  // namespace snapkv
