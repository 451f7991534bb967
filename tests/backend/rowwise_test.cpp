// SPDX-License-Identifier: MIT
// embed, norms, rope, activations, add, scale, softcap against ref, on every Highway target that
// this machine runs.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>

#include "backend/cpu/cpu_context.h"
#include "backend/cpu/cpu_ops.h"
#include "backend/ops.h"
#include "tests/backend/op_test_util.h"

namespace snapkv::test {
namespace {

/// Once per target; the best one serves again afterwards.
class RowwiseTest : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    if ((hwy::SupportedTargets() & GetParam()) == 0) GTEST_SKIP() << "not with SNAPKV_CPU_TARGET";
    hwy::SetSupportedTargetsForTest(GetParam());
  }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
  const std::unique_ptr<Backend> ref_ = make_ref();
  const std::unique_ptr<Backend> cpu_ = make_cpu(2, Compute::f32);
  // bf16 tensors through the kernels themselves, so that processors without bf16 run these too
  const cpu::CpuContext context_{.n_threads = 2};
};

std::vector<int64_t> supported_targets() {
  std::vector<int64_t> targets;
  for (int64_t rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
    targets.push_back(rest & -rest);
  }
  return targets;
}
INSTANTIATE_TEST_SUITE_P(Targets, RowwiseTest, testing::ValuesIn(supported_targets()),
                         [](const auto& p) { return std::string(hwy::TargetName(p.param)); });

// One ulp of the product d * q (f64 in the reference) at most.
TEST_P(RowwiseTest, Embed) {
  const std::vector<int32_t> ids = {3, 0, 9, 9, 4};
  for (const DType type : kWeightTypes) {
    for (const int64_t d : {32, 96, 4096, 1, 15, 45}) {
      if (d % block_size(type) != 0) continue;
      const TestTensor w = random_tensor({10, d}, 1, type);
      for (const size_t n : {size_t{0}, size_t{1}, ids.size()}) {
        TestTensor actual({static_cast<int64_t>(n), d}), expected = actual;
        ops::embed(*cpu_, w, std::span(ids).first(n), actual);
        ops::embed(*ref_, w, std::span(ids).first(n), expected);
        EXPECT_TRUE(all_close(actual, expected, {.rel = 6e-8})) << name(type) << " d " << d;
      }
    }
  }
}

// Subnormals too. (Infinities and NaN survive where the processor converts; Highway's emulation for
// those before AVX2 knows none.)
TEST_P(RowwiseTest, EmbedTakesEveryFiniteF16) {
  const int64_t n_rows = 16, d = 4096;
  TestTensor w({n_rows, d}, DType::f16);
  for (int64_t i = 0; i < n_rows * d; ++i) {
    const bool is_finite = (i >> 10 & 31) != 31;
    w.as<f16_t>()[i].bits = static_cast<uint16_t>(is_finite ? i : 0);
  }
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < n_rows; ++i) ids.push_back(i);
  TestTensor actual({n_rows, d}), expected = actual;
  ops::embed(*cpu_, w, ids, actual);
  ops::embed(*ref_, w, ids, expected);
  EXPECT_TRUE(all_close(actual, expected, {}));
}

// f32 sums of squares of d values against f64: d / lanes additions of at most 2^-24 each, well
// below 1e-6. bf16: one rounding to 8 significant bits, 2^-9 of the value at most, plus a tie that
// an f32 error tips over: 2^-8.
TEST_P(RowwiseTest, RmsNorm) {
  for (const int64_t n : {0, 1, 2, 33}) {
    for (const int64_t d : {1, 7, 32, 576, 2048, 4099}) {
      const TestTensor x = random_tensor({n, d}, 1, DType::f32, 3.0f), w = random_tensor({d}, 2);
      TestTensor actual({n, d}), expected = actual, rounded({n, d}, DType::bf16);
      ops::rms_norm(*cpu_, x, w, 1e-5f, actual);
      ops::rms_norm(*ref_, x, w, 1e-5f, expected);
      EXPECT_TRUE(all_close(actual, expected, {.rel = 1e-6})) << n << " x " << d;
      ops::rms_norm(*cpu_, x, w, 1e-5f, rounded);
      EXPECT_TRUE(all_close(rounded, expected, {.rel = 0x1p-8 * 1.01})) << n << " x " << d;
    }
  }
}

TEST_P(RowwiseTest, RmsNormOfZerosIsZero) {
  TestTensor out({2, 64});
  ops::rms_norm(*cpu_, TestTensor({2, 64}), random_tensor({64}, 1), 1e-5f, out);
  EXPECT_EQ(out.values(), std::vector<float>(128, 0.0f));
}

