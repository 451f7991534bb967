// SPDX-License-Identifier: MIT
// The reference backend compared with values worked out by hand (in the comments), and the checks
// of ops.cpp. The other tests in this folder compare other backends with the reference.
#include "backend/ops.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/backend/op_test_util.h"

namespace snapkv::test {
namespace {

constexpr Tolerance kExact{};
constexpr Tolerance kRounded{.abs = 1e-6, .rel = 1e-6};  // one f32 rounding of an f64 result
constexpr float kLn2 = 0.69314718f, kLn3 = 1.09861229f;

using Values = std::vector<float>;

class RefOps : public testing::Test {
 protected:
  std::unique_ptr<Backend> backend_ = make_ref();
};
using RefOpsDeath = RefOps;

// One row of one block: d = 0.5 and qs[i] = i - 16, so value[i] = (i - 16) / 2.
TestTensor q8_0_row() {
  TestTensor t({1, 32}, DType::q8_0);
  BlockQ8_0& b = *t.as<BlockQ8_0>();
  b.d = to_f16(0.5f);
  for (int i = 0; i < 32; ++i) b.qs[i] = static_cast<int8_t>(i - 16);
  return t;
}

TEST_F(RefOps, EmbedPlainTypes) {
  const std::vector<int32_t> ids = {2, 0};
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const TestTensor weight({3, 2}, Values{1, 2, 3, 4, 5, -0.5f}, dtype);
    const TestTensor out({2, 2});
    ops::embed(*backend_, weight, ids, out);
    EXPECT_TRUE(all_close(out.values(), {5, -0.5f, 1, 2}, kExact)) << name(dtype);
  }
}

// (tests/format/block_types_test.cpp tests the content of blocks.)
TEST_F(RefOps, EmbedBlockTypes) {
  const std::vector<int32_t> ids = {2, 0};
  for (const DType type : block_types()) {
    const int64_t d = 2 * block_size(type);
    const TestTensor weight = random_tensor({3, d}, 1, type), out({2, d});
    ops::embed(*backend_, weight, ids, out);
    Values expected = to_f32_values(weight.view().at<void>(2), type, d);
    const Values row0 = to_f32_values(weight.view().at<void>(0), type, d);
    expected.insert(expected.end(), row0.begin(), row0.end());
    EXPECT_EQ(out.values(), expected) << name(type);
  }
}

TEST_F(RefOps, RmsNorm) {
  const TestTensor x({2, 2}, Values{3, 4, 0, 0});
  const TestTensor weight({2}, Values{1, 2});
  const TestTensor out({2, 2});
  // The mean of squares is 12.5, + 3.5 = 16: divided by 4. A row of zeros stays zero.
  ops::rms_norm(*backend_, x, weight, 3.5f, out);
  EXPECT_TRUE(all_close(out.values(), {0.75f, 2, 0, 0}, kRounded));
  const TestTensor rounded({2, 2}, DType::bf16);
  ops::rms_norm(*backend_, x, weight, 3.5f, rounded);
  EXPECT_TRUE(all_close(rounded.values(), {0.75f, 2, 0, 0}, kExact));
}

TEST_F(RefOps, LayerNorm) {
  // The mean is 5, the mean square of the rest 4, + 12 = 16: divided by 4.
  const TestTensor x({2, 2}, Values{3, 7, 3, 7}), bias({2}, Values{10, 20}), out({2, 2});
  ops::layer_norm(*backend_, x, TestTensor({2}, Values{1, 2}), bias, 12.0f, out);
  EXPECT_TRUE(all_close(out.values(), {9.5f, 21, 9.5f, 21}, kRounded));
  // Rows use the rows of weights in turn.
  ops::layer_norm(*backend_, x, TestTensor({2, 2}, Values{1, 2, 4, 8}), {}, 12.0f, out);
  EXPECT_TRUE(all_close(out.values(), {-0.5f, 1, -2, 4}, kRounded));
  const TestTensor biases({2, 2}, Values{10, 20, 30, 40});
  ops::layer_norm(*backend_, x, TestTensor({2, 2}, Values{1, 2, 4, 8}), biases, 12.0f, out);
  EXPECT_TRUE(all_close(out.values(), {9.5f, 21, 28, 44}, kRounded));
}

TEST_F(RefOps, AddScaleSoftcap) {
  const TestTensor x({2, 2}, Values{1, 2, 3, 4}), y({2, 2}, Values{1, 0, -1, 2});
  ops::add(*backend_, x, y, 2.0f);
  EXPECT_TRUE(all_close(x.values(), {3, 2, 1, 8}, kExact));
  ops::scale(*backend_, x, std::array{2.0f, -1.0f});
  EXPECT_TRUE(all_close(x.values(), {6, 4, -1, -8}, kExact));
  ops::scale(*backend_, x, std::array{0.5f});
  EXPECT_TRUE(all_close(x.values(), {3, 2, -0.5f, -4}, kExact));
  ops::scale_rows(*backend_, x, TestTensor({2, 1}, Values{2, -2}));
  EXPECT_TRUE(all_close(x.values(), {6, 4, 1, 8}, kExact));
  const TestTensor far({1, 3}, Values{2 * kLn2, 1e6f, -1e6f});
  ops::softcap(*backend_, far, 2.0f);  // tanh(ln 2) = (2 - 1/2) / (2 + 1/2)
  EXPECT_TRUE(all_close(far.values(), {1.2f, 2, -2}, kRounded));
}

TEST_F(RefOps, ClampKeepsWhatLiesWithin) {
  const TestTensor x({1, 5}, Values{-3, -2, 0.5f, 2, 1e30f});
  ops::clamp(*backend_, x, -2.0f, 2.0f);
  EXPECT_TRUE(all_close(x.values(), {-2, -2, 0.5f, 2, 2}, kExact));
  ops::clamp(*backend_, x, -std::numeric_limits<float>::infinity(), 0.25f);
  EXPECT_TRUE(all_close(x.values(), {-2, -2, 0.25f, 0.25f, 0.25f}, kExact));
}

TEST_F(RefOps, SplitCutsRows) {
  const TestTensor x({2, 3}, Values{1, 2, 3, 4, 5, 6}), a({2, 1}), b({2, 2});
  ops::split(*backend_, x, std::array<Tensor, 2>{a, b});
  EXPECT_TRUE(all_close(a.values(), {1, 4}, kExact));
  EXPECT_TRUE(all_close(b.values(), {2, 3, 5, 6}, kExact));
}

TEST_F(RefOps, ProjectAddsBiasAndAccumulates) {
  const TestTensor x({2, 2}, Values{1, 2, 0, -1});
  const TestTensor w({3, 2}, Values{3, 4, 5, 6, 7, 8});
  const TestTensor bias({3}, Values{0.5f, 0, -1});
  const TestTensor plain({2, 3}), sum({2, 3}, Values(6, 1.0f));
  // x w^T = [[11, 17, 23], [-4, -6, -8]]
  ops::project(*backend_, x,
               std::array{Projection{.w = w, .bias = {}, .out = plain},
                          Projection{.w = w, .bias = bias, .out = sum, .accumulate = true}});
  EXPECT_TRUE(all_close(plain.values(), {11, 17, 23, -4, -6, -8}, kExact));
  EXPECT_TRUE(all_close(sum.values(), {12.5f, 18, 23, -2.5f, -5, -8}, kExact));
}

TEST_F(RefOps, ProjectBlockTypes) {
  const TestTensor x({1, 32}, Values(32, 1.0f));
  const TestTensor out({1, 1});
  // The sum of the row: 0.5 * (496 - 512)
  ops::project(*backend_, x, std::array{Projection{.w = q8_0_row(), .bias = {}, .out = out}});
  EXPECT_EQ(out.as<>()[0], -8.0f);
}

TEST_F(RefOps, PackedProductEqualsPlain) {
  PackedWeight packed;
  ops::pack(*backend_, random_tensor({16, 64}, 1), packed);
  const void* memory = packed.storage.data();
  const TestTensor w({3, 2}, Values{3, 4, 5, 6, 7, 8});
  ops::pack(*backend_, w, packed);
  EXPECT_EQ(packed.storage.data(), memory) << "pack() must reuse memory that is large enough";

  const TestTensor x({2, 2}, Values{1, 2, 0, -1});
  const TestTensor bias({3}, Values{0.5f, 0, -1});
  const TestTensor out({2, 3}, Values(6, 1.0f));
  ops::project_packed(*backend_, x, packed, bias, out, true);
  EXPECT_TRUE(all_close(out.values(), {12.5f, 18, 23, -2.5f, -5, -8}, kExact));
  ops::project_packed(*backend_, x, packed, {}, out, false);
  EXPECT_TRUE(all_close(out.values(), {11, 17, 23, -4, -6, -8}, kExact));

  const TestTensor ones({1, 32}, Values(32, 1.0f));
  const TestTensor one({1, 1});
  ops::pack(*backend_, q8_0_row(), packed);
  ops::project_packed(*backend_, ones, packed, {}, one, false);
  EXPECT_EQ(one.as<>()[0], -8.0f);
}

TEST_F(RefOps, RopeRotatesPairs) {
  const std::vector<double> quarter_and_half = {1.5707963267948966, 3.141592653589793};
  const std::vector<int32_t> pos = {1, 0};
  const Values x = {1, 2, 3, 4, 1, 2, 3, 4};
  // A quarter turn takes (a, b) to (-b, a), a half turn to (-a, -b); position 0 is unchanged.
  const TestTensor norm({2, 1, 4}, x);
  ops::rope(*backend_, norm, pos, {.inv_freq = quarter_and_half, .layout = RopeLayout::norm});
  EXPECT_TRUE(all_close(norm.values(), {-2, 1, -3, -4, 1, 2, 3, 4}, kRounded));
  const TestTensor neox({2, 1, 4}, x);  // pairs (0, 2) and (1, 3)
  ops::rope(*backend_, neox, pos, {.inv_freq = quarter_and_half, .layout = RopeLayout::neox});
  EXPECT_TRUE(all_close(neox.values(), {-3, -2, 1, -4, 1, 2, 3, 4}, kRounded));
}

TEST_F(RefOps, RopeLeavesTheRestAndKeepsPhaseFarOut) {
  const std::vector<double> quarter = {1.5707963267948966};
  const std::vector<int32_t> pos = {1000003};  // 3 mod 4 quarter turns: (a, b) to (b, -a)
  for (RopeLayout layout : {RopeLayout::norm, RopeLayout::neox}) {
    const TestTensor x({1, 1, 4}, Values{1, 2, 3, 4});
    ops::rope(*backend_, x, pos, {.inv_freq = quarter, .layout = layout});
    EXPECT_TRUE(all_close(x.values(), {2, -1, 3, 4}, kRounded));
  }
}

TEST_F(RefOps, SwiGlu) {
  const TestTensor gate({1, 3}, Values{0, kLn3, -kLn3});
  const TestTensor up({1, 3}, Values{5, 2, 4});
  const TestTensor out({1, 3});
  // silu(ln 3) = 3/4 ln 3, silu(-ln 3) = -1/4 ln 3
  ops::activate(*backend_, Activation::silu, gate, up, out);
  EXPECT_TRUE(all_close(out.values(), {0, 1.5f * kLn3, -kLn3}, kRounded));
  ops::activate(*backend_, Activation::silu, gate, {}, out);
  EXPECT_TRUE(all_close(out.values(), {0, 0.75f * kLn3, -0.25f * kLn3}, kRounded));
}

// torch.nn.functional.gelu(x, approximate="tanh")
TEST_F(RefOps, GeluTanh) {
  const TestTensor x({1, 4}, Values{-3, -0.5f, 1, 2.5f});
  const TestTensor out({1, 4});
  ops::activate(*backend_, Activation::gelu_tanh, x, {}, out);
  EXPECT_TRUE(all_close(out.values(), {-0.00363739208f, -0.15428599f, 0.841191991f, 2.48491573f},
                        {.abs = 1e-8, .rel = 1e-6}));
}

TEST_F(RefOps, StoreRowsSplitsHeadsAndRounds) {
  const TestTensor src({2, 2, 1}, Values{1, 2, 1.00146484375f, -4});  // [n, n_head_kv, 1]
  // 1 + 3/2048 is halfway between two f16 values and rounds to the even one, 1 + 2/1024.
  std::array<uint16_t, 2> head0{}, head1{};
  const std::array<void*, 2> dst = {head0.data(), head1.data()};
  ops::store_rows(*backend_, src, DType::f16, dst);
  EXPECT_EQ(head0, (std::array<uint16_t, 2>{0x3c00, 0x3c02}));
  EXPECT_EQ(head1, (std::array<uint16_t, 2>{0x4000, 0xc400}));
  ops::store_rows(*backend_, src, DType::bf16, dst);
  EXPECT_EQ(head0, (std::array<uint16_t, 2>{0x3f80, 0x3f80}));
  EXPECT_EQ(head1, (std::array<uint16_t, 2>{0x4000, 0xc080}));
}

TEST_F(RefOps, StoreRowsKeepsNaN) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::q8_0}) {
    const TestTensor src({1, 1, 32}, Values(32, NAN)), out({1, 32}, dtype);
    ops::store_rows(*backend_, src, dtype, std::array{out.data()});
    for (const float x : out.values()) EXPECT_TRUE(std::isnan(x)) << name(dtype);
  }
}

