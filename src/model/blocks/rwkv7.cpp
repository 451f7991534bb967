// SPDX-License-Identifier: MIT
#include "model/blocks/rwkv7.h"

#include <string>

#include "backend/ops.h"

namespace snapkv {
namespace {

/// What a token is mixed with the one before it for, in the order of the file.
struct Rwkv7Input {
  enum { r, w, k, v, a, g, count };
};
constexpr const char* kRwkv7Inputs[] = {"mix r", "mix w", "mix k", "mix v", "mix a", "mix g"};
constexpr float kHeadNormEps = 64e-5f;

/// Files of models without gates have five mixes, or one that nothing reads.
Tensor load_mixes(LayerLoader& loader, bool gated) {
  const std::string name = "time_mix_lerp_fused.weight";
  const int64_t all = Rwkv7Input::count, without_gate = Rwkv7Input::g;
  const bool has_all = gated || loader.n_rows(name) == all;
  return loader.rows(name, has_all ? all : without_gate, loader.config().n_embd)
      .slice(0, gated ? all : without_gate);
}

}  // namespace

Rwkv7Mixer::Rwkv7Mixer(const BlockContext& context, LayerLoader& loader)
    : context_(context), layer_(loader.layer()), is_first_(loader.il() == 0) {
  const RwkvSpec& s = layer_.rwkv;
  const int64_t n_embd = loader.config().n_embd, width = s.width();
  const auto vector = [&](const char* name) {
    return loader.vector(std::string(name) + ".weight", width, Presence::required);
  };
  mix_ = load_mixes(loader, s.gate_rank > 0);
  receptance_ = loader.matrix("time_mix_receptance", width, n_embd);
  key_ = loader.matrix("time_mix_key", width, n_embd);
  value_ = loader.matrix("time_mix_value", width, n_embd);
  load_low_ranks(loader);
  bonus_ = vector("time_mix_r_k");
  removal_ = vector("time_mix_k_k");
  replacement_ = vector("time_mix_k_a");
  if (context.spec.config.norm == NormKind::layer || loader.has("time_mix_ln.weight")) {
    head_norm_.weight = vector("time_mix_ln").reshaped({s.n_head, s.head_dim});
    head_norm_.bias = loader.vector("time_mix_ln.bias", width, Presence::required)
                          .reshaped({s.n_head, s.head_dim});
  }
  out_ = {context, loader.matrix("time_mix_output", n_embd, width), Norm()};
  plan_activations(context.activations);
}

void Rwkv7Mixer::load_low_ranks(LayerLoader& loader) {
  const RwkvSpec& s = layer_.rwkv;
  decay_ = {context_, loader, "time_mix_w", s.decay_rank, Activation::tanh, "time_mix_w0.weight"};
  rate_ = {context_, loader, "time_mix_a", s.rate_rank, Activation::identity, "time_mix_a0.weight"};
  if (s.gate_rank > 0) {
    gate_ = {context_, loader, "time_mix_g", s.gate_rank, Activation::sigmoid, ""};
  }
  if (is_first_) {  // files have them in the first layer too, where nothing uses them
    for (const char* name : {"time_mix_v0", "time_mix_v1", "time_mix_v2"}) {
      loader.ignore(std::string(name) + ".weight");
    }
    return;
  }
  first_ = {
      context_, loader, "time_mix_v", s.value_rank, Activation::identity, "time_mix_v0.weight"};
}

void Rwkv7Mixer::plan_activations(ActivationPlan& plan) {
  const int64_t width = layer_.rwkv.width(), n_mix = mix_.shape[0];
  const auto input = ActivationType::input;
  for (int64_t i = 0; i < n_mix; ++i) {
    mixed_.push_back(plan.add(kRwkv7Inputs[i], mix_.shape[1], input));
  }
  // names of attention's tensors: a layer has one or the other
  r_out_ = plan.add("q", width);
  k_out_ = plan.add("k", width);
  v_out_ = plan.add("v", width);
  decay_out_ = plan.add("decay", width);
  rate_out_ = plan.add("rate", width);
  gate_out_ = plan.add("output gate", width);  // of values, then of what comes out
  heads_ = plan.add("ungated", width);
  shares_ = plan.add("shares", layer_.rwkv.n_head);
  gated_ = plan.add("attn", width, input);
}

/// The layer's own values, mixed with the first layer's. [n, width]
Tensor Rwkv7Mixer::make_values(const Tensor& x, const LayerPass& pass) const {
  const int64_t n = x.shape[0];
  const Tensor v = pass.buffers->get(v_out_, n);
  const LinearCall call[] = {{&value_, v}};
  pass.linear->apply(x, call);
  if (is_first_) {
    ops::split(*pass.backend, v, {&pass.first_values, 1});
  } else {
    const Tensor gates = pass.buffers->get(gate_out_, n);
    first_.run(x, pass, gates);
    ops::blend(*pass.backend, v, pass.first_values, gates);
  }
  return v;
}

// x += Wout ((norm(wkv(r, w, k, v, a)) + shares v) * gate)
void Rwkv7Mixer::run(const Tensor& normed, const LayerPass& pass) const {
  const RwkvSpec& s = layer_.rwkv;
  const int64_t n = pass.x.shape[0], n_out = pass.n_out;
  const ActivationBuffer& buffers = *pass.buffers;
  std::vector<Tensor> mixed;
  for (const ActivationTensor& mix : mixed_) mixed.push_back(buffers.get(mix, n));
  ops::token_shift(*pass.backend,
                   {.x = normed, .mix = mix_, .sequences = pass.sequences, .outs = mixed});
  const Tensor r = buffers.get(r_out_, n), k = buffers.get(k_out_, n);
  const Tensor decay = buffers.get(decay_out_, n), rate = buffers.get(rate_out_, n);
  const LinearCall make_r[] = {{&receptance_, r}}, make_k[] = {{&key_, k}};
  pass.linear->apply(mixed[Rwkv7Input::r], make_r);
  pass.linear->apply(mixed[Rwkv7Input::k], make_k);
  decay_.run(mixed[Rwkv7Input::w], pass, decay);
  rate_.run(mixed[Rwkv7Input::a], pass, rate);
  const Tensor v = make_values(mixed[Rwkv7Input::v], pass);
  const Tensor heads = buffers.get(heads_, n), shares = buffers.get(shares_, n);
  const std::vector<SequenceRows> sequences = with_states_from(pass.sequences, mix_.shape[1]);
  ops::wkv(*pass.backend, {.rule = s.rule,
                           .r = r,
                           .decay = decay,
                           .k = k,
                           .v = v,
                           .rate = rate,
                           .bonus = bonus_,
                           .removal = removal_,
                           .replacement = replacement_,
                           .sequences = sequences,
                           .out = heads.reshaped({n, s.n_head, s.head_dim}),
                           .shares = shares});
  if (n_out == 0) return;
  finish(heads.slice(n - n_out, n), v.slice(n - n_out, n), shares.slice(n - n_out, n),
         gate_ ? mixed[Rwkv7Input::g].slice(n - n_out, n) : Tensor(), pass);
}

/// Of the last rows.
void Rwkv7Mixer::finish(const Tensor& heads, const Tensor& v, const Tensor& shares,
                        const Tensor& gate_input, const LayerPass& pass) const {
  const RwkvSpec& s = layer_.rwkv;
  Backend& backend = *pass.backend;
  const int64_t n = pass.x.shape[0], n_out = heads.shape[0], n_rows = n_out * s.n_head;
  const Tensor each = heads.reshaped({n_rows, s.head_dim}),
               values = v.reshaped({n_rows, s.head_dim});
  if (head_norm_) {
    ops::layer_norm(backend, each, head_norm_.weight, head_norm_.bias, kHeadNormEps, each);
  }
  ops::scale_rows(backend, values, shares.reshaped({n_rows, 1}));
  ops::add(backend, heads, v, 1.0f);
  Tensor gated = pass.buffers->get(gated_, n_out);
  if (gate_) {
    const Tensor gate = pass.buffers->get(gate_out_, n_out);
    gate_.run(gate_input, pass, gate);
    ops::activate(backend, Activation::identity, gate, heads, gated);
  } else {
    gated = as_input(backend, heads, gated);
  }
  out_.add_to(pass.x.slice(n - n_out, n), gated, context_, pass);
}

}  // namespace snapkv
