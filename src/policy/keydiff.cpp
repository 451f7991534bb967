// SPDX-License-Identifier: MIT
// Policy "keydiff" (Park et al., arXiv 2504.15364): keeps keys that differ from the others. With
// the anchor a = mean over all rows of k / ||k||, the score is -cos(k, a). Reads only keys.
#include <algorithm>

#include "policy/policy_registry.h"
#include "policy/score_policy.h"

namespace snapkv {
namespace {

class KeydiffSelector final : public Selector<RowParams> {
 public:
  using Selector::Selector;

 private:
  void score(const ScoreInput& input, const Tensor& scores) override {
    const int64_t n_head_kv = input.k.shape[0];
    const int64_t most_rows = *std::max_element(input.n_rows.begin(), input.n_rows.end());
    const Floats inverse(backend(), {n_head_kv, most_rows}, "norms of keys");
    ops::row_norms(backend(), {.x = input.k, .n = input.n_rows, .out = inverse, .inverse = true});
    const Floats sums(backend(), {n_head_kv, input.k.shape[2]}, "sums of keys");
    ops::sum_rows(backend(), input.k, inverse, input.n_rows, sums);
    // the anchor's length is the same for all rows of a head, so it does not change their order
    Tensor anchor(sums.view.data, DType::f32, {n_head_kv, 1, input.k.shape[2]});
    anchor.shape[1] = input.k.shape[1];  // the same for every row
    anchor.stride[1] = 0;
    ops::row_dots(backend(), input.k, anchor, input.n_prefix, scores);
    ops::weigh_scores(backend(), scores, input.n_prefix, -1, 0, inverse);
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