// Angles in f64, as the reference; each result is a sum of two products of f32: 2 ulp of the pair's
// magnitude (at most 6 here).
TEST_P(RowwiseTest, Rope) {
  for (const RopeLayout layout : {RopeLayout::norm, RopeLayout::neox}) {
    for (const int64_t n_pairs : {1, 3, 16, 32, 37}) {
      for (const int64_t n : {0, 1, 5, 40}) {
        std::vector<double> inv_freq;
        for (int64_t i = 0; i < n_pairs; ++i) {
          inv_freq.push_back(std::pow(10000.0, -static_cast<double>(i) / n_pairs));
        }
        std::vector<int32_t> pos;
        for (int32_t t = 0; t < n; ++t) pos.push_back(t == 4 ? 1000003 : 7 * t);
        const TestTensor x = random_tensor({n, 3, 80}, 1);
        TestTensor actual = x, expected = x;
        const RopeFrequencies f{
            .inv_freq = inv_freq, .layout = layout, .magnitude = n == 5 ? 1.25f : 1.0f};
        ops::rope(*cpu_, actual, pos, f);
        ops::rope(*ref_, expected, pos, f);
        EXPECT_TRUE(all_close(actual, expected, {.abs = 1e-6})) << n << " x " << n_pairs;
      }
    }
  }
}

// exp within 1 ulp, then a division and two products: 1e-6 covers them with room. Inputs reach the
// ranges where exp(-s) under- and overflows; there results are subnormal at most. gelu_tanh rounds
// s before exp, which makes |s| of that error: nearly nothing where x e^-|s| is not.
TEST_P(RowwiseTest, Activate) {
  for (const Activation f : {Activation::silu, Activation::gelu_tanh}) {
    const double abs = f == Activation::silu ? 1e-36 : 1e-6;
    for (const int64_t n : {0, 1, 2, 9}) {
      for (const int64_t d : {1, 15, 32, 1536, 8195}) {
        TestTensor gate = random_tensor({n, d}, 1, DType::f32, 20.0f);
        if (gate.numel() > 14) {
          gate.as()[0] = -200.0f;
          gate.as()[7] = 200.0f;
          gate.as()[9] = -88.0f;
          gate.as()[11] = 0.0f;
        }
        const TestTensor up = random_tensor({n, d}, 2);
        TestTensor actual({n, d}), expected = actual, rounded({n, d}, DType::bf16);
        ops::activate(*cpu_, f, gate, up, actual);
        ops::activate(*ref_, f, gate, up, expected);
        EXPECT_TRUE(all_close(actual, expected, {.abs = abs, .rel = 1e-6})) << n << " x " << d;
        if (n > 0) cpu::activate(context_, f, gate, up, rounded);
        EXPECT_TRUE(all_close(rounded, expected, {.abs = abs, .rel = 0x1p-8 * 1.01}));
        ops::activate(*cpu_, f, gate, {}, actual);
        ops::activate(*ref_, f, gate, {}, expected);
        EXPECT_TRUE(all_close(actual, expected, {.abs = abs, .rel = 1e-6})) << n << " x " << d;

        const TestTensor gate16 = gate.to(DType::bf16), up16 = up.to(DType::bf16);
        TestTensor from_bf16({n, d}), expected16({n, d});
        if (n > 0) cpu::activate(context_, f, gate16, up16, from_bf16);
        ops::activate(*ref_, f, gate16.to(DType::f32), up16.to(DType::f32), expected16);
        EXPECT_TRUE(all_close(from_bf16, expected16, {.abs = abs, .rel = 1e-6}));
        if (n > 0) cpu::activate(context_, f, gate16, up16, rounded);
        EXPECT_TRUE(all_close(rounded, expected16, {.abs = abs, .rel = 0x1p-8 * 1.01}));
      }
    }
  }
}

TEST(Rowwise, DoesNotDependOnThreads) {
  const auto one = make_cpu(1), two = make_cpu(2);
  const int64_t n = 40, d = 2048;
  const TestTensor x = random_tensor({n, d}, 1), w = random_tensor({d}, 2);
  TestTensor a({n, d}), b({n, d});
  ops::rms_norm(*one, x, w, 1e-5f, a);
  ops::rms_norm(*two, x, w, 1e-5f, b);
  EXPECT_EQ(a.values(), b.values());
  ops::activate(*one, Activation::silu, x, a, a);
  ops::activate(*two, Activation::silu, x, b, b);
  EXPECT_EQ(a.values(), b.values());
  const std::vector<double> inv_freq(32, 0.1);
  const std::vector<int32_t> pos(static_cast<size_t>(n), 5);
  const auto heads = [&](const TestTensor& t) { return t.view().reshaped({n, 32, 64}); };
  ops::rope(*one, heads(a), pos, {.inv_freq = inv_freq, .layout = RopeLayout::norm});
  ops::rope(*two, heads(b), pos, {.inv_freq = inv_freq, .layout = RopeLayout::norm});
  EXPECT_EQ(a.values(), b.values());
}

