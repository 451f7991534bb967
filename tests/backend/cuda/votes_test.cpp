// SPDX-License-Identifier: MIT
// SnapKV's vote on a CUDA device against ref/. Sizes are small because kernels run on the host
// where there is no device.
#include <cmath>
#include <string>

#include "tests/backend/cuda/cuda_test_util.h"

namespace snapkv::test {
namespace {

/// Probabilities are positive and sums of f32 products differ from ref's f64 by the order only;
/// queries in parts of 16 bits are as exact.
constexpr Tolerance kVotes{1e-6, 2e-4};

struct Votes {
  int64_t window, n_head_kv, n_group, head_dim;
  std::vector<int32_t> n_rows;
  DType kv = DType::f16;
  GroupReduce group = GroupReduce::mean;
  float q_scale = 1.0f;
  bool whole = false;

  int32_t longest() const { return *std::max_element(n_rows.begin(), n_rows.end()); }
};

struct Inputs {
  TestTensor q, k;
};

class CudaWindowVotes : public CudaTest {
 protected:
  static Inputs make_inputs(const Votes& s, uint64_t seed) {
    return {
        random_tensor({s.window, s.n_head_kv * s.n_group, s.head_dim}, seed, DType::f32, s.q_scale),
        random_tensor({s.n_head_kv, s.longest() + 5, s.head_dim}, seed + 1, s.kv)};
  }
  static WindowVotes arguments(const Votes& s, const Tensor& q, const Tensor& k,
                               const Tensor& votes) {
    return {q,       k,     s.n_rows, 1.0f / std::sqrt(static_cast<float>(s.head_dim)),
            s.group, votes, s.whole};
  }
  /// Columns that no op may touch keep their -1.
  static TestTensor empty_votes(const Votes& s) {
    TestTensor votes({s.n_head_kv, s.whole ? s.longest() + 3 : s.longest() - s.window});
    std::fill(votes.as<float>(), votes.as<float>() + votes.numel(), -1.0f);
    return votes;
  }
  TestTensor run(const Votes& s, const Inputs& in) {
    const DeviceTensor q = device(in.q), k = device(in.k), votes = device(empty_votes(s));
    ops::window_votes(cuda(), arguments(s, q, k, votes));
    return votes.host();
  }
  void expect_matches_reference(const Votes& s, uint64_t seed,
                                const Tolerance& tolerance = kVotes) {
    SCOPED_TRACE("window " + std::to_string(s.window) + " heads " + std::to_string(s.n_head_kv) +
                 " x " + std::to_string(s.n_group) + " head_dim " + std::to_string(s.head_dim) +
                 " " + std::string(name(s.kv)));
    const Inputs in = make_inputs(s, seed);
    const TestTensor expected = empty_votes(s);
    ops::window_votes(reference(), arguments(s, in.q, in.k, expected));
    both_orders([&] { EXPECT_TRUE(all_close(run(s, in), expected, tolerance)); });
  }
};

TEST_F(CudaWindowVotes, MatchesReferenceForEveryGroup) {
  for (GroupReduce group : {GroupReduce::mean, GroupReduce::max}) {
    for (int64_t n_group : {1, 2, 3, 8}) {
      expect_matches_reference({16, 2, n_group, 64, {100, 37}, DType::f16, group}, 1);
    }
    expect_matches_reference({9, 2, 3, 24, {100, 37}, DType::f32, group}, 1);
  }
}

TEST_F(CudaWindowVotes, MatchesReferenceForEveryTypeAndHeadDim) {
  for (DType kv : {DType::f32, DType::f16, DType::bf16}) {
    for (int64_t head_dim : {8, 40, 65, 96, 128}) {
      expect_matches_reference({7, 2, 2, head_dim, {50, 51}, kv}, 2);
    }
  }
  expect_matches_reference({7, 1, 2, 256, {50}, DType::bf16}, 2);
  expect_matches_reference({7, 1, 2, 264, {50}, DType::bf16}, 2);
}

TEST_F(CudaWindowVotes, MatchesReferenceAroundTheWindow) {
  // one column before the window; windows that cross the end of 32 keys; more than one row tile
  for (std::vector<int32_t> n_rows : {std::vector<int32_t>{33, 34}, {63, 64}, {65, 96}}) {
    expect_matches_reference({32, 2, 2, 32, n_rows}, 3);
  }
  expect_matches_reference({1, 1, 1, 32, {2}}, 5);
  expect_matches_reference({1, 1, 1, 32, {2}, DType::f32}, 5);
}

TEST_F(CudaWindowVotes, MatchesReferenceForHeadsOfDifferentLengths) {
  expect_matches_reference({16, 2, 2, 32, {300, 20}}, 4);  // one shorter than there are ranges
  // more rows than a block keeps states of
  expect_matches_reference({70, 1, 2, 8, {200}}, 4);
  expect_matches_reference({270, 1, 1, 8, {300}, DType::f32}, 4);
}

TEST_F(CudaWindowVotes, MatchesReferenceInRangesOfSeveralUnits) {
  for (DType kv : {DType::f16, DType::f32}) {
    const Votes s{3, 1, 1, 8, {16600}, kv};  // over 512 runs of 32 keys
    const Inputs in = make_inputs(s, 4);
    const TestTensor expected = empty_votes(s);
    ops::window_votes(reference(), arguments(s, in.q, in.k, expected));
    EXPECT_TRUE(all_close(run(s, in), expected, kVotes)) << name(kv);
  }
}

TEST_F(CudaWindowVotes, OfAllRowsMatchesReference) {
  for (DType kv : {DType::f16, DType::f32}) {
    for (GroupReduce group : {GroupReduce::mean, GroupReduce::max}) {
      // no row before the window; one query
      expect_matches_reference({70, 2, 2, 32, {70, 71}, kv, group, 1.0f, true}, 21);
      expect_matches_reference({1, 2, 3, 40, {1, 130}, kv, group, 1.0f, true}, 23);
    }
  }
}

TEST_F(CudaWindowVotes, OfAllRowsSumToTheQueries) {
  for (DType kv : {DType::f16, DType::f32}) {
    Votes s{20, 1, 4, 64, {200}, kv};
    s.whole = true;
    const Inputs in = make_inputs(s, 24);
    const std::vector<float> votes = run(s, in).values();
    double sum = 0;
    for (size_t j = 0; j < 200; ++j) sum += votes[j];
    EXPECT_NEAR(sum, 20.0, 1e-3);
    s.whole = false;  // the prefix's columns are the same, bit for bit
    EXPECT_EQ(run(s, in).values(), std::vector<float>(votes.begin(), votes.begin() + (200 - 20)));
  }
}

TEST_F(CudaWindowVotes, SurvivesExtremeScores) {
  // a score of 4000 has an error of 2e-4 in f32, which is the relative error of its probability
  for (DType kv : {DType::f32, DType::f16, DType::bf16}) {
    for (float q_scale : {1000.0f, 1e-6f}) {
      expect_matches_reference({8, 2, 2, 64, {200, 20}, kv, GroupReduce::mean, q_scale}, 6,
                               {1e-3, 5e-3});
    }
  }
}

TEST_F(CudaWindowVotes, ReadsStridedRows) {
  for (DType kv : {DType::f32, DType::f16}) {
    const Votes s{8, 2, 2, 64, {70, 41}, kv};
    const Inputs in = make_inputs(s, 8);
    const std::vector<float> expected = run(s, in).values();
    for (int64_t gap : {8, 3}) {  // rows aligned or not
      const int64_t cap = s.longest() + 5;
      TestTensor wide({cap, s.n_head_kv, s.head_dim + gap}, kv);  // the heads of a row together
      for (int64_t h = 0; h < s.n_head_kv; ++h) {
        for (int64_t j = 0; j < cap; ++j) {
          std::memcpy(wide.view().at<char>(j, h), in.k.view().at<char>(h, j),
                      static_cast<size_t>(row_bytes(kv, s.head_dim)));
        }
      }
      const DeviceTensor q = device(in.q), rows = device(wide), votes = device(empty_votes(s));
      Tensor k = rows.view();
      k.shape = {s.n_head_kv, cap, s.head_dim};
      std::swap(k.stride[0], k.stride[1]);
      ops::window_votes(cuda(), arguments(s, q, k, votes));
      EXPECT_EQ(votes.host().values(), expected) << name(kv) << " " << gap;
    }
  }
}

}  // namespace
}  // namespace snapkv::test
