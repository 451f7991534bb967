// SPDX-License-Identifier: MIT
#include "model/blocks/mamba2.h"

#include "backend/ops.h"

namespace snapkv {
namespace {

void scale_by(const Tensor& x, float factor, const LayerPass& pass) {
  if (factor != 1.0f) ops::scale(*pass.backend, x, {&factor, 1});
}

}  // namespace

Mamba2Mixer::Mamba2Mixer(const BlockContext& context, LayerLoader& loader)
    : context_(context), layer_(loader.layer()) {
  const Mamba2Spec& s = layer_.mamba2;
  load_projections(loader);
  conv_.w = loader.rows("ssm_conv1d.weight", s.n_xbc(), layer_.conv_kernel);
  conv_.bias = loader.vector("ssm_conv1d.bias", s.n_xbc(), Presence::optional);
  rate_ = loader.rows("ssm_a", s.n_head, 1).reshaped({s.n_head});
  skip_ = loader.rows("ssm_d", s.n_head, 1).reshaped({s.n_head});
  step_bias_ = loader.vector("ssm_dt.bias", s.n_head, Presence::required);
  if (s.normed) {
    norm_.weight = loader.rows("ssm_norm.weight", s.n_group, s.n_values() / s.n_group);
  }
  const LayerFactors& factors = layer_.factors;
  const int64_t n_part = s.n_group * s.d_state;  // of B and of C
  conv_.w = loader.scaled(
      conv_.w,
      {{s.n_values(), factors.mixer_x}, {n_part, factors.mixer_b}, {n_part, factors.mixer_c}});
  out_ = {context, loader.matrix("ssm_out", loader.config().n_embd, s.n_values()), Norm(), false,
          factors.mixer_out};
  plan_activations(context.activations);
}

/// One matrix: gates, then x, B and C, then steps.
void Mamba2Mixer::load_projections(LayerLoader& loader) {
  const Mamba2Spec& s = layer_.mamba2;
  const int64_t n_values = s.n_values(), end = n_values + s.n_xbc();
  const Weight all = loader.matrix("ssm_in", end + s.n_head, loader.config().n_embd);
  gate_ = all.rows(0, n_values);
  xbc_ = all.rows(n_values, end);
  step_ = all.rows(end, end + s.n_head);
}

void Mamba2Mixer::plan_activations(ActivationPlan& plan) {
  const Mamba2Spec& s = layer_.mamba2;
  // names of attention's tensors: a layer has one or the other, or runs one after the other
  xbc_out_ = plan.add("q", s.n_xbc());
  convolved_ = plan.add("q and gate", s.n_xbc());
  step_out_ = plan.add("decay", s.n_head);
  gate_out_ = plan.add("output gate", s.n_values());
  heads_ = plan.add("ungated", s.n_values());
  gated_ = plan.add("attn", s.n_values(), ActivationType::input);
}

/// gate: of the last rows only.
void Mamba2Mixer::project(const Tensor& normed, const Tensor& xbc, const Tensor& step,
                          const Tensor& gate, const LayerPass& pass) const {
  const int64_t n = normed.shape[0], n_gates = gate.shape[0];
  const LinearCall calls[] = {{&xbc_, xbc}, {&step_, step}, {&gate_, gate}};
  if (n_gates == n) {
    pass.linear->apply(normed, calls);
  } else {
    pass.linear->apply(normed, std::span(calls).first(2));
    if (n_gates > 0) pass.linear->apply(normed.slice(n - n_gates, n), std::span(calls).last(1));
  }
  scale_by(step, layer_.factors.mixer_step, pass);  // those of x, B and C are in the convolution
  if (n_gates > 0) scale_by(gate, layer_.factors.mixer_gate, pass);
}

/// What comes out of the heads' states, [n, n_values].
Tensor Mamba2Mixer::scan(const Tensor& xbc, const Tensor& step, const LayerPass& pass) const {
  const Mamba2Spec& s = layer_.mamba2;
  const int64_t n = xbc.shape[0], n_xbc = s.n_xbc();
  const Tensor convolved = pass.buffers->get(convolved_, n), heads = pass.buffers->get(heads_, n);
  ops::short_conv(*pass.backend, {.in = xbc.reshaped({n, 1, n_xbc}),
                                  .weight = conv_.w,
                                  .sequences = pass.sequences,
                                  .out = convolved,
                                  .bias = conv_.bias});
  const std::vector<SequenceRows> sequences =
      with_states_from(pass.sequences, n_xbc * (layer_.conv_kernel - 1));
  ops::selective_scan(*pass.backend, {.xbc = convolved,
                                      .step = step,
                                      .rate = rate_,
                                      .step_bias = step_bias_,
                                      .skip = skip_,
                                      .n_group = s.n_group,
                                      .d_state = s.d_state,
                                      .sequences = sequences,
                                      .out = heads.reshaped({n, s.n_head, s.d_head})});
  return heads;
}

// x += Wout norm(scan(conv(Wxbc normed), Wstep normed) * silu(Wgate normed)), the norm where there
// is one
void Mamba2Mixer::run(const Tensor& normed, const LayerPass& pass) const {
  const Mamba2Spec& s = layer_.mamba2;
  const int64_t n = pass.x.shape[0], n_out = pass.n_out;
  const Tensor xbc = pass.buffers->get(xbc_out_, n), step = pass.buffers->get(step_out_, n);
  const Tensor gate = pass.buffers->get(gate_out_, n_out);
  project(normed, xbc, step, gate, pass);
  const Tensor heads = scan(xbc, step, pass);
  if (n_out == 0) return;
  const Tensor values = heads.slice(n - n_out, n), gated = pass.buffers->get(gated_, n_out);
  ops::activate(*pass.backend, Activation::silu, gate, values, norm_ ? values : gated);
  const auto groups = [&](const Tensor& t) {
    return t.reshaped({n_out * s.n_group, s.n_values() / s.n_group});
  };
  if (norm_) normalize(*pass.backend, context_.spec, norm_, groups(values), groups(gated));
  out_.add_to(pass.x.slice(n - n_out, n), gated, context_, pass);
}

}  // namespace snapkv
