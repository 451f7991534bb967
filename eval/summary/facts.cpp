// SPDX-License-Identifier: MIT
#include "eval/summary/facts.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <span>
#include <utility>

#include "eval/common/metrics.h"

namespace snapkv::eval {
namespace {

/// What follows a word tells of it and of the next one.
struct FactWord {
  std::string text;
  bool begins_sentence = false;
  bool follows = false;       ///< the word before directly: "Ann Lee", "3.11", "J. Lee"
  bool is_code = false;       ///< in backticks, or before "()"
  bool counts_lines = false;  ///< the number before an entry of a list
};

bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }
bool is_small(char c) { return c >= 'a' && c <= 'z'; }
bool is_decimal(char c) { return c >= '0' && c <= '9'; }
bool is_fact_letter(char c) {
  return is_capital(c) || is_small(c) || is_decimal(c) || c == '_' ||
         static_cast<signed char>(c) < 0;
}

std::string without_capitals(std::string text) {
  for (char& c : text) c = is_capital(c) ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

int64_t count_digits(std::string_view word) {
  return std::count_if(word.begin(), word.end(), is_decimal);
}

/// With ASCII's punctuation, without separators of thousands and without "'s".
std::string plain_text(std::string_view text) {
  const std::string plain = plain_punctuation(text);
  const auto at = [&](size_t i) { return i < plain.size() ? plain[i] : ' '; };
  std::string out;
  for (size_t i = 0; i < plain.size(); ++i) {
    const bool has_three = is_decimal(at(i + 1)) && is_decimal(at(i + 2)) && is_decimal(at(i + 3));
    if (plain[i] == ',' && i > 0 && is_decimal(plain[i - 1]) && has_three &&
        !is_decimal(at(i + 4))) {
      continue;
    }
    if (plain[i] == '\'' && at(i + 1) == 's' && i > 0 && is_fact_letter(plain[i - 1]) &&
        !is_fact_letter(at(i + 2))) {
      ++i;
      continue;
    }
    out += plain[i];
  }
  return out;
}

/// "J", "Mr", "St": a period after it does not end the sentence.
bool is_shortened(std::string_view word) {
  return !word.empty() && is_capital(word[0]) && (word.size() <= 2 || word == "Mrs");
}

/// Whether a sentence begins after `gap`, which stands between two words. `wraps`: lines are
/// broken within sentences.
bool ends_before(std::string_view before, std::string_view gap, bool wraps) {
  const size_t line = gap.find('\n');
  if (line != gap.npos) {
    const bool only_spaces = gap.find_first_not_of(" \t\r\n", line) == gap.npos;
    if (!wraps || !only_spaces || gap.find('\n', line + 1) != gap.npos) return true;
  }
  for (size_t i = 0; i < gap.size(); ++i) {
    const char next = i + 1 < gap.size() ? gap[i + 1] : 'a';
    if (gap[i] == '"') return true;
    if (std::string_view(".!?:").find(gap[i]) == std::string_view::npos) continue;
    if (is_fact_letter(next) || next == gap[i]) continue;
    if (gap[i] == '.' && i == 0 && is_shortened(before)) continue;
    if (std::string_view(" \n\r\t\"')*`]").find(next) != std::string_view::npos) return true;
  }
  return false;
}

bool joins_words(std::string_view before, std::string_view gap) {
  if (gap == " " || gap == "\n" || gap == " & " || gap == "::") return true;
  if (gap == ". ") return is_shortened(before);
  return gap.size() == 1 && std::string_view(".-/:'&#@").find(gap[0]) != std::string_view::npos;
}

/// The words of a text of plain_text().
std::vector<FactWord> fact_words(std::string_view text, bool wraps) {
  std::vector<FactWord> words;
  bool in_backticks = false;
  size_t end = 0;  // of the word before
  for (size_t i = 0; i < text.size();) {
    if (!is_fact_letter(text[i])) {
      // a fence of ``` is no pair; quotations of code stand within a line
      const bool is_fence = text.substr(i, 3) == "```";
      if (text[i] == '`' && !is_fence) in_backticks = !in_backticks;
      if (text[i] == '\n') in_backticks = false;
      i += is_fence ? 3 : 1;
      continue;
    }
    const std::string_view gap = text.substr(end, i - end);
    const std::string_view before = words.empty() ? "" : std::string_view(words.back().text);
    FactWord word;
    word.begins_sentence = words.empty() || ends_before(before, gap, wraps);
    word.follows = !words.empty() && !word.begins_sentence && joins_words(before, gap);
    end = i;
    while (end < text.size() && is_fact_letter(text[end])) ++end;
    word.text = text.substr(i, end - i);
    const std::string_view rest = text.substr(end, 2);
    word.is_code = in_backticks || rest == "()";
    word.counts_lines = word.begins_sentence && (rest == ". " || rest == ") ");
    words.push_back(std::move(word));
    i = end;
  }
  return words;
}

bool is_proper(const FactWord& word) { return is_capital(word.text[0]) && word.text != "I"; }

bool is_figure(const FactWord& word) { return is_decimal(word.text[0]) && !word.counts_lines; }

bool has_code_form(const FactWord& word) {
  const std::string& text = word.text;
  if (std::none_of(text.begin(), text.end(), [](char c) { return is_capital(c) || is_small(c); })) {
    return false;
  }
  if (word.is_code) return text.size() > 1;
  if (is_decimal(text[0])) return false;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '_' || is_decimal(text[i])) return true;
    if (is_capital(text[i]) && is_small(text[i - 1])) return true;
  }
  return false;
}

