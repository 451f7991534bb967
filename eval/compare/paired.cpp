// SPDX-License-Identifier: MIT
#include "eval/compare/paired.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "eval/common/haystack.h"

namespace snapkv::eval {
namespace {

constexpr uint64_t kBootstrapSeed = 1;  // arbitrary, but fixed, so that tables can be reproduced

double mean_score(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Random indices below n, two from every 64 random bits: a number below 2^32, times n / 2^32. The
/// bias is below n / 2^32.
class Indices {
 public:
  explicit Indices(size_t n) : n_(n), random_(kBootstrapSeed) {}
  size_t next() {
    has_half_ = !has_half_;
    if (has_half_) bits_ = random_.below(SIZE_MAX);
    const uint64_t half = has_half_ ? bits_ >> 32 : bits_ & 0xffffffff;
    return static_cast<size_t>((half * n_) >> 32);
  }

 private:
  uint64_t n_;
  Random random_;
  uint64_t bits_ = 0;
  bool has_half_ = false;  // whether the lower half of `bits_` is still unused
};

/// The 95% percentile interval of what `statistic` computes from n_values indices drawn by it.
template <typename Statistic>
Range bootstrap(size_t n_values, const Statistic& statistic) {
  Indices indices(n_values);
  std::vector<double> drawn(kBootstrapResamples);
  for (double& value : drawn) value = statistic(indices);
  constexpr size_t kTail = kBootstrapResamples / 40;  // 2.5%
  const auto low = drawn.begin() + kTail, high = drawn.end() - 1 - kTail;
  std::nth_element(drawn.begin(), low, drawn.end());
  const double lowest = *low;
  std::nth_element(drawn.begin(), high, drawn.end());
  return {lowest, *high};
}

bool is_graded(double score) { return score != 0 && score != 1; }

}  // namespace

Range bootstrap_mean(std::span<const double> values) {
  SNAPKV_CHECK(!values.empty());
  return bootstrap(values.size(), [&](Indices& indices) {
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i) sum += values[indices.next()];
    return sum / static_cast<double>(values.size());
  });
}

Range bootstrap_ratio(std::span<const double> a, std::span<const double> b) {
  SNAPKV_CHECK(a.size() == b.size() && !a.empty());
  return bootstrap(a.size(), [&](Indices& indices) {
    double sum_a = 0, sum_b = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const size_t drawn = indices.next();
      sum_a += a[drawn];
      sum_b += b[drawn];
    }
    return sum_b > 0 ? sum_a / sum_b : 0;
  });
}

double mcnemar_p(int64_t only_a, int64_t only_b) {
  const int64_t n = only_a + only_b, fewer = std::min(only_a, only_b);
  // P(X <= fewer) for the number of heads X in n tosses is the sum of the binomial coefficients n
  // over k, divided by 2^n. Both may exceed the range of double, so powers of two are counted
  // separately.
  constexpr int kStep = 512;
  double coefficient = 1, sum = 0;
  int64_t exponent = -n;
  for (int64_t k = 0; k <= fewer; ++k) {
    sum += coefficient;
    coefficient = coefficient * static_cast<double>(n - k) / static_cast<double>(k + 1);
    if (coefficient < 0x1p512) continue;
    coefficient = std::ldexp(coefficient, -kStep);
    sum = std::ldexp(sum, -kStep);
    exponent += kStep;
  }
  return std::min(1.0, std::ldexp(2 * sum, static_cast<int>(exponent)));
}

PairedResult compare_scores(std::span<const double> a, std::span<const double> b) {
  SNAPKV_CHECK(a.size() == b.size() && !a.empty());
  PairedResult result;
  result.n = std::ssize(a);
  result.mean_a = mean_score(a);
  result.mean_b = mean_score(b);
  std::vector<double> differences(a.size());
  int64_t only_a = 0, only_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    differences[i] = b[i] - a[i];
    ++(b[i] > a[i] ? result.won : b[i] < a[i] ? result.lost : result.tied);
    const bool right_a = a[i] >= kRightScore, right_b = b[i] >= kRightScore;
    only_a += right_a && !right_b ? 1 : 0;
    only_b += right_b && !right_a ? 1 : 0;
    result.graded = result.graded || is_graded(a[i]) || is_graded(b[i]);
  }
  result.difference = mean_score(differences);
  result.interval = bootstrap_mean(differences);
  result.p = mcnemar_p(only_a, only_b);
  return result;
}

}  // namespace snapkv::eval
