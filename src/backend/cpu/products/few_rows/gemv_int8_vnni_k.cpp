// SPDX-License-Identifier: MIT
// 8-bit activations times weights in superblocks (q2_k ... q6_k) with AVX-512 VNNI.
//
// The superblock's 8 parts take the places of 8 blocks in the order of gemv_int8_vnni.cpp. So a
// vector of integer scales fits the lanes of the integer sums, which it multiplies before they
// become f32. superblocks_x86.h shows how levels are loaded.
#include "backend/cpu/products/few_rows/gemv_int8_vnni.h"

#if defined(__x86_64__)

#include <cstddef>

namespace snapkv::cpu {
namespace {

static_assert(kGemvUnit == kSuperblockSize);

struct Weights {
  VnniLevels q;
  __m512i scales;  // of each lane's part; with HasHalfScales of its halves, 16 bits each
  __m512i mins;    // with HasHalfScales the same for minima
  __m512 d;
  __m512 min;  // dmin; without HasHalfScales dmin * minimum of parts 0 ... 7, then zeros
};

/// For each lane the numbers of the first and the last 16 values of its part, 16 bits each.
SNAPKV_VNNI_INLINE __m512i halves_to_lanes(const uint64_t (&numbers)[2]) {
  const __m128i bytes =
      _mm_set_epi64x(static_cast<int64_t>(numbers[1]), static_cast<int64_t>(numbers[0]));
  const __m512i order = _mm512_setr_epi32(0, 0, 4, 4, 1, 1, 5, 5, 2, 2, 6, 6, 3, 3, 7, 7);
  return _mm512_permutexvar_epi32(order, _mm512_castsi256_si512(_mm256_cvtepi8_epi16(bytes)));
}

/// For each lane the number of its part, which is not negative.
SNAPKV_VNNI_INLINE __m512i parts_to_lanes(uint64_t numbers) {
  // indices of 128 and more give zeros
  const __m512i order = _mm512_or_si512(
      _mm512_setr_epi32(0, 0, 4, 4, 1, 1, 5, 5, 2, 2, 6, 6, 3, 3, 7, 7), _mm512_set1_epi32(~0xff));
  return _mm512_shuffle_epi8(_mm512_set1_epi64(static_cast<int64_t>(numbers)), order);
}

template <DType T>
SNAPKV_VNNI_INLINE void load_weights(const char* p, Weights& w) {
  using B = X86Block<T>;
  B::load_parts(p, w.q);
  const auto scales = B::scales(p);
  if constexpr (kHasMin<T>) {
    static_assert(kMinAt<T> == kScaleAt<T> + 2);
    const __m128 both = _mm_cvtph_ps(_mm_cvtsi32_si128(load_word<int32_t>(p + kScaleAt<T>)));
    w.d = _mm512_broadcastss_ps(both);
    w.min = _mm512_broadcastss_ps(_mm_movehdup_ps(both));
  } else {
    w.d = _mm512_set1_ps(B::d(p));
  }
  if constexpr (requires { B::kPartUnits; }) {
    w.d = _mm512_mul_ps(w.d, _mm512_load_ps(B::kPartUnits.at));
  }
  if constexpr (HasHalfScales<T>) {
    w.scales = halves_to_lanes(scales.scales);
    if constexpr (kHasMin<T>) w.mins = halves_to_lanes(scales.mins);
  } else {
    static_assert(kHasMin<T>);
    w.scales = parts_to_lanes(scales.scales);
    const __m128i mins = _mm_cvtsi64_si128(static_cast<int64_t>(scales.mins));
    const __m256 m = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(mins));
    w.min = _mm512_zextps256_ps512(_mm256_mul_ps(m, _mm512_castps512_ps256(w.min)));
  }
}

/// acc[r][t] += d * d_x * scale * (sum of q x) - min * (sum of x)
template <int R, int N>
SNAPKV_VNNI_INLINE void multiply_parts(const Weights (&w)[R], const VnniUnit* const (&x)[N],
                                       int64_t u, __m512 (&acc)[R][N]) {
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
    const VnniUnit& unit = x[t][u];
    const __m512 d = _mm512_load_ps(unit.d), sum_x = _mm512_load_ps(unit.sum);
    __m512i sum[R];
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) sum[r] = _mm512_setzero_si512();
    SNAPKV_UNROLL for (int v = 0; v < 4; ++v) {
      const __m512i q = _mm512_load_si512(unit.q[v]);
      SNAPKV_UNROLL for (int r = 0; r < R; ++r) sum[r] = _mm512_dpbusd_epi32(sum[r], w[r].q[v], q);
    }
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
      const __m512 product = _mm512_cvtepi32_ps(_mm512_mullo_epi32(sum[r], w[r].scales));
      acc[r][t] = _mm512_fnmadd_ps(w[r].min, sum_x, acc[r][t]);
      acc[r][t] = _mm512_fmadd_ps(product, _mm512_mul_ps(w[r].d, d), acc[r][t]);
    }
  }
}

