// SPDX-License-Identifier: MIT
#include "eval/common/metrics.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/finite.h"
#include "eval/common/characters.h"
#include "eval/common/porter_stemmer.h"

namespace snapkv::eval {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    if (!is_space(c)) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(word);
  return words;
}

// Words are runs of ASCII letters, digits and bytes beyond ASCII, so words of other scripts stay
// whole.
std::vector<std::string> rouge_words(std::string_view text, bool stemmed) {
  std::string spaced = lower(text);
  for (char& c : spaced) {
    const bool keep = is_digit(c) || (c >= 'a' && c <= 'z') || static_cast<signed char>(c) < 0;
    if (!keep) c = ' ';
  }
  std::vector<std::string> words = split(spaced);
  if (stemmed) {
    for (std::string& word : words) word = word.size() > 3 ? porter_stem(word) : word;
  }
  return words;
}

std::vector<std::string> squad_words(std::string_view text) {
  std::string kept;
  for (const char c : lower(text)) {
    if (std::ispunct(static_cast<unsigned char>(c)) == 0) kept += c;
  }
  std::vector<std::string> words = split(kept);
  std::erase_if(words, [](const std::string& w) { return w == "a" || w == "an" || w == "the"; });
  return words;
}

// The replacement for the punctuation mark at `i` of `text` (lower case): a space between words,
// and nothing if the mark is part of a word, as in "1,234", "don't" and "u.s.".
std::string in_place_of_mark(std::string_view text, size_t i) {
  const auto at = [&](size_t k) { return k < text.size() ? text[k] : ' '; };
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const char before = i > 0 ? text[i - 1] : ' ', before_that = i > 1 ? text[i - 2] : ' ';
  const bool between_digits = is_digit(before) && is_digit(at(i + 1));
  if (text[i] == '\'') return "";
  if (text[i] == ',' && between_digits) return "";
  if (text[i] != '.') return " ";
  if (between_digits) return ".";
  const bool one_letter = is_letter(before) && !is_letter(before_that) && !is_digit(before_that);
  return one_letter ? "" : " ";
}

double f1(double common, size_t n_answer, size_t n_reference) {
  if (common == 0) return 0;
  const double precision = common / static_cast<double>(n_answer);
  const double recall = common / static_cast<double>(n_reference);
  return 2 * precision * recall / (precision + recall);
}

double overlap_f1(const std::vector<std::string>& answer,
                  const std::vector<std::string>& reference) {
  std::map<std::string_view, int64_t> left;
  for (const std::string& word : reference) ++left[word];
  int64_t common = 0;
  for (const std::string& word : answer) {
    const auto found = left.find(word);
    if (found != left.end() && found->second-- > 0) ++common;
  }
  return f1(static_cast<double>(common), answer.size(), reference.size());
}

template <typename Sequence>
size_t common_subsequence(const Sequence& a, const Sequence& b) {
  std::vector<size_t> row(b.size() + 1, 0);
  for (const auto& x : a) {
    size_t diagonal = 0;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t above = row[j + 1];
      row[j + 1] = x == b[j] ? diagonal + 1 : std::max(above, row[j]);
      diagonal = above;
    }
  }
  return row.back();
}

// The UTF-8 characters of a text; a byte that does not continue one begins one.
std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    out.push_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

// As in the package, white space alone becomes a sentence of one empty word.
std::vector<std::vector<std::string>> sentences(std::string_view text) {
  std::vector<std::vector<std::string>> out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('.', at), text.size());
    if (end > at) out.push_back(split(text.substr(at, end - at)));
    if (end > at && out.back().empty()) out.back().emplace_back();
    at = end + 1;
  }
  return out;
}

