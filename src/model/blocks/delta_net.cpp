// SPDX-License-Identifier: MIT
#include "model/blocks/delta_net.h"

#include "backend/ops.h"
#include "model/blocks/delta_heads.h"

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
  const int64_t n = pass.x.shape[0], n_out = pass.n_out;
  const Projected in = project(normed, pass);
  const Tensor heads = pass.buffers->get(heads_, n);
  apply_delta_rule(layer_, conv_, in.qkv, pass.buffers->get(convolved_, n),
                   {.decay = in.decay, .beta = in.beta, .rate = rate_, .bias = decay_bias_}, heads,
                   pass);
  if (n_out == 0) return;
  add_gated_heads(context_, layer_, norm_, out_, heads.slice(n - n_out, n), Activation::silu,
                  in.gate.slice(n - n_out, n), pass.buffers->get(gated_, n_out), pass);
}

}  // namespace snapkv