TEST_F(RefOps, StoreRowsGivesEveryBlockItsScale) {
  // Zeros; values too small for a scale; one large value; levels, and halves between them.
  const TestTensor src({1, 1, 128}), out({1, 128}, DType::q8_0);
  float* x = src.as();
  std::fill(x + 32, x + 64, 1e-7f);
  x[64 + 5] = -254.0f;
  for (int i = 0; i < 32; ++i) x[96 + i] = static_cast<float>(i) - 3.5f;
  x[96 + 31] = 127.0f;
  ops::store_rows(*backend_, src, DType::q8_0, std::array{out.data()});
  const Values values = out.values();
  for (int i = 0; i < 96; ++i) EXPECT_EQ(values[i], i == 69 ? -254.0f : 0.0f) << i;
  EXPECT_EQ(values[96 + 0], -4.0f);  // -3.5: ties to even
  EXPECT_EQ(values[96 + 1], -2.0f);
  EXPECT_EQ(values[96 + 8], 4.0f);
  EXPECT_EQ(values[96 + 31], 127.0f);
}

TEST_F(RefOps, AttentionPrefillIsCausalAndGrouped) {
  // head_dim 1, one KV head of 3 rows and room for 4, two query heads; one row is in the past.
  const TestTensor k({1, 4, 1}, Values{0, kLn2, kLn3, 100});
  const TestTensor v({1, 4, 1}, Values{1, 2, 3, 100});
  const TestTensor q({2, 2, 1}, Values{2, 0, 4, 0});
  const TestTensor out({2, 2, 1});
  const std::vector<int32_t> n_past = {1};
  ops::attention_prefill(*backend_,
                         {.q = q, .k = k, .v = v, .n_past = n_past, .scale = 0.5f, .out = out});
  // head 0: query 0 weights rows 0, 1 by 1, 2: 5/3; query 1 rows 0..2 by 1, 4, 9: 36/14.
  // head 1: equal weights: 3/2 and 2.
  EXPECT_TRUE(all_close(out.values(), {5.0f / 3, 1.5f, 36.0f / 14, 2}, kRounded));
}

