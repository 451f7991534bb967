// SPDX-License-Identifier: MIT
// Interleaved copies of weights: products give the same bits with them, without them, and for any
// number of rows of activations.
#include "backend/cpu/weights/interleaved_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/products/byte_products.h"
#include "backend/cpu/target/cpu_target.h"
#include "backend/cpu/weights/interleave.h"
#include "tests/backend/op_test_util.h"

namespace snapkv::test {
namespace interleaved_weights_tests {

struct Products {
  cpu::CpuTarget target;
  cpu::ByteProducts kind;
  const char* name;
};

class InterleavedWeightsTest : public ::testing::TestWithParam<Products> {
 protected:
  void SetUp() override {
    if (!cpu::has(GetParam().target)) GTEST_SKIP() << "SKIPPED: needs " << GetParam().name;
  }

  static cpu::CpuContext context(const cpu::InterleavedWeights* copies, int n_threads = 1) {
    return {.n_threads = n_threads,
            .rounds_activations = true,
            .byte_products = GetParam().kind,
            .interleaved = copies};
  }

  /// The types that have copies.
  static std::vector<DType> types() {
    std::vector<DType> types;
    for (const DType type : block_types()) {
      if (cpu::interleaves(context(nullptr), type)) types.push_back(type);
    }
    return types;
  }

  static void copy_all(cpu::InterleavedWeights& copies, const Tensor& weight, size_t piece) {
    ASSERT_TRUE(copies.takes(weight));
    ASSERT_TRUE(copies.reserve(std::array{weight}));
    const Tensor rows = weight.reshaped({weight.numel() / weight.n_cols(), weight.n_cols()});
    size_t left = SIZE_MAX;
    while (left > 0) {
      EXPECT_EQ(copies.find(rows), nullptr);
      const size_t before = left;
      left = copies.copy_next(weight, piece);
      ASSERT_LT(left, before);
    }
    EXPECT_NE(copies.find(rows), nullptr);
  }

  static std::vector<float> few_rows(const cpu::CpuContext& ctx, const TestTensor& x,
                                     const Tensor& w) {
    TestTensor out({x.view().shape[0], w.shape[0]});
    cpu::project(ctx, x, std::array{Projection{.w = w, .bias = {}, .out = out}});
    return out.values();
  }

