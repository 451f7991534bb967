// SPDX-License-Identifier: MIT
// Gaps in code, as after the first letters of a name that someone types. What is asked for is the
// rest of the name, which stands only once before that line, where it is defined.
#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "eval/make_qa/kinds.h"

namespace snapkv::eval {
namespace {

constexpr size_t kShortestName = 7;
constexpr size_t kShownLetters = 3;       // before the gap: they say which of many names is meant
constexpr size_t kMostAfterName = 80;     // bytes of the line after the name, which nobody asks for
constexpr size_t kMostSuffix = 1500;      // bytes of whole lines after the gap
constexpr size_t kFewestRest = 400;       // bytes between the rest's beginning and a gap
constexpr size_t kLongestCodeLine = 300;  // std::regex recurses over its input

// Code that may become a gap.
struct GapPlace {
  size_t defined = 0, begin = 0, line_end = 0;
  size_t last_mention = 0;  // end of the name's last occurrence before, inside other names too
  std::string name, answer, suffix;
};

bool is_name_byte(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Whether a name looks like one that is used for this thing alone: snake_case, camelCase.
bool is_telling(std::string_view name) {
  if (name.size() < kShortestName || name.starts_with("__")) return false;
  if (name.find('_', 1) < name.size() - 1) return true;
  for (size_t i = 1; i < name.size(); ++i) {
    const auto before = static_cast<unsigned char>(name[i - 1]);
    const auto here = static_cast<unsigned char>(name[i]);
    if (std::islower(before) != 0 && std::isupper(here) != 0) return true;
  }
  return false;
}

// The end of the comment or string that begins at `at`; `at` if none does.
size_t end_of_aside(std::string_view text, size_t at, bool is_python) {
  const auto after = [&](std::string_view mark, size_t from) {
    const size_t found = text.find(mark, from);
    return found == text.npos ? text.size() : found + mark.size();
  };
  const std::string_view here = text.substr(at, 3);
  if (is_python && (here == R"(""")" || here == "'''")) return after(here, at + 3);
  if (!is_python && here.starts_with("/*")) return after("*/", at + 2);
  if (is_python ? here.starts_with("#") : here.starts_with("//")) {
    return std::min(text.find('\n', at), text.size());
  }
  if (text[at] != '"' && !(is_python && text[at] == '\'')) return at;
  size_t end = at + 1;
  while (end < text.size() && text[end] != text[at] && text[end] != '\n') {
    end += text[end] == '\\' ? 2 : 1;
  }
  return std::min(end + 1, text.size());
}

// For each byte, whether it is code: neither a comment nor a string.
std::vector<bool> code_bytes(std::string_view text, bool is_python) {
  std::vector<bool> is_code(text.size(), true);
  for (size_t i = 0; i < text.size();) {
    const size_t end = end_of_aside(text, i, is_python);
    for (size_t k = i; k < end; ++k) is_code[k] = false;
    i = std::max(end, i + 1);
  }
  return is_code;
}

std::map<std::string_view, std::vector<size_t>> places_of_names(std::string_view text) {
  std::map<std::string_view, std::vector<size_t>> places;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    for (end = begin; end < text.size() && is_name_byte(text[end]);) ++end;
    const std::string_view name = text.substr(begin, end - begin);
    if (is_telling(name) && std::isdigit(static_cast<unsigned char>(name[0])) == 0) {
      places[name].push_back(begin);
    }
  }
  return places;
}

size_t line_begin(std::string_view text, size_t at) {
  const size_t before = text.substr(0, at).rfind('\n');
  return before == text.npos ? 0 : before + 1;
}

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t begin = std::min(text.find_first_not_of(kBlank), text.size());
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

// Whether the name at `at` is defined there: a function, class, type, macro, variable or attribute.
bool is_definition(std::string_view text, size_t at) {
  static const std::regex kDefinitions[] = {
      std::regex(R"(^\s*(?:async )?def ([A-Za-z_]\w*)\()"),
      std::regex(R"(^\s*class ([A-Za-z_]\w*)\b)"),
      std::regex(R"(^\s*(?:self\.|cls\.)?([A-Za-z_]\w*)\s*(?::[^=]*)?=(?!=))"),
      std::regex(R"(^#\s*define\s+([A-Za-z_]\w*))"),
      std::regex(R"(^[A-Za-z_][\w:<>,\s*&]*[\s*&]([A-Za-z_]\w*)\()"),
      std::regex(R"(^\s*(?:struct|enum|union)\s+(?:class )?([A-Za-z_]\w*))"),
  };
  const size_t begin = line_begin(text, at);
  const size_t end = std::min(text.find('\n', at), text.size());
  if (end - begin > kLongestCodeLine) return false;
  const std::string line(text.substr(begin, end - begin));
  return std::any_of(std::begin(kDefinitions), std::end(kDefinitions), [&](const auto& regex) {
    std::smatch match;
    return std::regex_search(line, match, regex) &&
           begin + static_cast<size_t>(match.position(1)) == at;
  });
}

// The lines after a gap that ends at `line_end`, up to kMostSuffix bytes.
std::string_view lines_after(std::string_view text, size_t line_end) {
  const std::string_view suffix = text.substr(line_end, kMostSuffix);
  if (line_end + suffix.size() == text.size()) return suffix;
  return suffix.substr(0, suffix.rfind('\n') + 1);
}

// Adds the second occurrence of a name if it can be a gap.
void add_place(std::string_view text, const std::vector<bool>& is_code, std::string_view name,
               size_t defined, size_t at, std::vector<GapPlace>& places) {
  if (!is_code[defined] || !is_code[at] || !is_definition(text, defined) ||
      is_definition(text, at)) {
    return;
  }
  const size_t line_end = std::min(text.find('\n', at), text.size());
  const size_t begin = line_begin(text, at);
  size_t n_shown = name.find_first_not_of('_') + kShownLetters;
  if (name[n_shown - 1] == '_') --n_shown;  // "re|_escaped": models begin such a rest with "_"
  const std::string_view answer = name.substr(n_shown);
  const std::string_view suffix = lines_after(text, line_end);
  const bool begins_line = without_blanks(text.substr(begin, at - begin)).empty();
  if (begins_line || line_end - at - name.size() > kMostAfterName ||
      without_blanks(suffix).empty() || suffix.find(name) != suffix.npos) {
    return;
  }
  const size_t mention = text.substr(0, at).rfind(name);
  places.push_back({defined, at + n_shown, line_end, mention + name.size(), std::string(name),
                    std::string(answer), std::string(suffix)});
}

// The gaps, one for each line, whose names are defined before `rest` and missing from there on.
std::vector<const GapPlace*> gaps_after(const std::vector<GapPlace>& places, size_t rest) {
  std::map<size_t, const GapPlace*> by_line;
  for (const GapPlace& place : places) {
    if (place.last_mention <= rest && place.begin >= rest + kFewestRest) {
      by_line.emplace(place.line_end, &place);
    }
  }
  std::vector<const GapPlace*> gaps;
  for (const auto& [line, place] : by_line) gaps.push_back(place);
  return gaps;
}

}  // namespace

MadeContext make_middle(const SourceText& source, int64_t n, Random& random) {
  if (!source.is_code) return {};
  const std::string_view text = source.text;
  const std::vector<bool> is_code = code_bytes(text, source.name.ends_with(".py"));
  std::vector<GapPlace> places;
  for (const auto& [name, found] : places_of_names(text)) {
    if (found.size() > 1) add_place(text, is_code, name, found[0], found[1], places);
  }
  std::sort(places.begin(), places.end(),
            [](const GapPlace& a, const GapPlace& b) { return a.begin < b.begin; });
  // the rest begins at the line, of those after an empty one, that allows most gaps
  size_t rest = 0;
  std::vector<const GapPlace*> gaps;
  for (size_t i = text.find("\n\n"); i < text.size(); i = text.find("\n\n", i + 1)) {
    if (!is_code[i]) continue;
    std::vector<const GapPlace*> here = gaps_after(places, i + 2);
    if (here.size() <= gaps.size()) continue;
    gaps = std::move(here);
    rest = i + 2;
  }
  while (std::ssize(gaps) > n) {
    gaps.erase(gaps.begin() + static_cast<int64_t>(random.below(gaps.size())));
  }
  MadeContext made;
  for (auto gap = gaps.rbegin(); gap != gaps.rend(); ++gap) {  // the longest context first
    const GapPlace& place = **gap;
    made.questions.push_back(
        {place.begin, "", "", {place.answer}, {place.suffix, place.name, place.defined, rest}});
  }
  return made;
}

}  // namespace snapkv::eval
