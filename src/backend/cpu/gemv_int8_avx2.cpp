// SPDX-License-Identifier: MIT
// 8-bit activations times weights of block types with AVX2, 256 values at a time. Levels from 0 on
// are multiplied as they are, as 16-bit pairs, and what they are too large by is taken off with the
// minima; others as |w| * sign(x, w). (At most 2 * 128 * 127: no saturation.) Pairs become 32-bit
// sums, on the way to which scales of 16 values are multiplied, and then f32 sums scaled by the
// part's scale times d_x.
#include "backend/cpu/gemv.h"

#if defined(__x86_64__)

#include <cstring>

#include "backend/cpu/gemv_int8_plain.h"
#include "backend/cpu/superblocks_x86.h"

// The functions of this file run only where has(CpuTarget::avx2).
#define SNAPKV_AVX2 __attribute__((target("avx2,fma,f16c")))
#define SNAPKV_AVX2_INLINE_FMA __attribute__((target("avx2,fma,f16c"), always_inline)) inline

namespace snapkv::cpu {
namespace {

SNAPKV_AVX2 inline float sum_lanes(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/// What pairs of products are multiplied with on the way to 32 bits: 1, or the integer scales of 16
/// values each, as 16 bits: those of the parts' first halves, then those of the last.
template <DType T>
SNAPKV_AVX2_INLINE_FMA __m256i pair_scales(const char* p) {
  if constexpr (HasHalfScales<T>) {
    const HalfPartBytes scales = X86Block<T>::scales(p);
    const __m128i in_order = _mm_set_epi64x(static_cast<int64_t>(scales.scales[1]),
                                            static_cast<int64_t>(scales.scales[0]));
    const __m128i first_then_last =
        _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    return _mm256_cvtepi8_epi16(_mm_shuffle_epi8(in_order, first_then_last));
  }
  return _mm256_set1_epi16(1);
}
template <DType T>
SNAPKV_AVX2_INLINE_FMA __m256i pair_scale(__m256i scales, int part) {
  if constexpr (HasHalfScales<T>) {
    const auto both_bytes = static_cast<int16_t>((2 * part + 1) << 8 | 2 * part);
    return _mm256_shuffle_epi8(scales, _mm256_set1_epi16(both_bytes));
  }
  return scales;
}

/// What is taken off for each 1 of the sum of a part's activations, one part in each lane; with
/// scales of 16 values that is yet to be multiplied with theirs. `scale` are the unit's scales_8().
template <DType T>
SNAPKV_AVX2_INLINE_FMA __m256 min_units(const char* p, __m256 scale) {
  using B = X86Block<T>;
  if constexpr (kHasMin<T>) {
    return B::min_8(p);
  } else {
    return _mm256_mul_ps(scale, _mm256_set1_ps(B::kOffset));
  }
}

/// sums[t] = what minima and kOffset add to the products of unit x, times -1.
template <DType T, int N>
SNAPKV_AVX2_INLINE_FMA void negative_minima(const char* p, __m256 scale,
                                            const PlainUnit* const (&x)[N], __m256 (&sums)[N]) {
  const __m256 units = min_units<T>(p, scale);
  if constexpr (HasHalfScales<T>) {
    const HalfPartBytes s = X86Block<T>::scales(p);
    const uint64_t(&bytes)[2] = kHasMin<T> ? s.mins : s.scales;
    const __m256i numbers = _mm256_cvtepi8_epi16(
        _mm_set_epi64x(static_cast<int64_t>(bytes[1]), static_cast<int64_t>(bytes[0])));
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
      const __m256i x_sums = _mm256_load_si256(reinterpret_cast<const __m256i*>(x[t]->half_sums));
      const __m256 d = _mm256_mul_ps(_mm256_load_ps(x[t]->d), units);
      const __m256 products = _mm256_cvtepi32_ps(_mm256_madd_epi16(numbers, x_sums));
      sums[t] = _mm256_fnmadd_ps(products, d, _mm256_setzero_ps());
    }
  } else {
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
      sums[t] = _mm256_fnmadd_ps(units, _mm256_load_ps(x[t]->sum), _mm256_setzero_ps());
    }
  }
}

/// Sums of two products each. Level * x is |level| * sign(x, level), and sign(level, x) * |x| too
/// where no level is -128.
template <DType T>
SNAPKV_AVX2_INLINE_FMA __m256i multiply_pairs(__m256i levels, const int8_t* x,
                                              const uint8_t* x_magnitudes) {
  const __m256i q = _mm256_load_si256(reinterpret_cast<const __m256i*>(x));
  if constexpr (HasLevelOffset<T>) {
    return _mm256_maddubs_epi16(levels, q);
  } else if constexpr (T == DType::q8_0) {
    return _mm256_maddubs_epi16(_mm256_abs_epi8(levels), _mm256_sign_epi8(q, levels));
  } else {
    const __m256i magnitudes = _mm256_load_si256(reinterpret_cast<const __m256i*>(x_magnitudes));
    return _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(levels, q));
  }
}

