// SPDX-License-Identifier: MIT
#include "model/blocks/experts_ffn.h"

#include <algorithm>
#include <array>

#include "backend/ops.h"

namespace snapkv {

ExpertsFfn::ExpertsFfn(const BlockContext& context, LayerLoader& loader) : context_(context) {
  const ModelConfig& c = loader.config();
  SNAPKV_CHECK(loader.family().norm_places == NormPlaces::before && loader.family().gated);
  router_.w = loader.rows("ffn_gate_inp.weight", c.n_expert, c.n_embd);
  const std::vector<Weight> gates = loader.experts("ffn_gate", c.n_ff, c.n_embd);
  const std::vector<Weight> ups = loader.experts("ffn_up", c.n_ff, c.n_embd);
  const std::vector<Weight> downs = loader.experts("ffn_down", c.n_embd, c.n_ff);
  for (int64_t e = 0; e < c.n_expert; ++e) experts_.push_back({gates[e], ups[e], downs[e]});

  ActivationPlan& plan = context.activations;
  const auto some = [&spec = context.spec](int64_t n) { return spec.ffn_rows(n); };
  gate_ = plan.add("experts' gate", c.n_ff, ActivationType::f32, some);
  up_ = plan.add("experts' up", c.n_ff, ActivationType::f32, some);
  act_ = plan.add("experts' act", c.n_ff, ActivationType::input, some);
  gathered_ = plan.add("gathered", c.n_embd, ActivationType::input, some);
  branch_ = plan.add("branch", c.n_embd);
  logits_ = plan.add("router", c.n_expert);
  routed_ = plan.add("routed", 1, ActivationType::i32,
                     [n_used = c.n_expert_used](int64_t n) { return n * n_used; });
}

std::vector<const Weight*> ExpertsFfn::other_matrices() const {
  std::vector<const Weight*> all = {&router_};
  for (const Expert& e : experts_) all.insert(all.end(), {&e.gate, &e.up, &e.down});
  return all;
}

// x += sum over the chosen experts of weight * Wdown (f(Wgate normed) * Wup normed)
void ExpertsFfn::run(const Tensor& normed, const Tensor& x, const LayerPass& pass) const {
  route(normed, pass);
  if (x.shape[0] == 1) return run_token(normed, x, pass);
  const ExpertRoutes& routes = pass.buffers->routes();
  const int64_t most = context_.spec.ffn_rows(x.shape[0]);
  for (int64_t e = 0; e < std::ssize(experts_); ++e) {
    for (int64_t begin = routes.begin(e); begin < routes.begin(e + 1); begin += most) {
      run_group({e, begin, std::min(begin + most, routes.begin(e + 1))}, normed, x, pass);
    }
  }
}

/// The logits' product is in f32, whatever the type of other products: with rounded weights some
/// tokens would go to other experts.
void ExpertsFfn::route(const Tensor& normed, const LayerPass& pass) const {
  const ModelConfig& c = context_.spec.config;
  Backend& backend = *pass.backend;
  const int64_t n = normed.shape[0];
  Tensor input = normed;
  if (normed.dtype != DType::f32) {
    input = pass.buffers->get(branch_, n);
    const void* const from = normed.data;
    void* const to = input.data;
    const auto rows = static_cast<int32_t>(n);
    ops::convert_rows(backend,
                      {{&from, 1}, normed.dtype, c.n_embd, {}, {&rows, 1}, DType::f32, {&to, 1}});
  }
  const Tensor logits = pass.buffers->get(logits_, n);
  const Projection router{router_.w, {}, logits};
  ops::project(backend, input, {&router, 1});
  ExpertRoutes& routes = pass.buffers->routes();
  if (!backend.computes() && n > 1) return routes.assign_to_first(n, c.n_expert);
  const std::span<float> values = routes.logits(n, c.n_expert);
  backend.download(values.data(), logits.data, values.size_bytes());
  routes.assign(c.n_expert_used, c.normalizes_experts);
  const std::span<const int32_t> tokens = routes.tokens();
  const Tensor routed = pass.buffers->get(routed_, std::ssize(tokens));
  backend.upload(routed.data, tokens.data(), tokens.size_bytes());
}

void ExpertsFfn::run_group(const Group& group, const Tensor& normed, const Tensor& x,
                           const LayerPass& pass) const {
  const Expert& expert = experts_[group.expert];
  const int64_t n = group.end - group.begin;
  const Tensor input = gather(group, normed, pass);
  const Tensor gate = pass.buffers->get(gate_, n), up = pass.buffers->get(up_, n);
  const Tensor act = pass.buffers->get(act_, n), out = pass.buffers->get(branch_, n);
  const LinearCall gate_up[] = {{&expert.gate, gate}, {&expert.up, up}};
  pass.linear->apply(input, gate_up);
  ops::activate(*pass.backend, context_.spec.family->activation, gate, up, act);
  const LinearCall down[] = {{&expert.down, out}};
  pass.linear->apply(act, down);

  const ExpertRoutes& routes = pass.buffers->routes();
  ops::add_rows(*pass.backend, x, out, routes.tokens().subspan(group.begin, n),
                routes.weights().subspan(group.begin, n));
}

/// The experts of a single token, whose first matrices are read in one go: that spares decode steps
/// waiting for the slowest thread after each of them.
void ExpertsFfn::run_token(const Tensor& normed, const Tensor& x, const LayerPass& pass) const {
  const ExpertRoutes& routes = pass.buffers->routes();
  const int64_t n = context_.spec.config.n_expert_used;
  const Tensor gate = pass.buffers->get(gate_, n), up = pass.buffers->get(up_, n),
               act = pass.buffers->get(act_, n);
  std::array<LinearCall, LinearRunner::kMaxCalls> calls;
  size_t n_calls = 0;
  for (int64_t e = 0; e < std::ssize(experts_); ++e) {
    const int64_t i = routes.begin(e);
    if (i == routes.begin(e + 1)) continue;
    calls[n_calls++] = {&experts_[e].gate, gate.slice(i, i + 1)};
    calls[n_calls++] = {&experts_[e].up, up.slice(i, i + 1)};
    if (n_calls < calls.size() && i + 1 < n) continue;
    pass.linear->apply(normed, std::span(calls).first(n_calls));
    n_calls = 0;
  }
  ops::activate(*pass.backend, context_.spec.family->activation, gate, up, act);
  const Tensor out = pass.buffers->get(branch_, 1);
  for (int64_t e = 0; e < std::ssize(experts_); ++e) {
    const int64_t i = routes.begin(e);
    if (i == routes.begin(e + 1)) continue;
    const LinearCall down[] = {{&experts_[e].down, out}};
    pass.linear->apply(act.slice(i, i + 1), down);
    ops::add_rows(*pass.backend, x, out, routes.tokens().subspan(i, 1),
                  routes.weights().subspan(i, 1));
  }
}

/// The rows of a group's tokens, one below another.
Tensor ExpertsFfn::gather(const Group& group, const Tensor& normed, const LayerPass& pass) const {
  const int64_t n_all = normed.shape[0], n_embd = normed.shape[1];
  const auto n = static_cast<int32_t>(group.end - group.begin);
  if (n == n_all) return normed;  // in their own order
  const Tensor gathered = pass.buffers->get(gathered_, n);
  void* const to = gathered.data;
  const Tensor rows = pass.buffers->get(routed_, group.end).slice(group.begin, group.end);
  ops::gather_rows(*pass.backend, normed.reshaped({1, n_all, n_embd}), rows.reshaped({1, n}),
                   {&n, 1}, {&to, 1});
  return gathered;
}

}  // namespace snapkv