// Adds the words of the longest common subsequence; of several that are equally long, the one that
// skips words at the end of `answer`.
void add_common_words(const std::vector<std::string>& reference,
                      const std::vector<std::string>& answer, std::set<std::string>& words) {
  const size_t width = answer.size() + 1;
  std::vector<uint32_t> length((reference.size() + 1) * width, 0);
  for (size_t i = 1; i <= reference.size(); ++i) {
    for (size_t j = 1; j < width; ++j) {
      length[i * width + j] =
          reference[i - 1] == answer[j - 1]
              ? length[(i - 1) * width + j - 1] + 1
              : std::max(length[(i - 1) * width + j], length[i * width + j - 1]);
    }
  }
  for (size_t i = reference.size(), j = answer.size(); i > 0 && j > 0;) {
    if (reference[i - 1] == answer[j - 1]) {
      words.insert(reference[i - 1]);
      --i;
      --j;
    } else if (length[(i - 1) * width + j] > length[i * width + j - 1]) {
      --i;
    } else {
      --j;
    }
  }
}

}  // namespace

std::string plain_punctuation(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> kPlain[] = {
      {"\u2018", "'"}, {"\u2019", "'"}, {"\u201c", "\""}, {"\u201d", "\""}, {"\u2013", "-"},
      {"\u2014", "-"}, {"\u2026", "."}, {"\u00a0", " "},  {"\u00ab", "\""}, {"\u00bb", "\""}};
  std::string out;
  while (!text.empty()) {
    const auto found = std::find_if(std::begin(kPlain), std::end(kPlain), [&](const auto& plain) {
      return text.starts_with(plain.first);
    });
    out += found == std::end(kPlain) ? text.substr(0, 1) : found->second;
    text.remove_prefix(found == std::end(kPlain) ? 1 : found->first.size());
  }
  return out;
}

double rouge_1(std::string_view answer, std::string_view reference) {
  return overlap_f1(rouge_words(answer, true), rouge_words(reference, true));
}

double rouge_l(std::string_view answer, std::string_view reference) {
  const auto a = rouge_words(answer, false), b = rouge_words(reference, false);
  return f1(static_cast<double>(common_subsequence(a, b)), a.size(), b.size());
}

double rouge_l_summary(std::string_view answer, std::string_view reference) {
  const auto a = sentences(answer), b = sentences(reference);
  std::set<std::string> answer_words, reference_words, common;
  for (const auto& sentence : a) answer_words.insert(sentence.begin(), sentence.end());
  for (const auto& sentence : b) reference_words.insert(sentence.begin(), sentence.end());
  for (const auto& sentence : b) {
    for (const auto& other : a) add_common_words(sentence, other, common);
  }
  return f1(static_cast<double>(common.size()), answer_words.size(), reference_words.size());
}

double qa_f1(std::string_view answer, std::string_view reference) {
  return overlap_f1(squad_words(answer), squad_words(reference));
}

std::vector<std::string> answer_words(std::string_view text) {
  const std::string plain = lower(plain_punctuation(text));
  std::string spaced;
  for (size_t i = 0; i < plain.size(); ++i) {
    const bool mark = std::ispunct(static_cast<unsigned char>(plain[i])) != 0;
    spaced += mark ? in_place_of_mark(plain, i) : plain.substr(i, 1);
  }
  std::vector<std::string> words = split(spaced);
  std::erase_if(words, [](const std::string& w) { return w == "a" || w == "an" || w == "the"; });
  return words;
}

double contains_words(std::string_view answer, std::string_view reference) {
  const auto a = answer_words(answer), b = answer_words(reference);
  if (b.empty()) return answer.find(trimmed(reference)) != std::string_view::npos ? 1 : 0;
  return std::search(a.begin(), a.end(), b.begin(), b.end()) != a.end() ? 1 : 0;
}

double same_words(std::string_view answer, std::string_view reference) {
  const auto b = answer_words(reference);
  if (b.empty()) return trimmed(answer) == trimmed(reference) ? 1 : 0;
  return answer_words(answer) == b ? 1 : 0;
}

double classification(std::string_view answer, std::string_view reference,
                      std::span<const std::string> classes) {
  int64_t n_found = 0;
  bool right = false;
  for (const std::string& name : classes) {
    if (answer.find(name) == std::string_view::npos) continue;
    const bool part_of_it = name != reference && reference.find(name) != std::string_view::npos;
    if (part_of_it) continue;
    ++n_found;
    right |= name == reference;
  }
  return right ? 1.0 / static_cast<double>(n_found) : 0.0;
}