/// acc[t] += the products of the 256 values at p. Summed up on its own first, in two chains, so
/// that not all products wait for each other.
template <DType T, int N>
SNAPKV_AVX2_INLINE_FMA void multiply_unit(const char* p, const PlainUnit* const (&x)[N],
                                          __m256 (&acc)[N]) {
  using B = X86Block<T>;
  const __m256 scale = B::scales_8(p);
  const __m256i pairs_scale = pair_scales<T>(p);
  alignas(32) float d[N][kSuperblockParts];  // of each part's products
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
    _mm256_store_ps(d[t], _mm256_mul_ps(scale, _mm256_load_ps(x[t]->d)));
  }
  __m256 even[N], odd[N];
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) even[t] = odd[t] = _mm256_setzero_ps();
  if constexpr (HasLevelOffset<T>) negative_minima<T, N>(p, scale, x, even);
  SNAPKV_UNROLL for (int part = 0; part < kSuperblockParts; ++part) {
    const char* block = block_size(T) == kBlockSize ? p + part * block_bytes(T) : p;
    const __m256i w = B::levels(block, part);
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
      const __m256i pairs = multiply_pairs<T>(w, x[t]->q[part], x[t]->magnitudes[part]);
      const __m256 sums =
          _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, pair_scale<T>(pairs_scale, part)));
      __m256& sum = part % 2 == 0 ? even[t] : odd[t];
      sum = _mm256_fmadd_ps(sums, _mm256_broadcast_ss(&d[t][part]), sum);
    }
  }
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
    acc[t] = _mm256_add_ps(acc[t], _mm256_add_ps(even[t], odd[t]));
  }
}

template <DType T, int N>
SNAPKV_AVX2 void multiply_rows(const GemvCall& c) {
  constexpr int64_t kUnitBytes = row_bytes(T, kGemvUnit);
  const int64_t n_complete = c.n_in / kGemvUnit;
  for (int64_t row = 0; row < c.n_rows; ++row) {
    const char* p = c.w + row * c.w_stride;
    const PlainUnit* x[N];
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) x[t] = &plain_unit(c, t, 0);
    __m256 acc[N];
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) acc[t] = _mm256_setzero_ps();
    for (int64_t u = 0; u < n_complete; ++u, p += kUnitBytes) {
      for (int64_t i = 0; i < kUnitBytes; i += 64) {
        __builtin_prefetch(p + kPrefetchBytes + i, 0, 2);
      }
      multiply_unit<T, N>(p, x, acc);
      SNAPKV_UNROLL for (int t = 0; t < N; ++t)++ x[t];
    }
    if (c.n_in % kGemvUnit != 0) {  // missing blocks are zero, as activations are there
      alignas(32) char padded[kUnitBytes] = {};
      std::memcpy(padded, p, static_cast<size_t>(row_bytes(T, c.n_in % kGemvUnit)));
      multiply_unit<T, N>(padded, x, acc);
    }
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
      c.sums[t * c.sums_stride + row] = sum_lanes(acc[t]);
    }
  }
}

template <DType T>
void multiply(const GemvCall& c) {
  GemvCall part = c;
  while (part.n > 0) {
    const int n = part.n >= 4 ? 4 : part.n >= 2 ? 2 : 1;
    if (n == 4) multiply_rows<T, 4>(part);
    if (n == 2) multiply_rows<T, 2>(part);
    if (n == 1) multiply_rows<T, 1>(part);
    part.x += n * c.x_stride;
    part.sums += n * c.sums_stride;
    part.n -= n;
  }
}

GemvFn find_multiply(DType weight) {
  return visit_weight_type(weight, [](auto type) -> GemvFn {
    if constexpr (HasX86Block<type.dtype>) return multiply<type.dtype>;
    return nullptr;
  });
}

}  // namespace

const GemvKernel& gemv_int8_avx2() {
  static const GemvKernel kernel{.name = "int8 AVX2",
                                 .unit_bytes = sizeof(PlainUnit),
                                 .prepare = prepare_plain_unit,
                                 .function = find_multiply};
  return kernel;
}

}  // namespace snapkv::cpu

#endif  // x86-64
