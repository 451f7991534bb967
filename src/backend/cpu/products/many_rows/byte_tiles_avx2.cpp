// SPDX-License-Identifier: MIT
// multiply_byte_tiles_*() with AVX2. vpmaddubsw adds two products of bytes into 16 bits; these sums
// are added up in 16 bits as long as they fit and then widened: after 8 products for 4-bit levels,
// 4 for 5-bit and 2 for 6-bit ones. 8-bit levels are multiplied as |w| * sign(x, w), and every pair
// is widened.
#include "backend/cpu/products/many_rows/byte_panels_x86.h"

#if defined(__x86_64__)

// The functions of this file run only where has(CpuTarget::avx2).
#define SNAPKV_256 __attribute__((target("avx2,fma,f16c")))
#define SNAPKV_256_INLINE __attribute__((target("avx2,fma,f16c"), always_inline)) inline

namespace snapkv::cpu {
namespace {

constexpr int kLanes = 8;

constexpr int kSumsAtOnce = 8;

/// Magnitudes of signed levels are computed once for 4 rows.
template <DType T>
constexpr int kTilesAtOnce = kNarrowWords<T> == 0 ? 2 : 1;

/// Word k of part p of a row.
SNAPKV_256_INLINE __m256i broadcast_word(const ByteTile* x, int k, int row) {
  const int8_t* word = x[row / kByteTileRows].q[k][row % kByteTileRows];
  return _mm256_set1_epi32(load_word<int32_t>(reinterpret_cast<const char*>(word)));
}

template <DType T, int kRows, int kAtOnce>
SNAPKV_256_INLINE void multiply_signed(const typename BytePanelType<T>::Part& part,
                                       const ByteTile* x, int p, int first,
                                       __m256i (&sum)[kRows][kAtOnce]) {
  static_assert(BytePanelType<T>::kSurplus == 128);  // from -128: pairs to 2 * 128 * 127
  constexpr int kDepth = BytePanelType<T>::Part::kDepth;
  SNAPKV_UNROLL for (int k = 0; k < kDepth; ++k) {
    __m256i q[kRows];
    SNAPKV_UNROLL for (int i = 0; i < kRows; ++i) q[i] = broadcast_word(x, p * kDepth + k, i);
    SNAPKV_UNROLL for (int v = 0; v < kAtOnce; ++v) {
      const char* at = reinterpret_cast<const char*>(part.q[k] + (first + v) * kLanes);
      const __m256i w = _mm256_xor_si256(load_32(at), _mm256_set1_epi8(-128));
      const __m256i magnitude = _mm256_abs_epi8(w);
      SNAPKV_UNROLL for (int i = 0; i < kRows; ++i) {
        const __m256i pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(q[i], w));
        const __m256i wide = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
        sum[i][v] = k == 0 ? wide : _mm256_add_epi32(sum[i][v], wide);
        __asm__("" : "+x"(sum[i][v]));  // see below
      }
    }
  }
}

template <DType T, int kRows, int kAtOnce>
SNAPKV_256_INLINE void multiply_unsigned(const typename BytePanelType<T>::Part& part,
                                         const ByteTile* x, int p, int first,
                                         __m256i (&sum)[kRows][kAtOnce]) {
  constexpr int kDepth = BytePanelType<T>::Part::kDepth;
  static_assert(kDepth % kNarrowWords<T> == 0);
  SNAPKV_UNROLL for (int k0 = 0; k0 < kDepth; k0 += kNarrowWords<T>) {
    __m256i narrow[kRows][kAtOnce];
    SNAPKV_UNROLL for (int k = k0; k < k0 + kNarrowWords<T>; ++k) {
      __m256i q[kRows];
      SNAPKV_UNROLL for (int i = 0; i < kRows; ++i) q[i] = broadcast_word(x, p * kDepth + k, i);
      SNAPKV_UNROLL for (int v = 0; v < kAtOnce; ++v) {
        __m256i w = load_32(reinterpret_cast<const char*>(part.q[k] + (first + v) * kLanes));
        __asm__("" : "+x"(w));
        SNAPKV_UNROLL for (int i = 0; i < kRows; ++i) {
          const __m256i pairs = _mm256_maddubs_epi16(w, q[i]);
          narrow[i][v] = k == k0 ? pairs : _mm256_add_epi16(narrow[i][v], pairs);
          // keeps GCC from adding trees of products, for which there are not enough registers
          __asm__("" : "+x"(narrow[i][v]));
        }
      }
    }
    SNAPKV_UNROLL for (int i = 0; i < kRows; ++i) {
      SNAPKV_UNROLL for (int v = 0; v < kAtOnce; ++v) {
        const __m256i wide = _mm256_madd_epi16(narrow[i][v], _mm256_set1_epi16(1));
        if (k0 > 0) {
          sum[i][v] = _mm256_add_epi32(sum[i][v], wide);
        } else if constexpr (BytePanelType<T>::kSurplus == 0) {
          sum[i][v] = wide;
        } else {
          const int32_t surplus = BytePanelType<T>::kSurplus *
                                  negative_sums<T>(x[i / kByteTileRows], p)[i % kByteTileRows];
          sum[i][v] = _mm256_add_epi32(wide, _mm256_set1_epi32(surplus));
        }
      }
    }
  }
}

template <DType T, int kRows, int kAtOnce>
SNAPKV_256_INLINE void multiply_part(const typename BytePanelType<T>::Part& part, const ByteTile* x,
                                     int p, int first, __m256i (&sum)[kRows][kAtOnce]) {
  if constexpr (kNarrowWords<T> == 0) {
    multiply_signed<T>(part, x, p, first, sum);
  } else {
    multiply_unsigned<T>(part, x, p, first, sum);
  }
}

}  // namespace
}  // namespace snapkv::cpu

#include "backend/cpu/products/many_rows/byte_tiles_256-inl.h"

namespace snapkv::cpu {

MultiplyByteTilesFn multiply_byte_tiles_avx2(DType weight) { return find_multiply_tiles(weight); }

}  // namespace snapkv::cpu

#endif  // x86-64
