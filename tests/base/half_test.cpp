// SPDX-License-Identifier: MIT
// Scalar conversions, compared with arithmetic in double, for every 16-bit pattern.
#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace snapkv {
namespace {

/// The value of a 16-bit float with this many exponent and mantissa bits, by definition.
double value_of(uint16_t bits, int n_exponent, int n_mantissa) {
  const int exponent_max = (1 << n_exponent) - 1;
  const int bias = exponent_max / 2;
  const int exponent = (bits >> n_mantissa) & exponent_max;
  const int mantissa = bits & ((1 << n_mantissa) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == exponent_max) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - n_mantissa);
  return sign * std::ldexp((1 << n_mantissa) + mantissa, exponent - bias - n_mantissa);
}

template <typename T>
struct Format;
template <>
struct Format<f16_t> {
  static constexpr int kExponent = 5, kMantissa = 10;
};
template <>
struct Format<bf16_t> {
  static constexpr int kExponent = 8, kMantissa = 7;
};

template <typename T>
double value_of(uint16_t bits) {
  return value_of(bits, Format<T>::kExponent, Format<T>::kMantissa);
}

template <typename T>
class HalfTest : public testing::Test {};
using HalfTypes = testing::Types<f16_t, bf16_t>;
TYPED_TEST_SUITE(HalfTest, HalfTypes);

TYPED_TEST(HalfTest, EveryPatternToF32) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    const double expected = value_of<TypeParam>(pattern);
    const float actual = to_f32(TypeParam{pattern});
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(actual)) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(actual), expected) << bits;
      ASSERT_EQ(std::signbit(actual), std::signbit(expected)) << bits;
    }
  }
}

TYPED_TEST(HalfTest, EveryPatternComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const TypeParam pattern{static_cast<uint16_t>(bits)};
    const auto back = from_f32<TypeParam>(to_f32(pattern));
    if (std::isnan(to_f32(pattern))) {
      ASSERT_TRUE(std::isnan(to_f32(back))) << bits;
      ASSERT_EQ(back.bits & 0x8000, pattern.bits & 0x8000) << bits;
    } else {
      ASSERT_EQ(back.bits, pattern.bits) << bits;
    }
  }
}

// Between any two neighbours: values below the middle round down, values above it round up, and the
// middle rounds to the even one.
TYPED_TEST(HalfTest, RoundsToNearestEven) {
  constexpr uint16_t kInfinity = ((1 << Format<TypeParam>::kExponent) - 1)
                                 << Format<TypeParam>::kMantissa;
  for (uint32_t bits = 0; bits < kInfinity; ++bits) {
    const auto low = static_cast<uint16_t>(bits);
    const auto high = static_cast<uint16_t>(bits + 1);
    const double below = value_of<TypeParam>(low);
    // The upper neighbour of the largest finite value is where infinity would be if it were finite.
    const double above = high == kInfinity
                             ? 2 * below - value_of<TypeParam>(static_cast<uint16_t>(low - 1))
                             : value_of<TypeParam>(high);
    const auto middle = static_cast<float>((below + above) / 2);
    if (std::isinf(middle) || static_cast<double>(middle) != (below + above) / 2) {
      continue;  // f32 cannot represent it: bf16 at its upper and lower end
    }
    const float inf = std::numeric_limits<float>::infinity();
    for (const uint16_t sign : {uint16_t{0}, uint16_t{0x8000}}) {
      const float s = sign != 0 ? -1.0f : 1.0f;
      ASSERT_EQ(from_f32<TypeParam>(s * std::nextafter(middle, -inf)).bits, low | sign) << bits;
      ASSERT_EQ(from_f32<TypeParam>(s * std::nextafter(middle, inf)).bits, high | sign) << bits;
      const uint16_t even = bits % 2 == 0 ? low : high;
      ASSERT_EQ(from_f32<TypeParam>(s * middle).bits, even | sign) << bits;
    }
  }
}

TEST(HalfLimitsTest, RangeAndSigns) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_f16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(to_f16(65519.996f).bits, 0x7bff);
  EXPECT_EQ(to_f16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(to_f16(inf).bits, 0x7c00);
  EXPECT_EQ(to_f16(-inf).bits, 0xfc00);
  EXPECT_EQ(to_f16(-0.0f).bits, 0x8000);
  EXPECT_EQ(to_f16(0x1p-25f).bits, 0);  // half of the smallest value rounds to even
  EXPECT_EQ(to_f16(0x1.000002p-25f).bits, 1);
  EXPECT_EQ(to_bf16(inf).bits, 0x7f80);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_TRUE(std::isnan(to_f32(to_bf16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(to_f32(to_f16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace snapkv
