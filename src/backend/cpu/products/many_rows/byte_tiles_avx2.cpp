// SPDX-License-Identifier: MIT
// multiply_byte_tiles_*() with AVX2. vpmaddubsw adds two products of bytes into 16 bits; these sums
// are added up in 16 bits as long as they fit and then widened: after 8 products for 4-bit levels,
// 4 for those of Q5_K, Q5_1 and Q6_K. 8-bit levels are multiplied as |w| * sign(x, w), and every
// pair is widened.
//
// Where bytes have a surplus, 16-bit sums begin with what it adds, negated, and end as the sums of
// signed levels. On the way they may wrap around: only the last value must fit.
#include "backend/cpu/products/many_rows/byte_panels_x86.h"

#if defined(__x86_64__)

#include <algorithm>
#include <bit>

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

/// Whether sums begin with the negated surplus of unsigned bytes.
template <DType T>
constexpr bool kCenters = kNarrowWords<T> != 0 && BytePanelType<T>::kSurplus != 0;

/// How many words are added up in 16 bits: two products of a signed level to a sum. (Rounded
/// activations are from -127 to 127. That of a NaN is -128, but then the scale is NaN as well.)
template <DType T>
constexpr int kSumWords = [] {
  if constexpr (!kCenters<T>) return kNarrowWords<T>;
  constexpr int kSurplus = BytePanelType<T>::kSurplus;
  constexpr int kMost = std::max(kSurplus, kMostLevel<T> - kSurplus);
  return std::min(BytePanelType<T>::Part::kDepth,
                  static_cast<int>(std::bit_floor(0x7fffu / (2 * kMost * 127))));
}();

/// Computed once for a tile: two 16-bit sums that each row's sums of kSumWords words begin with.
template <DType T, int kRows>
struct TileTerms {
  SNAPKV_256_INLINE explicit TileTerms(const ByteTile*) {}
};

template <DType T, int kRows>
requires kCenters<T>
struct TileTerms<T, kRows> {
  static_assert(kRows == kByteTileRows && kByteTileRows == 2);
  static constexpr int kGroups = 64 / kSumWords<T>;
  alignas(16) int32_t begin[kGroups][kRows];

  SNAPKV_256_INLINE explicit TileTerms(const ByteTile* x) {
    constexpr int kVectors = kSumWords<T> / 4;  // of 4 words of both rows
    const __m256i ones = _mm256_set1_epi8(1);
    const __m128i surplus = _mm_set1_epi16(-BytePanelType<T>::kSurplus);
    const char* words = reinterpret_cast<const char*>(x->q);
    for (int g = 0; g < kGroups; ++g, words += kVectors * 32) {
      __m256i pairs = _mm256_maddubs_epi16(ones, load_32(words));
      SNAPKV_UNROLL for (int v = 1; v < kVectors; ++v) {
        pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(ones, load_32(words + 32 * v)));
      }
      __m128i sums =
          _mm_add_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
      sums = _mm_add_epi16(sums, _mm_unpackhi_epi64(sums, sums));
      _mm_storel_epi64(reinterpret_cast<__m128i*>(begin[g]), _mm_mullo_epi16(sums, surplus));
    }
  }
};

template <DType T, int kRows, int kAtOnce>
SNAPKV_256_INLINE void multiply_unsigned(const typename BytePanelType<T>::Part& part,
                                         const ByteTile* x, const TileTerms<T, kRows>& terms, int p,
                                         int first, __m256i (&sum)[kRows][kAtOnce]) {
  constexpr int kDepth = BytePanelType<T>::Part::kDepth;
  static_assert(kDepth % kSumWords<T> == 0);
  SNAPKV_UNROLL for (int k0 = 0; k0 < kDepth; k0 += kSumWords<T>) {
    __m256i narrow[kRows][kAtOnce];
    SNAPKV_UNROLL for (int k = k0; k < k0 + kSumWords<T>; ++k) {
      __m256i q[kRows];
      SNAPKV_UNROLL for (int i = 0; i < kRows; ++i) q[i] = broadcast_word(x, p * kDepth + k, i);
      SNAPKV_UNROLL for (int v = 0; v < kAtOnce; ++v) {
        __m256i w = load_32(reinterpret_cast<const char*>(part.q[k] + (first + v) * kLanes));
        __asm__("" : "+x"(w));
        SNAPKV_UNROLL for (int i = 0; i < kRows; ++i) {
          const __m256i pairs = _mm256_maddubs_epi16(w, q[i]);
          if (k > k0) {
            narrow[i][v] = _mm256_add_epi16(narrow[i][v], pairs);
          } else if constexpr (kCenters<T>) {
            const int32_t begin = terms.begin[(p * kDepth + k0) / kSumWords<T>][i];
            narrow[i][v] = _mm256_add_epi16(pairs, _mm256_set1_epi32(begin));
          } else {
            narrow[i][v] = pairs;
          }
          // keeps GCC from adding trees of products, for which there are not enough registers
          __asm__("" : "+x"(narrow[i][v]));
        }
      }
    }
    SNAPKV_UNROLL for (int i = 0; i < kRows; ++i) {
      SNAPKV_UNROLL for (int v = 0; v < kAtOnce; ++v) {
        const __m256i wide = _mm256_madd_epi16(narrow[i][v], _mm256_set1_epi16(1));
        sum[i][v] = k0 > 0 ? _mm256_add_epi32(sum[i][v], wide) : wide;
      }
    }
  }
}

template <DType T, int kRows, int kAtOnce>
SNAPKV_256_INLINE void multiply_part(const typename BytePanelType<T>::Part& part, const ByteTile* x,
                                     const TileTerms<T, kRows>& terms, int p, int first,
                                     __m256i (&sum)[kRows][kAtOnce]) {
  if constexpr (kNarrowWords<T> == 0) {
    multiply_signed<T>(part, x, p, first, sum);
  } else {
    multiply_unsigned<T>(part, x, terms, p, first, sum);
  }
}

}  // namespace
}  // namespace snapkv::cpu

#include "backend/cpu/products/many_rows/byte_tiles_256-inl.h"

namespace snapkv::cpu {

MultiplyByteTilesFn multiply_byte_tiles_avx2(DType weight) { return find_multiply_tiles(weight); }

}  // namespace snapkv::cpu

#endif  // x86-64
