// SPDX-License-Identifier: MIT
#include "eval/haystack.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "eval/record_file.h"

namespace snapkv::eval {

extern const char* const kHaystackGrammar;  // generated: see CMakeLists.txt

Haystack::Haystack() {
  const nlohmann::json grammar = nlohmann::json::parse(kHaystackGrammar);
  grammar.at("templates").get_to(templates_);
  grammar.at("words").get_to(words_);
}

std::string Haystack::sentence(Random& random) const {
  const std::string& pattern = templates_[random.below(templates_.size())];
  std::string text;
  for (size_t at = 0; at < pattern.size();) {
    const size_t open = pattern.find('{', at);
    text += pattern.substr(at, open - at);
    if (open == std::string::npos) break;
    const size_t close = pattern.find('}', open);
    const std::vector<std::string>& words = words_.at(pattern.substr(open + 1, close - open - 1));
    text += words[random.below(words.size())];
    at = close + 1;
  }
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string read_haystack(const std::string& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  if (error) fail(ErrorCode::kRuntime, "{}: can't be read: {}", folder, error.message());
  std::sort(files.begin(), files.end());
  std::string text;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream content;
    content << in.rdbuf();
    if (!in) fail(ErrorCode::kRuntime, "{}: can't be read", file.string());
    text += content.str();
    if (!text.empty() && text.back() != '\n') text += "\n";
  }
  if (text.find_first_not_of(" \n") == std::string::npos) {
    fail(ErrorCode::kUsage, "{}: no text in .txt files here", folder);
  }
  return to_utf8(text);
}

std::string haystack_id(const std::string& text) {
  if (text.empty()) return "generated";
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return fmt::format("{:016x}", hash);
}

}  // namespace snapkv::eval
