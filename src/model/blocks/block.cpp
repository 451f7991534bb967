// SPDX-License-Identifier: MIT
#include "model/blocks/block.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "backend/ops.h"
#include "base/check.h"

namespace snapkv {

ResidualOutput::ResidualOutput(const BlockContext& context, Weight weight, Norm norm, bool begins,
                               float times)
    : w(std::move(weight)), post_norm(std::move(norm)), factor(times), begins_sum(begins) {
  const ModelConfig& c = context.spec.config;
  SNAPKV_CHECK(!begins_sum || factor == 1.0f);
  if (begins_sum) return;
  if (!post_norm) factor *= std::exchange(w.scale, 1.0f);
  if (post_norm || c.residual_scale != 1.0f || factor != 1.0f)
    branch = context.activations.add("branch", c.n_embd);
}

void ResidualOutput::add_to(const Tensor& x, const Tensor& input, const BlockContext& context,
                            const LayerPass& pass) const {
  if (!branch) {
    const LinearCall call[] = {{&w, x, !begins_sum}};
    pass.linear->apply(input, call);
    return;
  }
  const Tensor out = pass.buffers->get(branch, x.shape[0]);
  const LinearCall call[] = {{&w, out}};
  pass.linear->apply(input, call);
  if (post_norm) normalize(*pass.backend, context.spec, post_norm, out, out);
  ops::add(*pass.backend, x, out, context.spec.config.residual_scale * factor);
}

std::vector<SequenceRows> with_states_from(std::span<const SequenceRows> sequences,
                                           int64_t n_before) {
  std::vector<SequenceRows> all(sequences.begin(), sequences.end());
  for (SequenceRows& rows : all) {
    rows.from = static_cast<const float*>(rows.from) + n_before;
    rows.to = static_cast<float*>(rows.to) + n_before;
  }
  return all;
}

Tensor as_input(Backend& backend, const Tensor& x, const Tensor& read) {
  if (read.dtype == x.dtype) return x;
  const void* const from = x.data;
  void* const to = read.data;
  const auto n = static_cast<int32_t>(x.shape[0]);
  ops::convert_rows(backend,
                    {{&from, 1}, x.dtype, x.shape[1], Tensor(), {&n, 1}, read.dtype, {&to, 1}});
  return read;
}

std::vector<const Weight*> present(std::initializer_list<const Weight*> weights) {
  std::vector<const Weight*> there;
  std::copy_if(weights.begin(), weights.end(), std::back_inserter(there),
               [](const Weight* w) { return bool{*w}; });
  return there;
}

std::vector<const Norm*> present(std::initializer_list<const Norm*> norms) {
  std::vector<const Norm*> there;
  std::copy_if(norms.begin(), norms.end(), std::back_inserter(there),
               [](const Norm* n) { return bool{*n}; });
  return there;
}

}  // namespace snapkv