TEST_F(RefOps, ClampedSwiglu) {
  const TestTensor x({1, 3}, Values{0, 100, 1}), y({1, 3}, Values{5, 100, -100}), out({1, 3});
  ops::activate(*backend_, Activation::clamped_swiglu, x, y, out);
  const double at_one = 1.0 / (1.0 + std::exp(-1.702)), at_limit = 7.0 / (1.0 + std::exp(-11.914));
  EXPECT_TRUE(all_close(out.values(),
                        {0, static_cast<float>(8 * at_limit), static_cast<float>(-6 * at_one)},
                        kRounded));
}

TEST_F(RefOps, SquaresAndExponentials) {
  const TestTensor x({1, 3}, Values{-2, 0, 3}), out({1, 3});
  ops::activate(*backend_, Activation::relu_squared, x, {}, out);
  EXPECT_TRUE(all_close(out.values(), {0, 0, 9}, kExact));
  const TestTensor y({1, 4}, Values{-kLn2, 0, 2, -1});
  const TestTensor curve({1, 4});  // e^-ln 2 - 1 = -1/2; from -4 on the exponent is the limit
  ops::xielu(*backend_, y, 3.0f, 2.0f, 0.5f, -4.0f, curve);
  const auto below = [](double v) { return 2 * (std::exp(-4.0) - 1 - v) + 0.5 * v; };
  EXPECT_TRUE(all_close(curve.values(),
                        {static_cast<float>(below(-kLn2)), static_cast<float>(below(0)), 13,
                         static_cast<float>(below(-1))},
                        kRounded));
  ops::xielu(*backend_, y, 3.0f, 2.0f, 0.5f, -1e-6f, curve);
  EXPECT_NEAR(curve.values()[0], 2 * (-0.5 + kLn2) - 0.5 * kLn2, 1e-6);
}

