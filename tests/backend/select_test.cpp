// SPDX-License-Identifier: MIT
// Storing, voting, pooling, ranking and gathering of KV rows on the CPU against ref/.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <limits>
#include <vector>

#include "backend/cpu/cpu_context.h"
#include "backend/cpu/cpu_ops.h"
#include "backend/ops.h"
#include "tests/backend/op_test_util.h"

namespace snapkv {
namespace {

using cpu::CpuContext;
using test::all_close;
using test::random_tensor;
using test::TestTensor;
using test::Tolerance;

/// Probabilities are positive and sums of f32 products differ from ref's f64 by the order only.
constexpr Tolerance kVotes{1e-6, 2e-4};

CpuContext context(int n_threads = 2) { return {n_threads, DType::f32, false}; }

std::vector<void*> pointers(std::vector<TestTensor>& tensors) {
  std::vector<void*> out;
  for (TestTensor& t : tensors) out.push_back(t.data());
  return out;
}

/// Bytes of every tensor, for comparisons that must be exact (NaN included).
std::vector<char> bytes_of(const std::vector<TestTensor>& tensors) {
  std::vector<char> out;
  for (const TestTensor& t : tensors) {
    const char* data = static_cast<const char*>(t.data());
    out.insert(out.end(), data, data + t.bytes());
  }
  return out;
}

// ---------------------------------------------------------------- store_rows

void expect_stores_like_reference() {
  auto ref = test::make_ref();
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::q8_0}) {
    for (int64_t n : {0, 1, 5, 300}) {
      for (int64_t head_dim : {8, 32, 40, 64}) {
        if (head_dim % block_size(dtype) != 0) continue;
        TestTensor src = random_tensor({n, 3, head_dim}, 1, DType::f32, 100.0f);
        if (n > 0) {  // halves between two values of each type, overflow, denormals, specials
          const float special[] = {1.0f + 0x1p-8f, 1.0f + 0x3p-8f, 1.0f + 0x1p-11f, 1.0f + 0x3p-11f,
                                   65519.9f,       65520.0f,       0x1p-25f,        INFINITY};
          std::copy(std::begin(special), std::end(special), src.as<float>());
        }
        std::vector<TestTensor> actual(3, TestTensor({n, head_dim}, dtype));
        std::vector<TestTensor> expected = actual;
        cpu::store_rows(context(), src, dtype, pointers(actual));
        ops::store_rows(*ref, src, dtype, pointers(expected));
        EXPECT_EQ(bytes_of(actual), bytes_of(expected)) << name(dtype) << " " << n;
      }
    }
  }
}

