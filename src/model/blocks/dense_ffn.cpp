// SPDX-License-Identifier: MIT
#include "model/blocks/dense_ffn.h"

#include "backend/ops.h"

namespace snapkv {

DenseFfn::DenseFfn(const FeedForwardPart& part, const BlockContext& context, LayerLoader& loader)
    : context_(context) {
  const Family& family = loader.family();
  const int64_t n_embd = loader.config().n_embd, n_ff = part.n_ff;
  if (family.fused_gate) {
    const Weight both = loader.matrix("ffn_up", 2 * n_ff, n_embd, family.ffn_bias);
    gate_ = both.rows(0, n_ff);
    up_ = both.rows(n_ff, 2 * n_ff);
  } else {
    if (family.gated) gate_ = loader.matrix("ffn_gate", n_ff, n_embd, family.ffn_bias);
    up_ = loader.matrix("ffn_up", n_ff, n_embd, family.ffn_bias);
  }
  down_ = {context, loader.matrix("ffn_down", n_embd, n_ff, family.ffn_bias),
           family.norm_places != NormPlaces::before ? loader.norm("post_ffw_norm") : Norm()};
  if (gate_) gate_out_ = context.activations.add("gate", n_ff);
  up_out_ = context.activations.add("up", n_ff);
  act_ = context.activations.add("act", n_ff, ActivationType::input);
}

// x += Wdown (f(Wgate normed) * Wup normed), or x += Wdown f(Wup normed)
void DenseFfn::run(const Tensor& normed, const Tensor& x, const LayerPass& pass) const {
  const Activation activation = context_.spec.family->activation;
  const int64_t n = x.shape[0];
  const Tensor up = pass.buffers->get(up_out_, n), act = pass.buffers->get(act_, n);
  if (gate_) {
    const Tensor gate = pass.buffers->get(gate_out_, n);
    const LinearCall gate_up[] = {{&gate_, gate}, {&up_, up}};
    pass.linear->apply(normed, gate_up);
    ops::activate(*pass.backend, activation, gate, up, act);
  } else {
    const LinearCall only_up[] = {{&up_, up}};
    pass.linear->apply(normed, only_up);
    ops::activate(*pass.backend, activation, up, {}, act);
  }
  down_.add_to(x, act, context_, pass);
}

}  // namespace snapkv
