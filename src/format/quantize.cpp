// SPDX-License-Identifier: MIT
#include "format/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "format/block_types.h"

namespace snapkv {
namespace {

/// d = max |x| / 127 of each block, q = round(x / d), with halves rounded away from zero.
void narrow_q8_0(const float* x, int64_t n, std::byte* to) {
  for (int64_t b = 0; b < n / kBlockSize; ++b, x += kBlockSize, to += sizeof(BlockQ8_0)) {
    BlockQ8_0 block;
    float most = 0.0f;
    for (int i = 0; i < kBlockSize; ++i) most = std::max(most, std::fabs(x[i]));
    const float d = most / 127.0f;
    const float inverse = d != 0.0f ? 1.0f / d : 0.0f;
    block.d = to_f16(d);
    for (int i = 0; i < kBlockSize; ++i) block.qs[i] = std::round(x[i] * inverse);
    std::memcpy(to, &block, sizeof block);
  }
}

template <typename Half>
void widen_half(const std::byte* from, int64_t n, float* to) {
  for (int64_t i = 0; i < n; ++i) {
    Half half;
    std::memcpy(&half, from + i * sizeof half, sizeof half);
    to[i] = to_f32(half);
  }
}

}  // namespace

void widen(const std::byte* from, DType dtype, int64_t n, float* to) {
  if (dtype == DType::f32) {
    std::memcpy(to, from, n * sizeof(float));
  } else if (dtype == DType::f16) {
    widen_half<f16_t>(from, n, to);
  } else if (dtype == DType::bf16) {
    widen_half<bf16_t>(from, n, to);
  } else {
    SNAPKV_CHECK(n % block_size(dtype) == 0);
    visit_weight_type(dtype, [&](auto type) {
      for (int64_t i = 0; i < n; ++i) to[i] = value_at<type.dtype>(from, i);
    });
  }
}

bool can_narrow_to(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::q8_0;
}

void narrow(const float* from, int64_t n, DType dtype, std::byte* to) {
  SNAPKV_CHECK(can_narrow_to(dtype) && n % block_size(dtype) == 0);
  if (dtype == DType::f32) {
    std::memcpy(to, from, n * sizeof(float));
  } else if (dtype == DType::q8_0) {
    narrow_q8_0(from, n, to);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      const uint16_t bits = dtype == DType::f16 ? to_f16(from[i]).bits : to_bf16(from[i]).bits;
      std::memcpy(to + i * sizeof bits, &bits, sizeof bits);
    }
  }
}

}  // namespace snapkv
