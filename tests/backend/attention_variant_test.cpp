// SPDX-License-Identifier: MIT
// Sliding windows, capped scores and sinks of attention and of votes: the CPU against ref/, and
// ref/ against what the definitions say.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <string>
#include <vector>

#include "backend/cpu/cpu_context.h"
#include "backend/cpu/cpu_ops.h"
#include "backend/ops.h"
#include "tests/backend/op_test_util.h"

namespace snapkv::test {
namespace {

using cpu::CpuContext;

/// Sums of f32 products in another order than ref's f64, through a tanh whose error is at most
/// 2^-23 of the cap.
constexpr Tolerance kF32{3e-5, 2e-4};
/// As in attention_test.cpp: q, k, v and probabilities have 8 bits of mantissa.
constexpr double kBf16Error = 1.5e-2;

bool has_native_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

struct VariantCase {
  const char* name;
  int64_t window;
  float softcap;
  bool sinks;
};
constexpr VariantCase kCases[] = {{"plain", 0, 0, false},         {"window1", 1, 0, false},
                                  {"window7", 7, 0, false},       {"window65", 65, 0, false},
                                  {"window512", 512, 0, false},   {"window600", 600, 0, false},
                                  {"window5000", 5000, 0, false}, {"softcap", 0, 5.0f, false},
                                  {"sinks", 0, 0, true},          {"all", 90, 3.0f, true}};

/// A case's variant for n_head heads, with the memory of its sinks.
struct Variant {
  Variant(const VariantCase& c, int64_t n_head)
      : sinks(random_tensor({n_head}, 77, DType::f32, 3.0f)),
        value{.window = c.window, .softcap = c.softcap} {
    if (c.sinks) value.sinks = sinks;
  }
  TestTensor sinks;
  AttentionVariant value;
};

class AttentionVariantTest : public testing::TestWithParam<VariantCase> {};
INSTANTIATE_TEST_SUITE_P(Cases, AttentionVariantTest, testing::ValuesIn(kCases),
                         [](const auto& p) { return std::string(p.param.name); });

template <typename F>
void on_every_target(F f) {
  for (int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    const int64_t target = targets & -targets;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    f();
    hwy::SetSupportedTargetsForTest(0);
  }
}

struct PrefillShape {
  int64_t n, n_head_kv, n_group, head_dim;
  std::vector<int32_t> n_past;
};

TEST_P(AttentionVariantTest, Prefill) {
  const auto ref = make_ref();
  const PrefillShape shapes[] = {{19, 2, 3, 64, {0, 45}},
                                 {150, 1, 4, 32, {1000}},
                                 {600, 2, 1, 40, {0, 3}},
                                 {3, 1, 2, 256, {511}}};
  for (const PrefillShape& s : shapes) {
    SCOPED_TRACE("n " + std::to_string(s.n));
    const int64_t n_head = s.n_head_kv * s.n_group;
    const int64_t capacity = *std::max_element(s.n_past.begin(), s.n_past.end()) + s.n;
    // scores are about 3 wide, so that caps and sinks matter
    const TestTensor q = random_tensor({s.n, n_head, s.head_dim}, 1, DType::f32, 3.0f);
    const TestTensor k = random_tensor({s.n_head_kv, capacity, s.head_dim}, 2, DType::f16);
    const TestTensor v = random_tensor({s.n_head_kv, capacity, s.head_dim}, 3, DType::f16);
    const Variant variant(GetParam(), n_head);
    TestTensor out({s.n, n_head, s.head_dim}), expected = out;
    const PrefillAttention a{.q = q,
                             .k = k,
                             .v = v,
                             .n_past = s.n_past,
                             .scale = 1.0f / std::sqrt(static_cast<float>(s.head_dim)),
                             .out = out,
                             .variant = variant.value};
    PrefillAttention wanted = a;
    wanted.out = expected;
    ops::attention_prefill(*ref, wanted);
    on_every_target([&] {
      cpu::attention_prefill({2, DType::f32, false}, a);
      EXPECT_TRUE(all_close(out, expected, kF32));
      cpu::attention_prefill({2, DType::bf16, false}, a);
      EXPECT_LT(relative_error(out, expected), kBf16Error);
    });
    if (has_native_bf16()) {
      cpu::attention_prefill({2, DType::bf16, true}, a);
      EXPECT_LT(relative_error(out, expected), kBf16Error);
    }
  }
}

TEST_P(AttentionVariantTest, PrefillDoesNotDependOnChunksAndThreads) {
  const int64_t n = 700, n_head = 2, head_dim = 64;
  const TestTensor q = random_tensor({n, n_head, head_dim}, 1, DType::f32, 3.0f);
  const TestTensor k = random_tensor({1, n, head_dim}, 2, DType::f16);
  const TestTensor v = random_tensor({1, n, head_dim}, 3, DType::f16);
  const Variant variant(GetParam(), n_head);
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 3}) {
    for (const int64_t chunk : {n, int64_t{333}, int64_t{64}}) {
      TestTensor out({n, n_head, head_dim});
      for (int64_t begin = 0; begin < n; begin += chunk) {
        const int64_t end = std::min(n, begin + chunk);
        const std::vector<int32_t> n_past = {static_cast<int32_t>(begin)};
        cpu::attention_prefill({threads, DType::f32, false}, {.q = Tensor(q).slice(begin, end),
                                                              .k = k,
                                                              .v = v,
                                                              .n_past = n_past,
                                                              .scale = 0.1f,
                                                              .out = Tensor(out).slice(begin, end),
                                                              .variant = variant.value});
      }
      results.push_back(out.values());
    }
  }
  for (const auto& other : results) EXPECT_EQ(other, results[0]);
}

