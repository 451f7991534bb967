// SPDX-License-Identifier: MIT
// Cases for mixtures of experts: the choice of experts, and their networks.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "tests/backend/op_cases.h"

namespace snapkv::test {
namespace {

// ---------------------------------------------------------------- route

struct RouteShape {
  int64_t n, n_expert, n_used;
  bool bias = false;
  Routing rule = {};
  bool factors = false;

  std::string name() const {
    constexpr const char* kScores[] = {"softmax", "softmax of chosen", "sigmoid", "sparse mixer"};
    return fmt::format(
        "{} x {} of {}, {}{}{}{}{}{}", n, n_used, n_expert, kScores[static_cast<int>(rule.score)],
        rule.normalized ? ", normalized" : "", bias ? ", biased" : "",
        rule.n_group > 1 ? fmt::format(", {} of {} groups by {}", rule.n_group_used, rule.n_group,
                                       rule.n_group_best)
                         : "",
        factors ? ", factors" : "",
        rule.score == ExpertScore::sparse_mixer ? fmt::format(", jitter {}", rule.jitter) : "");
  }
};

Results run_route(const Place& at, const RouteShape& s, const TestTensor& logits) {
  const DeviceTensor in = at.put(logits), bias = at.put(random_tensor({s.n_expert}, 9));
  const DeviceTensor factors = at.put(random_tensor({s.n_expert}, 10));
  const DeviceTensor experts = at.zeros({s.n, s.n_used}, DType::i32);
  const DeviceTensor weights = at.zeros({s.n, s.n_used});
  ops::route(at, {.logits = in,
                  .bias = s.bias ? bias.view() : Tensor(),
                  .factors = s.factors ? factors.view() : Tensor(),
                  .rule = s.rule,
                  .experts = experts,
                  .weights = weights});
  Results results(experts.host());
  results.push_back(weights.host());
  return results;
}

void add(OpCases& cases, const RouteShape& s) {
  // exp within a few ulp, sums of up to 1024 terms
  OpCase& c = cases.emplace_back(
      s.name(),
      [=](const Place& at) {
        return run_route(at, s, random_tensor({s.n, s.n_expert}, 3, DType::f32, 2.0f));
      },
      Tolerance{1e-7, 1e-5});
  if (s.n * s.n_expert * s.n_used > 10'000) c.only_fast();
}

/// Equal logits, infinite and huge ones, and NaNs.
TestTensor special_logits() {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  return TestTensor({4, 6}, {1,     3,      3,     3,    1, 3,       //
                             0,     0,      0,     0,    0, 0,       //
                             1e30f, -1e30f, 1e30f, 0,    0, -1e30f,  //
                             kNaN,  2,      1,     kNaN, 3, 0});
}

void add_special(OpCases& cases, ExpertScore score) {
  const RouteShape special{4, 6, 3, false, {.score = score}};
  cases.emplace_back(
      special.name() + ", special values",
      [=](const Place& at) { return run_route(at, special, special_logits()); },
      Tolerance{1e-7, 1e-5});
}

// ---------------------------------------------------------------- project_experts

struct Mixture {
  DType type;
  int64_t n, n_expert, n_used, n_embd, n_ff;
  bool gated = true, bias = false, packed = false;
  Activation activation = Activation::silu;
  float factor = 1.0f;
  DType down = DType::i32;  // if not i32: the type of the last matrices
  int64_t n_rows = 0;       // of memory; 0: as many as there can be
  GateLimits limits = {};

  std::string name() const {
    return fmt::format("{} {} x {} of {} [{}, {}]{}{}{} {}", snapkv::name(type), n, n_used,
                       n_expert, n_ff, n_embd, gated ? "" : " without gate",
                       bias ? " + biases" : "", packed ? " packed" : "",
                       static_cast<int>(activation)) +
           (limits ? " limited" : "");
  }
};

/// Different experts for each token.
TestTensor some_experts(const Mixture& s) {
  std::mt19937 random(5);
  std::vector<float> chosen;
  std::vector<int32_t> all(s.n_expert);
  std::iota(all.begin(), all.end(), 0);
  for (int64_t t = 0; t < s.n; ++t) {
    for (int64_t i = 0; i < s.n_used; ++i) {
      std::swap(all[i], all[i + static_cast<int64_t>(random() % (s.n_expert - i))]);
      chosen.push_back(static_cast<float>(all[i]));
    }
  }
  return TestTensor({s.n, s.n_used}, chosen, DType::i32);
}

/// All experts on a backend.
struct Experts {
  Experts(const Place& at, const Mixture& s) {
    uint64_t seed = 10;
    const auto put = [&](int64_t n_out, int64_t n_in, DType type) -> Tensor {
      // sums of n_in products stay near 1, where activations bend
      const float scale = 1.0f / std::sqrt(static_cast<float>(n_in));
      memory.push_back(at.put(random_tensor({n_out, n_in}, seed++, type, scale)));
      return memory.back();
    };
    const auto put_bias = [&](int64_t n_out) -> Tensor {
      if (!s.bias) return {};
      memory.push_back(at.put(random_tensor({n_out}, seed++)));
      return memory.back();
    };
    const DType down = s.down == DType::i32 ? s.type : s.down;
    for (int64_t e = 0; e < s.n_expert; ++e) {
      Expert expert;
      if (s.gated) expert.gate = put(s.n_ff, s.n_embd, s.type);
      expert.up = put(s.n_ff, s.n_embd, s.type);
      expert.down = put(s.n_embd, s.n_ff, down);
      if (s.gated) expert.gate_bias = put_bias(s.n_ff);
      expert.up_bias = put_bias(s.n_ff);
      expert.down_bias = put_bias(s.n_embd);
      all.push_back(expert);
    }
  }
  std::vector<DeviceTensor> memory;
  std::vector<Expert> all;
};

Results run_experts(const Place& at, const Mixture& s, bool row_by_row) {
  const Experts experts(at, s);
  const TestTensor input = random_tensor({s.n, s.n_embd}, 1);
  const DeviceTensor x = s.packed ? at.put_compute(input) : at.put(input);
  const DeviceTensor chosen = at.put(some_experts(s));
  const DeviceTensor weights = at.put(random_tensor({s.n, s.n_used}, 2));
  const DeviceTensor out = at.put(random_tensor({s.n, s.n_embd}, 3));
  const int64_t m = s.n_rows > 0 ? s.n_rows : std::max<int64_t>(1, s.n) * s.n_used;
  const DType type = s.packed ? at.backend.compute_dtype() : DType::f32;
  const DeviceTensor mx = at.zeros({m, s.n_embd}, type), act = at.zeros({m, s.n_ff}, type);
  const DeviceTensor gate = at.zeros({m, s.n_ff}), up = at.zeros({m, s.n_ff});
  const DeviceTensor mout = at.zeros({m, s.n_embd});
  const DeviceTensor order = at.zeros({s.n_expert + 1 + s.n * s.n_used}, DType::i32);
  const DeviceTensor factors = at.zeros({s.n * s.n_used});
  PackWorkspace workspace;
  const auto run = [&](int64_t begin, int64_t end) {
    const int64_t n = (end - begin) * s.n_used;
    ops::project_experts(at, {.x = x.view().slice(begin, end),
                              .experts = experts.all,
                              .chosen = chosen.view().slice(begin, end),
                              .weights = weights.view().slice(begin, end),
                              .activation = s.activation,
                              .limits = s.limits,
                              .factor = s.factor,
                              .out = out.view().slice(begin, end),
                              .memory = {.x = mx,
                                         .gate = gate,
                                         .up = up,
                                         .act = act,
                                         .out = mout,
                                         .order = order.view().slice(0, s.n_expert + 1 + n),
                                         .factors = factors.view().slice(0, n)},
                              .workspace = s.packed ? &workspace : nullptr});
  };
  if (!row_by_row) run(0, s.n);
  for (int64_t t = 0; row_by_row && t < s.n; ++t) run(t, t + 1);
  return out.host();
}

// Activations are rounded before each of two products: to 8 bits, which gives 0.5% each (see
// op_cases_linear.cpp), or to bf16 with packed weights; the residual stream is exact.
OpCase& add(OpCases& cases, const Mixture& s) {
  OpCase& c = cases.emplace_back(
      s.name(), [=](const Place& at) { return run_experts(at, s, false); },
      [=](const Place& at) {
        const bool exact = at.compute == DType::f32 && !(s.packed && at.rounds_to_bytes(s.type));
        return Bound::of_norm(exact ? 1e-5 : 0.012);
      });
  if (!s.packed) c.equals([=](const Place& at) { return run_experts(at, s, true); });
  if (s.n > 2) c.only_fast();
  return c;
}

}  // namespace

OpCases route_cases() {
  OpCases cases;
  for (const ExpertScore score :
       {ExpertScore::softmax, ExpertScore::softmax_of_chosen, ExpertScore::sigmoid}) {
    for (const bool normalized : {true, false}) {
      for (const bool bias : {false, true}) {
        const Routing rule = {.score = score, .normalized = normalized, .scale = bias ? 2.5f : 1};
        for (const auto& [n_expert, n_used] :
             {std::pair{1, 1}, {5, 3}, {32, 4}, {33, 33}, {128, 8}, {1024, 10}}) {
          for (const int64_t n : {0, 1, 3, 40}) add(cases, {n, n_expert, n_used, bias, rule});
        }
        Routing groups = rule;
        groups.n_group = 4;
        groups.n_group_used = 2;
        for (const int64_t n_best : {1, 2}) {
          groups.n_group_best = n_best;
          for (const int64_t n : {1, 9}) add(cases, {n, 32, 6, bias, groups});
        }
        groups.n_group = groups.n_group_used = 8;  // all, and groups of one
        add(cases, {5, 8, 3, bias, groups});
        groups.n_group_used = 3;
        add(cases, {5, 8, 3, bias, groups});
        add(cases, {3, 33, 4, bias, rule, true});
      }
    }
    add_special(cases, score);
  }
  for (const bool normalized : {true, false}) {
    Routing rule = {.score = ExpertScore::sparse_mixer, .normalized = normalized};
    for (const float jitter : {0.01f, 0.2f, 0.0f}) {  // few and many logits are near
      rule.jitter = jitter;
      for (const auto& [n_expert, n_used] :
           {std::pair{1, 1}, {5, 3}, {16, 2}, {33, 33}, {1024, 2}}) {
        for (const int64_t n : {0, 1, 3, 40}) add(cases, {n, n_expert, n_used, false, rule});
      }
    }
  }
  add_special(cases, ExpertScore::sparse_mixer);
  return cases;
}

OpCases project_experts_cases() {
  OpCases cases;
  for (const bool packed : {false, true}) {
    for (const DType type : kWeightTypes) {
      const int64_t n_embd = std::max<int64_t>(32, block_size(type));
      add(cases, {type, 1, 3, 2, n_embd, n_embd, true, true, packed});
      add(cases, {type, 3, 6, 2, 2 * n_embd, n_embd, true, false, packed}).only_fast();
    }
    for (const int64_t n : {0, 1, 2, 9, 17}) {
      Mixture s{DType::mxfp4, n, 8, 4, 96, 160, true, true, packed, Activation::clamped_swiglu};
      s.factor = 0.25f;
      add(cases, s);
      s.n_rows = 4;  // experts in several pieces
      add(cases, s);
      add(cases, {DType::f32, n, 4, 4, 37, 24, false, n % 2 == 1, packed});
      add(cases, {DType::bf16, n, 7, 1, 64, 40, true, false, packed, Activation::gelu_tanh});
      Mixture limited{DType::bf16, n, 6, 2, 64, 40, true, false, packed};
      limited.limits = {.gate = 0.5f, .up = 0.75f};
      add(cases, limited);
      Mixture mixed{DType::q4_0, n, 16, 3, 64, 256, true, false, packed};
      mixed.down = DType::q6_k;
      add(cases, mixed);
    }
    // more rows of each expert than one call of a kernel multiplies
    add(cases, {DType::q8_0, 70, 12, 3, 288, 544, true, true, packed}).only_fast();
    Mixture pieces{DType::q4_k, 60, 6, 2, 256, 512, true, false, packed};
    pieces.n_rows = 24;
    add(cases, pieces).only_fast();
    Mixture mixed{DType::q4_0, 60, 8, 2, 96, 256, false, true, packed, Activation::gelu_tanh};
    mixed.down = DType::q6_k;
    add(cases, mixed).only_fast();
  }
  return cases;
}

}  // namespace snapkv::test
