// SPDX-License-Identifier: MIT
// Statistics of paired scores, where two configurations answered the same prompts.
// tests/eval/compare_test.cpp has a hand-computed value for each.
#pragma once

#include <cstdint>
#include <span>

namespace snapkv::eval {

/// An answer with at least this score counts as right.
inline constexpr double kRightScore = 0.5;
inline constexpr int kBootstrapResamples = 10'000;

struct Range {
  double low = 0, high = 0;
};
/// The 95% percentile bootstrap interval of the mean of `values` (1 to 2^31 of them): the range of
/// the means of kBootstrapResamples samples drawn with replacement, without the 250 lowest and the
/// 250 highest. The same values in the same order give the same interval on every machine.
Range bootstrap_mean(std::span<const double> values);

/// The same interval of the ratio sum(a) / sum(b), where pairs are drawn; 0 where sum(b) is 0. `a`
/// and `b` must have the same size, at least 1.
Range bootstrap_ratio(std::span<const double> a, std::span<const double> b);

/// The exact two-sided p of McNemar's test: the probability that a fair coin, tossed once for every
/// prompt that only one side answered right, falls at least as unevenly. 1 if there are no such
/// prompts.
double mcnemar_p(int64_t only_a, int64_t only_b);

/// The result for scores in [0, 1] of sides A and B on the same prompts.
struct PairedResult {
  int64_t n = 0;
  double mean_a = 0, mean_b = 0;
  double difference = 0;                ///< mean of B - A
  Range interval;                       ///< of `difference`
  int64_t won = 0, lost = 0, tied = 0;  ///< pairs in which B's score is higher, lower, the same
  double p = 1;                         ///< mcnemar_p() for right answers: scores >= kRightScore
  bool graded = false;                  ///< whether some score is neither 0 nor 1
};
/// `a` and `b` must have the same size, at least 1.
PairedResult compare_scores(std::span<const double> a, std::span<const double> b);

}  // namespace snapkv::eval
