// SPDX-License-Identifier: MIT
#include "model/blocks/block.h"

#include <algorithm>
#include <iterator>

#include "backend/ops.h"

namespace snapkv {

void add_to_residual(const BlockContext& context, const Weight& w, const Tensor& input,
                     const Norm& post_norm, const Tensor& x, const LayerPass& pass) {
  const float scale = context.spec.config.residual_scale;
  if (!post_norm && scale == 1.0f) {
    const LinearCall call[] = {{&w, x, true}};
    pass.linear->apply(input, call);
    return;
  }
  const Tensor branch = pass.buffers->branch(x.shape[0]);
  const LinearCall call[] = {{&w, branch}};
  pass.linear->apply(input, call);
  if (post_norm) normalize(*pass.backend, context.spec, post_norm, branch, branch);
  ops::add(*pass.backend, x, branch, scale);
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
