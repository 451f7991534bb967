// SPDX-License-Identifier: MIT
// If a key or value is not a number, everything that depends on it must not be one either: kernels
// must not turn it into a weight of 0, which would look like an answer. On all CPU paths and in
// ref/.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backend/cpu/cpu_ops.h"
#include "backend/ops.h"
#include "tests/backend/op_test_util.h"

namespace snapkv {
namespace {

using test::random_tensor;
using test::TestTensor;

constexpr int64_t kRows = 700, kHeadsKv = 2, kGroup = 3, kDim = 64;  // more than one block of rows
constexpr int64_t kBadHead = 1;

std::vector<std::unique_ptr<Backend>> backends() {
  std::vector<std::unique_ptr<Backend>> all;
  all.push_back(test::make_ref());
  all.push_back(test::make_cpu(2, Compute::f32));
  if (cpu::multiplies_bf16()) all.push_back(test::make_cpu(2, Compute::bf16));
  return all;
}

TestTensor keys_with(float bad, int64_t row, DType dtype, uint64_t seed) {
  TestTensor k = random_tensor({kHeadsKv, kRows, kDim}, seed);
  k.as<float>()[(kBadHead * kRows + row) * kDim + 5] = bad;
  return k.to(dtype);
}

// Whether the output of KV head g's query heads is finite. out [n, n_head, head_dim]
bool all_finite(const TestTensor& out, int64_t g) {
  const std::vector<float> values = out.values();
  for (int64_t i = 0; i < std::ssize(values); ++i) {
    if (i / kDim % (kHeadsKv * kGroup) / kGroup == g && !std::isfinite(values[i])) return false;
  }
  return true;
}

struct Case {
  float bad;
  bool in_values;
};
const Case kCases[] = {{std::numeric_limits<float>::quiet_NaN(), false},
                       {std::numeric_limits<float>::quiet_NaN(), true},
                       {std::numeric_limits<float>::infinity(), true}};

TEST(NotANumber, StaysOneInAttention) {
  for (const auto& backend : backends()) {
    for (const Case& c : kCases) {
      for (const DType dtype : {DType::f32, DType::f16}) {
        for (const int64_t row : {0, 30, 599}) {
          SCOPED_TRACE(backend->description() + " row " + std::to_string(row));
          const TestTensor good = random_tensor({kHeadsKv, kRows, kDim}, 3, DType::f32).to(dtype);
          const TestTensor bad = keys_with(c.bad, row, dtype, 4);
          const TestTensor &k = c.in_values ? good : bad, &v = c.in_values ? bad : good;
          const int64_t n = 20;
          const TestTensor q = random_tensor({n, kHeadsKv * kGroup, kDim}, 5);
          const std::vector<int32_t> n_past = {600, 600};
          TestTensor out({n, kHeadsKv * kGroup, kDim});
          for (const float softcap : {0.0f, 20.0f}) {
            ops::attention_prefill(*backend, {.q = q,
                                              .k = k,
                                              .v = v,
                                              .n_past = n_past,
                                              .scale = 0.125f,
                                              .out = out,
                                              .variant = {.softcap = softcap}});
            EXPECT_TRUE(all_finite(out, 0));
            EXPECT_FALSE(all_finite(out, kBadHead));
          }

          std::vector<HeadRows> heads;
          for (int64_t g = 0; g < kHeadsKv; ++g) {
            heads.push_back({k.view().at<const void>(g), v.view().at<const void>(g), kRows});
          }
          const TestTensor one = random_tensor({1, kHeadsKv * kGroup, kDim}, 6);
          TestTensor step({1, kHeadsKv * kGroup, kDim});
          for (const float softcap : {0.0f, 20.0f}) {
            ops::attention_decode(*backend, {.q = one,
                                             .heads = heads,
                                             .kv_dtype = dtype,
                                             .scale = 0.125f,
                                             .out = step,
                                             .variant = {.softcap = softcap}});
            EXPECT_TRUE(all_finite(step, 0));
            EXPECT_FALSE(all_finite(step, kBadHead));
          }
        }
      }
    }
  }
}

TEST(NotANumber, StaysOneInTheLargestVoteOfManyQueries) {
  const std::vector<int32_t> n_rows = {kRows, kRows};
  for (const auto& backend : backends()) {
    SCOPED_TRACE(backend->description());
    const auto votes_of = [&](const Tensor& q, const Tensor& k) {
      TestTensor votes({kHeadsKv, kRows});
      ops::window_votes(*backend, {.q = q,
                                   .k = k,
                                   .n_rows = n_rows,
                                   .scale = 0.125f,
                                   .group = GroupReduce::max,
                                   .votes = votes,
                                   .reduce = VoteReduce::max});
      return votes;
    };
    TestTensor q = random_tensor({64, kHeadsKv * kGroup, kDim}, 8);
    const TestTensor damaged = keys_with(kCases[0].bad, 599, DType::f16, 9);
    const TestTensor by_key = votes_of(q, damaged);
    EXPECT_TRUE(std::isfinite(by_key.as<float>()[3]));
    EXPECT_FALSE(std::isfinite(by_key.as<float>()[kRows + 3]));
    q.as<float>()[(9 * kHeadsKv * kGroup + kGroup) * kDim] = kCases[0].bad;
    const TestTensor by_query =
        votes_of(q, random_tensor({kHeadsKv, kRows, kDim}, 7).to(DType::f16));
    EXPECT_TRUE(std::isfinite(by_query.as<float>()[3]));
    EXPECT_FALSE(std::isfinite(by_query.as<float>()[kRows + 3]));
  }
}

TEST(NotANumber, StaysOneInVotes) {
  const std::vector<int32_t> n_rows = {kRows, kRows};
  for (const auto& backend : backends()) {
    for (const GroupReduce group : {GroupReduce::mean, GroupReduce::max}) {
      for (const int64_t head : {0, 1, 2}) {  // the head in the group whose query is not a number
        SCOPED_TRACE(backend->description());
        const TestTensor k = random_tensor({kHeadsKv, kRows, kDim}, 7).to(DType::f16);
        TestTensor q = random_tensor({16, kHeadsKv * kGroup, kDim}, 8);
        q.as<float>()[(9 * kHeadsKv * kGroup + kGroup + head) * kDim] = kCases[0].bad;
        TestTensor votes({kHeadsKv, kRows});
        ops::window_votes(
            *backend,
            {.q = q, .k = k, .n_rows = n_rows, .scale = 0.125f, .group = group, .votes = votes});
        EXPECT_TRUE(std::isfinite(votes.as<float>()[3]));
        EXPECT_FALSE(std::isfinite(votes.as<float>()[kRows + 3]));
      }
      const TestTensor k = keys_with(kCases[0].bad, 599, DType::f16, 9);
      const TestTensor q = random_tensor({16, kHeadsKv * kGroup, kDim}, 8);
      TestTensor votes({kHeadsKv, kRows});
      ops::window_votes(
          *backend,
          {.q = q, .k = k, .n_rows = n_rows, .scale = 0.125f, .group = group, .votes = votes});
      EXPECT_TRUE(std::isfinite(votes.as<float>()[3]));
      EXPECT_FALSE(std::isfinite(votes.as<float>()[kRows + 3]));
    }
  }
}

}  // namespace
}  // namespace snapkv
