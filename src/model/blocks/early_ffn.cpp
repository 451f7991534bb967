// SPDX-License-Identifier: MIT
#include "model/blocks/early_ffn.h"

#include <utility>

namespace snapkv {

EarlyFfn::EarlyFfn(const BlockContext& context, LayerLoader& loader,
                   std::unique_ptr<FeedForward> dense, std::unique_ptr<FeedForward> experts)
    : context_(context),
      dense_(std::move(dense)),
      experts_(std::move(experts)),
      experts_norm_(loader.norm("ffn_norm_exps")) {
  normed_ = context.activations.add("experts' early input", loader.config().n_embd,
                                    ActivationType::input);
}

void EarlyFfn::begin(const Tensor& x, const LayerPass& pass) const {
  normalize(*pass.backend, context_.spec, experts_norm_, x, pass.buffers->get(normed_, x.shape[0]));
}

// x += dense(normed) + experts(experts_norm(x before attention))
void EarlyFfn::run(const Tensor& normed, const Tensor& x, const LayerPass& pass) const {
  dense_->run(normed, x, pass);
  experts_->run(pass.buffers->get(normed_, x.shape[0]), x, pass);
}

}  // namespace snapkv
