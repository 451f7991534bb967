// SPDX-License-Identifier: MIT
// Policy "knorm" (Devoto et al., arXiv 2406.11430): keys of low L2 norm tend to draw attention, so
// the score is -||k||. Reads only keys.
#include <algorithm>
#include <cmath>

#include "policy/host_rows.h"
#include "policy/policy_registry.h"
#include "policy/score_policy.h"

namespace snapkv {
namespace {

class KnormSelector final : public Selector<RowParams> {
 public:
  using Selector::Selector;

 private:
  void score(const ScoreInput& input, const Tensor& scores) override {
    const int64_t head_dim = input.k.shape[2];
    for (int64_t h = 0; h < std::ssize(input.n_prefix); ++h) {
      std::vector<float> row;
      for (int64_t begin = 0; begin < input.n_prefix[h]; begin += kHostRows) {
        const int64_t end = std::min<int64_t>(begin + kHostRows, input.n_prefix[h]);
        const std::vector<float> keys = read_rows(backend(), input.k, h, begin, end);
        for (auto k = keys.begin(); k != keys.end(); k += head_dim) {
          double squares = 0.0;
          for (int64_t d = 0; d < head_dim; ++d) squares += static_cast<double>(k[d]) * k[d];
          row.push_back(static_cast<float>(-std::sqrt(squares)));
        }
      }
      write_scores(backend(), scores, h, row);
    }
  }
};

}  // namespace

PolicyDefinition knorm_policy() {
  return define_policy<ScorePolicy<KnormSelector>>(
      {.name = "knorm", .score = "minus the key's L2 norm", .paper = "2406.11430", .reads = "keys"},
      row_fields());
}

}  // namespace snapkv
