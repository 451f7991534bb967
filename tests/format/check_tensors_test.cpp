// SPDX-License-Identifier: MIT
// check_tensors(): every type, bad values at every place, the first of several, any number of
// threads; and everything finite passes.
#include "format/check_tensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "base/half.h"
#include "tests/format/block_type_cases.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_writer.h"

namespace snapkv::test {
namespace {

/// The offsets of a block's 16-bit scales; for plain types, of the number itself.
std::vector<size_t> scale_offsets(DType type) {
  if (block_size(type) == 1) return {0};
  return std::find_if(kTypeCases.begin(), kTypeCases.end(),
                      [=](const TypeCase& c) { return c.dtype == type; })
      ->f16_at;
}

/// `n_blocks` blocks of random bytes, except the scales (for a plain type: the numbers), which are
/// 1.
std::vector<std::byte> finite_blocks(DType type, int64_t n_blocks) {
  std::mt19937 random(5);
  std::vector<std::byte> data(n_blocks * block_bytes(type));
  for (std::byte& b : data) b = static_cast<std::byte>(random());
  for (int64_t b = 0; b < n_blocks; ++b) {
    std::byte* block = data.data() + b * block_bytes(type);
    if (scale_offsets(type).empty()) std::fill_n(block, block_bytes(type), std::byte{0});
    const float one = 1.0f;
    const f16_t one_f16 = to_f16(one);
    const bf16_t one_bf16 = to_bf16(one);
    for (const size_t offset : scale_offsets(type)) {
      if (type == DType::f32) {
        std::memcpy(block, &one, sizeof one);
      } else if (type == DType::bf16) {
        std::memcpy(block, &one_bf16, sizeof one_bf16);
      } else {
        std::memcpy(block + offset, &one_f16, sizeof one_f16);
      }
    }
  }
  return data;
}

/// Infinities and NaNs of both signs, as the bits of a scale of `type`.
std::vector<uint32_t> bad_bits(DType type) {
  if (type == DType::f32) return {0x7f800000, 0xff800000, 0x7fc00000, 0xff800001, 0x7fffffff};
  if (type == DType::bf16) return {0x7f80, 0xff80, 0x7fc0, 0xff81, 0xffff};
  return {0x7c00, 0xfc00, 0x7e00, 0xfc01, 0xffff};
}

/// The largest finite numbers.
std::vector<uint32_t> largest_bits(DType type) {
  if (type == DType::f32) return {0x7f7fffff, 0xff7fffff, 0x80000000, 1};
  if (type == DType::bf16) return {0x7f7f, 0xff7f, 0x8000, 1};
  return {0x7bff, 0xfbff, 0x8000, 1};
}

void put_bits(std::vector<std::byte>& data, DType type, int64_t block, size_t offset,
              uint32_t bits) {
  std::memcpy(data.data() + block * block_bytes(type) + offset, &bits, type == DType::f32 ? 4 : 2);
}

TEST(CheckTensorsTest, FindsBadScalesEverywhere) {
  for (const DType type : kWeightTypes) {
    const int64_t n_blocks = 4999;
    const std::vector<std::byte> finite = finite_blocks(type, n_blocks);
    for (const int64_t bad : {int64_t{0}, int64_t{1}, int64_t{2047}, int64_t{2048}, n_blocks - 1}) {
      for (const size_t offset : scale_offsets(type)) {
        for (const uint32_t bits : bad_bits(type)) {
          std::vector<std::byte> data = finite;
          put_bits(data, type, bad, offset, bits);
          put_bits(data, type, n_blocks - 1, offset, bits);
          const Tensor t(data.data(), type, {n_blocks * block_size(type)});
          EXPECT_EQ(first_non_finite(t), bad * block_size(type)) << name(type) << " " << bits;
        }
      }
    }
  }
}

TEST(CheckTensorsTest, TakesEverythingFinite) {
  for (const DType type : kWeightTypes) {
    std::vector<std::byte> data = finite_blocks(type, 100);
    int64_t block = 0;
    for (const size_t offset : scale_offsets(type)) {
      for (const uint32_t bits : largest_bits(type)) put_bits(data, type, block++, offset, bits);
    }
    const Tensor t(data.data(), type, {100 * block_size(type)});
    EXPECT_EQ(first_non_finite(t), std::nullopt) << name(type);
  }
}

/// The exponent 255 is NaN. Numbers of up to 6, times 2^(exponent - 127), overflow if they are
/// large.
TEST(CheckTensorsTest, FindsExponentsOfMxfp4ThatOverflow) {
  constexpr std::byte kZeros{0x00}, kThree{0x50}, kFour{0x60}, kMinusSix{0xf0};
  const auto is_bad = [](int exponent, std::byte last) {
    std::vector<std::byte> data(3 * block_bytes(DType::mxfp4));
    std::byte* block = data.data() + 2 * block_bytes(DType::mxfp4);
    block[0] = static_cast<std::byte>(exponent);
    block[16] = last;
    return first_non_finite(Tensor(data.data(), DType::mxfp4, {96})) == 64;
  };
  EXPECT_TRUE(is_bad(255, kZeros));
  EXPECT_TRUE(is_bad(254, kThree));
  EXPECT_TRUE(is_bad(253, kFour));
  EXPECT_TRUE(is_bad(253, kMinusSix));
  EXPECT_FALSE(is_bad(254, kZeros));
  EXPECT_FALSE(is_bad(253, kThree));
  EXPECT_FALSE(is_bad(252, kMinusSix));
}

class CheckFileTest : public testing::TestWithParam<int> {};

TEST_P(CheckFileTest, NamesTheFirstBadTensorAndThePlace) {
  std::vector<float> values(3000 * 1000, 0.5f);  // several pieces
  GgufWriter good;
  good.add_f32("a", {3000, 1000}, values);
  GgufWriter bad = good;
  values[2999 * 1000 + 7] = -INFINITY;
  bad.add_f32("b", {3000, 1000}, values);
  values[5 * 1000 + 3] = NAN;
  bad.add_f32("c", {3000, 1000}, values);
  const auto check = [&](const GgufWriter& writer) {
    const std::vector<std::byte> bytes = writer.bytes();
    double last = 0;
    check_tensors(GgufFile::parse(bytes, "FILE"), GetParam(), [&](double fraction) {
      EXPECT_GE(fraction, last);
      last = fraction;
    });
  };
  check(good);
  expect_error(ErrorCode::kBadModel, {"'FILE'", "'b'", "[2999, 7]", "f32"}, [&] { check(bad); });
}

TEST_P(CheckFileTest, CanBeStopped) {
  GgufWriter writer;
  writer.add_f32("a", {3000, 1000}, std::vector<float>(3000 * 1000));
  const std::vector<std::byte> bytes = writer.bytes();
  const GgufFile file = GgufFile::parse(bytes, "FILE");
  expect_error(ErrorCode::kCancelled, {"stop"}, [&] {
    check_tensors(file, GetParam(), [](double) { throw Error(ErrorCode::kCancelled, "stop"); });
  });
}

INSTANTIATE_TEST_SUITE_P(Threads, CheckFileTest, testing::Values(1, 2, 7));

}  // namespace
}  // namespace snapkv::test
