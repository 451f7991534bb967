// SPDX-License-Identifier: MIT
#include "base/tensor.h"

#include <gtest/gtest.h>

#include <vector>

namespace snapkv {
namespace {

TEST(DTypeTest, BlocksAndRows) {
  EXPECT_EQ(row_bytes(DType::f32, 3), 12);
  EXPECT_EQ(row_bytes(DType::bf16, 3), 6);
  EXPECT_EQ(row_bytes(DType::f16, 0), 0);
  EXPECT_EQ(row_bytes(DType::q8_0, 64), 68);
  EXPECT_EQ(row_bytes(DType::q4_0, 64), 36);
  EXPECT_EQ(row_bytes(DType::q4_k, 512), 288);
  EXPECT_EQ(row_bytes(DType::q5_k, 256), 176);
  EXPECT_EQ(row_bytes(DType::q6_k, 512), 420);
  EXPECT_EQ(name(DType::q8_0), "q8_0");
  EXPECT_EQ(name(DType::bf16), "bf16");
  EXPECT_EQ(name(DType::q4_k), "q4_k");
}

TEST(TensorTest, EmptyStandsForNotGiven) {
  const Tensor t;
  EXPECT_FALSE(t);
  EXPECT_EQ(t.numel(), 0);
}

TEST(TensorTest, ContiguousStridesAreInBytes) {
  std::vector<float> data(24);
  const Tensor t(data.data(), DType::f32, {2, 3, 4});
  EXPECT_TRUE(t);
  EXPECT_EQ(t.numel(), 24);
  EXPECT_EQ(t.n_cols(), 4);
  EXPECT_EQ(t.stride[0], 48);
  EXPECT_EQ(t.stride[1], 16);
  EXPECT_EQ(t.stride[2], 4);
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_EQ(t.shape_string(), "[2, 3, 4]");
  EXPECT_EQ(t.at<float>(1), data.data() + 12);
  EXPECT_EQ(t.at<float>(1, 2), data.data() + 20);
  EXPECT_EQ(t.at<float>(1, 2, 3), data.data() + 23);
}

TEST(TensorTest, RowsOfBlocks) {
  std::vector<char> data(3 * 2 * 34);
  const Tensor t(data.data(), DType::q8_0, {3, 64});
  EXPECT_EQ(t.stride[0], 68);
  EXPECT_EQ(t.stride[1], 34);
  EXPECT_EQ(t.at<char>(2), data.data() + 136);
}

TEST(TensorTest, SliceKeepsStrides) {
  std::vector<float> data(24);
  const Tensor t(data.data(), DType::f32, {4, 6});
  const Tensor s = t.slice(1, 3);
  EXPECT_EQ(s.shape[0], 2);
  EXPECT_EQ(s.data, data.data() + 6);
  EXPECT_TRUE(s.is_contiguous());
  EXPECT_EQ(t.slice(2, 2).numel(), 0);
}

TEST(TensorTest, ViewsWithGapsAreNotContiguous) {
  std::vector<float> data(24);
  Tensor t(data.data(), DType::f32, {4, 6});
  t.shape[1] = 5;
  EXPECT_FALSE(t.is_contiguous());
  EXPECT_TRUE(t.slice(0, 1).is_contiguous()) << "the stride of a single row does not matter";
  EXPECT_DEATH(t.reshaped({20}), "is_contiguous");
}

TEST(TensorTest, ReshapeKeepsTheMemory) {
  std::vector<float> data(24);
  const Tensor t(data.data(), DType::f32, {4, 6});
  const Tensor r = t.reshaped({2, 2, 6});
  EXPECT_EQ(r.rank, 3);
  EXPECT_EQ(r.data, data.data());
  EXPECT_EQ(r.stride[0], 48);
  EXPECT_DEATH(t.reshaped({5, 5}), "numel");
}

}  // namespace
}  // namespace snapkv
