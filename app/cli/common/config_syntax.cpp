// SPDX-License-Identifier: MIT
#include "cli/common/config_syntax.h"

#include <algorithm>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "cli/common/plain_text.h"

namespace snapkv::cli {
namespace {

/// Limit on the parts of a section's name: CLI11's time grows with their number times the file's
/// size. [command.task] has two.
constexpr int64_t kMostSectionParts = 8;

constexpr const char* kBlanks = " \t\r";
constexpr const char* kQuotes = "\"'`";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

class Checker {
 public:
  Checker(const std::string& text, const std::string& path) : lines_(text), path_(path) {}

  void run() {
    while (next_line()) {
      const std::string_view line = trimmed(line_);
      if (line.size() < 3 || line[0] == '#' || line[0] == ';') continue;
      if (line.front() == '[') {
        check_section(line);
        continue;
      }
      const size_t equals = line.find('=');
      if (equals == std::string_view::npos) continue;
      first_line_ = number_;
      setting_ = trimmed(line.substr(0, equals));
      check_value(std::string(line.substr(equals + 1)));
    }
  }

 private:
  bool next_line() {
    ++number_;
    return static_cast<bool>(std::getline(lines_, line_));
  }

  [[noreturn]] void bad(const char* what) const {
    fail(ErrorCode::kUsage, "{}: line {}: {}: {}", path_, first_line_, terminal_text(setting_, 100),
         what);
  }

  void check_section(std::string_view line) const {
    const int64_t n_parts = 1 + std::count(line.begin(), line.end(), '.');
    if (n_parts <= kMostSectionParts) return;
    fail(ErrorCode::kUsage, "{}: line {}: a section's name has {} parts, at most {} are allowed",
         path_, number_, n_parts, kMostSectionParts);
  }

  // A # begins a comment even in quotes, so it may cut off the closing quote.
  void check_value(std::string value) {
    value = trimmed(std::string_view(value).substr(0, value.find('#')));
    if (value.empty()) return;
    if (value.front() != '[') return check_words(value);
    if (value.size() == 1) bad("the list's first value must be on the line of its bracket");
    while (value.back() != ']' && next_line()) value += trimmed(line_);
    if (value.back() != ']') bad("the list has no closing bracket");
    check_list(std::string_view(value).substr(1, value.size() - 2));
  }

  void check_words(std::string_view value) const {
    while (!value.empty()) {
      if (starts_quote(value)) {
        value = after_quote(value);
        if (!value.empty() && value[0] != ',' &&
            std::string_view(kBlanks).find(value[0]) == std::string_view::npos) {
          bad("text follows a closing quote");
        }
      }
      // the next word
      const size_t end = value.find_first_of(" \t\r,");
      value = end == std::string_view::npos ? "" : trimmed(value.substr(end + 1));
    }
  }

  void check_list(std::string_view list) const {
    for (list = trimmed(list); !list.empty(); list = trimmed(list)) {
      size_t end = 0;
      if (starts_quote(list)) {
        list = trimmed(after_quote(list));
      } else {
        end = std::min(list.find(','), list.size());
        if (list.substr(0, end).find_first_of("\"'`[]=#") != std::string_view::npos) {
          bad("the list has no closing bracket, or a comma or a quote is missing in it");
        }
        list.remove_prefix(end);
      }
      if (list.empty()) return;
      if (list[0] != ',') bad("the list has no closing bracket, or a comma is missing in it");
      list.remove_prefix(1);
    }
  }

  static bool starts_quote(std::string_view text) {
    return std::string_view(kQuotes).find(text[0]) != std::string_view::npos;
  }

  // Returns the rest of `text` after the quoted string at its beginning.
  std::string_view after_quote(std::string_view text) const {
    size_t end = text.find(text[0], 1);
    while (end != std::string_view::npos && text[end - 1] == '\\')
      end = text.find(text[0], end + 1);
    if (end == std::string_view::npos) {
      bad("a quote is not closed on its line (a # begins a comment, in quotes too)");
    }
    text.remove_prefix(end + 1);
    const size_t next = text.find_first_not_of(kBlanks);
    if (next != 0 && next != std::string_view::npos && text[next] == ',') {
      bad("a blank stands between a closing quote and a comma");  // CLI11 reads an empty value
    }
    return text;
  }

  std::istringstream lines_;
  const std::string& path_;
  std::string line_;
  int number_ = 0;  // line number of line_, from 1
  int first_line_ = 0;
  std::string setting_;  // the setting that begins on first_line_
};

}  // namespace

void check_config_syntax(const std::string& text, const std::string& path) {
  Checker(text, path).run();
}

}  // namespace snapkv::cli
