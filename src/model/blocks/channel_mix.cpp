// SPDX-License-Identifier: MIT
#include "model/blocks/channel_mix.h"

#include "backend/ops.h"

namespace snapkv {

ChannelMix::ChannelMix(const FeedForwardPart& part, const BlockContext& context,
                       LayerLoader& loader)
    : context_(context), layer_(loader.layer()) {
  const int64_t n_embd = loader.config().n_embd, n_ff = part.n_ff;
  const auto mix = [&](const char* name) {
    return loader.vector(name, n_embd, Presence::required).reshaped({1, n_embd});
  };
  key_ = loader.matrix("channel_mix_key", n_ff, n_embd);
  value_ = {context, loader.matrix("channel_mix_value", n_embd, n_ff), Norm()};
  mix_ = mix("channel_mix_lerp_k.weight");
  mixed_.push_back(context.activations.add("mix k", n_embd, ActivationType::input));
  if (layer_.rwkv.rule == WkvRule::rwkv6) {
    mix_ = loader.stacked({mix_, mix("channel_mix_lerp_r.weight")});
    receptance_ = loader.matrix("channel_mix_receptance", n_embd, n_embd);
    mixed_.push_back(context.activations.add("mix r", n_embd, ActivationType::input));
    gate_ = context.activations.add("output gate", n_embd);
    branch_ = context.activations.add("branch", n_embd);
  }
  up_ = context.activations.add("up", n_ff);
  act_ = context.activations.add("act", n_ff, ActivationType::input);
}

// x += Wvalue max(Wkey k, 0)^2, times sigmoid(Wreceptance r) where there is a gate
void ChannelMix::run(const Tensor& normed, const Tensor& x, const LayerPass& pass) const {
  const int64_t n = normed.shape[0], n_embd = normed.shape[1], n_out = x.shape[0];
  const RwkvSpec& s = layer_.rwkv;
  std::vector<Tensor> mixed;
  for (const ActivationTensor& mix : mixed_) mixed.push_back(pass.buffers->get(mix, n));
  // after the mixer's own last row and the matrices of its heads
  const std::vector<SequenceRows> sequences =
      with_states_from(pass.sequences, n_embd + s.width() * s.head_dim);
  ops::token_shift(*pass.backend,
                   {.x = normed, .mix = mix_, .sequences = sequences, .outs = mixed});
  if (n_out == 0) return;
  const Tensor up = pass.buffers->get(up_, n_out), act = pass.buffers->get(act_, n_out);
  const LinearCall make_key[] = {{&key_, up}};
  pass.linear->apply(mixed[0].slice(n - n_out, n), make_key);
  ops::activate(*pass.backend, Activation::relu_squared, up, {}, act);
  if (!receptance_) {
    value_.add_to(x, act, context_, pass);
    return;
  }
  const Tensor gate = pass.buffers->get(gate_, n_out), branch = pass.buffers->get(branch_, n_out);
  const LinearCall make_gate[] = {{&receptance_, gate}}, make_value[] = {{&value_.w, branch}};
  pass.linear->apply(mixed[1].slice(n - n_out, n), make_gate);
  pass.linear->apply(act, make_value);
  ops::activate(*pass.backend, Activation::sigmoid, gate, branch, branch);
  ops::add(*pass.backend, x, branch, 1.0f);
}

}  // namespace snapkv
