// SPDX-License-Identifier: MIT
// Questions about lines "key: value" and "key = value", as in fact books and configurations.
#include <algorithm>
#include <map>
#include <optional>

#include "eval/make_qa/kinds.h"
#include "eval/make_qa/sentences.h"

namespace snapkv::eval {
namespace {

struct KeyLine {
  std::string key, value;
  size_t at = 0;  // where the value is in the text
};

// Whether this is a short name without the marks of a sentence.
bool is_key(std::string_view key) {
  return !key.empty() && key.size() <= 50 && std::count(key.begin(), key.end(), ' ') < 6 &&
         key.find_first_of(".,;!?\"'`(){}[]<>=:*\t") == std::string_view::npos && key[0] != '-' &&
         key[0] != '#';
}

// The value without a table's additions: "72 (2010 est.); 3rd in the world" becomes 72. Empty if it
// is too long to be asked for.
std::string_view value_in(std::string_view line) {
  const size_t note = std::min(line.find(" ("), line.find(';'));
  std::string_view value = line.substr(0, note);
  const size_t last = value.find_last_not_of(" \t\r.,");
  value = value.substr(0, last == std::string_view::npos ? 0 : last + 1);
  const bool fits = value.size() <= 60 && std::count(value.begin(), value.end(), ' ') < 10;
  return fits ? value : std::string_view();
}

std::optional<KeyLine> key_line(std::string_view text, size_t begin, size_t end) {
  const std::string_view line = text.substr(begin, end - begin);
  const size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos) return std::nullopt;
  for (const std::string_view mark : {": ", " = "}) {
    const size_t at = line.find(mark, first);
    if (at == std::string_view::npos || !is_key(line.substr(first, at - first))) continue;
    const size_t value = line.find_first_not_of(" \t", at + mark.size());
    if (value == std::string_view::npos) continue;
    return KeyLine{std::string(line.substr(first, at - first)),
                   std::string(value_in(line.substr(value))), begin + value};
  }
  return std::nullopt;
}

}  // namespace

MadeContext make_table(const SourceText& source, int64_t n, Random& random) {
  constexpr size_t kFewestLines = 5;  // and at least a quarter of all: prose has colons too
  if (source.is_code) return {};
  const std::string& text = source.text;
  std::vector<KeyLine> lines;
  std::map<std::string, int> n_lines;  // by key
  size_t n_filled = 0;                 // lines that are not blank
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view whole = std::string_view(text).substr(begin, end - begin);
    if (whole.find_first_not_of(" \t\r") != std::string_view::npos) ++n_filled;
    if (auto line = key_line(text, begin, end)) {
      ++n_lines[line->key];
      lines.push_back(std::move(*line));
    }
    begin = end + 1;
  }
  if (lines.size() < kFewestLines || lines.size() * 4 < n_filled) return {};
  std::vector<MadeQuestion> all;
  for (const KeyLine& line : lines) {
    if (n_lines.at(line.key) > 1 || line.value.empty()) continue;
    std::string question = "What does the text give for \"" + line.key + "\"?";
    if (!source.title.empty()) question = "What is the " + line.key + " of " + source.title + "?";
    all.push_back({line.at, question, line.key + ":", {single_spaced(line.value)}});
  }
  const WordIndex index(text);
  return {"", choose_questions(text, index, std::move(all), n, random)};
}

}  // namespace snapkv::eval