// Sums in f32 as for rms_norm. x has a mean of 20, of which f32 knows 1e-6; that error stays when
// it is subtracted, and weights and biases multiply and then nearly cancel it here and there.
TEST_P(RowwiseTest, LayerNorm) {
  for (const int64_t n : {0, 1, 6, 33}) {
    for (const int64_t d : {1, 7, 32, 576, 4099}) {
      TestTensor x = random_tensor({n, d}, 1, DType::f32, 3.0f);
      for (int64_t i = 0; i < x.numel(); ++i) x.as<float>()[i] += 20.0f;
      const TestTensor w = random_tensor({d}, 2), bias = random_tensor({d}, 3);
      for (const Tensor& b : {Tensor(bias), Tensor()}) {
        TestTensor actual({n, d}), expected = actual, rounded({n, d}, DType::bf16);
        ops::layer_norm(*ref_, x, w, b, 1e-5f, expected);
        ops::layer_norm(*cpu_, x, w, b, 1e-5f, actual);
        EXPECT_TRUE(all_close(actual, expected, {.abs = 4e-5, .rel = 1e-5})) << n << " " << d;
        if (n > 0) cpu::layer_norm(context_, x, w, b, 1e-5f, rounded);
        EXPECT_TRUE(all_close(rounded, expected, {.abs = 4e-5, .rel = 4e-3})) << n << " " << d;
        TestTensor in_place = x;
        ops::layer_norm(*cpu_, in_place, w, b, 1e-5f, in_place);
        EXPECT_TRUE(all_close(in_place, actual, {})) << n << " " << d;
      }
    }
  }
}

// Heads with weights of their own: row t takes weight row t mod m.
TEST_P(RowwiseTest, LayerNormOfHeads) {
  const int64_t n = 5, m = 3, d = 64;
  const TestTensor x = random_tensor({n * m, d}, 1), w = random_tensor({m, d}, 2);
  TestTensor actual({n * m, d}), expected = actual, one({1, d});
  ops::layer_norm(*cpu_, x, w, Tensor(), 1e-5f, actual);
  ops::layer_norm(*ref_, x, w, Tensor(), 1e-5f, expected);
  EXPECT_TRUE(all_close(actual, expected, {.abs = 1e-5, .rel = 1e-5}));
  const Tensor row = Tensor(w).slice(2, 3).reshaped({d});
  ops::layer_norm(*ref_, Tensor(x).slice(5, 6), row, Tensor(), 1e-5f, one);
  const std::vector<float> all = expected.values();
  EXPECT_EQ(one.values(), std::vector<float>(all.begin() + 5 * d, all.begin() + 6 * d));
}

TEST_P(RowwiseTest, RmsNormInPlace) {
  TestTensor x = random_tensor({9, 96}, 1), expected({9, 96});
  const TestTensor w = random_tensor({96}, 2);
  ops::rms_norm(*ref_, x, w, 1e-6f, expected);
  ops::rms_norm(*cpu_, x, w, 1e-6f, x);
  EXPECT_TRUE(all_close(x, expected, {.abs = 1e-6, .rel = 1e-5}));
}

// One product or sum in f32 per value.
TEST_P(RowwiseTest, AddAndScale) {
  for (const int64_t n : {0, 1, 3, 40}) {
    for (const int64_t d : {1, 15, 512, 1031}) {
      const TestTensor y = random_tensor({n, d}, 2);
      TestTensor actual = random_tensor({n, d}, 1), expected = actual;
      for (const float factor : {1.0f, 0.22f}) {
        ops::add(*cpu_, actual, y, factor);
        ops::add(*ref_, expected, y, factor);
      }
      std::vector<float> factors;
      for (int64_t t = 0; t < n; ++t) factors.push_back(0.5f + static_cast<float>(t));
      const float one = 12.0f;
      for (const std::span<const float> f : {std::span<const float>(factors), std::span(&one, 1)}) {
        ops::scale(*cpu_, actual, f);
        ops::scale(*ref_, expected, f);
      }
      EXPECT_TRUE(all_close(actual, expected, {.abs = 1e-4, .rel = 1e-6})) << n << " " << d;
    }
  }
}

// A tanh within 4 ulp, times the cap. Far outside of the cap the result is the cap.
TEST_P(RowwiseTest, Softcap) {
  for (const int64_t d : {1, 15, 512, 70001}) {
    for (const float cap : {30.0f, 2.0f}) {
      TestTensor actual = random_tensor({2, d}, 1, DType::f32, 20.0f);
      actual.as<float>()[0] = 1e6f;
      TestTensor expected = actual;
      ops::softcap(*cpu_, actual, cap);
      ops::softcap(*ref_, expected, cap);
      EXPECT_TRUE(all_close(actual, expected, {.abs = 1e-6, .rel = 1e-6})) << d << " " << cap;
      EXPECT_EQ(actual.values()[0], cap);
    }
  }
}

}  // namespace
}  // namespace snapkv::test