/// Whether a word counts for itself, and not only beside others.
bool counts_alone(const FactWord& word) {
  if (has_code_form(word)) return true;
  return is_figure(word) ? count_digits(word.text) >= 2 : is_proper(word) && word.text.size() >= 2;
}

std::string joined(std::span<const FactWord> words) {
  std::string text = words[0].text;
  for (const FactWord& word : words.subspan(1)) text += " " + word.text;
  return text;
}

/// Removes what stands twice and, if `ends`, what ends another: "Lee" beside "Ann Lee".
void remove_repeated(std::vector<std::string>& facts, bool ends) {
  std::vector<std::string> kept;
  for (const std::string& fact : facts) {
    const bool is_there = std::find(kept.begin(), kept.end(), fact) != kept.end();
    const bool is_end = ends && std::any_of(facts.begin(), facts.end(), [&](const auto& other) {
                          return other.ends_with(" " + fact);
                        });
    if (!is_there && !is_end) kept.push_back(fact);
  }
  facts = std::move(kept);
}

}  // namespace

FactText::FactText(std::string_view text) : words_(" ") {
  const std::string plain = plain_text(text);
  for (const FactWord& word : fact_words(plain, true)) {
    words_ += word.text + " ";
    const std::string lower = without_capitals(word.text);
    WordCounts& of_lower = counts_[lower];
    if (lower == word.text) {
      ++of_lower.lower;
    } else if (!word.begins_sentence) {
      ++counts_[word.text].as_name;
    }
  }
}

bool FactText::has(const std::string& words) const {
  return words_.find(" " + words + " ") != std::string::npos;
}

bool FactText::has_in_any_case(const std::string& word) const {
  const std::string lower = without_capitals(word);
  if (counts_.contains(lower) || counts_.contains(lower + "s")) return true;
  return lower.ends_with('s') && counts_.contains(lower.substr(0, lower.size() - 1));
}

bool FactText::has_as_name(const std::string& word) const {
  const auto found = counts_.find(word);
  if (found == counts_.end() || found->second.as_name == 0) return false;
  return found->second.as_name >= counts_.at(without_capitals(word)).lower;
}

NamedFacts FactText::named_in(std::string_view summary) const {
  const std::string plain = plain_text(summary);
  const std::vector<FactWord> words = fact_words(plain, false);
  NamedFacts named;
  const auto add_word = [&](const FactWord& word) {
    if (!counts_alone(word)) return;
    const bool is_plain_name = is_proper(word) && !has_code_form(word);
    if (is_plain_name ? has_as_name(word.text) : has(word.text)) {
      named.facts.push_back(word.text);
    } else if (!has_in_any_case(word.text) && !(is_plain_name && word.begins_sentence)) {
      named.strange.push_back(word.text);
    }
  };
  const auto can_be_fact = [](const FactWord& word) {
    return is_proper(word) || is_figure(word) || has_code_form(word);
  };
  for (size_t i = 0; i < words.size();) {
    const bool only_begins = words[i].begins_sentence && is_proper(words[i]) &&
                             !has_code_form(words[i]) && !has_as_name(words[i].text);
    if (!can_be_fact(words[i]) || only_begins) {
      ++i;
      continue;
    }
    size_t n = 1;
    while (i + n < words.size() && words[i + n].follows && can_be_fact(words[i + n])) ++n;
    const auto run = std::span(words).subspan(i, n);
    i += n;
    const std::string text = joined(run);
    const bool any_alone = std::any_of(run.begin(), run.end(), counts_alone);
    if (n > 1 && (any_alone || count_digits(text) >= 2) && has(text)) {
      named.facts.push_back(text);
    } else if (n > 1 && !any_alone && count_digits(text) >= 2) {
      named.strange.push_back(text);  // "3.5"
    } else {
      for (const FactWord& word : run) add_word(word);
    }
  }
  remove_repeated(named.facts, true);
  remove_repeated(named.strange, false);
  return named;
}

}  // namespace snapkv::eval