TEST_F(RefOps, RouteByEveryRule) {
  const TestTensor logits({1, 4}, Values{0, kLn3, kLn2, 0});  // softmax: 1/7, 3/7, 2/7, 1/7
  const TestTensor bias({4}, Values{1, 0, 0, 0}), experts({1, 2}, DType::i32), weights({1, 2});
  const auto route = [&](const Routing& rule, const Tensor& choice_bias = {}) {
    ops::route(*backend_, {logits, choice_bias, {}, rule, experts, weights});
    return experts.values();
  };
  EXPECT_EQ(route({.normalized = false}), (Values{1, 2}));
  EXPECT_TRUE(all_close(weights.values(), {3.0f / 7, 2.0f / 7}, kRounded));
  route({.normalized = true, .scale = 10.0f});
  EXPECT_TRUE(all_close(weights.values(), {6, 4}, kRounded));
  route({.score = ExpertScore::softmax_of_chosen, .normalized = false});
  EXPECT_TRUE(all_close(weights.values(), {0.6f, 0.4f}, kRounded));
  route({.score = ExpertScore::sigmoid, .normalized = false});  // 3 / (3 + 1), 2 / (2 + 1)
  EXPECT_TRUE(all_close(weights.values(), {0.75f, 2.0f / 3}, kRounded));
  // near: 1 - ln 2 / ln 3 = 0.37 is, 1 - 0 is not; then 0 is not near ln 2
  route({.score = ExpertScore::sparse_mixer, .normalized = false, .jitter = 0.2f});
  EXPECT_TRUE(all_close(weights.values(), {0.6f, 1}, kRounded));
  route({.score = ExpertScore::sparse_mixer, .normalized = false, .jitter = 0.18f});
  EXPECT_TRUE(all_close(weights.values(), {1, 1}, kRounded));
  // the bias chooses expert 0, whose weight is its score without it
  EXPECT_EQ(route({.normalized = false}, bias), (Values{0, 1}));
  EXPECT_TRUE(all_close(weights.values(), {1.0f / 7, 3.0f / 7}, kRounded));
  // groups {0, 1} and {2, 3} have 4/7 and 3/7: 1 and then 0, a tie with 3 in the other group
  EXPECT_EQ(route({.n_group = 2, .n_group_used = 1}), (Values{1, 0}));
}

