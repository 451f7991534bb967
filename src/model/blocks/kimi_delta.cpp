// SPDX-License-Identifier: MIT
#include "model/blocks/kimi_delta.h"

#include "backend/ops.h"
#include "model/blocks/delta_heads.h"

namespace snapkv {

KimiDeltaMixer::KimiDeltaMixer(const BlockContext& context, LayerLoader& loader)
    : context_(context), layer_(loader.layer()) {
  const DeltaNetSpec& net = layer_.delta_net;
  const int64_t n_embd = loader.config().n_embd, kernel = layer_.conv_kernel;
  load_qkv(loader);
  beta_ = loader.matrix("ssm_beta", net.n_head, n_embd);
  if (net.low_rank) {
    decay_low_ = loader.matrix("ssm_f_a", net.d_k, n_embd);
    decay_ = loader.matrix("ssm_f_b", n_keys(), net.d_k);
    gate_low_ = loader.matrix("ssm_g_a", net.d_v, n_embd);
    gate_ = loader.matrix("ssm_g_b", n_values(), net.d_v);
  } else {
    decay_ = loader.matrix("ssm_f_a", n_keys(), n_embd);
    gate_ = loader.matrix("ssm_g_a", n_values(), n_embd);
  }
  conv_.w = loader.stacked({loader.rows("ssm_conv1d_q.weight", n_keys(), kernel),
                            loader.rows("ssm_conv1d_k.weight", n_keys(), kernel),
                            loader.rows("ssm_conv1d_v.weight", n_values(), kernel)});
  rate_ = loader.rows("ssm_a", net.n_head, 1).reshaped({net.n_head});
  decay_bias_ = loader.vector("ssm_dt.bias", n_keys(), Presence::required);
  norm_.weight = loader.vector("ssm_norm.weight", net.d_v, Presence::required);
  out_ = {context, loader.matrix("attn_output", n_embd, n_values()), Norm()};
  plan_activations(context.activations);
}

void KimiDeltaMixer::load_qkv(LayerLoader& loader) {
  const int64_t n_embd = loader.config().n_embd, n_k = n_keys(), n_v = n_values();
  if (loader.has("attn_qkv.weight")) {  // one matrix: queries, keys, values
    const Weight qkv = loader.matrix("attn_qkv", 2 * n_k + n_v, n_embd);
    q_ = qkv.rows(0, n_k);
    k_ = qkv.rows(n_k, 2 * n_k);
    v_ = qkv.rows(2 * n_k, 2 * n_k + n_v);
    return;
  }
  q_ = loader.matrix("attn_q", n_k, n_embd);
  k_ = loader.matrix("attn_k", n_k, n_embd);
  v_ = loader.matrix("attn_v", n_v, n_embd);
}

void KimiDeltaMixer::plan_activations(ActivationPlan& plan) {
  const DeltaNetSpec& net = layer_.delta_net;
  const auto input = ActivationType::input;
  // names of attention's tensors: a layer has one or the other
  q_out_ = plan.add("q", n_keys());
  k_out_ = plan.add("k", n_keys());
  v_out_ = plan.add("v", n_values());
  qkv_ = plan.add("q and gate", net.n_qkv());
  convolved_ = plan.add("convolved", net.n_qkv());
  beta_out_ = plan.add("beta", net.n_head);
  if (net.low_rank) {
    decay_low_out_ = plan.add("decay's low rank", net.d_k, input);
    gate_low_out_ = plan.add("gate's low rank", net.d_v, input);
  }
  decay_out_ = plan.add("decay", n_keys());
  gate_out_ = plan.add("output gate", n_values());
  heads_ = plan.add("ungated", n_values());
  gated_ = plan.add("attn", n_values(), input);
}

struct KimiDeltaMixer::Projected {
  Tensor qkv, decay, beta;
  Tensor gate;  // of the last n_out rows
};

KimiDeltaMixer::Projected KimiDeltaMixer::project(const Tensor& normed,
                                                  const LayerPass& pass) const {
  const int64_t n = normed.shape[0], n_out = pass.n_out;
  const ActivationBuffer& buffers = *pass.buffers;
  const Projected to = {.qkv = buffers.get(qkv_, n),
                        .decay = buffers.get(decay_out_, n),
                        .beta = buffers.get(beta_out_, n),
                        .gate = buffers.get(gate_out_, n_out)};
  const Tensor parts[] = {buffers.get(q_out_, n), buffers.get(k_out_, n), buffers.get(v_out_, n)};
  const bool low_rank = layer_.delta_net.low_rank;
  const Tensor decay_low = low_rank ? buffers.get(decay_low_out_, n) : Tensor();
  const Tensor gate_low = low_rank ? buffers.get(gate_low_out_, n_out) : Tensor();
  const LinearCall calls[] = {
      {&q_, parts[0]},
      {&k_, parts[1]},
      {&v_, parts[2]},
      {&beta_, to.beta},
      low_rank ? LinearCall{&decay_low_, decay_low} : LinearCall{&decay_, to.decay},
      low_rank ? LinearCall{&gate_low_, gate_low} : LinearCall{&gate_, to.gate}};
  const std::span all(calls);
  if (n_out == n) {
    pass.linear->apply(normed, all);
  } else {
    pass.linear->apply(normed, all.first(5));
    if (n_out > 0) pass.linear->apply(normed.slice(n - n_out, n), all.last(1));
  }
  ops::join(*pass.backend, parts, to.qkv);
  if (!low_rank) return to;
  const LinearCall decay[] = {{&decay_, to.decay}}, gate[] = {{&gate_, to.gate}};
  pass.linear->apply(decay_low, decay);
  if (n_out > 0) pass.linear->apply(gate_low, gate);
  return to;
}

// x += Wout (norm(delta_rule(conv(Wqkv normed))) * sigmoid(Wgate normed))
void KimiDeltaMixer::run(const Tensor& normed, const LayerPass& pass) const {
  const int64_t n = pass.x.shape[0], n_out = pass.n_out;
  const Projected in = project(normed, pass);
  const Tensor heads = pass.buffers->get(heads_, n);
  apply_delta_rule(layer_, conv_, in.qkv, pass.buffers->get(convolved_, n),
                   {.decay = in.decay, .beta = in.beta, .rate = rate_, .bias = decay_bias_}, heads,
                   pass);
  if (n_out == 0) return;
  add_gated_heads(context_, layer_, norm_, out_, heads.slice(n - n_out, n), Activation::sigmoid,
                  in.gate, pass.buffers->get(gated_, n_out), pass);
}

}  // namespace snapkv
