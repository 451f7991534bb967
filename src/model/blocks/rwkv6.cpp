// SPDX-License-Identifier: MIT
#include "model/blocks/rwkv6.h"

#include <string>

#include "backend/ops.h"

namespace snapkv {
namespace {

/// What a token is mixed with the one before it for, in the order of the file.
struct Rwkv6Input {
  enum { w, k, v, r, g, count };
};
constexpr const char* kRwkv6Inputs[] = {"mix w", "mix k", "mix v", "mix r", "mix g"};
constexpr const char* kRwkv6Added[] = {"added w", "added k", "added v", "added r", "added g"};
constexpr const char* kRwkv6LowParts[] = {"low w", "low k", "low v", "low r", "low g"};
constexpr float kGroupNormEps = 64e-5f;

}  // namespace

Rwkv6Mixer::Rwkv6Mixer(const BlockContext& context, LayerLoader& loader)
    : context_(context), layer_(loader.layer()) {
  const RwkvSpec& s = layer_.rwkv;
  const int64_t n_embd = loader.config().n_embd, width = s.width();
  load_mixes(loader);
  receptance_ = loader.matrix("time_mix_receptance", width, n_embd);
  key_ = loader.matrix("time_mix_key", s.n_head_kv * s.head_dim, n_embd);
  value_ = loader.matrix("time_mix_value", s.n_head_kv * s.head_dim, n_embd);
  gate_ = loader.matrix("time_mix_gate", width, n_embd);
  decay_ = {context,      loader,           "time_mix_decay_w",
            s.decay_rank, Activation::tanh, "time_mix_decay.weight"};
  if (s.rule == WkvRule::rwkv6) {
    bonus_ = loader.rows("time_mix_first.weight", s.n_head, s.head_dim).reshaped({width});
    const auto vector = [&](const char* name) {
      return loader.vector(name, width, Presence::required).reshaped({s.n_head, s.head_dim});
    };
    head_norm_.weight = vector("time_mix_ln.weight");
    head_norm_.bias = vector("time_mix_ln.bias");
  }
  out_ = {context, loader.matrix("time_mix_output", n_embd, width), Norm()};
  plan_activations(context.activations);
}

/// Older files have the mixes in a tensor each.
void Rwkv6Mixer::load_mixes(LayerLoader& loader) {
  const int64_t n_embd = loader.config().n_embd, rank = layer_.rwkv.mix_rank;
  first_mix_ =
      loader.vector("time_mix_lerp_x.weight", n_embd, Presence::required).reshaped({1, n_embd});
  mix_low_ = loader.matrix("time_mix_w1", Rwkv6Input::count * rank, n_embd);
  mix_up_ = loader.matrices("time_mix_w2", Rwkv6Input::count, n_embd, rank);
  if (loader.has("time_mix_lerp_fused.weight") || !loader.has("time_mix_lerp_w.weight")) {
    mix_ = loader.rows("time_mix_lerp_fused.weight", Rwkv6Input::count, n_embd);
    return;
  }
  const auto part = [&](const char* name) {
    return loader
        .vector(std::string("time_mix_lerp_") + name + ".weight", n_embd, Presence::required)
        .reshaped({1, n_embd});
  };
  mix_ = loader.stacked({part("w"), part("k"), part("v"), part("r"), part("g")});
}

void Rwkv6Mixer::plan_activations(ActivationPlan& plan) {
  const RwkvSpec& s = layer_.rwkv;
  const int64_t n_embd = mix_.shape[1], n_kv = s.n_head_kv * s.head_dim;
  const auto input = ActivationType::input;
  first_mixed_ = plan.add("first mix", n_embd, input);
  low_ = plan.add("low ranks", Rwkv6Input::count * s.mix_rank);
  low_read_ = plan.add("low ranks' input", Rwkv6Input::count * s.mix_rank, input);
  for (int i = 0; i < Rwkv6Input::count; ++i) {
    low_parts_.push_back(plan.add(kRwkv6LowParts[i], s.mix_rank, input));
    added_.push_back(plan.add(kRwkv6Added[i], n_embd));
    mixed_.push_back(plan.add(kRwkv6Inputs[i], n_embd, input));
  }
  // names of attention's tensors: a layer has one or the other
  r_out_ = plan.add("q", s.width());
  k_out_ = plan.add("k", n_kv);
  v_out_ = plan.add("v", n_kv);
  decay_out_ = plan.add("decay", s.width());
  gate_out_ = plan.add("output gate", s.width());
  heads_ = plan.add("ungated", s.width());
  gated_ = plan.add("attn", s.width(), input);
}

std::vector<const Weight*> Rwkv6Mixer::matrices() const {
  std::vector<const Weight*> all = {&mix_low_};
  for (const Weight& up : mix_up_) all.push_back(&up);
  for (const Weight* w :
       {&receptance_, &key_, &value_, &gate_, &decay_.down(), &decay_.up(), &out_.w}) {
    all.push_back(w);
  }
  return all;
}

std::vector<Tensor> Rwkv6Mixer::vectors() const {
  std::vector<Tensor> all = {first_mix_, mix_};
  if (bonus_) all.push_back(bonus_);
  return all;
}

/// What decays, keys, values, receptances and gates are made of. The mixes depend on the token.
std::vector<Tensor> Rwkv6Mixer::mix(const Tensor& normed, const LayerPass& pass) const {
  const int64_t n = normed.shape[0];
  const ActivationBuffer& buffers = *pass.buffers;
  const Tensor first[] = {buffers.get(first_mixed_, n)};
  ops::token_shift(*pass.backend,
                   {.x = normed, .mix = first_mix_, .sequences = pass.sequences, .outs = first});
  const Tensor low = buffers.get(low_, n), read = buffers.get(low_read_, n);
  const LinearCall down[] = {{&mix_low_, low}};
  pass.linear->apply(first[0], down);
  ops::activate(*pass.backend, Activation::tanh, low, {}, read);
  std::vector<Tensor> parts, added, mixed;
  for (int i = 0; i < Rwkv6Input::count; ++i) {
    parts.push_back(buffers.get(low_parts_[i], n));
    added.push_back(buffers.get(added_[i], n));
    mixed.push_back(buffers.get(mixed_[i], n));
  }
  ops::split(*pass.backend, read, parts);
  for (int i = 0; i < Rwkv6Input::count; ++i) {
    const LinearCall up[] = {{&mix_up_[i], added[i]}};
    pass.linear->apply(parts[i], up);
  }
  ops::token_shift(
      *pass.backend,
      {.x = normed, .mix = mix_, .added = added, .sequences = pass.sequences, .outs = mixed});
  return mixed;
}

// x += Wout (norm(wkv(r, w, k, v)) * f(Wgate g))
void Rwkv6Mixer::run(const Tensor& normed, const LayerPass& pass) const {
  const RwkvSpec& s = layer_.rwkv;
  Backend& backend = *pass.backend;
  const int64_t n = pass.x.shape[0], n_out = pass.n_out;
  const ActivationBuffer& buffers = *pass.buffers;
  const std::vector<Tensor> mixed = mix(normed, pass);
  const Tensor r = buffers.get(r_out_, n), k = buffers.get(k_out_, n), v = buffers.get(v_out_, n);
  const Tensor decay = buffers.get(decay_out_, n), heads = buffers.get(heads_, n);
  const LinearCall make_r[] = {{&receptance_, r}}, make_k[] = {{&key_, k}};
  const LinearCall make_v[] = {{&value_, v}};
  pass.linear->apply(mixed[Rwkv6Input::r], make_r);
  pass.linear->apply(mixed[Rwkv6Input::k], make_k);
  pass.linear->apply(mixed[Rwkv6Input::v], make_v);
  decay_.run(mixed[Rwkv6Input::w], pass, decay);
  const std::vector<SequenceRows> sequences = with_states_from(pass.sequences, mix_.shape[1]);
  ops::wkv(backend, {.rule = s.rule,
                     .r = r,
                     .decay = decay,
                     .k = k,
                     .v = v,
                     .bonus = bonus_,
                     .sequences = sequences,
                     .out = heads.reshaped({n, s.n_head, s.head_dim})});
  if (n_out == 0) return;
  const Tensor last = heads.slice(n - n_out, n), gate = buffers.get(gate_out_, n_out);
  const Tensor each = last.reshaped({n_out * s.n_head, s.head_dim});
  if (head_norm_) {
    ops::layer_norm(backend, each, head_norm_.weight, head_norm_.bias, kGroupNormEps, each);
  }
  const LinearCall make_gate[] = {{&gate_, gate}};
  pass.linear->apply(mixed[Rwkv6Input::g].slice(n - n_out, n), make_gate);
  const Tensor gated = buffers.get(gated_, n_out);
  const Activation f = s.rule == WkvRule::rwkv6 ? Activation::silu : Activation::sigmoid;
  ops::activate(backend, f, gate, last, gated);
  out_.add_to(pass.x.slice(n - n_out, n), gated, context_, pass);
}

}  // namespace snapkv
