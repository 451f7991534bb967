// SPDX-License-Identifier: MIT
#include "model/blocks/mamba_heads.h"

#include <utility>
#include <vector>

#include "backend/ops.h"

namespace snapkv {

/// One matrix makes of the values B, C and what steps are made of.
MambaHeadsMixer::MambaHeadsMixer(const BlockContext& context, LayerLoader& loader)
    : context_(context), layer_(loader.layer()) {
  const Mamba2Spec& s = layer_.mamba2;
  const int64_t n = s.n_values(), steps = 2 * s.d_state;
  in_ = loader.matrix("ssm_in", 2 * n, loader.config().n_embd);
  conv_.w = loader.rows("ssm_conv1d.weight", n, layer_.conv_kernel);
  conv_.bias = loader.vector("ssm_conv1d.bias", n, Presence::optional);
  const Weight x = loader.matrix("ssm_x", steps + s.step_rank, n);
  b_ = x.rows(0, s.d_state);
  c_ = x.rows(s.d_state, steps);
  low_step_ = x.rows(steps, steps + s.step_rank);
  step_ = loader.matrix("ssm_dt", s.n_head, s.step_rank, Presence::required);
  step_bias_ = std::exchange(step_.bias, {});  // the scan adds it
  // these have no ending
  b_norm_.weight = loader.vector("ssm_b_norm", s.d_state, Presence::required);
  c_norm_.weight = loader.vector("ssm_c_norm", s.d_state, Presence::required);
  step_norm_.weight = loader.vector("ssm_dt_norm", s.step_rank, Presence::required);
  rate_ = loader.vector("ssm_a", s.n_head, Presence::required);
  skip_ = loader.vector("ssm_d", s.n_head, Presence::required);
  const bool normed = loader.config().norm_places != NormPlaces::before;
  out_ = {context, loader.matrix("ssm_out", loader.config().n_embd, n),
          normed ? loader.norm("post_attention_norm") : Norm()};
  plan_activations(context.activations);
}

void MambaHeadsMixer::plan_activations(ActivationPlan& plan) {
  const Mamba2Spec& s = layer_.mamba2;
  const int64_t n = s.n_values();
  const auto input = ActivationType::input;
  // names of attention's tensors: a layer has one or the other
  both_ = plan.add_heads("q and gate", s.n_head, 2 * s.d_head);
  values_ = plan.add("q", n);
  gates_ = plan.add("output gate", n);
  convolved_ = plan.add("ungated", n);
  read_ = plan.add("attn", n, input);
  b_out_ = plan.add("scan's B", s.d_state);
  c_out_ = plan.add("scan's C", s.d_state);
  low_ = plan.add("k", s.step_rank);
  low_normed_ = plan.add("step's low rank", s.step_rank, input);
  step_out_ = plan.add("decay", s.n_head);
  xbc_ = plan.add("scan's input", s.n_xbc());
  heads_ = values_;  // which have been convolved by then
  gated_ = read_;    // which has been read by then
}

Tensor MambaHeadsMixer::convolve(const Tensor& values, const LayerPass& pass) const {
  const int64_t n = values.shape[0];
  const Tensor x = pass.buffers->get(convolved_, n);
  ops::short_conv(*pass.backend, {.in = values.reshaped({n, 1, layer_.mamba2.n_values()}),
                                  .weight = conv_.w,
                                  .sequences = pass.sequences,
                                  .out = x,
                                  .bias = conv_.bias});
  return x;
}

/// Makes B and C, and gives the steps, [n, n_head].
Tensor MambaHeadsMixer::make_steps(const Tensor& x, const Tensor& b, const Tensor& c,
                                   const LayerPass& pass) const {
  const int64_t n = x.shape[0];
  const ActivationBuffer& buffers = *pass.buffers;
  const Tensor low = buffers.get(low_, n), low_normed = buffers.get(low_normed_, n);
  const LinearCall calls[] = {{&low_step_, low}, {&b_, b}, {&c_, c}};
  pass.linear->apply(as_input(*pass.backend, x, buffers.get(read_, n)), calls);
  normalize(*pass.backend, context_.spec, step_norm_, low, low_normed);
  normalize(*pass.backend, context_.spec, b_norm_, b, b);
  normalize(*pass.backend, context_.spec, c_norm_, c, c);
  const Tensor step = buffers.get(step_out_, n);
  const LinearCall up[] = {{&step_, step}};
  pass.linear->apply(low_normed, up);
  return step;
}

/// What comes out of the heads' states, [n, n_values].
Tensor MambaHeadsMixer::scan(const Tensor& x, const LayerPass& pass) const {
  const Mamba2Spec& s = layer_.mamba2;
  const int64_t n = x.shape[0];
  const ActivationBuffer& buffers = *pass.buffers;
  const Tensor b = buffers.get(b_out_, n), c = buffers.get(c_out_, n);
  const Tensor step = make_steps(x, b, c, pass);
  const Tensor xbc = buffers.get(xbc_, n), heads = buffers.get(heads_, n);
  const Tensor parts[] = {x, b, c};
  ops::join(*pass.backend, parts, xbc);
  const std::vector<SequenceRows> sequences =
      with_states_from(pass.sequences, s.n_values() * (layer_.conv_kernel - 1));
  ops::selective_scan(*pass.backend, {.xbc = xbc,
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

// x += norm(Wout (scan(conv(values)) * silu(gates))), gates and values of Win normed
void MambaHeadsMixer::run(const Tensor& normed, const LayerPass& pass) const {
  const Mamba2Spec& s = layer_.mamba2;
  const int64_t n = pass.x.shape[0], n_out = pass.n_out;
  const ActivationBuffer& buffers = *pass.buffers;
  const Tensor both = buffers.get(both_, n), values = buffers.get(values_, n);
  const Tensor gates = buffers.get(gates_, n);
  const LinearCall calls[] = {{&in_, both.reshaped({n, 2 * s.n_values()})}};
  pass.linear->apply(normed, calls);
  const auto each_head = [&](const Tensor& t) { return t.reshaped({n * s.n_head, s.d_head}); };
  const Tensor parts[] = {each_head(gates), each_head(values)};
  ops::split(*pass.backend, both.reshaped({n * s.n_head, 2 * s.d_head}), parts);
  const Tensor heads = scan(convolve(values, pass), pass);
  if (n_out == 0) return;
  const Tensor gated = buffers.get(gated_, n_out);
  ops::activate(*pass.backend, Activation::silu, gates.slice(n - n_out, n),
                heads.slice(n - n_out, n), gated);
  out_.add_to(pass.x.slice(n - n_out, n), gated, context_, pass);
}

}  // namespace snapkv
