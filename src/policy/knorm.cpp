// SPDX-License-Identifier: MIT
// Policy "knorm" (Devoto et al., arXiv 2406.11430): keys of low L2 norm tend to draw attention, so
// the score is -||k||. Reads only keys. Made by the registry.
#include <algorithm>
#include <cmath>
#include <memory>

#include "policy/host_rows.h"
#include "policy/policy_registry.h"
#include "policy/score_policy.h"

namespace snapkv {
namespace {

class KnormPolicy final : public ScorePolicy {
 public:
  explicit KnormPolicy(const PolicyConfig& config) : ScorePolicy(config) {}

 private:
  void score(Backend& backend, const PolicyInput& input, std::span<const int32_t> n_prefix,
             const Tensor& scores) const override {
    const int64_t head_dim = input.k.shape[2];
    for (size_t h = 0; h < n_prefix.size(); ++h) {
      std::vector<float> row;
      for (int64_t begin = 0; begin < n_prefix[h]; begin += kHostRows) {
        const int64_t end = std::min<int64_t>(begin + kHostRows, n_prefix[h]);
        const std::vector<float> keys =
            read_rows(backend, input.k, static_cast<int64_t>(h), begin, end);
        for (auto k = keys.begin(); k != keys.end(); k += head_dim) {
          double squares = 0.0;
          for (int64_t d = 0; d < head_dim; ++d) squares += static_cast<double>(k[d]) * k[d];
          row.push_back(static_cast<float>(-std::sqrt(squares)));
        }
      }
      write_scores(backend, scores, static_cast<int64_t>(h), row);
    }
  }
};

}  // namespace

std::unique_ptr<Policy> make_knorm(const PolicyConfig& config) {
  return std::make_unique<KnormPolicy>(config);
}

}  // namespace snapkv
