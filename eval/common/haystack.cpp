// SPDX-License-Identifier: MIT
#include "eval/common/haystack.h"

#include <fmt/core.h>

#include <cctype>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "eval/common/text_files.h"

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

std::string read_haystack(const std::string& path) {
  std::string text;
  for (const TextFile& file : read_texts({path}, std::cin)) {
    text += file.content;
    if (text.back() != '\n') text += "\n";
  }
  return text;
}

std::string haystack_id(const std::string& text) {
  return text.empty() ? "generated" : fmt::format("{:016x}", hash64(text));
}

}  // namespace snapkv::eval
