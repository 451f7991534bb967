// SPDX-License-Identifier: MIT
// Metrics: how well an answer matches its references, and how certain a mean is. All scores are in
// [0, 1]. tests/eval/metrics_test.cpp has a hand-computed value for each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace snapkv::eval {

/// F1 of unigram overlap: lower case, letters and digits only, words stemmed (Porter), counts
/// clipped.
double rouge_1(std::string_view answer, std::string_view reference);
/// F1 of the longest common subsequence of words (lower case, letters and digits only).
double rouge_l(std::string_view answer, std::string_view reference);
/// The same at summary level, as LongBench computes it (version 1.0.1 of the Python package rouge):
/// sentences end at ".", words at white space, and letter case counts. The hits are the different
/// words in the longest common subsequences of each reference sentence with each answer sentence;
/// F1 is computed from the numbers of different words. 0 if either text has no sentence.
double rouge_l_summary(std::string_view answer, std::string_view reference);
/// F1 of word overlap after SQuAD's normalization: lower case, no punctuation, no articles.
double qa_f1(std::string_view answer, std::string_view reference);
/// The words of a short answer for comparison: in lower case, without articles and punctuation.
/// "1,234", "U.S." and "don't" are one word each, and 3.5 is not 35.
std::vector<std::string> answer_words(std::string_view text);
/// 1 if the answer contains the reference as whole words, both taken as answer_words(); a reference
/// without such words ("+") must occur as it is. Otherwise 0.
double contains_words(std::string_view answer, std::string_view reference);
/// 1 if both have the same answer_words(); if the reference has none, 1 if it equals the answer
/// without surrounding white space. Otherwise 0.
double same_words(std::string_view answer, std::string_view reference);
/// 1 / n if the reference is one of n class names found in the answer; names that are a proper part
/// of the reference do not count.
double classification(std::string_view answer, std::string_view reference,
                      std::span<const std::string> classes);
/// The share of the answer's numbers that equal the reference.
double number_share(std::string_view answer, std::string_view reference);
/// The similarity of the reference to the answer's first line without a backtick, `#` or `//`:
/// twice the length of the longest common subsequence of characters (UTF-8) over the sum of both
/// lengths.
double code_similarity(std::string_view answer, std::string_view reference);
/// The share of the references that occur in the answer, ignoring letter case (RULER).
double found_share(std::string_view answer, std::span<const std::string> references);

/// The text with typographic quotes, dashes and dots in their ASCII forms.
std::string plain_punctuation(std::string_view text);
/// Runs of digits: "48213 or 7." -> "48213", "7"
std::vector<std::string> numbers_in(std::string_view text);

/// Returns `score` if it is in [0, 1]; else, or if it is NaN, throws Error{kRuntime} naming `what`.
double checked_score(double score, const std::string& what);

/// A mean of scores in [0, 1] and its 95% Wilson interval. Throws as checked_score() does.
struct Interval {
  double mean = 0, low = 0, high = 1;
};
Interval wilson(double mean, int64_t n);

/// log softmax(logits) in f64. Throws Error{kRuntime} if a logit is not finite. // [n_vocab]
std::vector<double> log_softmax(std::span<const float> logits);
/// sum p (log p - log q), natural logarithm. Throws Error{kRuntime} if it is not finite.
/// // [n_vocab] each
double kl_divergence(std::span<const double> log_p, std::span<const double> log_q);

}  // namespace snapkv::eval
