// SPDX-License-Identifier: MIT
// Rows that several layers read are chosen as if the query heads of all of them were heads of one
// layer, whether a policy gets them together (the window's) or one layer after another.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "policy/policy.h"
#include "tests/policy/policy_test_util.h"

namespace snapkv::test {
namespace {

class Readers : public testing::TestWithParam<Target> {
 protected:
  std::unique_ptr<Backend> backend_ = make_backend(GetParam());
};
INSTANTIATE_TEST_SUITE_P(, Readers, testing::Values(Target::ref, Target::cpu),
                         [](const auto& p) { return target_name(p.param); });

constexpr int64_t kHeads = 4, kHeadsKv = 2, kDim = 32, kRowsTotal = 300, kQueries = 60;
constexpr int64_t kWindowSize = 16, kWidth = 24;

/// [n, kHeads, kDim] without every second head: those of layer 0 or 1, in groups of one.
std::vector<float> heads_of(const std::vector<float>& all, int64_t layer) {
  std::vector<float> some;
  for (size_t at = layer * kDim; at < all.size(); at += 2 * kDim) {
    some.insert(some.end(), all.begin() + at, all.begin() + at + kDim);
  }
  return some;
}

struct Case {
  Layer layer = random_layer(kRowsTotal, kQueries, kHeads, kHeadsKv, kDim, DType::f16, 21);
  TestTensor wo = random_tensor({kWidth, kHeads* kDim}, 23);
  std::vector<double> frequencies = std::vector<double>(kDim / 2, 0.01);
};

/// What a policy keeps if the heads are those of so many layers.
Kept kept_by(Backend& backend, const Policy& policy, const Case& c, int64_t n_layer) {
  const std::vector<int32_t> n_rows(kHeadsKv, kRowsTotal);
  const TestTensor k({kHeadsKv, kRowsTotal, kDim}, c.layer.k, DType::f16);
  const TestTensor v = random_tensor({kHeadsKv, kRowsTotal, kDim}, 22, DType::f16);
  const RopeFrequencies rope{c.frequencies, RopeLayout::neox, 1.0f};
  std::vector<TestTensor> matrices, queries;
  for (int64_t i = 0; i < n_layer; ++i) {
    const int64_t n_head = kHeads / n_layer;
    const bool all = n_layer == 1;
    queries.emplace_back(std::vector<int64_t>{kQueries, n_head, kDim},
                         all ? c.layer.q : heads_of(c.layer.q, i));
    matrices.emplace_back(std::vector<int64_t>{kWidth, n_head * kDim},
                          all ? c.wo.values() : heads_of(c.wo.values(), i));
  }
  const auto selector = policy.make_selector(backend);
  for (int64_t i = 0; i < n_layer && policy.info().observes; ++i) {
    for (int64_t begin = 0; begin < kQueries; begin += 25) {
      const int64_t end = std::min(kQueries, begin + 25);
      std::vector<int32_t> pos, rows;
      for (int64_t t = begin; t < end; ++t) {
        pos.push_back(static_cast<int32_t>(kRowsTotal - kQueries + t));
      }
      rows.assign(kHeadsKv, pos.back() + 1);
      selector->observe({.q = queries[i].view().slice(begin, end),
                         .pos = pos,
                         .k = k,
                         .n_rows = rows,
                         .scale = c.layer.scale,
                         .rope = rope,
                         .reader = static_cast<size_t>(i)});
    }
  }
  std::vector<Tensor> wo;
  for (const TestTensor& m : matrices) wo.push_back(m);
  const TestTensor window({kQueries, kHeads, kDim}, c.layer.q);
  PolicyInput input;
  input.q_window = window.view().slice(kQueries - kWindowSize, kQueries);
  input.k = k;
  input.v = v;
  input.n_rows = n_rows;
  input.scale = c.layer.scale;
  input.rope = rope;
  input.wo = wo;
  return kept_rows(backend, selector->select(input, policy.layer_budget(kRowsTotal, 0, 1)), n_rows);
}

TEST_P(Readers, CountAsOneLayer) {
  const Case c;
  for (const char* name :
       {"snapkv", "snapkv-max", "ada-snapkv", "tova", "h2o", "expected-attention"}) {
    for (const bool critical : {false, true}) {
      if (critical && policy_info(name).find("critical") == nullptr) continue;
      SCOPED_TRACE(std::string(name) + (critical ? ", critical" : ""));
      PolicyConfig config{.name = name, .budget = 64, .window_size = kWindowSize};
      if (critical) set_param(config, "critical", true);
      const auto policy = Policy::make(config);
      const Kept one = kept_by(*backend_, *policy, c, 1);
      EXPECT_EQ(kept_by(*backend_, *policy, c, 2), one);
      EXPECT_LT(one[0].size(), static_cast<size_t>(kRowsTotal));
    }
  }
}

}  // namespace
}  // namespace snapkv::test
