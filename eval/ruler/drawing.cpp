// SPDX-License-Identifier: MIT
// Random words and numbers for the RULER tasks.
#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "eval/ruler/tasks.h"

namespace snapkv::eval {

extern const char* const kRulerWords;  // generated: see CMakeLists.txt

std::vector<size_t> draw_different(Random& random, size_t n, size_t k) {
  std::vector<size_t> all(n);
  std::iota(all.begin(), all.end(), size_t{0});
  for (size_t i = 0; i < k; ++i) std::swap(all[i], all[i + random.below(n - i)]);
  all.resize(k);
  return all;
}

std::string draw_letters(Random& random, size_t n, char first) {
  std::string text;
  for (size_t i = 0; i < n; ++i) {
    text += static_cast<char>(first + static_cast<char>(random.below(26)));
  }
  return text;
}

RulerWords::RulerWords() {
  const nlohmann::json lists = nlohmann::json::parse(kRulerWords);
  lists.at("adjectives").get_to(adjectives_);
  lists.at("nouns").get_to(nouns_);
  lists.at("verbs").get_to(all_);
  all_.insert(all_.end(), adjectives_.begin(), adjectives_.end());
  all_.insert(all_.end(), nouns_.begin(), nouns_.end());
}

std::string RulerWords::pair_at(size_t i) const {
  return adjectives_[i / nouns_.size()] + "-" + nouns_[i % nouns_.size()];
}

std::string RulerWords::pair(Random& random) const {
  return pair_at(random.below(adjectives_.size() * nouns_.size()));
}

std::vector<std::string> RulerWords::draw(Random& random, size_t n, bool& are_pairs) const {
  const size_t n_pairs = adjectives_.size() * nouns_.size();
  are_pairs = n > all_.size();
  if (n > n_pairs) fail(ErrorCode::kUsage, "{} different words: {} are known", n, n_pairs);
  std::vector<std::string> words;
  for (const size_t i : draw_different(random, are_pairs ? n_pairs : all_.size(), n)) {
    words.push_back(are_pairs ? pair_at(i) : all_[i]);
  }
  return words;
}

const RulerWords& ruler_words() {
  static const RulerWords words;
  return words;
}

}  // namespace snapkv::eval
