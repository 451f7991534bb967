// SPDX-License-Identifier: MIT
#include "model/blocks/attention.h"

#include <array>
#include <span>
#include <string>

#include "backend/ops.h"

namespace snapkv {
namespace {

/// [n, n_head, head_dim] as [n, n_head * head_dim].
Tensor rows(const Tensor& t) { return t.reshaped({t.shape[0], t.shape[1] * t.shape[2]}); }
/// [n, n_head, head_dim] as [n * n_head, head_dim].
Tensor each_head(const Tensor& t) { return t.reshaped({t.shape[0] * t.shape[1], t.shape[2]}); }

}  // namespace

Attention::Attention(const BlockContext& context, LayerLoader& loader)
    : context_(context), layer_(loader.layer()) {
  load_qkv(loader);
  load_norms(loader);
  if (loader.family().sinks) {
    sinks_ = loader.vector("attn_sinks.weight", layer_.n_head, loader.family().layer_sinks);
  }
  if (loader.family().sub_norms) {
    sub_norm_.weight = loader.vector("attn_sub_norm.weight", layer_.n_out(), Presence::required);
  }
  const bool normed = loader.config().norm_places != NormPlaces::before;
  out_ = {context,
          loader.matrix("attn_output", loader.config().n_embd, layer_.n_out(),
                        loader.family().output_bias),
          normed ? loader.norm(std::string(loader.family().attention_post_norm)) : Norm(), false,
          layer_.factors.attention_out};
  plan_activations(context.activations);
  if (layer_.position_bias) bias_ = PositionBias(context, loader);
  loader.ignore("attn_rot_embd");  // files of 2023; the table is recomputed
  loader.ignore("attention.rotary_emb.inv_freq");
}

void Attention::load_norms(LayerLoader& loader) {
  if (layer_.plain_qk_norm) {
    q_norm_ = loader.plain_norm(layer_.state.head_dim_k);
    k_norm_ = loader.plain_norm(layer_.state.head_dim_k);
    return;
  }
  if (loader.family().qk_norm == QkNorm::query_gains) {
    q_norm_ = loader.query_gains("attn_q_norm", layer_.n_head);
    k_norm_ = loader.plain_norm(layer_.state.head_dim_k);
    return;
  }
  q_norm_ = loader.head_norm("attn_q_norm", layer_.n_head);
  if (layer_.state.shared) return loader.ignore("attn_k_norm.weight");
  k_norm_ = loader.head_norm("attn_k_norm", layer_.state.n_head);
  if (loader.family().value_norm) v_norm_ = loader.plain_norm(layer_.state.head_dim_v);
}

void Attention::plan_activations(ActivationPlan& plan) {
  const StateShape& rows = layer_.state;
  q_ = plan.add_heads("q", layer_.n_head, layer_.head_width());
  k_ = plan.add_heads("k", rows.n_head, layer_.head_width());
  v_ = plan.add_heads("v", rows.n_head, rows.head_dim_v);
  attn_ = plan.add_heads("attn", layer_.n_head, rows.head_dim_v, ActivationType::input);
  if (is_changed()) unchanged_ = plan.add_heads("ungated", layer_.n_head, rows.head_dim_v);
  if (!has_gate()) return;
  if (layer_.output_gate) {
    q_gate_ = plan.add_heads("q and gate", layer_.n_head, 2 * rows.head_dim_k);
  }
  if (gates_heads_) {
    gate_ = plan.add_heads("heads' gates", layer_.n_head, 1);
  } else {
    gate_ = plan.add_heads("output gate", layer_.n_head, rows.head_dim_v);
  }
}

void Attention::load_gate(LayerLoader& loader) {
  const AttentionGate kind = loader.family().attention_gate;
  const bool optional = kind == AttentionGate::heads_if_there;
  if (kind == AttentionGate::none || (optional && !loader.has("attn_gate.weight"))) return;
  gates_heads_ = optional || (kind == AttentionGate::values_or_heads &&
                              loader.n_rows("attn_gate.weight") == layer_.n_head);
  wgate_ = loader.matrix("attn_gate", gates_heads_ ? layer_.n_head : layer_.n_out(),
                         loader.config().n_embd);
}

void Attention::load_qkv(LayerLoader& loader) {
  const int64_t n_embd = loader.config().n_embd;
  const Presence bias = loader.family().qkv_bias;
  const int64_t d = layer_.head_width();
  const int64_t n_q = (layer_.output_gate ? 2 : 1) * layer_.n_head * d;
  const int64_t n_k = layer_.state.n_head * d, n_v = layer_.n_v();
  load_gate(loader);
  if (loader.has("attn_qkv.weight")) {  // one matrix: queries, keys, values
    const Weight qkv = loader.matrix("attn_qkv", n_q + n_k + n_v, n_embd, bias);
    wq_ = qkv.rows(0, n_q);
    wk_ = qkv.rows(n_q, n_q + n_k);
    wv_ = qkv.rows(n_q + n_k, n_q + n_k + n_v);
    return;
  }
  wq_ = loader.matrix("attn_q", n_q, n_embd, bias);
  if (layer_.state.shared) {  // some files have matrices that nothing uses
    loader.ignore("attn_k.weight");
    loader.ignore("attn_v.weight");
    return;
  }
  wk_ = loader.matrix("attn_k", n_k, n_embd, bias);
  const bool from_keys = loader.family().values_of_keys && !loader.has("attn_v.weight");
  if (!from_keys) wv_ = loader.matrix("attn_v", n_v, n_embd, bias);
}

/// q: what the matrix of the queries computes of the last rows, with gates where it has some. gate:
/// what a matrix of gates computes of these rows, where there is one.
void Attention::project(const Tensor& normed, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Tensor& gate, const LayerPass& pass) const {
  const int64_t n = normed.shape[0], n_q = q.shape[0];
  std::array<LinearCall, 4> calls;
  size_t n_calls = 0;
  const auto add = [&](const Weight& w, const Tensor& out) {
    if (w) calls[n_calls++] = {&w, rows(out)};
  };
  add(wk_, k);
  add(wv_, v);
  const size_t n_kv = n_calls;
  add(wq_, q);
  add(wgate_, gate);
  const std::span all = std::span(calls).first(n_calls);
  if (n_q == n) {
    pass.linear->apply(normed, all);
    return;
  }
  if (n_kv > 0) pass.linear->apply(normed, all.first(n_kv));
  if (n_q > 0) pass.linear->apply(normed.slice(n - n_q, n), all.subspan(n_kv));
}

// x += Wo attention(normed), or Wo (attention(normed) * sigmoid(gate))
void Attention::run(const Tensor& normed, const LayerPass& pass) const {
  const int64_t n = pass.x.shape[0], n_q = pass.n_q, n_out = pass.n_out;
  const ActivationBuffer& buffers = *pass.buffers;
  const Tensor q = buffers.get(q_, n_q);
  const bool shared = layer_.state.shared;
  const Tensor k = shared ? Tensor() : buffers.get(k_, n), v = shared ? k : buffers.get(v_, n);
  const Tensor attn = buffers.get(attn_, n_out);
  const Tensor gate = has_gate() ? buffers.get(gate_, n_q) : Tensor();  // of the last n_q rows
  if (layer_.output_gate) {
    const Tensor both = buffers.get(q_gate_, n_q);
    project(normed, both, k, v, {}, pass);
    const Tensor parts[] = {each_head(q), each_head(gate)};
    ops::split(*pass.backend, each_head(both), parts);
  } else {
    project(normed, q, k, v, gate, pass);
  }
  if (const float limit = context_.spec.config.qkv_limit; limit > 0.0f) {
    for (const Tensor& x : {q, k, v}) ops::clamp(*pass.backend, x, -limit, limit);
  }
  if (v_norm_) {  // before the keys have their own norm: values may be made of them
    normalize(*pass.backend, context_.spec, v_norm_, each_head(wv_ ? v : k), each_head(v));
  }
  prepare(q, k, pass);

  const Tensor unchanged = is_changed() ? buffers.get(unchanged_, n_out) : attn;
  if (bias_) {
    pass.attention->attend(bias_.widen_queries(q, pass), bias_.widen_keys(k, pass), v, unchanged);
  } else {
    pass.attention->attend(q, k, v, unchanged);
  }

  if (n_out == 0) return;
  const Activation activation = context_.spec.family->gate_activation;
  Tensor in = rows(attn);
  if (gates_heads_) {
    const Tensor gates = gate.slice(n_q - n_out, n_q);
    ops::activate(*pass.backend, activation, rows(gates), {}, rows(gates));
    ops::scale_rows(*pass.backend, each_head(unchanged), each_head(gates));
    in = as_input(*pass.backend, rows(unchanged), rows(attn));
  } else if (has_gate()) {
    ops::activate(*pass.backend, activation, rows(gate.slice(n_q - n_out, n_q)), rows(unchanged),
                  rows(sub_norm_ ? unchanged : attn));
  }
  if (sub_norm_) {
    normalize(*pass.backend, context_.spec, sub_norm_, rows(unchanged), rows(attn));
  }
  out_.add_to(pass.x.slice(n - n_out, n), in, context_, pass);
}

/// Norms and rotation of queries and keys, in place.
void Attention::prepare(const Tensor& q, const Tensor& k, const LayerPass& pass) const {
  const bool norms_last = context_.spec.family->qk_norm_after_rotation;
  const std::span<const int32_t> q_pos = pass.pos.last(q.shape[0]);
  const RopeFrequencies frequencies = context_.rotations.find(layer_.rotation, pass.n_ctx);
  if (!norms_last) {
    normalize_heads(q_norm_, q, pass);
    normalize_heads(k_norm_, k, pass);
  }
  ops::rope(*pass.backend, q, q_pos, frequencies);
  if (k) ops::rope(*pass.backend, k, pass.pos, frequencies);
  if (norms_last) {
    normalize_heads(q_norm_, q, pass);
    normalize_heads(k_norm_, k, pass);
  }
  if (layer_.has_temperature) sharpen(q, q_pos, context_, pass);
}

/// x [n, heads, head_dim], in place.
void Attention::normalize_heads(const Norm& norm, const Tensor& x, const LayerPass& pass) const {
  if (!norm) return;
  const Tensor vectors =
      context_.spec.family->qk_norm == QkNorm::all_together ? rows(x) : each_head(x);
  normalize(*pass.backend, context_.spec, norm, vectors, vectors);
}

void sharpen(const Tensor& q, std::span<const int32_t> pos, const BlockContext& context,
             const LayerPass& pass) {
  const QueryTemperature& temperature = context.spec.config.temperature;
  if (temperature.scale == 0.0) return;
  std::vector<float> factors;
  for (int32_t p : pos) factors.push_back(temperature.factor(p));
  if (!factors.empty()) ops::scale(*pass.backend, q, factors);
}

}  // namespace snapkv
