// SPDX-License-Identifier: MIT
// 8-bit activations times weights of block types with AVX2: per block |w| * sign(x, w) as 16-bit
// pairs (at most 2 * 128 * 127: no saturation), then 32-bit sums, scaled by d_w * d_x. The pairs of
// a superblock's part are multiplied with its integer scale on the way to 32 bits.
#include "backend/cpu/gemv.h"

#if defined(__x86_64__)

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

template <DType T, int N>
SNAPKV_AVX2 void multiply_n(const GemvCall& c) {
  const int64_t n_blocks = c.n_in / kBlockSize;
  const __m256i ones = _mm256_set1_epi16(1);
  for (int64_t row = 0; row < c.n_rows; ++row) {
    const char* p = c.w + row * c.w_stride;
    __m256 acc[N];
    for (__m256& v : acc) v = _mm256_setzero_ps();
    [[maybe_unused]] float min_sums[N] = {};
    for (int64_t b = 0; b < n_blocks; ++b, p += block_bytes(T)) {
      __builtin_prefetch(p + kPrefetchBytes, 0, 2);
      const __m256i w = X86Block<T>::levels(p, 0);
      const __m256i magnitude = kHasMin<T> ? w : _mm256_abs_epi8(w);
      const float d = X86Block<T>::d(p);
      for (int t = 0; t < N; ++t) {
        const PlainUnit& unit = plain_unit(c, t, b);
        const int64_t k = b % kPlainUnitBlocks;
        __m256i x = _mm256_load_si256(reinterpret_cast<const __m256i*>(unit.q[k]));
        if constexpr (!kHasMin<T>) x = _mm256_sign_epi8(x, w);
        const __m256i pairs = _mm256_maddubs_epi16(magnitude, x);
        const __m256 sums = _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, ones));
        acc[t] = _mm256_fmadd_ps(sums, _mm256_set1_ps(d * unit.d[k]), acc[t]);
        if constexpr (kHasMin<T>) min_sums[t] += X86Block<T>::min(p) * unit.sum[k];
      }
    }
    for (int t = 0; t < N; ++t) c.sums[t * c.sums_stride + row] = sum_lanes(acc[t]) - min_sums[t];
  }
}

/// acc[t] += the products of part `part`, whose levels are signed where there is no minimum.
template <DType T, int N>
SNAPKV_AVX2_INLINE_FMA void multiply_part(const char* p, const typename X86Block<T>::Scales& scales,
                                          float d, int part, const PlainUnit* const (&x)[N],
                                          __m256 (&acc)[N]) {
  const __m256i w = X86Block<T>::levels(p, part);
  const __m256i scale = X86Block<T>::pair_scale(scales, part);
  const __m256i magnitude = kHasMin<T> ? w : _mm256_abs_epi8(w);
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
    __m256i q = _mm256_load_si256(reinterpret_cast<const __m256i*>(x[t]->q[part]));
    if constexpr (!kHasMin<T>) q = _mm256_sign_epi8(q, w);
    const __m256i pairs = _mm256_maddubs_epi16(magnitude, q);
    const __m256 sums = _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, scale));
    acc[t] = _mm256_fmadd_ps(sums, _mm256_set1_ps(d * x[t]->d[part]), acc[t]);
  }
}

/// acc[t] -= dmin * (min * (sum of x)), one part in each lane.
template <int N>
SNAPKV_AVX2_INLINE_FMA void subtract_minima(const PartBytes& scales, float dmin,
                                            const PlainUnit* const (&x)[N], __m256 (&acc)[N]) {
  const __m256i min = _mm256_cvtepu8_epi32(_mm_set1_epi64x(static_cast<int64_t>(scales.mins)));
  const __m256 mins = _mm256_mul_ps(_mm256_cvtepi32_ps(min), _mm256_set1_ps(dmin));
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
    acc[t] = _mm256_fnmadd_ps(mins, _mm256_load_ps(x[t]->sum), acc[t]);
  }
}
template <int N>
SNAPKV_AVX2_INLINE_FMA void subtract_minima(const HalfPartBytes& scales, float dmin,
                                            const PlainUnit* const (&x)[N], __m256 (&acc)[N]) {
  const __m256i mins = _mm256_cvtepu8_epi16(
      _mm_set_epi64x(static_cast<int64_t>(scales.mins[1]), static_cast<int64_t>(scales.mins[0])));
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
    const __m256i sums = _mm256_load_si256(reinterpret_cast<const __m256i*>(x[t]->half_sums));
    const __m256 d = _mm256_mul_ps(_mm256_load_ps(x[t]->d), _mm256_set1_ps(dmin));
    acc[t] = _mm256_fnmadd_ps(_mm256_cvtepi32_ps(_mm256_madd_epi16(mins, sums)), d, acc[t]);
  }
}

template <DType T, int N>
SNAPKV_AVX2 void multiply_superblocks(const GemvCall& c) {
  const int64_t n_superblocks = c.n_in / kSuperblockSize;
  for (int64_t row = 0; row < c.n_rows; ++row) {
    const char* p = c.w + row * c.w_stride;
    __m256 acc[N];
    SNAPKV_UNROLL for (__m256& v : acc) v = _mm256_setzero_ps();
    for (int64_t b = 0; b < n_superblocks; ++b, p += block_bytes(T)) {
      for (int64_t i = 0; i < block_bytes(T); i += 64) {
        __builtin_prefetch(p + kPrefetchBytes + i, 0, 2);
      }
      const PlainUnit* x[N];
      SNAPKV_UNROLL for (int t = 0; t < N; ++t) x[t] = &plain_unit(c, t, kSuperblockParts * b);
      const auto scales = X86Block<T>::scales(p);
      const float d = X86Block<T>::d(p);
      SNAPKV_UNROLL for (int part = 0; part < kSuperblockParts; ++part) {
        multiply_part<T, N>(p, scales, d, part, x, acc);
      }
      if constexpr (kHasMin<T>) subtract_minima(scales, X86Block<T>::min(p), x, acc);
    }
    for (int t = 0; t < N; ++t) c.sums[t * c.sums_stride + row] = sum_lanes(acc[t]);
  }
}

template <DType T, int N>
SNAPKV_AVX2 void multiply_rows(const GemvCall& c) {
  if constexpr (block_size(T) == kSuperblockSize) {
    multiply_superblocks<T, N>(c);
  } else {
    multiply_n<T, N>(c);
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
