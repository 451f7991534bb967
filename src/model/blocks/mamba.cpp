// SPDX-License-Identifier: MIT
#include "model/blocks/mamba.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <vector>

#include "backend/ops.h"

namespace snapkv {

MambaMixer::MambaMixer(const BlockContext& context, LayerLoader& loader)
    : context_(context), layer_(loader.layer()) {
  const MambaSpec& s = layer_.mamba;
  load_projections(loader);
  conv_.w = loader.rows("ssm_conv1d.weight", s.n_channel, layer_.conv_kernel);
  conv_.bias = loader.vector("ssm_conv1d.bias", s.n_channel, Presence::optional);
  load_norms(loader);
  skip_ = loader.vector("ssm_d", s.n_channel, Presence::required);
  out_ = {context, loader.matrix("ssm_out", loader.config().n_embd, s.n_channel), Norm()};
  load_rates(loader);
  plan_activations(context.activations);
}

/// One matrix makes channels, then gates; another one of channels what all steps are made of, B
/// and C.
void MambaMixer::load_projections(LayerLoader& loader) {
  const MambaSpec& s = layer_.mamba;
  const int64_t n = s.n_channel, c_begin = s.step_rank + s.d_state, end = c_begin + s.d_state;
  const Weight in = loader.matrix("ssm_in", 2 * n, loader.config().n_embd);
  channels_ = in.rows(0, n);
  gate_ = in.rows(n, 2 * n);
  const Weight x = loader.matrix("ssm_x", end, n);
  low_step_ = x.rows(0, s.step_rank);
  b_ = x.rows(s.step_rank, c_begin);
  c_ = x.rows(c_begin, end);
  step_ = loader.matrix("ssm_dt", n, s.step_rank, Presence::required);
}

void MambaMixer::load_norms(LayerLoader& loader) {
  const MambaSpec& s = layer_.mamba;
  switch (s.norms) {
    case ScanNorms::none:
      return;
    case ScanNorms::plain:
      step_norm_ = loader.plain_norm(s.step_rank);
      b_norm_ = c_norm_ = loader.plain_norm(s.d_state);
      step_norm_.eps = b_norm_.eps = c_norm_.eps = s.norm_eps;
      return;
    case ScanNorms::weighted:
      step_norm_.weight = loader.vector("ssm_dt_norm.weight", s.step_rank, Presence::required);
      b_norm_.weight = loader.vector("ssm_b_norm.weight", s.d_state, Presence::required);
      c_norm_.weight = loader.vector("ssm_c_norm.weight", s.d_state, Presence::required);
      return;
  }
}

/// Files have the rates of each channel, and the scan reads them for many channels at once.
void MambaMixer::load_rates(LayerLoader& loader) {
  const MambaSpec& s = layer_.mamba;
  const Tensor rates = loader.rows("ssm_a", s.n_channel, s.d_state);
  const float* const all = rates.at<const float>(0);
  const float* const bad =
      std::find_if_not(all, all + rates.numel(), [](float rate) { return rate <= 0.0f; });
  if (bad != all + rates.numel()) {
    loader.refuse("ssm_a", fmt::format("holds {}, expected numbers up to 0", *bad));
  }
  rate_ = loader.transposed({rates, {}}).w;
}

void MambaMixer::plan_activations(ActivationPlan& plan) {
  const MambaSpec& s = layer_.mamba;
  const auto input = ActivationType::input;
  // names of attention's tensors: a layer has one or the other
  channels_out_ = plan.add("q", s.n_channel);
  convolved_ = plan.add("q and gate", s.n_channel);
  read_ = plan.add("attn", s.n_channel, input);
  low_out_ = plan.add("k", s.step_rank);
  low_normed_ = plan.add("step's low rank", s.step_rank, input);
  b_out_ = plan.add("scan's B", s.d_state);
  c_out_ = plan.add("scan's C", s.d_state);
  step_out_ = plan.add("decay", s.n_channel);
  gate_out_ = plan.add("output gate", s.n_channel);
  scanned_ = plan.add("ungated", s.n_channel);
  gated_ = read_;  // which has been read by then
}

/// The channels after the convolution, [n, n_channel]. gate: of the last rows only.
Tensor MambaMixer::convolve(const Tensor& normed, const Tensor& gate, const LayerPass& pass) const {
  const int64_t n = normed.shape[0], n_gates = gate.shape[0], n_channel = layer_.mamba.n_channel;
  const Tensor channels = pass.buffers->get(channels_out_, n);
  const LinearCall calls[] = {{&channels_, channels}, {&gate_, gate}};
  if (n_gates == n) {
    pass.linear->apply(normed, calls);
  } else {
    pass.linear->apply(normed, std::span(calls).first(1));
    if (n_gates > 0) pass.linear->apply(normed.slice(n - n_gates, n), std::span(calls).last(1));
  }
  const Tensor x = pass.buffers->get(convolved_, n);
  ops::short_conv(*pass.backend, {.in = channels.reshaped({n, 1, n_channel}),
                                  .weight = conv_.w,
                                  .sequences = pass.sequences,
                                  .out = x,
                                  .bias = conv_.bias});
  return x;
}

/// Makes B and C, and gives the steps, [n, n_channel].
Tensor MambaMixer::make_steps(const Tensor& x, const Tensor& b, const Tensor& c,
                              const LayerPass& pass) const {
  const int64_t n = x.shape[0];
  const ActivationBuffer& buffers = *pass.buffers;
  const bool normed = layer_.mamba.norms != ScanNorms::none;
  const Tensor read = buffers.get(low_normed_, n), low = normed ? buffers.get(low_out_, n) : read;
  const LinearCall calls[] = {{&low_step_, low}, {&b_, b}, {&c_, c}};
  pass.linear->apply(as_input(*pass.backend, x, buffers.get(read_, n)), calls);
  if (normed) {
    normalize(*pass.backend, context_.spec, step_norm_, low, read);
    normalize(*pass.backend, context_.spec, b_norm_, b, b);
    normalize(*pass.backend, context_.spec, c_norm_, c, c);
  }
  const Tensor step = buffers.get(step_out_, n);
  const LinearCall up[] = {{&step_, step}};
  pass.linear->apply(read, up);
  return step;
}

/// What comes out of the channels' states, [n, n_channel].
Tensor MambaMixer::scan(const Tensor& x, const LayerPass& pass) const {
  const int64_t n = x.shape[0];
  const Tensor b = pass.buffers->get(b_out_, n), c = pass.buffers->get(c_out_, n);
  const Tensor step = make_steps(x, b, c, pass), out = pass.buffers->get(scanned_, n);
  const std::vector<SequenceRows> sequences =
      with_states_from(pass.sequences, layer_.mamba.n_channel * (layer_.conv_kernel - 1));
  ops::channel_scan(*pass.backend, {.x = x,
                                    .step = step,
                                    .b = b,
                                    .c = c,
                                    .rate = rate_,
                                    .skip = skip_,
                                    .sequences = sequences,
                                    .out = out});
  return out;
}

// x += Wout (scan(conv(Wchannels normed)) * silu(Wgate normed))
void MambaMixer::run(const Tensor& normed, const LayerPass& pass) const {
  const int64_t n = pass.x.shape[0], n_out = pass.n_out;
  const Tensor gate = pass.buffers->get(gate_out_, n_out);
  const Tensor scanned = scan(convolve(normed, gate, pass), pass);
  if (n_out == 0) return;
  const Tensor gated = pass.buffers->get(gated_, n_out);
  ops::activate(*pass.backend, Activation::silu, gate, scanned.slice(n - n_out, n), gated);
  out_.add_to(pass.x.slice(n - n_out, n), gated, context_, pass);
}

}  // namespace snapkv
