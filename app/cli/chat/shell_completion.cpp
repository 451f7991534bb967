// SPDX-License-Identifier: MIT
#include "cli/chat/shell_completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "cli/common/plain_text.h"

namespace snapkv::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBlanks = " \t\n";

bool is_quote(char c) { return c == '"' || c == '\''; }

/// `text` without the backslashes that stand before one of `escaped`; all punctuation for none.
std::string without_backslashes(std::string_view text, std::string_view escaped) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    const auto byte = static_cast<unsigned char>(next);
    const bool drops = escaped.empty() ? std::isspace(byte) != 0 || std::ispunct(byte) != 0
                                       : escaped.find(next) != std::string_view::npos;
    if (text[i] == '\\' && next != '\0' && drops) ++i;
    plain += text[i];
  }
  return plain;
}

/// What stands between quotes, or without any where `quote` is '\0'.
std::string unquoted(std::string_view text, char quote) {
  if (quote == '\'') return std::string(text);
  return without_backslashes(text, quote == '"' ? "\"\\" : "");
}

std::string with_home(const std::string& path) {
  const char* home = std::getenv("HOME");
  if (home == nullptr || !path.starts_with("~/")) return path;
  return home + path.substr(1);
}

/// A file's name as it is typed; nothing where these quotes can't hold it.
std::string quoted_name(const std::string& name, char quote) {
  if (quote == '\'') return name.find('\'') == std::string::npos ? name : "";
  std::string typed;
  for (const char c : name) {
    if (c == '\\' || (quote == '"' && c == '"')) typed += '\\';
    typed += c;
  }
  return typed;
}

Completion complete_path(std::string_view line, size_t begin) {
  const char quote = begin < line.size() && is_quote(line[begin]) ? line[begin] : '\0';
  const std::string_view body = line.substr(begin + (quote != '\0' ? 1 : 0));
  const size_t slash = body.rfind('/');
  const std::string_view folder = slash == std::string_view::npos ? "" : body.substr(0, slash + 1);
  const std::string name_begin = unquoted(body.substr(folder.size()), quote);
  const std::string opened = folder.empty() ? "." : with_home(unquoted(folder, quote));
  Completion completion{begin, {}};
  std::error_code error;
  for (fs::directory_iterator at(opened, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const bool is_hidden = name.starts_with('.') && !name_begin.starts_with('.');
    const std::string typed = quoted_name(name, quote);
    if (is_hidden || typed.empty() || !name.starts_with(name_begin)) continue;
    std::error_code ignored;  // it may have gone meanwhile
    const std::string last = at->is_directory(ignored) ? "/" : std::string(quote != '\0', quote);
    completion.choices.push_back(std::string(quote != '\0', quote) + std::string(folder) + typed +
                                 last);
  }
  std::sort(completion.choices.begin(), completion.choices.end());
  return completion;
}

Completion complete_word(std::string_view line, size_t begin, const std::vector<std::string>& words,
                         const char* before, const char* after) {
  Completion completion{begin, {}};
  const std::string_view typed = line.substr(begin);
  for (const std::string& word : words) {
    const std::string whole = before + word;
    if (whole.starts_with(typed)) completion.choices.push_back(whole + after);
  }
  std::sort(completion.choices.begin(), completion.choices.end());
  return completion;
}

}  // namespace

Completion complete_line(std::string_view line, const CompletionWords& words) {
  if (!line.starts_with('/') || line.starts_with("//")) return {};
  const size_t end = line.find_first_of(kBlanks);
  if (end == std::string_view::npos) return complete_word(line, 0, words.commands, "/", " ");
  const std::string command(line.substr(1, end - 1));
  size_t begin = std::min(line.find_first_not_of(kBlanks, end), line.size());
  constexpr std::string_view kFirst = "first ";  // /file first PATH
  if (command == "file" && line.substr(begin).starts_with(kFirst)) {
    begin = std::min(line.find_first_not_of(kBlanks, begin + kFirst.size()), line.size());
  }
  const auto& paths = words.path_commands;
  if (std::find(paths.begin(), paths.end(), command) != paths.end()) {
    return complete_path(line, begin);
  }
  const bool is_first = line.find_first_of(kBlanks, begin) == std::string_view::npos;
  if (command == "policy" && is_first) return complete_word(line, begin, words.policies, "", " ");
  return {};
}

std::vector<std::string> completion_rows(const std::vector<std::string>& choices, int width) {
  constexpr size_t kMost = 60, kGap = 2;
  std::vector<std::string> names;
  size_t widest = 0;
  for (const std::string& choice : choices) {
    const size_t slash = choice.size() < 2 ? 0 : choice.rfind('/', choice.size() - 2);
    const bool has_folder = slash != std::string::npos && slash > 0;
    names.push_back(printable(has_folder ? choice.substr(slash + 1) : choice));
    widest = std::max(widest, n_columns(names.back()) + kGap);
    if (names.size() == kMost) break;
  }
  const size_t n_per_row = std::max<size_t>(1, static_cast<size_t>(width) / widest);
  std::vector<std::string> rows;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i % n_per_row == 0) rows.emplace_back();
    rows.back() += names[i] + std::string(widest - n_columns(names[i]), ' ');
  }
  if (names.size() < choices.size()) {
    rows.push_back(fmt::format("... and {} more", choices.size() - names.size()));
  }
  return rows;
}

std::string typed_path(const std::string& text) {
  if (text.empty() || !is_quote(text.front())) {
    std::error_code error;
    // a file whose name has backslashes, typed as it is
    if (fs::exists(with_home(text), error)) return with_home(text);
    return with_home(unquoted(text, '\0'));
  }
  if (text.size() < 2 || text.back() != text.front()) {
    fail(ErrorCode::kUsage, "{}: the quote that the path begins with is not closed", text);
  }
  return with_home(unquoted(std::string_view(text).substr(1, text.size() - 2), text.front()));
}

}  // namespace snapkv::cli
