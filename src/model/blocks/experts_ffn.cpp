// SPDX-License-Identifier: MIT
#include "model/blocks/experts_ffn.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"

namespace snapkv {
namespace {

/// [n, 1] as [n].
Tensor column(const Tensor& t) { return t.reshaped({t.shape[0]}); }

/// to = from, in its type.
void convert(Backend& backend, const Tensor& from, const Tensor& to) {
  const void* const source = from.data;
  void* const target = to.data;
  const auto n = static_cast<int32_t>(from.shape[0]);
  ops::convert_rows(
      backend,
      {{&source, 1}, from.dtype, from.shape[1], Tensor(), {&n, 1}, to.dtype, {&target, 1}});
}

/// The most rows that are computed at a time in a chunk of n tokens: twice what one expert gets
/// when all get as many, but all that a decode step of a few sequences has.
int64_t most_rows(const ModelConfig& c, int64_t n) {
  constexpr int64_t kLeast = 256;
  const int64_t all = n * c.n_expert_used;
  return std::min(all, std::max({kLeast, c.n_expert_used, 2 * (all / c.n_expert)}));
}

}  // namespace

ExpertsFfn::ExpertsFfn(const FeedForwardPart& part, const BlockContext& context,
                       LayerLoader& loader)
    : context_(context),
      n_ff_(part.n_ff),
      factor_(loader.layer().factors.down),
      limits_(part.limits),
      adjugate_spec_(part.adjugates),
      n_in_(part.n_latent > 0 ? part.n_latent : loader.config().n_embd) {
  const ModelConfig& c = loader.config();
  router_.w = loader.rows("ffn_gate_inp.weight", c.n_expert, c.n_embd);
  router_.bias = loader.vector("ffn_gate_inp.bias", c.n_expert, loader.family().expert_bias);
  // files of Hy3 leave the ending out of the name
  choice_bias_ = loader.vector(loader.has("exp_probs_b") ? "exp_probs_b" : "exp_probs_b.bias",
                               c.n_expert, loader.family().choice_bias);
  if (part.beside) {
    router_norm_.weight = loader.vector("ffn_gate_inp.scale", c.n_embd, Presence::required);
  }
  load_experts(loader);
  load_factors(loader);
  if (adjugate_spec_.n_ff > 0) load_adjugates(loader);
  if (part.n_latent > 0) {
    latent_down_ = loader.matrix("ffn_latent_down", n_in_, c.n_embd);
    latent_up_ = loader.matrix("ffn_latent_up", c.n_embd, n_in_);
  }
  plan_activations(context.activations);
}

void ExpertsFfn::load_experts(LayerLoader& loader) {
  const ModelConfig& c = loader.config();
  if (loader.has("ffn_gate_up_exps.weight")) {  // one tensor: of each expert its gate, then up
    for (const Weight& both : loader.experts("ffn_gate_up", 2 * n_ff_, n_in_)) {
      gates_.push_back(both.rows(0, n_ff_));
      ups_.push_back(both.rows(n_ff_, 2 * n_ff_));
    }
  } else {
    if (loader.family().gated) gates_ = loader.experts("ffn_gate", n_ff_, n_in_);
    ups_ = loader.experts("ffn_up", n_ff_, n_in_);
  }
  downs_ = loader.experts("ffn_down", n_in_, n_ff_);
  for (int64_t e = 0; e < c.n_expert; ++e) {
    const Weight gate = gates_.empty() ? Weight() : gates_[e];
    experts_.push_back({.gate = gate.w,
                        .up = ups_[e].w,
                        .down = downs_[e].w,
                        .gate_bias = gate.bias,
                        .up_bias = ups_[e].bias,
                        .down_bias = downs_[e].bias});
  }
}

/// As many as there are experts, of which those of a group have the same matrices.
void ExpertsFfn::load_adjugates(LayerLoader& loader) {
  const int64_t n_ff = adjugate_spec_.n_ff, n = n_expert() / adjugate_spec_.n_group;
  SNAPKV_CHECK(!own_factors_ && n_in_ == loader.config().n_embd);
  adjugate_gates_ = loader.adjugates("ffn_gate_ch", n, n_ff, n_in_);
  adjugate_ups_ = loader.adjugates("ffn_up_ch", n, n_ff, n_in_);
  adjugate_downs_ = loader.adjugates("ffn_down_ch", n, n_in_, n_ff);
  for (int64_t e = 0; e < n_expert(); ++e) {
    const int64_t group = e / adjugate_spec_.n_group;
    adjugates_.push_back({.gate = adjugate_gates_[group].w,
                          .up = adjugate_ups_[group].w,
                          .down = adjugate_downs_[group].w,
                          .gate_bias = {},
                          .up_bias = {},
                          .down_bias = {}});
  }
}

/// What experts' results are multiplied by: the factors of their down matrices, and of their up
/// matrices, which pass f as a power where there are no gates.
void ExpertsFfn::load_factors(LayerLoader& loader) {
  const Family& family = loader.family();
  const Expert& any = experts_[0];
  if (family.weighs_inputs || any.up_bias || any.down_bias) return;  // such a factor is refused
  for (const char* name : {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"}) {
    loader.ignore(std::string(name) + ".input_scale");  // as WeightLoader::matrix does
  }
  own_factors_ = loader.vector("ffn_down_exps.scale", n_expert(), Presence::optional);
  const bool passes = !gates_.empty() || family.activation == Activation::relu_squared;
  if (!passes || !loader.has("ffn_up_exps.scale")) return;
  const Tensor up = loader.vector("ffn_up_exps.scale", n_expert(), Presence::required);
  const Tensor product = loader.ones(n_expert());
  for (int64_t e = 0; e < n_expert(); ++e) {
    const float down = own_factors_ ? *own_factors_.at<const float>(e) : 1.0f;
    const float factor = *up.at<const float>(e);
    *product.at<float>(e) = down * (gates_.empty() ? factor * factor : factor);
  }
  own_factors_ = product;
}

void ExpertsFfn::plan_activations(ActivationPlan& plan) {
  const ModelConfig& c = context_.spec.config;
  const auto some = [&c](int64_t n) { return most_rows(c, n); };
  const auto chosen = [n_used = c.n_expert_used](int64_t n) { return n * n_used; };
  const auto sorted = [=, n_expert = c.n_expert](int64_t n) { return n_expert + 1 + chosen(n); };
  logits_ = plan.add("router", c.n_expert);
  if (router_norm_) router_input_ = plan.add("router's input", c.n_embd);
  chosen_ = plan.add("chosen experts", c.n_expert_used, ActivationType::i32);
  weights_ = plan.add("experts' weights", c.n_expert_used);
  gathered_ = plan.add("gathered", n_in_, ActivationType::input, some);
  branch_ = plan.add("experts' output", n_in_, ActivationType::f32, some);
  router_in_ = plan.add("experts' output", c.n_embd, ActivationType::f32, some);
  if (context_.spec.family->weighs_inputs) {
    weighed_ = plan.add("weighed", c.n_embd);
    weighed_in_ = plan.add("weighed input", c.n_embd, ActivationType::input);
  }
  if (latent_down_) {
    latent_ = plan.add("latent", n_in_);
    latent_in_ = plan.add("latent input", n_in_, ActivationType::input);
  }
  if (!gates_.empty()) gate_ = plan.add("experts' gate", n_ff_, ActivationType::f32, some);
  up_ = plan.add("experts' up", n_ff_, ActivationType::f32, some);
  act_ = plan.add("experts' act", n_ff_, ActivationType::input, some);
  if (const int64_t n_ff = adjugate_spec_.n_ff; n_ff > 0) {
    adjugate_gate_ = plan.add("experts' gate", n_ff, ActivationType::f32, some);
    adjugate_up_ = plan.add("experts' up", n_ff, ActivationType::f32, some);
    adjugate_act_ = plan.add("experts' act", n_ff, ActivationType::input, some);
  }
  order_ = plan.add("experts' order", 1, ActivationType::i32, sorted);
  factors_ = plan.add("experts' factors", 1, ActivationType::f32, chosen);
}

std::vector<const Weight*> ExpertsFfn::other_matrices() const {
  std::vector<const Weight*> all = {&router_};
  for (size_t e = 0; e < experts_.size(); ++e) {
    if (!gates_.empty()) all.push_back(&gates_[e]);
    all.insert(all.end(), {&ups_[e], &downs_[e]});
  }
  for (const auto* some : {&adjugate_gates_, &adjugate_ups_, &adjugate_downs_}) {
    for (const Weight& w : *some) all.push_back(&w);
  }
  return all;
}

void ExpertsFfn::begin(const Tensor& x, const LayerPass& pass) const {
  if (context_.spec.family->routes_first) router_logits(x, pass);
}

// x += residual_scale * sum over the chosen experts of weight * Wdown (f(Wgate normed) * Wup
// normed), or of Wdown f(Wup normed) without gates; without the scale where x is a sum that has a
// norm (SumFfn)
void ExpertsFfn::run(const Tensor& normed, const Tensor& x, const LayerPass& pass) const {
  const ModelConfig& c = context_.spec.config;
  const int64_t n = normed.shape[0];
  const Tensor chosen = pass.buffers->get(chosen_, n), weights = pass.buffers->get(weights_, n);
  const Tensor logits = context_.spec.family->routes_first
                            ? pass.buffers->get(logits_, n)  // begin() has computed them
                            : router_logits(router_norm_ ? router_input(n, pass) : normed, pass);
  ops::route(*pass.backend, {.logits = logits,
                             .bias = choice_bias_,
                             .factors = own_factors_,
                             .rule = c.routing,
                             .experts = chosen,
                             .weights = weights});
  if (context_.spec.family->weighs_inputs) {
    const Tensor weighed = weighed_input(normed, logits, chosen, weights, pass);
    add_experts(weighed, x, chosen, weights, pass);
    return;
  }
  if (!latent_down_) {
    add_experts(normed, x, chosen, weights, pass);
    if (!adjugates_.empty()) add_adjugates(normed, x, chosen, weights, pass);
    return;
  }
  const Tensor in = latent_input(normed, pass), sum = pass.buffers->get(latent_, n);
  ops::scale(*pass.backend, sum, std::array{0.0f});  // it holds what latent_input() computed
  add_experts(in, sum, chosen, weights, pass);
  convert(*pass.backend, sum, in);
  const LinearCall up[] = {{&latent_up_, x, true}};
  pass.linear->apply(in, up);
}

void ExpertsFfn::add_experts(const Tensor& in, const Tensor& out, const Tensor& chosen,
                             const Tensor& weights, const LayerPass& pass) const {
  const bool in_sum = context_.spec.config.norm_places != NormPlaces::before;
  ops::project_experts(*pass.backend,
                       {.x = in,
                        .experts = experts_,
                        .chosen = chosen,
                        .weights = weights,
                        .activation = context_.spec.family->activation,
                        .limits = limits_,
                        .factor = in_sum ? 1.0f : context_.spec.config.residual_scale * factor_,
                        .out = out,
                        .memory = memory(in.shape[0], pass),
                        .workspace = pass.linear->workspace()});
}

void ExpertsFfn::add_adjugates(const Tensor& in, const Tensor& out, const Tensor& chosen,
                               const Tensor& weights, const LayerPass& pass) const {
  const int64_t m = most_rows(context_.spec.config, in.shape[0]);
  ExpertMemory smaller = memory(in.shape[0], pass);
  smaller.gate = pass.buffers->get(adjugate_gate_, m);
  smaller.up = pass.buffers->get(adjugate_up_, m);
  smaller.act = pass.buffers->get(adjugate_act_, m);
  ops::project_experts(*pass.backend,
                       {.x = in,
                        .experts = adjugates_,
                        .chosen = chosen,
                        .weights = weights,
                        .activation = context_.spec.family->activation,
                        .limits = {},
                        .factor = context_.spec.config.residual_scale * adjugate_spec_.factor,
                        .out = out,
                        .memory = smaller,
                        .workspace = pass.linear->workspace()});
}

/// What experts read, where they work on fewer values.
Tensor ExpertsFfn::latent_input(const Tensor& normed, const LayerPass& pass) const {
  const int64_t n = normed.shape[0];
  const Tensor latent = pass.buffers->get(latent_, n), in = pass.buffers->get(latent_in_, n);
  const LinearCall down[] = {{&latent_down_, latent}};
  pass.linear->apply(normed, down);
  convert(*pass.backend, latent, in);
  return in;
}

/// What the only expert of each token reads, multiplied by the expert's weight. The weights of what
/// it gives become 1.
Tensor ExpertsFfn::weighed_input(const Tensor& normed, const Tensor& logits, const Tensor& chosen,
                                 const Tensor& weights, const LayerPass& pass) const {
  const int64_t n = normed.shape[0];
  const Tensor weighed = pass.buffers->get(weighed_, n), in = pass.buffers->get(weighed_in_, n);
  convert(*pass.backend, normed, weighed);
  ops::scale_rows(*pass.backend, weighed, weights);
  const Routing alone = {.score = ExpertScore::softmax_of_chosen};  // 1 for one expert
  ops::route(*pass.backend, {.logits = logits,
                             .bias = choice_bias_,
                             .factors = {},
                             .rule = alone,
                             .experts = chosen,
                             .weights = weights});
  return as_input(*pass.backend, weighed, in);
}

/// What Gemma 4's router reads: a norm of its own of the residual stream, divided by sqrt(n_embd).
Tensor ExpertsFfn::router_input(int64_t n, const LayerPass& pass) const {
  const int64_t n_all = pass.x.shape[0], n_embd = pass.x.shape[1];
  const Tensor input = pass.buffers->get(router_input_, n);
  normalize(*pass.backend, context_.spec, router_norm_, pass.x.slice(n_all - n, n_all), input);
  const float factor = 1.0f / std::sqrt(static_cast<float>(n_embd));
  ops::scale(*pass.backend, input, {&factor, 1});
  return input;
}

/// The product is in f32, whatever the type of other products: with rounded weights some tokens
/// would go to other experts. [n, n_expert]
Tensor ExpertsFfn::router_logits(const Tensor& normed, const LayerPass& pass) const {
  const int64_t n = normed.shape[0];
  const Tensor logits = pass.buffers->get(logits_, n);
  const int64_t most = most_rows(context_.spec.config, n);  // that there is memory for
  for (int64_t begin = 0; begin < n; begin += most) {
    const int64_t rows = std::min(most, n - begin);
    Tensor input = normed.slice(begin, begin + rows);
    if (normed.dtype != DType::f32) {
      const Tensor rounded = input;
      input = pass.buffers->get(router_in_, rows);
      convert(*pass.backend, rounded, input);
    }
    const Projection router{router_.w, router_.bias, logits.slice(begin, begin + rows)};
    ops::project(*pass.backend, input, {&router, 1});
  }
  const float cap = context_.spec.config.router_softcap;
  if (cap > 0.0f) ops::softcap(*pass.backend, logits, cap);
  return logits;
}

ExpertMemory ExpertsFfn::memory(int64_t n, const LayerPass& pass) const {
  const ModelConfig& c = context_.spec.config;
  const ActivationBuffer& buffers = *pass.buffers;
  const int64_t m = most_rows(c, n), n_chosen = n * c.n_expert_used;
  return {.x = buffers.get(gathered_, m),
          .gate = gate_ ? buffers.get(gate_, m) : Tensor(),
          .up = buffers.get(up_, m),
          .act = buffers.get(act_, m),
          .out = buffers.get(branch_, m),
          .order = column(buffers.get(order_, c.n_expert + 1 + n_chosen)),
          .factors = column(buffers.get(factors_, n_chosen))};
}

}  // namespace snapkv
