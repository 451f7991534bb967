// SPDX-License-Identifier: MIT
// gemv_interleaved.h: prepares activations and interleaves weights with 256-bit vectors, and
// chooses the kernel.
#include "backend/cpu/products/few_rows/gemv_interleaved.h"

#if defined(__x86_64__)

#include <algorithm>
#include <cstring>

#include "backend/cpu/products/few_rows/round_block_x86.h"
#include "backend/cpu/weights/interleaved_256.h"

// The functions of this file run only where has(CpuTarget::avx2).
#define SNAPKV_AVX2 __attribute__((target("avx2,f16c")))

namespace snapkv::cpu {

SNAPKV_AVX2 void prepare_interleaved_unit(const float* x, int64_t n, void* unit_) {
  InterleavedUnit& unit = *static_cast<InterleavedUnit*>(unit_);
  for (int b = 0; b < kGemvUnit / kBlockSize; ++b) {
    FloatBlock values;
    const int64_t left = n - b * kBlockSize;
    if (left >= kBlockSize) {
      load_block(x + b * kBlockSize, values);
    } else {
      alignas(32) float padded[kBlockSize] = {};
      if (left > 0) std::copy_n(x + b * kBlockSize, left, padded);
      load_block(padded, values);
    }
    const float max = max_magnitude(values);
    const __m256i q = round_block(values, max > 0.0f ? 127.0f / max : 0.0f);
    _mm256_store_si256(reinterpret_cast<__m256i*>(unit.q + b * kBlockSize), q);
    const auto [first, last] = negative_half_sums(q);
    unit.d[b] = max / 127.0f;
    unit.negative_half_sums[2 * b] = first;
    unit.negative_half_sums[2 * b + 1] = last;
    unit.negative_sums[b] = first + last;
    unit.negative_sum[b] = unit.d[b] * static_cast<float>(first + last);
  }
}

namespace {

template <DType T>
SNAPKV_AVX2 void interleave_in_halves(const char* rows, int64_t stride, int64_t, char* unit) {
  Interleaved256<T>::interleave(rows, stride, unit);
}

}  // namespace

const GemvKernel* gemv_interleaved(ByteProducts products) {
  if (products == ByteProducts::avx512_vnni) return &gemv_interleaved_vnni();
  if (products == ByteProducts::avx_vnni) return &gemv_interleaved_avx_vnni();
  return products == ByteProducts::avx2 ? &gemv_interleaved_avx2() : nullptr;
}

GemvFn gemv_interleaved_before(ByteProducts products, DType weight) {
  if (products == ByteProducts::avx512_vnni) return gemv_interleaved_before_vnni(weight);
  if (products == ByteProducts::avx_vnni) return gemv_interleaved_before_avx_vnni(weight);
  return products == ByteProducts::avx2 ? gemv_interleaved_before_avx2(weight) : nullptr;
}

InterleaveFn interleave_avx2(DType weight) {
  return visit_weight_type(weight, [](auto type) -> InterleaveFn {
    if constexpr (HasInterleaved256<type.dtype>) return interleave_in_halves<type.dtype>;
    return nullptr;
  });
}

}  // namespace snapkv::cpu

#endif  // x86-64