std::vector<std::string> numbers_in(std::string_view text) {
  std::string spaced(text);
  for (char& c : spaced) c = is_digit(c) ? c : ' ';
  return split(spaced);
}

double number_share(std::string_view answer, std::string_view reference) {
  const std::vector<std::string> numbers = numbers_in(answer);
  if (numbers.empty()) return 0;
  return static_cast<double>(std::count(numbers.begin(), numbers.end(), reference)) /
         static_cast<double>(numbers.size());
}

double code_similarity(std::string_view answer, std::string_view reference) {
  std::string_view line;
  answer.remove_prefix(std::min(answer.find_first_not_of('\n'), answer.size()));
  for (size_t at = 0; at <= answer.size();) {
    const size_t end = std::min(answer.find('\n', at), answer.size());
    const std::string_view candidate = answer.substr(at, end - at);
    if (candidate.find_first_of("`#") == std::string_view::npos &&
        candidate.find("//") == std::string_view::npos) {
      line = candidate;
      break;
    }
    at = end + 1;
  }
  const auto a = characters(line), b = characters(reference);
  const size_t total = a.size() + b.size();
  if (total == 0) return 1;
  return 2.0 * static_cast<double>(common_subsequence(a, b)) / static_cast<double>(total);
}

double found_share(std::string_view answer, std::span<const std::string> references) {
  SNAPKV_CHECK(!references.empty());
  const std::string text = lower(answer);
  const auto n_found =
      std::count_if(references.begin(), references.end(), [&](const std::string& reference) {
        return text.find(lower(reference)) != std::string::npos;
      });
  return static_cast<double>(n_found) / static_cast<double>(references.size());
}

double checked_score(double score, const std::string& what) {
  if (score >= 0 && score <= 1) return score;  // not for NaN
  fail(ErrorCode::kRuntime, "{}: the score is {}, which is not within 0 and 1", what,
       non_finite_name(score));
}

Interval wilson(double mean, int64_t n) {
  if (n == 0) return {};
  checked_score(mean, fmt::format("a mean of {} scores", n));
  constexpr double kZ = 1.959964;  // 97.5% point of the normal distribution
  const double count = static_cast<double>(n), z2 = kZ * kZ;
  const double centre = (mean + z2 / (2 * count)) / (1 + z2 / count);
  const double variance = std::max(0.0, mean * (1 - mean)) / count + z2 / (4 * count * count);
  const double half = kZ * std::sqrt(variance) / (1 + z2 / count);
  return {mean, std::max(0.0, centre - half), std::min(1.0, centre + half)};
}

std::vector<double> log_softmax(std::span<const float> logits) {
  SNAPKV_CHECK(!logits.empty());
  if (const NonFinite bad = find_non_finite(logits)) {
    fail(ErrorCode::kRuntime,
         "{} of {} logits are not finite, the first, of token {}, is {}: they are not a prediction",
         bad.count, logits.size(), bad.first, non_finite_name(bad.value));
  }
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - max);
  const double log_sum = max + std::log(sum);
  std::vector<double> out(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) out[i] = logits[i] - log_sum;
  return out;
}

double kl_divergence(std::span<const double> log_p, std::span<const double> log_q) {
  SNAPKV_CHECK(log_p.size() == log_q.size());
  double sum = 0;
  for (size_t i = 0; i < log_p.size(); ++i) {
    const double p = std::exp(log_p[i]);
    if (p != 0) sum += p * (log_p[i] - log_q[i]);  // NaN is not skipped
  }
  if (!std::isfinite(sum)) {  // max() below would turn NaN into 0, the best possible value
    fail(ErrorCode::kRuntime, "the KL divergence of {} log-probabilities is {}", log_p.size(),
         non_finite_name(sum));
  }
  return std::max(0.0, sum);  // rounding may give a value just below 0
}

}  // namespace snapkv::eval