TEST_F(RefOps, RouteByTheHighestScoresOfGroups) {
  constexpr float kLn4 = 1.3862944f;
  const TestTensor logits({1, 4}, Values{kLn3, kLn3, kLn4, 0});  // softmax: 3, 3, 4 and 1 of 11
  const TestTensor experts({1, 2}, DType::i32), weights({1, 2});
  for (const auto& [n_best, expected] : {std::pair{2, Values{0, 1}}, {1, Values{2, 3}}}) {
    const Routing rule = {.n_group = 2, .n_group_used = 1, .n_group_best = n_best};
    ops::route(*backend_, {logits, {}, {}, rule, experts, weights});
    EXPECT_EQ(experts.values(), expected) << n_best;
  }
}

TEST_F(RefOps, ProjectExpertsOfTwoTokens) {
  // expert e: gate and up [1, 1], down [1, 1]; with x = 1 and silu(40) = 40 the outputs are
  // 40 * up * down = 40 * (e + 1) (+ biases of e)
  std::vector<TestTensor> memory;
  for (int e = 0; e < 2; ++e) {
    memory.push_back(TestTensor({1, 1}, Values{40}));
    memory.push_back(TestTensor({1, 1}, Values{static_cast<float>(e + 1)}));
    memory.push_back(TestTensor({1, 1}, Values{1}));
    memory.push_back(TestTensor({1}, Values{static_cast<float>(e)}));
  }
  std::vector<Expert> experts;
  for (int e = 0; e < 2; ++e) {
    const TestTensor* m = &memory[4 * e];
    experts.push_back({.gate = m[0],
                       .up = m[1],
                       .down = m[2],
                       .gate_bias = {},
                       .up_bias = {},
                       .down_bias = m[3]});
  }
  const TestTensor x({2, 1}, Values{1, 1}), out({2, 1}, Values{1000, 2000});
  const TestTensor chosen({2, 2}, Values{1, 0, 0, 1}, DType::i32);
  const TestTensor weights({2, 2}, Values{0.5f, 0.25f, 1, 0});
  const TestTensor m[5] = {TestTensor({2, 1}), TestTensor({2, 1}), TestTensor({2, 1}),
                           TestTensor({2, 1}), TestTensor({2, 1})};
  const TestTensor order({3 + 4}, DType::i32), factors({4});
  ops::project_experts(*backend_, {.x = x,
                                   .experts = experts,
                                   .chosen = chosen,
                                   .weights = weights,
                                   .limits = {},
                                   .factor = 2.0f,
                                   .out = out,
                                   .memory = {m[0], m[1], m[2], m[3], m[4], order, factors}});
  // token 0: 2 * (0.5 * 81 + 0.25 * 40), token 1: 2 * 40
  EXPECT_TRUE(all_close(out.values(), {1101, 2080}, kRounded));
}

