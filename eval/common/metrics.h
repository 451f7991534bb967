// SPDX-License-Identifier: MIT
// Metrics: how an answer is compared with its references, and how sure a mean is. All scores are in
// [0, 1]. Used by the tasks of this folder; tests/eval/metrics_test.cpp computes each by hand.
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
/// sentences end at ".", words at white space, letter case counts. The hits are the different words
/// of the longest common subsequences of each sentence of the reference with each of the answer; F1
/// by the numbers of different words. 0 where either has no sentence.
double rouge_l_summary(std::string_view answer, std::string_view reference);
/// F1 of word overlap after SQuAD's normalization: lower case, no punctuation, no articles.
double qa_f1(std::string_view answer, std::string_view reference);
/// The words of a short answer, for comparing: lower case, without articles and punctuation.
/// "1,234", "U.S." and "don't" are one word each, and 3.5 is not 35.
std::vector<std::string> answer_words(std::string_view text);
/// 1 if the reference occurs in the answer as whole words, both as answer_words(), or, where it has
/// none ("+"), as it is; else 0.
double contains_words(std::string_view answer, std::string_view reference);
/// 1 if both have the same answer_words(), or, where the reference has none, it is the answer
/// without the white space around it; else 0.
double same_words(std::string_view answer, std::string_view reference);
/// 1 / n where the reference is one of n class names found in the answer; names that are part of
/// the reference but not it do not count.
double classification(std::string_view answer, std::string_view reference,
                      std::span<const std::string> classes);
/// Share of the answer's numbers that equal the reference.
double number_share(std::string_view answer, std::string_view reference);
/// Similarity of the answer's first line without a backtick, `#` or `//` and the reference: twice
/// the common subsequence of characters (UTF-8) by both lengths.
double code_similarity(std::string_view answer, std::string_view reference);
/// Share of the references that occur in the answer, letter case ignored (RULER).
double found_share(std::string_view answer, std::span<const std::string> references);

/// Runs of digits: "48213 or 7." -> "48213", "7"
std::vector<std::string> numbers_in(std::string_view text);

/// `score`, if it is within [0, 1]; throws Error{kRuntime} naming `what` for a NaN and all else.
double checked_score(double score, const std::string& what);

/// A mean of scores in [0, 1] and its 95% Wilson interval. Throws as checked_score().
struct Interval {
  double mean = 0, low = 0, high = 1;
};
Interval wilson(double mean, int64_t n);

/// log softmax(logits) in f64. Throws Error{kRuntime} when a logit is not finite. // [n_vocab]
std::vector<double> log_softmax(std::span<const float> logits);
/// sum p (log p - log q), natural logarithm. Throws Error{kRuntime} when it is not finite.
/// // [n_vocab] each
double kl_divergence(std::span<const double> log_p, std::span<const double> log_q);

}  // namespace snapkv::eval