  static std::vector<float> many_rows(const cpu::CpuContext& ctx, const TestTensor& x,
                                      const Tensor& w, PackWorkspace* workspace) {
    PackedWeight packed;
    packed.workspace = workspace;
    cpu::pack(ctx, w, packed);
    TestTensor out({x.view().shape[0], w.shape[0]});
    cpu::project_packed(ctx, x, packed, {}, out, false);
    return out.values();
  }
};

TEST_P(InterleavedWeightsTest, GiveTheSameBits) {
  for (const DType type : types()) {
    for (const int64_t n_in : {32, 224, 288, 1024}) {
      if (n_in % block_size(type) != 0) continue;
      for (const int64_t n_out : {16, 80}) {
        const TestTensor w = random_tensor({n_out, n_in}, 2, type);
        cpu::InterleavedWeights copies(2);
        copy_all(copies, w, 3000);
        PackWorkspace workspace;
        for (const int64_t n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 19}) {
          SCOPED_TRACE(std::string(name(type)) + " n_in " + std::to_string(n_in) + " n_out " +
                       std::to_string(n_out) + " n " + std::to_string(n));
          const TestTensor x = random_tensor({n, n_in}, 1);
          const std::vector<float> expected = few_rows(context(nullptr), x, w);
          EXPECT_EQ(few_rows(context(&copies), x, w), expected);
          if (n == 9) {
            EXPECT_EQ(few_rows(context(&copies, 2), x, w), expected);
          }
          EXPECT_EQ(many_rows(context(nullptr), x, w, &workspace), expected);  // the file's rows
          EXPECT_EQ(many_rows(context(nullptr), x, w, nullptr), expected);     // a copy of its own
          EXPECT_EQ(many_rows(context(&copies), x, w, &workspace), expected);
          EXPECT_EQ(many_rows(context(&copies), x, w, nullptr), expected);
        }
      }
    }
  }
}

TEST_P(InterleavedWeightsTest, PartsOfAWeightAreFound) {
  for (const DType type : types()) {
    SCOPED_TRACE(name(type));
    const TestTensor experts = random_tensor({3, 32, 512}, 2, type);
    cpu::InterleavedWeights copies(2);
    copy_all(copies, experts, 1 << 20);
    const TestTensor x = random_tensor({2, 512}, 1);
    for (int64_t e = 0; e < 3; ++e) {
      const Tensor expert = experts.view().slice(e, e + 1).reshaped({32, 512});
      EXPECT_NE(copies.find(expert), nullptr);
      EXPECT_EQ(few_rows(context(&copies), x, expert), few_rows(context(nullptr), x, expert));
      const Tensor last = expert.slice(16, 32);
      EXPECT_NE(copies.find(last), nullptr);
      EXPECT_EQ(few_rows(context(&copies), x, last), few_rows(context(nullptr), x, last));
      // rows that share a unit with others are read from the file
      for (const Tensor& part : {expert.slice(8, 24), expert.slice(0, 8)}) {
        EXPECT_EQ(copies.find(part), nullptr);
        EXPECT_EQ(few_rows(context(&copies), x, part), few_rows(context(nullptr), x, part));
      }
    }
    const TestTensor other = random_tensor({16, 512}, 3, type);
    EXPECT_EQ(copies.find(other), nullptr);
  }
}

TEST_P(InterleavedWeightsTest, TakeWholeUnitsOfRows) {
  const cpu::InterleavedWeights copies(1);
  EXPECT_TRUE(copies.takes(random_tensor({16, 256}, 1, DType::q4_k)));
  EXPECT_FALSE(copies.takes(random_tensor({24, 256}, 1, DType::q4_k)));
  EXPECT_TRUE(copies.takes(random_tensor({3, 16, 256}, 1, DType::q4_k)));
  EXPECT_FALSE(copies.takes(random_tensor({16, 3, 256}, 1, DType::q4_k)));
  EXPECT_FALSE(copies.takes(random_tensor({16, 256}, 1, DType::f16)));
  EXPECT_FALSE(copies.takes(random_tensor({256}, 1, DType::q4_k)));
}

INSTANTIATE_TEST_SUITE_P(
    Products, InterleavedWeightsTest,
    ::testing::Values(Products{cpu::CpuTarget::avx2, cpu::ByteProducts::avx2, "avx2"},
                      Products{cpu::CpuTarget::avx_vnni, cpu::ByteProducts::avx_vnni, "avx_vnni"},
                      Products{cpu::CpuTarget::avx512_vnni, cpu::ByteProducts::avx512_vnni,
                               "avx512_vnni"}),
    [](const auto& test) { return std::string(test.param.name); });

#if defined(__x86_64__)
/// The bytes of 16 rows, interleaved.
std::vector<char> interleaved_unit(cpu::InterleaveFn interleave, const Tensor& w) {
  std::vector<char> unit(static_cast<size_t>(w.shape[0] * w.stride[0]));
  interleave(w.at<char>(0), w.stride[0], w.n_cols(), unit.data());
  return unit;
}

TEST(InterleaveTest, UnitsHaveTheBytesOfTheFile) {
  if (!cpu::has(cpu::CpuTarget::avx2)) GTEST_SKIP() << "SKIPPED: needs avx2";
  for (const DType type : block_types()) {
    const cpu::InterleaveFn interleave = cpu::interleave_avx2(type);
    if (interleave == nullptr) continue;
    SCOPED_TRACE(name(type));
    for (const int64_t n_in : {32, 160, 256}) {
      if (n_in % block_size(type) != 0) continue;
      const TestTensor w = random_tensor({16, n_in}, 4, type);
      const Tensor& rows = w.view();
      std::vector<char> unit = interleaved_unit(interleave, rows);
      if (cpu::has(cpu::CpuTarget::avx512_vnni)) {
        EXPECT_EQ(unit, interleaved_unit(cpu::interleave_avx512(type), rows));
      }
      std::vector<char> bytes(rows.at<char>(0), rows.at<char>(0) + rows.shape[0] * rows.stride[0]);
      std::sort(unit.begin(), unit.end());
      std::sort(bytes.begin(), bytes.end());
      EXPECT_EQ(unit, bytes);
    }
  }
}
#endif

}  // namespace interleaved_weights_tests
}  // namespace snapkv::test