TEST_F(RefOps, AttentionVariantsOfOneQuery) {
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
        *backend_,
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

TEST_F(RefOps, AttentionDecodeTakesEachSequencesOwnRows) {
  const TestTensor k({3, 1}, Values{0, kLn2, kLn3}), v({3, 1}, Values{1, 2, 3});
  const TestTensor q({2, 2, 1}, Values{1, 0, 1, 0});
  const TestTensor out({2, 2, 1});
  const std::array<HeadRows, 2> heads = {HeadRows{k.as<>() + 2, v.as<>() + 2, 1},
                                         HeadRows{k.as<>(), v.as<>(), 3}};
  ops::attention_decode(*backend_, {.q = q, .heads = heads, .kv_dtype = DType::f32, .out = out});
  // Sequence 0 has one row, 3; sequence 1 has weights 1, 2, 3: 14/6, or equal ones: 2.
  EXPECT_TRUE(all_close(out.values(), {3, 3, 14.0f / 6, 2}, kRounded));
}

TEST_F(RefOps, WindowVotes) {
  // W = 2, n = 4. Query 0 sees rows 0..2, query 1 rows 0..3; none sees the last row (100) of the
  // capacity.
  const TestTensor k({1, 5, 1}, Values{0, kLn2, 0, 0, 100});
  const TestTensor q({2, 2, 1}, Values{2, 0, 4, 0});
  const std::vector<int32_t> n_rows = {4};
  // head 0: (1, 2, 1) / 4 and (1, 4, 1, 1) / 7: votes 1/4 + 1/7 and 2/4 + 4/7
  // head 1: thirds and quarters: 7/12 and 7/12
  const float a0 = 11.0f / 28, a1 = 15.0f / 14, b = 7.0f / 12;
  for (GroupReduce group : {GroupReduce::mean, GroupReduce::max}) {
    const TestTensor votes({1, 3}, Values(3, -1.0f));
    ops::window_votes(
        *backend_,
        {.q = q, .k = k, .n_rows = n_rows, .scale = 0.5f, .group = group, .votes = votes});
    const bool mean = group == GroupReduce::mean;
    EXPECT_TRUE(all_close(votes.values(), {mean ? (a0 + b) / 2 : b, mean ? (a1 + b) / 2 : a1, -1},
                          kRounded));
  }
}

// With all rows, the probabilities of a query's columns add up to 1; without the window's own
// columns, they add up to less.
TEST_F(RefOps, WindowVotesAddUp) {
  const TestTensor q = random_tensor({8, 1, 64}, 1), k = random_tensor({1, 100, 64}, 2);
  const std::vector<int32_t> n_rows = {100};
  for (const bool whole : {true, false}) {
    const TestTensor votes({1, whole ? 100 : 92});
    ops::window_votes(
        *backend_,
        {.q = q, .k = k, .n_rows = n_rows, .scale = 0.125f, .votes = votes, .whole = whole});
    double sum = 0;
    for (const float v : votes.values()) sum += v;
    EXPECT_TRUE(whole ? std::abs(sum - 8) < 1e-5 : sum > 0.5 * 8 && sum < 8) << sum;
  }
}

TEST_F(RefOps, PoolEdges) {
  const TestTensor scores({2, 5}, Values{1, 5, 2, 0, -3, -3, -1, 9, 9, 9});
  const std::vector<int32_t> n = {5, 2};
  const TestTensor out({2, 5});
  // Max: nothing beyond the edges, not even a 0. Avg: zeros beyond them, always divided by 3.
  ops::pool(*backend_, scores, n, 3, Pooling::max, out);
  EXPECT_TRUE(all_close(out.values(), {5, 5, 5, 2, 0, -1, -1, 0, 0, 0}, kExact));
  ops::pool(*backend_, scores, n, 3, Pooling::avg, out);
  EXPECT_TRUE(all_close(out.values(),
                        {2, 8.0f / 3, 7.0f / 3, -1.0f / 3, -1, -4.0f / 3, -4.0f / 3, 0, 0, 0},
                        kRounded));
  ops::pool(*backend_, scores, n, 15, Pooling::max, out);  // wider than the row
  EXPECT_TRUE(all_close(out.values(), {5, 5, 5, 5, 5, -1, -1, 0, 0, 0}, kExact));
  ops::pool(*backend_, scores, n, 1, Pooling::avg, out);  // no pooling
  EXPECT_TRUE(all_close(out.values(), {1, 5, 2, 0, -3, -3, -1, 0, 0, 0}, kExact));
}

TEST_F(RefOps, TopKBreaksTiesDownwardsAndAppendsTheWindow) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const TestTensor scores({3, 6}, Values{3, 1, 3, 2, nan, 3,       //
                                         nan, -inf, nan, 0, 9, 9,  //
                                         1, 1, 9, 9, 9, 9});
  const std::vector<int32_t> n = {6, 4, 2}, k = {2, 3, 0};
  const TestTensor rows({3, 5}, Values(15, -7), DType::i32);
  ops::top_k(*backend_, scores, n, k, 2, rows);
  EXPECT_TRUE(all_close(rows.values(),
                        {0, 2, 6, 7, -7,  //
                         0, 1, 3, 4, 5,   // -inf before NaN, and then the lower NaN
                         2, 3, -7, -7, -7},
                        kExact));
}

