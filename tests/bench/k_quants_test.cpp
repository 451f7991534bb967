// SPDX-License-Identifier: MIT
// The writers of superblocks: close to what they were given, the same bytes on every machine.
#include "bench/k_quants.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/half.h"
#include "format/block_types.h"
#include "tests/backend/op_test_util.h"

namespace snapkv::test {
namespace {

constexpr DType kTypes[] = {DType::q4_k, DType::q5_k, DType::q6_k};

// Levels 0 ... 15 (31) over a range of about 4.2 sigma are 0.28 (0.14) apart, levels -32 ... 31
// over twice 2 sigma 0.06; rounding costs the 1 / sqrt(12) of that: 0.08, 0.04, 0.02.
TEST(KQuants, KeepValues) {
  const std::vector<float> x = random_values(16 * kSuperblockSize, 1);
  const TestTensor given({16, kSuperblockSize}, x);
  EXPECT_LT(relative_error(given.to(DType::q4_k).values(), x), 0.09);
  EXPECT_LT(relative_error(given.to(DType::q5_k).values(), x), 0.045);
  EXPECT_LT(relative_error(given.to(DType::q6_k).values(), x), 0.025);
}

// All above zero, all below, and parts of very different size.
TEST(KQuants, KeepUnevenValues) {
  std::vector<float> x = random_values(4 * kSuperblockSize, 2);
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t block = i / kSuperblockSize, part = i / kBlockSize % kSuperblockParts;
    if (block == 0) x[i] = std::abs(x[i]);
    if (block == 1) x[i] = -std::abs(x[i]);
    if (block == 2) x[i] *= static_cast<float>(part + 1);
    if (block == 3) x[i] = 5.0f;
  }
  const TestTensor given({4, kSuperblockSize}, x);
  for (const DType type : kTypes) {
    EXPECT_LT(relative_error(given.to(type).values(), x), type == DType::q4_k ? 0.09 : 0.045)
        << name(type);
  }
}

TEST(KQuants, ZerosStayZero) {
  const std::vector<float> zeros(2 * kSuperblockSize, 0.0f);
  const TestTensor given({2, kSuperblockSize}, zeros);
  for (const DType type : kTypes) EXPECT_EQ(given.to(type).values(), zeros) << name(type);
}

}  // namespace
}  // namespace snapkv::test