TEST(StoreRows, MatchesReferenceBitForBitOnEveryInstructionSet) {
  for (int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    const int64_t target = targets & -targets;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    expect_stores_like_reference();
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(StoreRows, KeepsNaN) {
  for (DType dtype : {DType::f16, DType::bf16, DType::q8_0}) {
    TestTensor src({1, 1, 32});
    std::fill(src.as<float>(), src.as<float>() + 32, NAN);
    std::vector<TestTensor> out(1, TestTensor({1, 32}, dtype));
    cpu::store_rows(context(), src, dtype, pointers(out));
    for (float x : out[0].values()) EXPECT_TRUE(std::isnan(x)) << name(dtype);
  }
}

TEST(StoreRows, QuantizesEveryBlockOfItsOwn) {
  // zeros; values too small for a scale; one large value; levels and halves between them
  TestTensor src({1, 1, 128});
  float* x = src.as<float>();
  std::fill(x + 32, x + 64, 1e-7f);
  x[64 + 5] = -254.0f;
  for (int i = 0; i < 32; ++i) x[96 + i] = static_cast<float>(i) - 3.5f;
  x[96 + 31] = 127.0f;
  std::vector<TestTensor> out(1, TestTensor({1, 128}, DType::q8_0));
  cpu::store_rows(context(), src, DType::q8_0, pointers(out));
  const std::vector<float> values = out[0].values();
  for (int i = 0; i < 64; ++i) EXPECT_EQ(values[static_cast<size_t>(i)], 0.0f) << i;
  for (int i = 64; i < 96; ++i) {
    EXPECT_EQ(values[static_cast<size_t>(i)], i == 69 ? -254.0f : 0.0f) << i;
  }
  EXPECT_EQ(values[96 + 0], -4.0f);  // -3.5: ties to even
  EXPECT_EQ(values[96 + 1], -2.0f);
  EXPECT_EQ(values[96 + 8], 4.0f);
  EXPECT_EQ(values[96 + 31], 127.0f);
}

TEST(StoreRows, ReadsStridedRows) {
  const TestTensor wide = random_tensor({6, 2, 3 * 64}, 2);
  Tensor src = wide;  // the middle third of each row, as a fused projection leaves it
  src.data = wide.as<float>() + 64;
  src.shape[2] = 64;
  TestTensor dense({6, 2, 64});
  for (int64_t i = 0; i < 12; ++i) {
    std::memcpy(dense.as<float>() + i * 64, src.at<float>(i / 2, i % 2), 64 * sizeof(float));
  }
  std::vector<TestTensor> actual(2, TestTensor({6, 64}, DType::f16)), expected = actual;
  cpu::store_rows(context(), src, DType::f16, pointers(actual));
  cpu::store_rows(context(), dense, DType::f16, pointers(expected));
  EXPECT_EQ(bytes_of(actual), bytes_of(expected));
}

// ---------------------------------------------------------------- window_votes

struct Votes {
  int64_t window, n_head_kv, n_group, head_dim;
  std::vector<int32_t> n_rows;
  DType kv = DType::f16;
  GroupReduce group = GroupReduce::mean;
  float q_scale = 1.0f;
  bool whole = false;
};

struct VoteInputs {
  TestTensor q, k;
};

VoteInputs make_inputs(const Votes& s, uint64_t seed) {
  const int32_t longest = *std::max_element(s.n_rows.begin(), s.n_rows.end());
  return {
      random_tensor({s.window, s.n_head_kv * s.n_group, s.head_dim}, seed, DType::f32, s.q_scale),
      random_tensor({s.n_head_kv, longest + 5, s.head_dim}, seed + 1, s.kv)};
}

WindowVotes arguments(const Votes& s, const VoteInputs& in, const Tensor& votes) {
  return {in.q,    in.k,  s.n_rows, 1.0f / std::sqrt(static_cast<float>(s.head_dim)),
          s.group, votes, s.whole};
}

/// Columns that no op may touch keep their -1.
TestTensor empty_votes(const Votes& s) {
  const int32_t longest = *std::max_element(s.n_rows.begin(), s.n_rows.end());
  TestTensor votes({s.n_head_kv, s.whole ? longest + 3 : longest - s.window});
  std::fill(votes.as<float>(), votes.as<float>() + votes.numel(), -1.0f);
  return votes;
}

TestTensor run_votes(int n_threads, const Votes& s, const VoteInputs& in) {
  TestTensor votes = empty_votes(s);
  cpu::window_votes(context(n_threads), arguments(s, in, votes));
  return votes;
}

void expect_matches_reference(const Votes& s, uint64_t seed, const Tolerance& tolerance = kVotes) {
  SCOPED_TRACE("window " + std::to_string(s.window) + " heads " + std::to_string(s.n_head_kv) +
               " x " + std::to_string(s.n_group) + " head_dim " + std::to_string(s.head_dim));
  const VoteInputs in = make_inputs(s, seed);
  TestTensor expected = empty_votes(s);
  auto ref = test::make_ref();
  ops::window_votes(*ref, arguments(s, in, expected));
  EXPECT_TRUE(all_close(run_votes(2, s, in), expected, tolerance));
}

TEST(WindowVotes, MatchesReference) {
  for (GroupReduce group : {GroupReduce::mean, GroupReduce::max}) {
    for (int64_t n_group : {1, 2, 3, 4, 8}) {
      expect_matches_reference({16, 2, n_group, 64, {100, 37}, DType::f16, group}, 1);
    }
  }
  for (DType kv : {DType::f32, DType::f16, DType::bf16}) {
    for (int64_t head_dim : {32, 40, 80, 128}) {
      expect_matches_reference({7, 2, 2, head_dim, {50, 51}, kv}, 2);
    }
  }
}

TEST(WindowVotes, MatchesReferenceAroundTheWindowAndAcrossBlocks) {
  // one prefix column; windows that cross the end of a 512-column block; more than one row tile
  for (std::vector<int32_t> n_rows : {std::vector<int32_t>{33, 34}, {511, 512}, {513, 544}}) {
    expect_matches_reference({32, 2, 2, 32, n_rows}, 3);
  }
  expect_matches_reference({64, 1, 4, 32, {1100}}, 4);
  expect_matches_reference({1, 1, 1, 32, {2}}, 5);
}

TEST(WindowVotes, OfAllRowsMatchesReference) {
  for (GroupReduce group : {GroupReduce::mean, GroupReduce::max}) {
    for (int64_t n_group : {1, 3}) {
      // no row before the window; a window over three blocks and two row tiles; one query
      for (std::vector<int32_t> n_rows : {std::vector<int32_t>{70, 71}, {600, 130}}) {
        expect_matches_reference({70, 2, n_group, 64, n_rows, DType::f16, group, 1.0f, true}, 21);
      }
      expect_matches_reference({600, 2, n_group, 32, {600, 1300}, DType::bf16, group, 1.0f, true},
                               22);
      expect_matches_reference({1, 2, n_group, 40, {1, 513}, DType::f32, group, 1.0f, true}, 23);
    }
  }
}

TEST(WindowVotes, OfAllRowsSumToTheQueries) {
  Votes s{64, 1, 4, 64, {600}};
  s.whole = true;
  const VoteInputs in = make_inputs(s, 24);
  const std::vector<float> votes = run_votes(2, s, in).values();
  double sum = 0;
  for (size_t j = 0; j < 600; ++j) sum += votes[j];
  EXPECT_NEAR(sum, 64.0, 1e-3);
  s.whole = false;  // the prefix's columns are the same, bit for bit
  const std::vector<float> prefix = run_votes(2, s, in).values();
  EXPECT_EQ(prefix, std::vector<float>(votes.begin(), votes.begin() + (600 - 64)));
}

TEST(WindowVotes, MatchesReferenceOnEveryInstructionSet) {
  for (int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    const int64_t target = targets & -targets;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    expect_matches_reference({7, 2, 3, 72, {600, 40}}, 9);
    expect_matches_reference({7, 2, 3, 72, {515, 40}, DType::f16, GroupReduce::mean, 1.0f, true},
                             9);
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(WindowVotes, SurvivesExtremeScores) {
  // a score of 4000 has an error of 2e-4 in f32, which is the relative error of its probability
  expect_matches_reference({8, 2, 2, 64, {600, 20}, DType::f32, GroupReduce::mean, 1000.0f}, 6,
                           {1e-3, 5e-3});
}

TEST(WindowVotes, ThreadsDoNotChangeABit) {
  const Votes s{32, 2, 4, 64, {3000, 1200}};
  const VoteInputs in = make_inputs(s, 7);
  const auto one = run_votes(1, s, in).values();
  EXPECT_EQ(run_votes(2, s, in).values(), one);
  EXPECT_EQ(run_votes(5, s, in).values(), one);
}

TEST(WindowVotes, LeaveProbabilityToTheWindow) {
  // sum of votes = W - (what the window's own columns took), per query head
  const Votes s{8, 1, 1, 64, {400}};
  const VoteInputs in = make_inputs(s, 8);
  double sum = 0;
  for (float v : run_votes(2, s, in).values()) sum += v;
  EXPECT_GT(sum, 0.5 * 8);
  EXPECT_LT(sum, 8.0);
}

// ---------------------------------------------------------------- pool

TEST(Pool, MatchesReference) {
  auto ref = test::make_ref();
  for (Pooling pooling : {Pooling::max, Pooling::avg}) {
    for (int kernel_size : {1, 3, 7, 15, 63, 129}) {
      for (std::vector<int32_t> n : {std::vector<int32_t>{0, 1}, {2, 64}, {5000, 2049}}) {
        const int32_t longest = *std::max_element(n.begin(), n.end());
        TestTensor scores = random_tensor({2, longest + 3}, 9);
        TestTensor actual({2, longest + 3}), expected({2, longest + 3});
        cpu::pool(context(), scores, n, kernel_size, pooling, actual);
        ops::pool(*ref, scores, n, kernel_size, pooling, expected);
        // max copies; avg sums up to 129 values of size 1 in f32
        const Tolerance tolerance = pooling == Pooling::max ? Tolerance{} : Tolerance{1e-6, 1e-5};
        EXPECT_TRUE(all_close(actual, expected, tolerance)) << kernel_size << " " << longest;
      }
    }
  }
}

// ---------------------------------------------------------------- top_k

std::vector<float> run_top_k(const TestTensor& scores, const std::vector<int32_t>& n,
                             const std::vector<int32_t>& k, int n_tail, Backend* backend) {
  const int32_t most = *std::max_element(k.begin(), k.end());
  TestTensor rows({static_cast<int64_t>(n.size()), most + n_tail}, DType::i32);
  if (backend != nullptr) {
    ops::top_k(*backend, scores, n, k, n_tail, rows);
  } else {
    cpu::top_k(context(), scores, n, k, n_tail, rows);
  }
  return rows.values();
}

TEST(TopK, MatchesReference) {
  auto ref = test::make_ref();
  for (int32_t n : {1, 2, 100, 20000}) {
    for (int32_t k : {0, 1, n / 2, n}) {
      const TestTensor scores = random_tensor({3, n}, static_cast<uint64_t>(n));
      const std::vector<int32_t> ns = {n, n, (n + 1) / 2},
                                 ks = {k, k / 2, std::min(k, (n + 1) / 2)};
      EXPECT_EQ(run_top_k(scores, ns, ks, 4, nullptr), run_top_k(scores, ns, ks, 4, ref.get()))
          << n << " " << k;
    }
  }
}

TEST(TopK, TiesGoToTheLowerIndex) {
  auto ref = test::make_ref();
  TestTensor scores = random_tensor({1, 3000}, 11);
  for (int i = 0; i < 3000; ++i) scores.as<float>()[i] = std::round(scores.as<float>()[i]);
  for (int32_t k : {1, 10, 700, 1500, 2999}) {
    EXPECT_EQ(run_top_k(scores, {3000}, {k}, 0, nullptr),
              run_top_k(scores, {3000}, {k}, 0, ref.get()));
  }
  const TestTensor zeros({1, 5}, {0.0f, -0.0f, 0.0f, -0.0f, 0.0f});  // equal values, both signs
  EXPECT_EQ(run_top_k(zeros, {5}, {2}, 1, nullptr), (std::vector<float>{0, 1, 5}));
}

TEST(TopK, NaNRanksLowest) {
  const float inf = INFINITY;
  const TestTensor scores({1, 6}, {NAN, -inf, NAN, -3.0f, inf, -NAN});
  EXPECT_EQ(run_top_k(scores, {6}, {2}, 2, nullptr), (std::vector<float>{3, 4, 6, 7}));
  EXPECT_EQ(run_top_k(scores, {6}, {3}, 0, nullptr), (std::vector<float>{1, 3, 4}));
  EXPECT_EQ(run_top_k(scores, {6}, {4}, 0, nullptr), (std::vector<float>{0, 1, 3, 4}));
}

// ---------------------------------------------------------------- gather_rows

TEST(GatherRows, MatchesReference) {
  auto ref = test::make_ref();
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i32}) {
    for (int64_t d : {1, 64, 80}) {
      const TestTensor wide = random_tensor({2, 900, d + 3}, 12, dtype, 1000.0f);
      Tensor src = wide;  // rows with a gap between them
      src.shape[2] = d;
      TestTensor rows({2, 700}, DType::i32);
      for (int i = 0; i < 1400; ++i) rows.as<int32_t>()[i] = (i * 37) % 900;
      const std::vector<int32_t> n = {700, 3};
      std::vector<TestTensor> actual(2, TestTensor({700, d}, dtype)), expected = actual;
      cpu::gather_rows(context(), src, rows, n, pointers(actual));
      ops::gather_rows(*ref, src, rows, n, pointers(expected));
      EXPECT_EQ(bytes_of(actual), bytes_of(expected)) << name(dtype) << " " << d;
    }
  }
}

// ---------------------------------------------------------------- convert_rows

void expect_converts_like_reference() {
  auto ref = test::make_ref();
  const std::vector<DType> types = {DType::f32, DType::f16, DType::bf16, DType::q8_0};
  for (DType from : types) {
    for (DType to : types) {
      std::vector<TestTensor> src(2, random_tensor({900, 96}, 13, from, 10.0f));
      src[1] = random_tensor({5, 96}, 14, from, 1e-3f);
      TestTensor rows({2, 700}, DType::i32);
      for (int i = 0; i < 700; ++i) rows.as<int32_t>()[i] = (i * 37) % 900;
      for (int i = 700; i < 1400; ++i) rows.as<int32_t>()[i] = (i * 3) % 5;
      const std::vector<const void*> in = {src[0].data(), src[1].data()};
      for (const Tensor& index : {rows.view(), Tensor()}) {
        for (const std::vector<int32_t>& n : {std::vector<int32_t>{700, 3}, {0, 5}}) {
          std::vector<TestTensor> actual(2, TestTensor({700, 96}, to)), expected = actual;
          const std::vector<void*> actual_rows = pointers(actual);
          const std::vector<void*> expected_rows = pointers(expected);
          cpu::convert_rows(context(), {in, from, 96, index, n, to, actual_rows});
          ops::convert_rows(*ref, {in, from, 96, index, n, to, expected_rows});
          EXPECT_EQ(bytes_of(actual), bytes_of(expected)) << name(from) << " to " << name(to);
        }
      }
    }
  }
}

TEST(ConvertRows, MatchesReferenceBitForBitOnEveryInstructionSet) {
  for (int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    const int64_t target = targets & -targets;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    expect_converts_like_reference();
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(GatherRows, NothingToDo) {
  const TestTensor src({1, 4, 8});
  const TestTensor rows({1, 1}, DType::i32);
  std::vector<TestTensor> out(1, TestTensor({1, 8}));
  cpu::gather_rows(context(), src, rows, std::vector<int32_t>{0}, pointers(out));
  EXPECT_EQ(out[0].values(), std::vector<float>(8, 0.0f));
}

}  // namespace
}  // namespace snapkv
