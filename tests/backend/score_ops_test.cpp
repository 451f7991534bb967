// SPDX-License-Identifier: MIT
// The ops for scores: ref/ compared with values computed by hand. (op_cases_scores.cpp compares
// other backends with ref.)
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backend/ops.h"
#include "tests/backend/op_test_util.h"

namespace snapkv::test {
namespace {

const std::vector<int32_t> kTwo = {2};

TEST(RefScoreOps, NormsOfRows) {
  const auto ref = make_ref();
  const TestTensor x({1, 2, 2}, {3, -4, 0, 0});
  TestTensor out({1, 3}, {7, 7, 7});
  ops::row_norms(*ref, {.x = x, .n = kTwo, .out = out, .factor = -2});
  EXPECT_EQ(out.values(), (std::vector<float>{-10, 0, 7}));
  ops::row_norms(*ref, {.x = x, .n = kTwo, .out = out, .l1 = true, .accumulate = true});
  EXPECT_EQ(out.values(), (std::vector<float>{-3, 0, 7}));
  ops::row_norms(*ref, {.x = x, .n = kTwo, .out = out, .inverse = true});
  EXPECT_EQ(out.values(), (std::vector<float>{0.2f, 1e12f, 7}));
}

TEST(RefScoreOps, ProductsOfRows) {
  const auto ref = make_ref();
  const TestTensor x({1, 2, 2}, {1, 2, 3, 4}), y({1, 2, 2}, {5, 6, 7, 8});
  TestTensor out({1, 2});
  ops::row_dots(*ref, x, y, kTwo, out);
  EXPECT_EQ(out.values(), (std::vector<float>{17, 53}));
  Tensor first = y;
  first.stride[1] = 0;
  ops::row_dots(*ref, x, first, kTwo, out);
  EXPECT_EQ(out.values(), (std::vector<float>{17, 39}));
  ops::sum_rows(*ref, x, TestTensor({1, 2}, {10, -1}), kTwo, out);
  EXPECT_EQ(out.values(), (std::vector<float>{7, 16}));
}

TEST(RefScoreOps, ArithmeticOnScores) {
  const auto ref = make_ref();
  TestTensor scores({1, 3}, {1, 2, 3});
  ops::weigh_scores(*ref, scores, kTwo, 2, 1, TestTensor({1, 2}, {10, -1}));
  EXPECT_EQ(scores.values(), (std::vector<float>{30, -5, 3}));
  TestTensor rows({1, 2}, DType::i32);
  rows.as<int32_t>()[0] = 2, rows.as<int32_t>()[1] = 0;
  ops::set_scores(*ref, scores, rows, kTwo, 9);
  EXPECT_EQ(scores.values(), (std::vector<float>{9, -5, 9}));
  // A million ones added to 2^30, which f32 alone would not register.
  TestTensor sums({2, 1, 1});
  const std::vector<int32_t> one = {1};
  ops::add_scores(*ref, TestTensor({1, 1}, {0x1p30f}), one, sums);
  const TestTensor a({1, 1}, {1.0f});
  for (int i = 0; i < 1000; ++i) ops::add_scores(*ref, a, one, sums);
  EXPECT_EQ(sums.values(), (std::vector<float>{0x1p30f + 1024.0f, -24.0f}));
}

TEST(RefScoreOps, Chunks) {
  const auto ref = make_ref();
  const std::vector<int32_t> five = {5};
  const TestTensor scores({1, 5}, {8, 1, 3, 3, 2});
  TestTensor out({1, 5}, {9, 9, 9, 9, 9});
  ChunkScores c{.scores = scores, .n = five, .begin = 1, .length = 3, .out = out};
  ops::chunk_scores(*ref, c);
  EXPECT_TRUE(all_close(out.values(), {0, 7.0f / 3, 7.0f / 3, 7.0f / 3, 2}, {.rel = 1e-7}));
  c.kind = ChunkScore::rank;
  ops::chunk_scores(*ref, c);
  EXPECT_EQ(out.values(), (std::vector<float>{0, 0, 2, 1, 0})) << "of equal ones the first";
  c.kind = ChunkScore::softmax;
  c.factor = 2, c.accumulate = true;
  ops::chunk_scores(*ref, c);
  const float low = static_cast<float>(2 / (1 + 2 * std::exp(2.0)));
  EXPECT_TRUE(all_close(out.values(), {0, low, 3 - low / 2, 2 - low / 2, 2}, {.rel = 1e-6}));
}

TEST(RefScoreOps, LagDeviations) {
  const auto ref = make_ref();
  // One row before the chunks, chunks of 2; the second spans 0..4 and 1..1, the third is short.
  const std::vector<int32_t> n = {6};
  const TestTensor x({1, 6, 2}, {50, 50, 2, 5, 4, 1, 0, 1, 4, 1, 7, 7});
  TestTensor out({1, 6}, {9, 9, 9, 9, 9, 9});
  ops::lag_deviations(*ref, x, n, 1, 2, out);
  // row 1: (2 / 4, 0), row 2: (4 / 4, 0): deviations 0.5 / sqrt(2) and 1 / sqrt(2)
  EXPECT_TRUE(all_close(out.values(), {0, 0.353553f, 0.707107f, 0, 0, 0}, {.rel = 1e-5}));
}

TEST(RefScoreOps, Moments) {
  const auto ref = make_ref();
  const TestTensor x({2, 1, 2}, {1, 2, 5, 1}), shift({1, 2}, {1, 1});
  TestTensor out({1, 3, 2});
  ops::moments(*ref, x, shift, out);
  // y: (0, 1), (4, 0)
  EXPECT_EQ(out.values(), (std::vector<float>{16, 0, 0, 1, 4, 1}));
}

}  // namespace
}  // namespace snapkv::test
