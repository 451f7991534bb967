// SPDX-License-Identifier: MIT
// The functions are named after the steps in Porter's paper. A word is [C](VC)^m[V], where m counts
// its syllables.
#include "eval/common/porter_stemmer.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace snapkv::eval {
namespace {

struct Rule {
  std::string_view suffix, replacement;
};

bool is_consonant(std::string_view w, size_t i) {
  switch (w[i]) {
    case 'a':
    case 'e':
    case 'i':
    case 'o':
    case 'u':
      return false;
    case 'y':
      return i == 0 || !is_consonant(w, i - 1);
    default:
      return true;
  }
}

// m in the paper: the number of changes from vowel to consonant.
int measure(std::string_view stem) {
  int m = 0;
  for (size_t i = 1; i < stem.size(); ++i) {
    if (!is_consonant(stem, i - 1) && is_consonant(stem, i)) ++m;
  }
  return m;
}

bool has_vowel(std::string_view stem) {
  for (size_t i = 0; i < stem.size(); ++i) {
    if (!is_consonant(stem, i)) return true;
  }
  return false;
}

bool ends_double_consonant(std::string_view w) {
  const size_t n = w.size();
  return n >= 2 && w[n - 1] == w[n - 2] && is_consonant(w, n - 1);
}

// *o in the paper: consonant, vowel, consonant other than w, x, y.
bool ends_short(std::string_view w) {
  const size_t n = w.size();
  return n >= 3 && is_consonant(w, n - 3) && !is_consonant(w, n - 2) && is_consonant(w, n - 1) &&
         w[n - 1] != 'w' && w[n - 1] != 'x' && w[n - 1] != 'y';
}

std::string_view without(std::string_view w, std::string_view suffix) {
  return w.substr(0, w.size() - suffix.size());
}

// Applies the first rule whose suffix matches, if the stem's measure exceeds `above`. The rules of
// a step are ordered so that the longest matching suffix comes first.
void replace_suffix(std::string& w, std::span<const Rule> rules, int above) {
  for (const auto& [suffix, replacement] : rules) {
    if (!w.ends_with(suffix)) continue;
    const std::string_view stem = without(w, suffix);
    if (measure(stem) > above) w = std::string(stem) + std::string(replacement);
    return;
  }
}

void step_1a(std::string& w) {
  if (w.ends_with("sses") || w.ends_with("ies")) {
    w.resize(w.size() - 2);
  } else if (w.ends_with("s") && !w.ends_with("ss")) {
    w.pop_back();
  }
}

void step_1b(std::string& w) {
  if (w.ends_with("eed")) {
    if (measure(without(w, "eed")) > 0) w.pop_back();
    return;
  }
  const std::string_view suffix = w.ends_with("ed") ? "ed" : "ing";
  if (!w.ends_with(suffix) || !has_vowel(without(w, suffix))) return;
  w.resize(w.size() - suffix.size());
  if (w.ends_with("at") || w.ends_with("bl") || w.ends_with("iz")) {
    w += 'e';
  } else if (ends_double_consonant(w) && w.back() != 'l' && w.back() != 's' && w.back() != 'z') {
    w.pop_back();
  } else if (measure(w) == 1 && ends_short(w)) {
    w += 'e';
  }
}

void step_1c(std::string& w) {
  if (w.ends_with("y") && has_vowel(without(w, "y"))) w.back() = 'i';
}

void step_4(std::string& w) {
  static constexpr std::string_view kSuffixes[] = {
      "ement", "ment", "ent", "ance", "ence", "able", "ible", "ant", "ism", "ate",
      "iti",   "ous",  "ive", "ize",  "ion",  "al",   "er",   "ic",  "ou"};
  for (const std::string_view suffix : kSuffixes) {
    if (!w.ends_with(suffix)) continue;
    const std::string_view stem = without(w, suffix);
    const bool fits = suffix != "ion" || stem.ends_with("s") || stem.ends_with("t");
    if (fits && measure(stem) > 1) w.resize(stem.size());
    return;
  }
}

void step_5(std::string& w) {
  if (w.ends_with("e")) {
    const std::string_view stem = without(w, "e");
    const int m = measure(stem);
    if (m > 1 || (m == 1 && !ends_short(stem))) w.pop_back();
  }
  if (w.ends_with("ll") && measure(w) > 1) w.pop_back();
}

constexpr Rule kStep2[] = {
    {"ational", "ate"}, {"ization", "ize"}, {"iveness", "ive"}, {"fulness", "ful"},
    {"ousness", "ous"}, {"tional", "tion"}, {"biliti", "ble"},  {"entli", "ent"},
    {"ousli", "ous"},   {"ation", "ate"},   {"alism", "al"},    {"aliti", "al"},
    {"iviti", "ive"},   {"enci", "ence"},   {"anci", "ance"},   {"izer", "ize"},
    {"abli", "able"},   {"alli", "al"},     {"ator", "ate"},    {"eli", "e"}};
constexpr Rule kStep3[] = {{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"},
                           {"ical", "ic"},  {"ness", ""},  {"ful", ""}};

}  // namespace

std::string porter_stem(const std::string& word) {
  const bool plain =
      std::all_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  if (!plain || word.size() <= 2) return word;
  std::string w = word;
  step_1a(w);
  step_1b(w);
  step_1c(w);
  replace_suffix(w, kStep2, 0);
  replace_suffix(w, kStep3, 0);
  step_4(w);
  step_5(w);
  return w;
}

}  // namespace snapkv::eval