TEST_F(RefOps, TopKRanksNaNLowestAndZerosAlike) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto top = [&](const Values& scores, int32_t k) {
    const int32_t n = static_cast<int32_t>(scores.size());
    const TestTensor rows({1, k}, DType::i32);
    ops::top_k(*backend_, TestTensor({1, n}, scores), std::array{n}, std::array{k}, 0, rows);
    return rows.values();
  };
  const Values scores = {NAN, -inf, NAN, -3.0f, inf, -NAN};
  EXPECT_EQ(top(scores, 2), (Values{3, 4}));
  EXPECT_EQ(top(scores, 3), (Values{1, 3, 4}));
  EXPECT_EQ(top(scores, 4), (Values{0, 1, 3, 4}));
  EXPECT_EQ(top({0.0f, -0.0f, 0.0f, -0.0f, 0.0f}, 2), (Values{0, 1}));
}

TEST_F(RefOps, GatherRowsHonoursStrides) {
  // Memory of layout [capacity 3, n_head_kv 2, d 2], viewed as [2, 3, 2].
  const TestTensor memory({3, 2, 2}, Values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, DType::f16);
  Tensor src(memory.data(), DType::f16, {2, 3, 2});
  src.stride[0] = 4, src.stride[1] = 8;
  const TestTensor rows({2, 2}, Values{0, 2, 1, 0}, DType::i32);
  const std::vector<int32_t> n = {2, 1};
  const TestTensor out0({2, 2}, DType::f16), out1({2, 2}, DType::f16);
  const std::array<void*, 2> dst = {out0.data(), out1.data()};
  ops::gather_rows(*backend_, src, rows, n, dst);
  EXPECT_TRUE(all_close(out0.values(), {0, 1, 8, 9}, kExact));
  EXPECT_TRUE(all_close(out1.values(), {6, 7, 0, 0}, kExact));
}

