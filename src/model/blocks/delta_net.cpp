// SPDX-License-Identifier: MIT
#include "model/blocks/delta_net.h"

#include "backend/ops.h"

namespace snapkv {
DeltaNetMixer::DeltaNetMixer(const BlockContext& context, LayerLoader& loader)
    : context_(context), layer_(loader.layer()) {
  const DeltaNetSpec& net = layer_.delta_net;
  load_projections(loader);
  conv_.w = loader.rows("ssm_conv1d.weight", net.n_qkv(), layer_.conv_kernel);
  rate_ = loader.vector("ssm_a", net.n_head, Presence::required);
  decay_bias_ = loader.vector("ssm_dt.bias", net.n_head, Presence::required);
  norm_.weight = loader.vector("ssm_norm.weight", net.d_v, Presence::required);
  out_ = {context, loader.matrix("ssm_out", loader.config().n_embd, net.n_head * net.d_v), Norm()};
  plan_activations(context.activations);
}

void DeltaNetMixer::load_projections(LayerLoader& loader) {
  const DeltaNetSpec& net = layer_.delta_net;
  const int64_t n_embd = loader.config().n_embd;
  qkv_ = loader.matrix("attn_qkv", net.n_qkv(), n_embd);
  gate_ = loader.matrix("attn_gate", net.n_head * net.d_v, n_embd);
  if (loader.has("ssm_ba.weight")) {
    beta_decay_ = loader.matrix("ssm_ba", 2 * net.n_head, n_embd);
  } else {
    beta_ = loader.matrix("ssm_beta", net.n_head, n_embd);
    decay_ = loader.matrix("ssm_alpha", net.n_head, n_embd);
  }
}

void DeltaNetMixer::plan_activations(ActivationPlan& plan) {
  const DeltaNetSpec& net = layer_.delta_net;
  const int64_t n_values = net.n_head * net.d_v;
  // names of attention's tensors: a layer has one or the other
  qkv_out_ = plan.add("q", net.n_qkv());
  convolved_ = plan.add("q and gate", net.n_qkv());
  gate_out_ = plan.add("output gate", n_values);
  heads_ = plan.add("ungated", n_values);
  gated_ = plan.add("attn", n_values, ActivationType::input);
  beta_out_ = plan.add("beta", net.n_head);
  decay_out_ = plan.add("decay", net.n_head);
  if (beta_decay_) beta_decay_out_ = plan.add("beta and decay", 2 * net.n_head);
}

struct DeltaNetMixer::Projected {
  Tensor qkv, gate, beta, decay;
};

DeltaNetMixer::Projected DeltaNetMixer::project(const Tensor& normed, const LayerPass& pass) const {
  const int64_t n = normed.shape[0], n_head = layer_.delta_net.n_head;
  const ActivationBuffer& buffers = *pass.buffers;
  const Projected to = {.qkv = buffers.get(qkv_out_, n),
                        .gate = buffers.get(gate_out_, n),
                        .beta = buffers.get(beta_out_, n),
                        .decay = buffers.get(decay_out_, n)};
  if (!beta_decay_) {
    const LinearCall calls[] = {
        {&qkv_, to.qkv}, {&gate_, to.gate}, {&beta_, to.beta}, {&decay_, to.decay}};
    pass.linear->apply(normed, calls);
    return to;
  }
  const Tensor both = buffers.get(beta_decay_out_, n);
  const LinearCall calls[] = {{&qkv_, to.qkv}, {&gate_, to.gate}, {&beta_decay_, both}};
  pass.linear->apply(normed, calls);
  const int64_t n_group = layer_.delta_net.n_head_k, n_in_group = n_head / n_group;
  const Tensor parts[] = {to.beta.reshaped({n * n_group, n_in_group}),
                          to.decay.reshaped({n * n_group, n_in_group})};
  ops::split(*pass.backend, both.reshaped({n * n_group, 2 * n_in_group}), parts);
  return to;
}

// x += Wout (norm(delta_rule(conv(Wqkv normed))) * silu(Wgate normed))
void DeltaNetMixer::run(const Tensor& normed, const LayerPass& pass) const {
  const DeltaNetSpec& net = layer_.delta_net;
  const int64_t n = pass.x.shape[0], n_out = pass.n_out, n_qkv = net.n_qkv();
  Backend& backend = *pass.backend;
  const Projected in = project(normed, pass);
  const Tensor convolved = pass.buffers->get(convolved_, n);
  ops::short_conv(backend, {.in = in.qkv.reshaped({n, 1, n_qkv}),
                            .weight = conv_.w,
                            .sequences = pass.sequences,
                            .out = convolved});
  const Tensor heads = pass.buffers->get(heads_, n);
  const std::vector<SequenceRows> sequences =
      with_states_from(pass.sequences, n_qkv * (layer_.conv_kernel - 1));
  ops::delta_rule(backend, {.qkv = convolved,
                            .decay = in.decay,
                            .beta = in.beta,
                            .rate = rate_,
                            .decay_bias = decay_bias_,
                            .n_head_k = net.n_head_k,
                            .d_k = net.d_k,
                            .keys_take_turns = net.keys_take_turns,
                            .sequences = sequences,
                            .out = heads.reshaped({n, net.n_head, net.d_v})});
  if (n_out == 0) return;
  const Tensor values = heads.slice(n - n_out, n), gated = pass.buffers->get(gated_, n_out);
  const Tensor each_head = values.reshaped({n_out * net.n_head, net.d_v});
  normalize(backend, context_.spec, norm_, each_head, each_head);
  ops::activate(backend, Activation::silu, in.gate.slice(n - n_out, n), values, gated);
  out_.add_to(pass.x.slice(n - n_out, n), gated, context_, pass);
}

}  // namespace snapkv