TEST_P(AttentionVariantTest, Decode) {
  if (GetParam().window > 0) GTEST_SKIP() << "decode's rows are those that its query sees";
  const auto ref = make_ref();
  for (const DType type : {DType::f32, DType::f16, DType::q8_0}) {
    const int64_t n_seq = 2, n_head_kv = 2, n_group = 3, head_dim = 64, n_head = 6;
    const int32_t n_kv[] = {1, 513, 64, 2000};
    const TestTensor q = random_tensor({n_seq, n_head, head_dim}, 1, DType::f32, 3.0f);
    std::vector<TestTensor> k, v;
    std::vector<HeadRows> heads;
    for (const int32_t n : n_kv) {
      k.push_back(random_tensor({n, head_dim}, 10 + n, type));
      v.push_back(random_tensor({n, head_dim}, 20 + n, type));
    }
    for (size_t i = 0; i < k.size(); ++i) heads.push_back({k[i].data(), v[i].data(), n_kv[i]});
    const Variant variant(GetParam(), n_head);
    TestTensor out({n_seq, n_head, head_dim}), expected = out;
    DecodeAttention a{.q = q,
                      .heads = heads,
                      .kv_dtype = type,
                      .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
                      .out = expected,
                      .variant = variant.value};
    ASSERT_EQ(n_seq * n_head_kv, std::ssize(heads));
    ASSERT_EQ(n_head, n_head_kv * n_group);
    ops::attention_decode(*ref, a);
    a.out = out;
    on_every_target([&] {
      cpu::attention_decode({2, DType::f32, false}, a);
      EXPECT_TRUE(all_close(out, expected, kF32)) << name(type);
    });
  }
}

TEST_P(AttentionVariantTest, Votes) {
  const auto ref = make_ref();
  for (const bool whole : {false, true}) {
    for (const GroupReduce group : {GroupReduce::mean, GroupReduce::max}) {
      const int64_t n_window = 20, n_head_kv = 2, n_group = 2, head_dim = 64, capacity = 1300;
      const int64_t n_head = n_head_kv * n_group;
      const TestTensor q = random_tensor({n_window, n_head, head_dim}, 1, DType::f32, 3.0f);
      const TestTensor k = random_tensor({n_head_kv, capacity, head_dim}, 2, DType::f16);
      const std::vector<int32_t> n_rows = {1300, 37};
      const Variant variant(GetParam(), n_head);
      TestTensor out({n_head_kv, capacity}), expected = out;
      WindowVotes w{.q = q,
                    .k = k,
                    .n_rows = n_rows,
                    .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
                    .group = group,
                    .votes = expected,
                    .whole = whole,
                    .variant = variant.value};
      ops::window_votes(*ref, w);
      w.votes = out;
      on_every_target([&] {
        cpu::window_votes({2, DType::f32, false}, w);
        // probabilities of scores that went through a tanh
        EXPECT_TRUE(all_close(out, expected, {2e-6, 5e-4}));
      });
    }
  }
}

// What the definitions say, computed by hand.
TEST(AttentionVariantByHand, OneQueryOverThreeRows) {
  const auto ref = make_ref();
  TestTensor q({1, 1, 8}), k({1, 3, 8}), v({1, 3, 8}), sinks({1}), out({1, 1, 8});
  q.as<float>()[0] = 1.0f;
  for (int j = 0; j < 3; ++j) {
    k.as<float>()[8 * j] = static_cast<float>(j + 1);  // scores 1, 2, 3
    v.as<float>()[8 * j + j] = 1.0f;                   // out[j] = probability of row j
  }
  sinks.as<float>()[0] = 2.5f;
  const std::vector<int32_t> n_past = {2};
  const auto run = [&](const AttentionVariant& variant) {
    ops::attention_prefill(
        *ref,
        {.q = q, .k = k, .v = v, .n_past = n_past, .scale = 1.0f, .out = out, .variant = variant});
    return out.values();
  };
  const auto p = run({.window = 2});
  EXPECT_EQ(p[0], 0.0f);
  EXPECT_NEAR(p[1], std::exp(2.0) / (std::exp(2.0) + std::exp(3.0)), 1e-6);
  const auto capped = run({.softcap = 2.0f});
  const double s[] = {2 * std::tanh(0.5), 2 * std::tanh(1.0), 2 * std::tanh(1.5)};
  const double sum = std::exp(s[0]) + std::exp(s[1]) + std::exp(s[2]);
  for (int j = 0; j < 3; ++j) EXPECT_NEAR(capped[j], std::exp(s[j]) / sum, 1e-6);
  const auto sunk = run({.sinks = sinks});
  const double all = std::exp(1.0) + std::exp(2.0) + std::exp(3.0) + std::exp(2.5);
  for (int j = 0; j < 3; ++j) EXPECT_NEAR(sunk[j], std::exp(j + 1.0) / all, 1e-6);
}

}  // namespace
}  // namespace snapkv::test