TEST_F(RefOps, NothingToDo) {
  const TestTensor none({0, 2}), w({3, 2}, Values(6, 1.0f)), none3({0, 3}), heads({0, 1, 2});
  const TestTensor kv({1, 4, 2}), votes({1, 4}, Values(4, 7.0f));
  PackedWeight packed;
  ops::pack(*backend_, w, packed);
  ops::embed(*backend_, w, {}, none);
  ops::rms_norm(*backend_, none, TestTensor({2}), 0.0f, none);
  ops::project(*backend_, none, std::array{Projection{.w = w, .bias = {}, .out = none3}});
  ops::project(*backend_, none, {});
  ops::project_packed(*backend_, none, packed, {}, none3, false);
  ops::rope(*backend_, heads, {}, {});
  ops::activate(*backend_, Activation::silu, none, none, none);
  ops::xielu(*backend_, none, 1.0f, 1.0f, 0.0f, 0.0f, none);
  ops::layer_norm(*backend_, none, TestTensor({2}), {}, 0.0f, none);
  ops::add(*backend_, none, none, 1.0f);
  ops::scale(*backend_, none, {});
  ops::scale_rows(*backend_, none, TestTensor({0, 1}));
  ops::softcap(*backend_, none, 1.0f);
  ops::clamp(*backend_, none, -1.0f, 1.0f);
  ops::keep_peaks(*backend_, none, 1.0f);
  ops::match_norms(*backend_, none, none);
  ops::store_rows(*backend_, heads, DType::f16, std::array<void*, 1>{nullptr});
  const std::vector<int32_t> zero = {0};
  ops::attention_prefill(*backend_, {.q = heads, .k = kv, .v = kv, .n_past = zero, .out = heads});
  ops::attention_decode(*backend_, {.q = heads, .heads = {}, .out = heads});
  ops::window_votes(*backend_, {.q = heads, .k = kv, .n_rows = zero, .votes = votes});
  ops::pool(*backend_, votes, zero, 3, Pooling::max, TestTensor({1, 4}));
  const TestTensor rows({1, 0}, DType::i32);
  ops::top_k(*backend_, votes, zero, zero, 0, rows);
  ops::gather_rows(*backend_, kv, rows, zero, std::array<void*, 1>{nullptr});
  EXPECT_TRUE(all_close(votes.values(), Values(4, 7.0f), kExact));
}

TEST_F(RefOpsDeath, ChecksNameTheCondition) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TestTensor w({3, 2}), x({1, 2}), out({1, 3}), wrong({1, 4});
  const std::vector<int32_t> beyond = {3}, negative = {-1};
  EXPECT_DEATH(ops::embed(*backend_, w, beyond, x), "all_within\\(ids");
  EXPECT_DEATH(ops::embed(*backend_, w, negative, x), "all_within\\(ids");
  EXPECT_DEATH(ops::project(*backend_, x, std::array{Projection{.w = w, .bias = {}, .out = wrong}}),
               "p.out");
  EXPECT_DEATH(ops::rms_norm(*backend_, x, TestTensor({3}), 0.0f, x), "weight");
  const std::vector<int32_t> n = {3}, k = {4};
  EXPECT_DEATH(ops::pool(*backend_, out, n, 2, Pooling::max, out), "kernel_size");
  EXPECT_DEATH(ops::top_k(*backend_, out, n, k, 0, TestTensor({1, 4}, DType::i32)), "k\\[h\\]");
  const TestTensor q({2, 1, 2}), kv({1, 4, 2});
  const std::vector<int32_t> n_rows = {2};  // no row before the window
  EXPECT_DEATH(ops::window_votes(*backend_, {.q = q, .k = kv, .n_rows = n_rows, .votes = wrong}),
               "n_rows");
}

}  // namespace
}  // namespace snapkv::test