/// The integer sums of the two halves of a part, modulo 2^16, next to each other in each lane. With
/// unsigned levels they are at most 8 * 63 * 127.
template <int R>
SNAPKV_VNNI_INLINE void half_sums(const Weights (&w)[R], const VnniUnit& unit, __m512i (&sums)[R]) {
  __m512i first[R], last[R];
  SNAPKV_UNROLL for (int r = 0; r < R; ++r) first[r] = last[r] = _mm512_setzero_si512();
  SNAPKV_UNROLL for (int v = 0; v < 2; ++v) {
    const __m512i q = _mm512_load_si512(unit.q[v]), q2 = _mm512_load_si512(unit.q[2 + v]);
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
      first[r] = _mm512_dpbusd_epi32(first[r], w[r].q[v], q);
      last[r] = _mm512_dpbusd_epi32(last[r], w[r].q[2 + v], q2);
    }
  }
  SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
    sums[r] = _mm512_mask_blend_epi16(0xaaaaaaaa, first[r], _mm512_slli_epi32(last[r], 16));
  }
}

/// acc[r][t] += d_x * (d * (scale * (sum of q x)) - dmin * (min * (sum of x)))
/// Without minima the levels' surplus is subtracted; a sum is then within 8 * 32 * 127, which 16
/// bits hold.
template <DType T, int R, int N>
SNAPKV_VNNI_INLINE void multiply_half_parts(const Weights (&w)[R], const VnniUnit* const (&x)[N],
                                            int64_t u, __m512 (&acc)[R][N]) {
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
    const VnniUnit& unit = x[t][u];
    const __m512i negative_sums = _mm512_load_si512(unit.negative_sums);
    const __m512 d = _mm512_load_ps(unit.d);
    __m512i sums[R];
    half_sums(w, unit, sums);
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
      if constexpr (kHasMin<T>) {
        const __m512i product = _mm512_madd_epi16(sums[r], w[r].scales);
        const __m512i min = _mm512_madd_epi16(negative_sums, w[r].mins);
        const __m512 sum = _mm512_fmadd_ps(w[r].min, _mm512_cvtepi32_ps(min),
                                           _mm512_mul_ps(w[r].d, _mm512_cvtepi32_ps(product)));
        acc[r][t] = _mm512_fmadd_ps(sum, d, acc[r][t]);
      } else {
        const __m512i surplus = _mm512_slli_epi16(negative_sums, X86Block<T>::kPartSurplusBits);
        const __m512i product = _mm512_madd_epi16(_mm512_add_epi16(sums[r], surplus), w[r].scales);
        acc[r][t] =
            _mm512_fmadd_ps(_mm512_cvtepi32_ps(product), _mm512_mul_ps(w[r].d, d), acc[r][t]);
      }
    }
  }
}

template <DType T>
struct Kernel {
  static constexpr int64_t kUnitBytes = block_bytes(T);

  template <int R, int N>
  SNAPKV_VNNI static void tile(const GemvCall& c, const avx512::TileRange& range,
                               __m512 (*sums)[N]) {
    const VnniUnit* x[N];
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
      x[t] = reinterpret_cast<const VnniUnit*>(c.x + t * c.x_stride);
    }
    __m512 acc[R][N];
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
      SNAPKV_UNROLL for (int t = 0; t < N; ++t) acc[r][t] = sums[r][t];
    }
    const char* p = c.w + range.row * c.w_stride + range.unit_begin * kUnitBytes;
    Weights w[R];
    for (int64_t u = range.unit_begin; u < range.unit_end; ++u) {  // rows are whole superblocks
      SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
        const char* q = p + r * c.w_stride;
        for (int64_t i = 0; i < kUnitBytes; i += 64) __builtin_prefetch(q + range.ahead + i, 0, 2);
        load_weights<T>(q, w[r]);
      }
      if constexpr (HasHalfScales<T>) {
        multiply_half_parts<T>(w, x, u, acc);
      } else {
        multiply_parts(w, x, u, acc);
      }
      p += kUnitBytes;
    }
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
      SNAPKV_UNROLL for (int t = 0; t < N; ++t) sums[r][t] = acc[r][t];
    }
  }
};

}  // namespace

GemvFn vnni_superblock_function(DType weight) {
  return visit_weight_type(weight, [](auto type) -> GemvFn {
    if constexpr (HasVnniParts<type.dtype>) return avx512::multiply<Kernel<type.dtype>>;
    return nullptr;
  });
}

}  // namespace snapkv::cpu

#endif  // x86-64
