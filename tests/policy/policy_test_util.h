// SPDX-License-Identifier: MIT
// Runs a policy on a test layer and returns the kept rows of each head.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "policy/policy.h"
#include "tests/backend/op_test_util.h"
#include "tests/policy/selection_oracle.h"

namespace snapkv::test {

/// The names of the policies that choose among the rows of one layer at a time.
inline std::vector<std::string> one_layer_policies() {
  std::vector<std::string> names;
  for (const PolicyInfo& info : all_policies()) {
    if (!info.shares_layers) names.push_back(info.name);
  }
  return names;
}

using Kept = std::vector<std::vector<int32_t>>;  // [n_head_kv][n_kept]

/// The selection on the host; if all rows are kept, every row is listed.
inline Kept kept_rows(Backend& backend, const Selection& selection,
                      std::span<const int32_t> n_rows) {
  Kept kept(n_rows.size());
  for (int64_t h = 0; h < std::ssize(kept); ++h) {
    if (selection.keep_all) {
      for (int32_t j = 0; j < n_rows[h]; ++j) kept[h].push_back(j);
    } else {
      kept[h].resize(selection.n_kept[h]);
      backend.download(kept[h].data(), selection.rows.at<const void>(h),
                       kept[h].size() * sizeof(int32_t));
    }
  }
  return kept;
}

/// The policy's selector. If it observes queries, it gets them in chunks, as in prefill.
inline std::unique_ptr<LayerSelector> make_selector(Backend& backend, const Policy& policy,
                                                    const Layer& l, const Tensor& k,
                                                    const std::vector<int32_t>& n_rows,
                                                    const RopeFrequencies& rope) {
  std::unique_ptr<LayerSelector> selector = policy.make_selector(backend);
  if (!policy.info().observes) return selector;
  const int64_t n = l.n_observed(), chunk = std::max<int64_t>(1, n / 2 - 1);
  const TestTensor q({n, l.n_head, l.head_dim}, l.q_observed.empty() ? l.q : l.q_observed);
  for (int64_t begin = 0; begin < n; begin += chunk) {
    const int64_t end = std::min(n, begin + chunk);
    std::vector<int32_t> pos, rows;
    for (int64_t t = begin; t < end; ++t) pos.push_back(static_cast<int32_t>(l.n_tokens - n + t));
    for (int32_t r : n_rows) rows.push_back(r - static_cast<int32_t>(n - end));
    selector->observe({q.view().slice(begin, end), pos, k, rows, l.scale, rope});
  }
  return selector;
}

/// Runs `policy` on the layer with keys stored as `dtype` (the layer's values should be of that
/// type). `n_rows`: for heads of different lengths; if empty, every head has n_tokens rows.
inline Kept run_policy(Backend& backend, const Policy& policy, const Layer& l,
                       DType dtype = DType::f32, int il = 0, int n_layer = 1,
                       std::vector<int32_t> n_rows = {}, const RopeFrequencies& rope = {},
                       const Tensor& wo = {}) {
  const TestTensor q({l.n_window, l.n_head, l.head_dim}, l.q);
  const TestTensor k({l.n_head_kv, l.n_tokens, l.head_dim}, l.k, dtype);
  const TestTensor v({l.n_head_kv, l.n_tokens, l.head_dim}, l.v.empty() ? l.k : l.v, dtype);
  if (n_rows.empty()) {
    n_rows.assign(l.n_head_kv, static_cast<int32_t>(l.n_tokens));
  }
  PolicyInput input;
  input.il = il;
  input.n_layer = n_layer;
  input.q_window = q;
  input.k = k;
  input.v = v;
  input.n_rows = n_rows;
  input.scale = l.scale;
  input.rope = rope;
  if (wo) input.wo = {&wo, 1};
  const auto selector = make_selector(backend, policy, l, k, n_rows, rope);
  return kept_rows(backend, selector->select(input, policy.layer_budget(l.n_tokens, il, n_layer)),
                   n_rows);
}

inline Kept run_policy(Backend& backend, const PolicyConfig& config, const Layer& l,
                       DType dtype = DType::f32) {
  return run_policy(backend, *Policy::make(config), l, dtype);
}

/// Keys and queries from a normal distribution, with the keys rounded to `dtype`. `sharpness`
/// scales the attention scores.
inline Layer random_layer(int64_t n_tokens, int64_t n_window, int64_t n_head, int64_t n_head_kv,
                          int64_t head_dim, DType dtype, uint64_t seed, float sharpness = 2.0f) {
  Layer l;
  l.n_tokens = n_tokens, l.n_window = n_window;
  l.n_head = n_head, l.n_head_kv = n_head_kv, l.head_dim = head_dim;
  l.scale = sharpness / std::sqrt(static_cast<float>(head_dim));
  l.q = random_values(n_window * n_head * head_dim, seed);
  l.k = random_tensor({n_head_kv, n_tokens, head_dim}, seed + 1000, dtype).values();
  return l;
}

/// A layer in which every query gives row j of its head the score `logit[j]` (head_dim 8, exact in
/// every type if the logits are small integers); the rest of the arithmetic is the policy's.
inline Layer layer_of_logits(const std::vector<std::vector<float>>& logits, int64_t n_window,
                             int64_t n_group = 1) {
  Layer l;
  l.n_head_kv = std::ssize(logits);
  l.n_head = l.n_head_kv * n_group;
  l.head_dim = 8;
  l.n_tokens = std::ssize(logits[0]);
  l.n_window = n_window;
  l.q.assign(n_window * l.n_head * l.head_dim, 0.0f);
  for (size_t i = 0; i < l.q.size(); i += 8) l.q[i] = 1.0f;
  for (const std::vector<float>& head : logits) {
    for (float logit : head) {
      l.k.push_back(logit);
      l.k.insert(l.k.end(), 7, 0.0f);
    }
  }
  return l;
}

enum class Target { ref, cpu };
inline const char* target_name(Target target) { return target == Target::ref ? "ref" : "cpu"; }
inline std::unique_ptr<Backend> make_backend(Target target, int n_threads = 2) {
  return target == Target::ref ? make_ref() : make_cpu(n_threads);
}

}  // namespace snapkv::test
