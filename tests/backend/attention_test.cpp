// SPDX-License-Identifier: MIT
// Attention of prefill and decode on the CPU against ref/: types, shapes, ragged heads, strides,
// extreme scores, threads, chunks. The kernels are called below the dispatcher, so that the
// emulated bf16 path is tested on processors with native bf16 too.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "backend/cpu/cpu_context.h"
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/cpu_target.h"
#include "backend/ops.h"
#include "tests/backend/op_test_util.h"

namespace snapkv {
namespace {

using cpu::CpuContext;
using test::all_close;
using test::random_tensor;
using test::relative_error;
using test::TestTensor;
using test::Tolerance;

bool has_native_bf16() { return cpu::has(cpu::CpuTarget::avx512_bf16); }

enum class Path { f32, bf16_emulated, bf16_native };

CpuContext context(Path path, int n_threads = 2) {
  return {n_threads, path == Path::f32 ? DType::f32 : DType::bf16, path == Path::bf16_native};
}

/// Sums of f32 products in another order than ref's f64.
constexpr Tolerance kF32{2e-5, 1e-4};
/// q, k, v and probabilities rounded to 8 bits of mantissa: each product is off by up to 2^-8, and
/// probabilities by as much times the score; errors average out in the norm.
constexpr double kBf16Error = 1e-2;

struct Shape {
  int64_t n, n_head_kv, n_group, head_dim;
  std::vector<int32_t> n_past;  // [n_head_kv]
};

int64_t capacity(const Shape& s) {
  return *std::max_element(s.n_past.begin(), s.n_past.end()) + s.n;
}

struct Inputs {
  TestTensor q, k, v;
};

Inputs make_inputs(const Shape& s, DType kv, uint64_t seed, float q_scale = 1.0f) {
  const int64_t cap = capacity(s);
  return {random_tensor({s.n, s.n_head_kv * s.n_group, s.head_dim}, seed, DType::f32, q_scale),
          random_tensor({s.n_head_kv, cap, s.head_dim}, seed + 1, kv),
          random_tensor({s.n_head_kv, cap, s.head_dim}, seed + 2, kv)};
}

PrefillAttention arguments(const Shape& s, const Inputs& in, const Tensor& out) {
  return {in.q, in.k, in.v, s.n_past, 1.0f / std::sqrt(static_cast<float>(s.head_dim)), out};
}

TestTensor run_prefill(const CpuContext& ctx, const Shape& s, const Inputs& in,
                       DType out_dtype = DType::f32) {
  TestTensor out(in.q.shape(), out_dtype);
  cpu::attention_prefill(ctx, arguments(s, in, out));
  return out;
}

TestTensor reference(const Shape& s, const Inputs& in) {
  TestTensor out(in.q.shape());
  auto ref = test::make_ref();
  ops::attention_prefill(*ref, arguments(s, in, out));
  return out;
}

void expect_matches_reference(const Shape& s, DType kv, uint64_t seed) {
  SCOPED_TRACE("n " + std::to_string(s.n) + " heads " + std::to_string(s.n_head_kv) + " x " +
               std::to_string(s.n_group) + " head_dim " + std::to_string(s.head_dim) + " " +
               std::string(name(kv)));
  const Inputs in = make_inputs(s, kv, seed);
  const TestTensor expected = reference(s, in);
  EXPECT_TRUE(all_close(run_prefill(context(Path::f32), s, in), expected, kF32));
  const TestTensor emulated = run_prefill(context(Path::bf16_emulated), s, in);
  EXPECT_LT(relative_error(emulated, expected), kBf16Error);
  if (has_native_bf16()) {
    const TestTensor native = run_prefill(context(Path::bf16_native), s, in);
    EXPECT_LT(relative_error(native, expected), kBf16Error);
    // the same roundings; only the order of sums differs, which rounds a probability the other way
    // now and then
    EXPECT_LT(relative_error(native, emulated), 1e-3);
  }
}

TEST(AttentionPrefill, MatchesReferenceForEveryShape) {
  uint64_t seed = 1;
  for (int64_t n_group : {1, 2, 3, 4, 8}) {
    for (int64_t head_dim : {32, 64, 80, 128}) {
      expect_matches_reference({19, 2, n_group, head_dim, {0, 45}}, DType::f16, seed += 10);
    }
  }
  for (int64_t head_dim : {8, 24, 40, 72, 96, 256, 264}) {
    expect_matches_reference({7, 1, 2, head_dim, {70}}, DType::f16, seed += 10);
  }
}

TEST(AttentionPrefill, MatchesReferenceForEveryType) {
  for (DType kv : {DType::f32, DType::f16, DType::bf16}) {
    for (int64_t head_dim : {40, 64}) {
      expect_matches_reference({33, 2, 3, head_dim, {5, 0}}, kv, 7);
    }
  }
}

TEST(AttentionPrefill, MatchesReferenceAcrossBlocks) {
  // KV blocks are 512 rows: before, at and after their ends, with few and many queries
  for (int32_t n_past : {510, 511, 512, 1023}) {
    expect_matches_reference({3, 1, 2, 32, {n_past}}, DType::f16, 40);
  }
  expect_matches_reference({150, 2, 4, 32, {500, 1000}}, DType::f16, 41);
  expect_matches_reference({1, 3, 1, 64, {0, 1, 700}}, DType::f16, 42);
}

TEST(AttentionPrefill, NothingToDo) {
  const Shape s{0, 2, 2, 64, {3, 4}};
  const Inputs in = make_inputs(s, DType::f16, 3);
  EXPECT_EQ(run_prefill(context(Path::f32), s, in).numel(), 0);
}

TEST(AttentionPrefill, WritesBf16) {
  const Shape s{21, 2, 2, 40, {0, 9}};
  const Inputs in = make_inputs(s, DType::f16, 5);
  for (Path path : {Path::f32, Path::bf16_emulated, Path::bf16_native}) {
    if (path == Path::bf16_native && !has_native_bf16()) continue;
    const TestTensor f32 = run_prefill(context(path), s, in);
    EXPECT_EQ(run_prefill(context(path), s, in, DType::bf16).values(),
              f32.to(DType::bf16).values());
  }
}

TEST(AttentionPrefill, ReadsStridedRows) {
  // K and V rows inside wider rows, as a cache that interleaves them would hold them; odd distances
  const Shape s{9, 2, 2, 64, {30, 11}};
  const int64_t cap = capacity(s), wide = 2 * s.head_dim + 3;
  for (DType kv : {DType::f32, DType::f16, DType::bf16}) {
    Inputs in = make_inputs(s, kv, 6);
    const TestTensor expected = run_prefill(context(Path::f32), s, in);
    TestTensor both({s.n_head_kv, cap, wide}, kv);
    const auto bytes = static_cast<size_t>(row_bytes(kv, s.head_dim));
    for (int64_t h = 0; h < s.n_head_kv; ++h) {
      for (int64_t j = 0; j < cap; ++j) {
        std::memcpy(both.view().at<char>(h, j), in.k.view().at<char>(h, j), bytes);
        std::memcpy(both.view().at<char>(h, j) + bytes, in.v.view().at<char>(h, j), bytes);
      }
    }
    TestTensor out(in.q.shape());
    PrefillAttention a = arguments(s, in, out);
    a.k = both;
    a.k.shape[2] = s.head_dim;
    a.v = a.k;
    a.v.data = static_cast<char*>(a.k.data) + bytes;
    cpu::attention_prefill(context(Path::f32), a);
    EXPECT_EQ(out.values(), expected.values()) << name(kv);
  }
}

TEST(AttentionPrefill, NeverReadsRowsBeyondTheLastQuery) {
  const Shape s{10, 1, 2, 64, {505}};  // the last block ends in the middle of a panel
  const Inputs in = make_inputs(s, DType::f32, 8);
  for (Path path : {Path::f32, Path::bf16_emulated, Path::bf16_native}) {
    if (path == Path::bf16_native && !has_native_bf16()) continue;
    const TestTensor expected = run_prefill(context(path), s, in);
    // the same rows at the beginning of a larger cache full of NaN
    TestTensor k({1, capacity(s) + 700, s.head_dim}), v(k.shape());
    std::fill(k.as<float>(), k.as<float>() + k.numel(), NAN);
    std::fill(v.as<float>(), v.as<float>() + v.numel(), NAN);
    std::memcpy(k.data(), in.k.data(), static_cast<size_t>(in.k.bytes()));
    std::memcpy(v.data(), in.v.data(), static_cast<size_t>(in.v.bytes()));
    EXPECT_EQ(run_prefill(context(path), s, {in.q, k, v}).values(), expected.values());
  }
}

TEST(AttentionPrefill, SurvivesExtremeScores) {
  // scores up to some thousands either way: one probability is 1 or the sum is 1 nearly everywhere
  const Shape s{40, 2, 2, 64, {0, 600}};
  const Inputs in = make_inputs(s, DType::f32, 9, 1000.0f);
  const TestTensor expected = reference(s, in);
  // a score of 4000 has an error of 2e-4 in f32, which is the relative error of its probability
  EXPECT_TRUE(all_close(run_prefill(context(Path::f32), s, in), expected, {2e-3, 2e-3}));
  for (Path path : {Path::bf16_emulated, Path::bf16_native}) {
    if (path == Path::bf16_native && !has_native_bf16()) continue;
    for (float x : run_prefill(context(path), s, in).values()) ASSERT_TRUE(std::isfinite(x));
  }
}

TEST(AttentionPrefill, EqualScoresGiveTheMean) {
  const Shape s{2, 1, 1, 32, {1500}};
  Inputs in = make_inputs(s, DType::f32, 10);
  std::fill(in.q.as<float>(), in.q.as<float>() + in.q.numel(), 0.0f);
  std::fill(in.v.as<float>(), in.v.as<float>() + in.v.numel(), 0.75f);
  for (Path path : {Path::f32, Path::bf16_emulated, Path::bf16_native}) {
    if (path == Path::bf16_native && !has_native_bf16()) continue;
    for (float x : run_prefill(context(path), s, in).values()) ASSERT_FLOAT_EQ(x, 0.75f);
  }
}

TEST(AttentionPrefill, ThreadsDoNotChangeABit) {
  const Shape s{200, 2, 3, 64, {1000, 77}};
  const Inputs in = make_inputs(s, DType::f16, 11);
  for (Path path : {Path::f32, Path::bf16_emulated, Path::bf16_native}) {
    if (path == Path::bf16_native && !has_native_bf16()) continue;
    const auto one = run_prefill(context(path, 1), s, in).values();
    EXPECT_EQ(run_prefill(context(path, 2), s, in).values(), one);
    EXPECT_EQ(run_prefill(context(path, 7), s, in).values(), one);
  }
}

TEST(AttentionPrefill, ChunksDoNotChangeABit) {
  // a row's blocks begin at row 0 of the cache whatever the chunk: equality is exact, not close
  const Shape whole{130, 2, 2, 64, {450, 3}};
  const Inputs in = make_inputs(whole, DType::f16, 12);
  for (Path path : {Path::f32, Path::bf16_emulated, Path::bf16_native}) {
    if (path == Path::bf16_native && !has_native_bf16()) continue;
    const auto expected = run_prefill(context(path), whole, in).values();
    TestTensor out(in.q.shape());
    for (auto [begin, end] :
         std::vector<std::pair<int64_t, int64_t>>{{0, 70}, {70, 129}, {129, 130}}) {
      const auto shift = static_cast<int32_t>(begin);
      const std::vector<int32_t> n_past = {450 + shift, 3 + shift};
      PrefillAttention a = arguments(whole, in, out);
      a.q = a.q.slice(begin, end);
      a.out = a.out.slice(begin, end);
      a.n_past = n_past;
      cpu::attention_prefill(context(path), a);
    }
    EXPECT_EQ(out.values(), expected);
  }
}

TEST(AttentionPrefill, MatchesReferenceOnEveryInstructionSet) {
  for (int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    const int64_t target = targets & -targets;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    for (DType kv : {DType::f32, DType::f16, DType::bf16}) {
      expect_matches_reference({15, 2, 3, 72, {5, 520}}, kv, 13);
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

// ---------------------------------------------------------------- decode

struct Decode {
  int64_t n_group, head_dim;
  std::vector<std::vector<int32_t>> n_kv;  // [n_seq][n_head_kv]
};

struct DecodeInputs {
  TestTensor q;
  std::vector<TestTensor> k, v;  // [n_seq * n_head_kv]
  std::vector<HeadRows> heads;
};

DecodeInputs make_decode(const Decode& s, DType kv, uint64_t seed, float q_scale = 1.0f) {
  DecodeInputs in;
  const auto n_seq = static_cast<int64_t>(s.n_kv.size());
  const auto n_head_kv = static_cast<int64_t>(s.n_kv[0].size());
  in.q = random_tensor({n_seq, n_head_kv * s.n_group, s.head_dim}, seed, DType::f32, q_scale);
  for (const auto& sequence : s.n_kv) {
    for (int32_t n : sequence) {
      in.k.push_back(random_tensor({n, s.head_dim}, ++seed, kv));
      in.v.push_back(random_tensor({n, s.head_dim}, ++seed, kv));
      in.heads.push_back({in.k.back().data(), in.v.back().data(), n});
    }
  }
  return in;
}

DecodeAttention arguments(const DecodeInputs& in, DType kv, const Tensor& out) {
  const auto head_dim = static_cast<float>(in.q.view().shape[2]);
  return {in.q, in.heads, kv, 1.0f / std::sqrt(head_dim), out};
}

TestTensor run_decode(int n_threads, const DecodeInputs& in, DType kv) {
  TestTensor out(in.q.shape());
  cpu::attention_decode(context(Path::f32, n_threads), arguments(in, kv, out));
  return out;
}

TestTensor reference(const DecodeInputs& in, DType kv) {
  TestTensor out(in.q.shape());
  auto ref = test::make_ref();
  ops::attention_decode(*ref, arguments(in, kv, out));
  return out;
}

TEST(AttentionDecode, MatchesReferenceForEveryShape) {
  uint64_t seed = 100;
  for (int64_t n_group : {1, 2, 3, 4, 5, 8}) {
    for (int64_t head_dim : {8, 32, 40, 64, 80, 96, 128, 256}) {
      const Decode s{n_group, head_dim, {{1, 127, 130}}};
      const DecodeInputs in = make_decode(s, DType::f16, seed += 10);
      EXPECT_TRUE(all_close(run_decode(2, in, DType::f16), reference(in, DType::f16), kF32))
          << n_group << " x " << head_dim;
    }
  }
}

TEST(AttentionDecode, MatchesReferenceForEveryTypeAndLength) {
  for (DType kv : {DType::f32, DType::f16, DType::bf16, DType::q8_0}) {
    const Decode s{4, 64, {{1, 2, 3}, {511, 512, 513}, {5, 1025, 40}}};  // ragged batch
    const DecodeInputs in = make_decode(s, kv, 200);
    EXPECT_TRUE(all_close(run_decode(2, in, kv), reference(in, kv), kF32)) << name(kv);
  }
  const Decode every{
      2, 32, {{1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 125, 126, 127, 128, 129, 131}}};
  const DecodeInputs in = make_decode(every, DType::f16, 201);
  EXPECT_TRUE(all_close(run_decode(2, in, DType::f16), reference(in, DType::f16), kF32));
}

TEST(AttentionDecode, MatchesReferenceForEveryShapeOfBlocks) {
  uint64_t seed = 150;
  for (int64_t n_group : {1, 2, 3, 4, 5, 8}) {
    for (int64_t head_dim : {32, 64, 96, 128, 160, 256}) {
      const Decode s{n_group, head_dim, {{1, 127, 130, 601}}};
      const DecodeInputs in = make_decode(s, DType::q8_0, seed += 10);
      EXPECT_TRUE(all_close(run_decode(2, in, DType::q8_0), reference(in, DType::q8_0), kF32))
          << n_group << " x " << head_dim;
    }
  }
}

TEST(AttentionDecode, MatchesReferenceOnEveryInstructionSet) {
  for (int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    const int64_t target = targets & -targets;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    for (DType kv : {DType::f32, DType::f16, DType::bf16, DType::q8_0}) {
      for (int64_t head_dim : {64, 72, 96}) {
        if (head_dim % block_size(kv) != 0) continue;
        const Decode s{5, head_dim, {{1, 67, 601}}};
        const DecodeInputs in = make_decode(s, kv, 700);
        EXPECT_TRUE(all_close(run_decode(2, in, kv), reference(in, kv), kF32)) << name(kv);
      }
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(AttentionDecode, MatchesReferenceWithLongChunks) {
  // more than 64 chunks of 512 rows: chunks grow
  const Decode s{1, 8, {{33000}}};
  const DecodeInputs in = make_decode(s, DType::f16, 300);
  EXPECT_TRUE(all_close(run_decode(2, in, DType::f16), reference(in, DType::f16), kF32));
}

TEST(AttentionDecode, SurvivesExtremeScores) {
  const Decode s{2, 64, {{700, 3}}};
  const DecodeInputs in = make_decode(s, DType::f32, 400, 1000.0f);
  EXPECT_TRUE(all_close(run_decode(2, in, DType::f32), reference(in, DType::f32), {2e-3, 2e-3}));
}

TEST(AttentionDecode, ThreadsDoNotChangeABit) {
  const Decode s{3, 64, {{2000, 1, 513}, {64, 700, 1500}}};
  const DecodeInputs in = make_decode(s, DType::f16, 500);
  const auto one = run_decode(1, in, DType::f16).values();
  EXPECT_EQ(run_decode(2, in, DType::f16).values(), one);
  EXPECT_EQ(run_decode(5, in, DType::f16).values(), one);
}

TEST(AttentionDecode, NoSequences) {
  DecodeInputs in;
  in.q = TestTensor({0, 4, 64});
  TestTensor out({0, 4, 64});
  cpu::attention_decode(context(Path::f32), arguments(in, DType::f16, out));
}

TEST(AttentionDecode, EqualsTheLastRowOfPrefill) {
  const Shape s{600, 2, 4, 64, {0, 0}};
  const Inputs in = make_inputs(s, DType::f16, 600);
  const TestTensor prefill = run_prefill(context(Path::f32), s, in);
  const std::vector<HeadRows> heads = {{in.k.view().at<char>(0), in.v.view().at<char>(0), 600},
                                       {in.k.view().at<char>(1), in.v.view().at<char>(1), 600}};
  TestTensor out({1, 8, 64});
  DecodeAttention a{in.q.view().slice(599, 600), heads, DType::f16, 0.125f, out};
  cpu::attention_decode(context(Path::f32), a);
  const auto all = prefill.values();
  EXPECT_TRUE(all_close(out.values(), {all.end() - 8 * 64, all.end()}, kF32));
}

}  // namespace
}  // namespace snapkv
