// SPDX-License-Identifier: MIT
// Attention of prefill on a CUDA device against ref/: types, shapes, ragged heads, strides, extreme
// scores, splits, chunks. Sizes are small because kernels run on the host where there is no device.
#include <cmath>
#include <string>

#include "tests/backend/cuda/cuda_test_util.h"

namespace snapkv::test {
namespace {

/// Sums of f32 products in another order than ref's f64.
constexpr Tolerance kF32{2e-5, 1e-4};

/// q and probabilities are rounded to the rows' type: 11 bits of mantissa or 8; errors average out
/// in the norm.
double error_of(DType kv) { return kv == DType::f16 ? 2e-3 : 1e-2; }

struct Shape {
  int64_t n, n_head_kv, n_group, head_dim;
  std::vector<int32_t> n_past;  // [n_head_kv]
};

struct Inputs {
  TestTensor q, k, v;
};

class CudaAttentionPrefill : public CudaTest {
 protected:
  static int64_t capacity(const Shape& s) {
    return *std::max_element(s.n_past.begin(), s.n_past.end()) + s.n;
  }
  static Inputs make_inputs(const Shape& s, DType kv, uint64_t seed, float q_scale = 1.0f) {
    const int64_t cap = capacity(s);
    return {random_tensor({s.n, s.n_head_kv * s.n_group, s.head_dim}, seed, DType::f32, q_scale),
            random_tensor({s.n_head_kv, cap, s.head_dim}, seed + 1, kv),
            random_tensor({s.n_head_kv, cap, s.head_dim}, seed + 2, kv)};
  }
  static PrefillAttention arguments(const Shape& s, const Tensor& q, const Tensor& k,
                                    const Tensor& v, const Tensor& out) {
    return {q, k, v, s.n_past, 1.0f / std::sqrt(static_cast<float>(s.head_dim)), out};
  }
  TestTensor run(const Shape& s, const Inputs& in, DType out_dtype = DType::f32) {
    const DeviceTensor q = device(in.q), k = device(in.k), v = device(in.v);
    const DeviceTensor out = device(TestTensor(in.q.shape(), out_dtype));
    ops::attention_prefill(cuda(), arguments(s, q, k, v, out));
    return out.host();
  }
  TestTensor expected(const Shape& s, const Inputs& in) {
    TestTensor out(in.q.shape());
    ops::attention_prefill(reference(), arguments(s, in.q, in.k, in.v, out));
    return out;
  }
  void expect_close(const TestTensor& actual, const TestTensor& expected, DType kv) {
    if (kv == DType::f32) {
      EXPECT_TRUE(all_close(actual, expected, kF32));
      return;
    }
    EXPECT_LT(relative_error(actual, expected), error_of(kv));
    // no single value is wrong, either
    EXPECT_TRUE(all_close(actual, expected, {10 * error_of(kv), 10 * error_of(kv)}));
  }
  void expect_matches_reference(const Shape& s, DType kv, uint64_t seed) {
    SCOPED_TRACE("n " + std::to_string(s.n) + " heads " + std::to_string(s.n_head_kv) + " x " +
                 std::to_string(s.n_group) + " head_dim " + std::to_string(s.head_dim) + " " +
                 std::string(name(kv)));
    const Inputs in = make_inputs(s, kv, seed);
    const TestTensor out = expected(s, in);
    both_orders([&] { expect_close(run(s, in), out, kv); });
  }
};

TEST_F(CudaAttentionPrefill, MatchesReferenceForEveryGroup) {
  for (int64_t n_group : {1, 2, 3, 4, 8}) {
    expect_matches_reference({19, 2, n_group, 64, {0, 60}}, DType::f16,
                             10 * static_cast<uint64_t>(n_group));
  }
}

TEST_F(CudaAttentionPrefill, MatchesReferenceForEveryHeadDim) {
  for (int64_t head_dim : {8, 40, 80, 96, 127, 128}) {
    expect_matches_reference({33, 1, 2, head_dim, {70}}, DType::bf16, 3);
  }
}

TEST_F(CudaAttentionPrefill, MatchesReferenceForWideHeads) {
  expect_matches_reference({40, 1, 2, 256, {70}}, DType::f16, 4);
  expect_matches_reference({7, 2, 2, 264, {70, 3}}, DType::f16, 4);
}

TEST_F(CudaAttentionPrefill, MatchesReferenceForEveryType) {
  for (DType kv : {DType::f32, DType::f16, DType::bf16}) {
    for (int64_t head_dim : {40, 64, 65}) {
      expect_matches_reference({33, 2, 3, head_dim, {5, 0}}, kv, 7);
    }
  }
}

TEST_F(CudaAttentionPrefill, MatchesReferenceAcrossTiles) {
  // key tiles have 64 rows: before, at and after their ends; more rows than a tile of queries
  for (int32_t n_past : {62, 63, 64, 127}) {
    expect_matches_reference({3, 1, 2, 64, {n_past}}, DType::f16, 40);
  }
  expect_matches_reference({150, 1, 1, 64, {0}}, DType::f16, 41);
  expect_matches_reference({70, 2, 2, 64, {10, 100}}, DType::bf16, 42);
  expect_matches_reference({1, 3, 1, 64, {0, 1, 190}}, DType::f16, 43);
}

TEST_F(CudaAttentionPrefill, SplitsLongRowsOfFewQueries) {
  // 32 tiles of keys for few blocks; the short heads have fewer than their share
  expect_matches_reference({3, 1, 4, 64, {2060}}, DType::f16, 50);
  expect_matches_reference({2, 3, 1, 7, {2100, 0, 63}}, DType::bf16, 51);
}

TEST_F(CudaAttentionPrefill, NothingToDo) {
  const Shape s{0, 2, 2, 64, {3, 4}};
  EXPECT_EQ(run(s, make_inputs(s, DType::f16, 3)).numel(), 0);
}

TEST_F(CudaAttentionPrefill, WritesBf16) {
  for (const Shape& s :
       {Shape{21, 2, 2, 40, {0, 9}}, Shape{21, 2, 1, 37, {0, 9}}, Shape{2, 1, 1, 64, {2060}}}) {
    for (DType kv : {DType::f16, DType::f32}) {
      const Inputs in = make_inputs(s, kv, 5);
      EXPECT_EQ(run(s, in, DType::bf16).values(), run(s, in).to(DType::bf16).values());
    }
  }
}

TEST_F(CudaAttentionPrefill, ReadsStridedRows) {
  // K and V rows inside wider rows, as a cache that interleaves them would hold them; distances
  // that keep rows aligned, and others
  const Shape s{9, 2, 2, 64, {80, 11}};
  const int64_t cap = capacity(s);
  for (int64_t gap : {8, 3}) {
    for (DType kv : {DType::f32, DType::f16, DType::bf16}) {
      const Inputs in = make_inputs(s, kv, 6);
      const TestTensor out = run(s, in);
      TestTensor both({s.n_head_kv, cap, 2 * s.head_dim + gap}, kv);
      const auto bytes = static_cast<size_t>(row_bytes(kv, s.head_dim));
      for (int64_t h = 0; h < s.n_head_kv; ++h) {
        for (int64_t j = 0; j < cap; ++j) {
          std::memcpy(both.view().at<char>(h, j), in.k.view().at<char>(h, j), bytes);
          std::memcpy(both.view().at<char>(h, j) + bytes, in.v.view().at<char>(h, j), bytes);
        }
      }
      const DeviceTensor q = device(in.q), wide = device(both),
                         actual = device(TestTensor(in.q.shape()));
      Tensor k = wide.view();
      k.shape[2] = s.head_dim;
      Tensor v = k;
      v.data = static_cast<char*>(k.data) + bytes;
      ops::attention_prefill(cuda(), arguments(s, q, k, v, actual));
      EXPECT_EQ(actual.host().values(), out.values()) << name(kv) << " " << gap;
    }
  }
}

TEST_F(CudaAttentionPrefill, NeverReadsRowsBeyondTheLastQuery) {
  const Shape s{10, 1, 2, 64, {75}};
  for (DType kv : {DType::f32, DType::bf16}) {
    const Inputs in = make_inputs(s, kv, 8);
    // the same rows at the beginning of a larger cache full of NaN
    const std::vector<int64_t> larger = {1, capacity(s) + 70, s.head_dim};
    const std::vector<float> nan(static_cast<size_t>(larger[1] * larger[2]), NAN);
    TestTensor k(larger, nan, kv), v(larger, nan, kv);
    std::memcpy(k.data(), in.k.data(), static_cast<size_t>(in.k.bytes()));
    std::memcpy(v.data(), in.v.data(), static_cast<size_t>(in.v.bytes()));
    EXPECT_EQ(run(s, {in.q, k, v}).values(), run(s, in).values());
  }
}

TEST_F(CudaAttentionPrefill, SurvivesExtremeScores) {
  // scores up to some thousands either way: one probability is 1 or the sum is 1 nearly everywhere
  const Shape s{40, 2, 1, 64, {0, 100}};
  for (DType kv : {DType::f32, DType::f16, DType::bf16}) {
    const Inputs in = make_inputs(s, kv, 9, 1000.0f);
    const TestTensor out = run(s, in);
    // a score of 4000 has an error of 2e-4 in f32, which is the relative error of its probability
    if (kv == DType::f32) {
      EXPECT_TRUE(all_close(out, expected(s, in), {2e-3, 2e-3}));
    }
    for (float x : out.values()) ASSERT_TRUE(std::isfinite(x)) << name(kv);
  }
}

TEST_F(CudaAttentionPrefill, RisingScoresMoveTheMaximum) {
  // every tile's scores are above those before by more than the slack, so that all is rescaled
  const Shape s{4, 1, 1, 64, {400}};
  for (DType kv : {DType::f32, DType::f16}) {
    Inputs in = make_inputs(s, kv, 13);
    std::vector<float> k = in.k.values();
    for (size_t i = 0; i < k.size(); ++i) k[i] = 0.005f * static_cast<float>(i / 64) + 0.01f * k[i];
    in.k = TestTensor(in.k.shape(), k, kv);
    for (int64_t i = 0; i < in.q.numel(); ++i) in.q.as<float>()[i] = 3.0f;
    expect_close(run(s, in), expected(s, in), kv);
  }
}

TEST_F(CudaAttentionPrefill, ChunksDoNotChangeABit) {
  // a row's tiles begin at row 0 of the cache whatever the chunk: equality is exact, not close
  const Shape whole{50, 2, 2, 64, {90, 3}};
  for (DType kv : {DType::f16, DType::f32}) {
    const Inputs in = make_inputs(whole, kv, 12);
    const DeviceTensor q = device(in.q), k = device(in.k), v = device(in.v);
    const DeviceTensor out = device(TestTensor(in.q.shape()));
    for (auto [begin, end] :
         std::vector<std::pair<int64_t, int64_t>>{{0, 30}, {30, 49}, {49, 50}}) {
      const auto shift = static_cast<int32_t>(begin);
      const std::vector<int32_t> n_past = {90 + shift, 3 + shift};
      PrefillAttention a = arguments(whole, q, k, v, out);
      a.q = a.q.slice(begin, end);
      a.out = a.out.slice(begin, end);
      a.n_past = n_past;
      ops::attention_prefill(cuda(), a);
    }
    EXPECT_EQ(out.host().values(), run(whole, in).values()) << name(kv);
  }
}

}  // namespace
}  // namespace snapkv::test
