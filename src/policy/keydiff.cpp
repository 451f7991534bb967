// SPDX-License-Identifier: MIT
// Policy "keydiff" (Park et al., arXiv 2504.15364): keys unlike the others are kept. With the
// anchor a = mean over all rows of k / ||k||, the score is -cos(k, a). Reads only keys.
#include <algorithm>
#include <cmath>

#include "policy/host_rows.h"
#include "policy/policy_registry.h"
#include "policy/score_policy.h"

namespace snapkv {
namespace {

/// Lengths below this count as this, so that a zero key has a direction: none.
constexpr double kLeastNorm = 1e-12;

/// f(key) for rows [0, n) of head h, in order.
template <typename Function>
void for_each_key(Backend& backend, const Tensor& k, int64_t h, int64_t n, Function f) {
  for (int64_t begin = 0; begin < n; begin += kHostRows) {
    const std::vector<float> keys = read_rows(backend, k, h, begin, std::min(begin + kHostRows, n));
    for (size_t i = 0; i < keys.size(); i += static_cast<size_t>(k.shape[2])) f(keys.data() + i);
  }
}

template <typename A, typename B>
double dot(const A* a, const B* b, size_t n) {
  double sum = 0.0;
  for (size_t d = 0; d < n; ++d) sum += static_cast<double>(a[d]) * static_cast<double>(b[d]);
  return sum;
}

class KeydiffSelector final : public Selector<RowParams> {
 public:
  using Selector::Selector;

 private:
  void score(const ScoreInput& input, const Tensor& scores) override {
    const size_t head_dim = input.k.shape[2];
    for (int64_t h = 0; h < std::ssize(input.n_prefix); ++h) {
      std::vector<double> anchor(head_dim, 0.0);  // its length doesn't matter
      for_each_key(backend(), input.k, h, input.n_rows[h], [&](const float* k) {
        const double norm = std::max(std::sqrt(dot(k, k, head_dim)), kLeastNorm);
        for (size_t d = 0; d < head_dim; ++d) anchor[d] += static_cast<double>(k[d]) / norm;
      });
      const double anchor_norm =
          std::max(std::sqrt(dot(anchor.data(), anchor.data(), head_dim)), kLeastNorm);
      std::vector<float> row;
      for_each_key(backend(), input.k, h, input.n_prefix[h], [&](const float* k) {
        const double norm = std::max(std::sqrt(dot(k, k, head_dim)), kLeastNorm);
        const double cosine = dot(k, anchor.data(), head_dim) / (norm * anchor_norm);
        row.push_back(static_cast<float>(-cosine));
      });
      write_scores(backend(), scores, h, row);
    }
  }
};

}  // namespace

PolicyDefinition keydiff_policy() {
  return define_policy<ScorePolicy<KeydiffSelector>>(
      {.name = "keydiff",
       .score = "minus the cosine between the key and the mean of normalized keys",
       .paper = "2504.15364",
       .reads = "keys"},
      row_fields());
}

}  // namespace snapkv
