// SPDX-License-Identifier: MIT
// The reference's ops of models with several residual streams, with numbers computed by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "backend/ops.h"
#include "tests/backend/op_test_util.h"

namespace snapkv::test {
namespace {

constexpr Tolerance kRounded{.abs = 1e-6, .rel = 1e-6};  // one f32 rounding of an f64 result

TEST(RefStreamOps, SeveralStreams) {
  const auto backend = make_ref();
  const TestTensor x({1, 2, 2}, std::vector<float>{1, 2, /**/ 3, 5}), out({1, 2});
  ops::take_stream(*backend, x, 1, {}, out);
  EXPECT_TRUE(all_close(out.values(), {3, 5}, Tolerance{}));
  ops::mix_streams(*backend, x, TestTensor({1, 4}, std::vector<float>{0, 1, /**/ 2, -1}));
  EXPECT_TRUE(all_close(x.values(), {4, 7, /**/ 2, 4}, Tolerance{}));
  const TestTensor y({1, 2}, std::vector<float>{1, -1});
  ops::add_to_streams(*backend, x, y, TestTensor({1, 2}, std::vector<float>{2, 3}), 0);
  EXPECT_TRUE(all_close(x.values(), {6, 5, /**/ 5, 1}, Tolerance{}));
  ops::add_to_streams(*backend, x, y, {}, 1);
  EXPECT_TRUE(all_close(x.values(), {6, 5, /**/ 6, 0}, Tolerance{}));
  ops::take_stream(*backend, x, 0, TestTensor({2}, std::vector<float>{2, -1}), out);
  EXPECT_TRUE(all_close(out.values(), {12, -5}, Tolerance{}));
}

TEST(RefStreamOps, RowsGetMagnitudesAndKeepPeaks) {
  const auto backend = make_ref();
  const TestTensor x({2, 2}, std::vector<float>{3, 4, /**/ 0.001f, 0});
  ops::match_norms(*backend, x, TestTensor({2, 2}, std::vector<float>{6, 8, /**/ 1, 1}));
  const float least = 0.001f / std::sqrt(kLeastMeanSquare);  // its mean square is 5e-7
  EXPECT_TRUE(all_close(x.values(), {6, 8, /**/ least, 0}, kRounded));
  const TestTensor gates({1, 4}, std::vector<float>{1, 1, 1, 5});  // mean 2, deviation sqrt(12 / 4)
  ops::keep_peaks(*backend, gates, 1.0f);
  EXPECT_TRUE(all_close(gates.values(), {0, 0, 0, 3 - std::sqrt(3.0f)}, kRounded));
}

}  // namespace
}  // namespace snapkv::test
