// SPDX-License-Identifier: MIT
#include "eval/make_qa/kinds.h"

#include <algorithm>
#include <cmath>

#include "eval/common/metrics.h"

namespace snapkv::eval {

std::span<const MadeKind> made_kinds() {
  static constexpr MadeKind kKinds[] = {
      {"fact", "a sentence put between two of the text", make_facts},
      {"unique", "a name, number, quoted phrase or identifier that stands once", make_unique},
      {"table", "the value of a line 'key: value'", make_table},
      {"code", "a default, a constant, an exception or a base class", make_code},
      {"signature", "all parameters of a Python function, as they are written", make_signature},
      {"continue", "the next words of a sentence", make_continue},
      {"middle", "a name in code, defined far above, for models that fill gaps", make_middle, true},
  };
  return kKinds;
}

WordIndex::WordIndex(std::string_view text) : words_(answer_words(text)) {
  for (size_t i = 0; i < words_.size(); ++i) places_[words_[i]].push_back(i);
}

int64_t WordIndex::count(std::string_view phrase) const {
  const std::vector<std::string> wanted = answer_words(phrase);
  if (wanted.empty()) return 0;
  const auto places = places_.find(wanted.front());
  if (places == places_.end()) return 0;
  return std::count_if(places->second.begin(), places->second.end(), [&](size_t place) {
    return place + wanted.size() <= words_.size() &&
           std::equal(wanted.begin(), wanted.end(), words_.begin() + static_cast<int64_t>(place));
  });
}

bool is_answerable(const MadeQuestion& question, const WordIndex& index) {
  if (index.count(question.answers.front()) != 1) return false;
  return std::none_of(question.answers.begin(), question.answers.end(),
                      [&](const std::string& answer) {
                        return contains_words(question.question, answer) != 0 ||
                               contains_words(question.prefix, answer) != 0;
                      });
}

std::vector<MadeQuestion> choose_questions(const std::string& text, const WordIndex& index,
                                           std::vector<MadeQuestion> all, int64_t n,
                                           Random& random) {
  std::vector<MadeQuestion> chosen;
  for (int64_t i = 0; i < n; ++i) {
    // A random place in the i-th of n equal parts.
    const size_t wanted = (static_cast<size_t>(i) * 1000 + random.below(1000)) * text.size() /
                          (static_cast<size_t>(n) * 1000);
    const auto distance = [&](const MadeQuestion& question) {
      return question.at > wanted ? question.at - wanted : wanted - question.at;
    };
    std::stable_sort(all.begin(), all.end(),
                     [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
    const auto found = std::find_if(all.begin(), all.end(), [&](const MadeQuestion& question) {
      return is_answerable(question, index);
    });
    if (found == all.end()) break;
    chosen.push_back(std::move(*found));
    all.erase(all.begin(), found + 1);  // the ones before it are not answerable
  }
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  return chosen;
}

}  // namespace snapkv::eval
