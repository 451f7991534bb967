// SPDX-License-Identifier: MIT
#include "model/blocks/dense_ffn.h"

#include <cmath>
#include <limits>
#include <string>

#include "backend/ops.h"
#include "base/check.h"

namespace snapkv {

DenseFfn::DenseFfn(const FeedForwardPart& part, const BlockContext& context, LayerLoader& loader)
    : context_(context),
      xielu_(part.xielu),
      gate_factor_(loader.layer().factors.gate),
      peaks_(part.peaks),
      limits_(part.limits) {
  const Family& family = loader.family();
  const int64_t n_embd = loader.config().n_embd, n_ff = part.n_ff;
  const char* const kind = part.kind == FeedForwardKind::shared_expert ? "_shexp" : "";
  const auto matrix = [&](const char* name, int64_t n_out, int64_t n_in) {
    return loader.matrix(std::string(name) + kind, n_out, n_in, family.ffn_bias);
  };
  const bool shared = part.kind == FeedForwardKind::shared_expert;
  if (shared ? family.fused_shared_gate : family.fused_gate) {
    const Weight both = matrix("ffn_up", 2 * n_ff, n_embd);
    gate_ = both.rows(0, n_ff);
    up_ = both.rows(n_ff, 2 * n_ff);
  } else {
    if (family.gated) gate_ = matrix("ffn_gate", n_ff, n_embd);
    up_ = matrix("ffn_up", n_ff, n_embd);
  }
  if (part.token_gate) {
    // the factor is applied to what the gate is multiplied with, so this has to be a plain product
    SNAPKV_CHECK(family.gated && family.activation != Activation::clamped_swiglu);
    const std::string name = std::string("ffn_gate_inp") + kind + ".weight";
    token_gate_.w = loader.vector(name, n_embd, Presence::required).reshaped({1, n_embd});
    factor_ = context.activations.add("factor", 1);
  }
  if (family.sub_norms)
    sub_norm_.weight = loader.vector("ffn_sub_norm.weight", n_ff, Presence::required);
  const bool normed = loader.config().norm_places != NormPlaces::before;
  const bool summed = shared || part.beside || part.in_sum;
  down_ = {context, matrix("ffn_down", n_embd, n_ff),
           normed && !summed ? loader.norm(std::string(family.ffn_post_norm)) : Norm(),
           normed && summed,  // what experts add has norms too: they are those of the sum
           loader.layer().factors.down};
  if (gate_) gate_out_ = context.activations.add("gate", n_ff);
  up_out_ = context.activations.add("up", n_ff);
  act_ = context.activations.add("act", n_ff, ActivationType::input);
}

// x += Wdown (f(Wgate normed) * Wup normed), or x += Wdown f(Wup normed)
void DenseFfn::run(const Tensor& normed, const Tensor& x, const LayerPass& pass) const {
  const int64_t n = x.shape[0];
  const Tensor up = pass.buffers->get(up_out_, n), act = pass.buffers->get(act_, n);
  if (token_gate_) {
    const Tensor gate = pass.buffers->get(gate_out_, n), factor = pass.buffers->get(factor_, n);
    const LinearCall calls[] = {{&gate_, gate}, {&up_, up}, {&token_gate_, factor}};
    pass.linear->apply(normed, calls);
    ops::activate(*pass.backend, Activation::sigmoid, factor, {}, factor);
    ops::scale_rows(*pass.backend, up, factor);
    activate(gate, up, act, pass);
  } else if (gate_) {
    const Tensor gate = pass.buffers->get(gate_out_, n);
    const LinearCall gate_up[] = {{&gate_, gate}, {&up_, up}};
    pass.linear->apply(normed, gate_up);
    if (gate_factor_ != 1.0f) ops::scale(*pass.backend, gate, {&gate_factor_, 1});
    if (std::isfinite(peaks_)) ops::keep_peaks(*pass.backend, gate, peaks_);
    activate(gate, up, act, pass);
  } else {
    const LinearCall only_up[] = {{&up_, up}};
    pass.linear->apply(normed, only_up);
    activate(up, {}, act, pass);
  }
  down_.add_to(x, act, context_, pass);
}

/// act = f(x) * factor, or f(x) without one, and with a norm its norm. Then x and factor are lost.
void DenseFfn::activate(const Tensor& x, const Tensor& factor, const Tensor& act,
                        const LayerPass& pass) const {
  const Family& family = *context_.spec.family;
  if (limits_) {
    ops::clamp(*pass.backend, x, -std::numeric_limits<float>::infinity(), limits_.gate);
    ops::clamp(*pass.backend, factor, -limits_.up, limits_.up);
  }
  if (family.xielu) {
    SNAPKV_CHECK(!factor && !sub_norm_);
    ops::xielu(*pass.backend, x, xielu_.alpha_p, xielu_.alpha_n, xielu_.beta, xielu_.eps, act);
  } else {
    const Tensor out = sub_norm_ ? x : act;
    ops::activate(*pass.backend, context_.spec.config.activation, x, factor, out);
    if (sub_norm_) normalize(*pass.backend, context_.spec, sub_norm_, out, act);
  }
}

}  // namespace snapkv
