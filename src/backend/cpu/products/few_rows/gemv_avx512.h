// SPDX-License-Identifier: MIT
// The loops around the AVX-512 kernels of gemv_int8_vnni.cpp and gemv_bf16.cpp: the order in which
// weights and activations are multiplied, prefetching, and the sums of the accumulators' lanes.
//
// Rows are taken 16 at a time. For a single activation row, each weight row is read from end to
// end, which reads memory in order. For more, tiles of 2 weight rows x N activation rows advance
// through a part of the columns that keeps the activations in the L1 cache before the next part
// begins. Accumulators wait in memory meanwhile; each still adds its products in the order of
// columns.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/cpu/products/few_rows/gemv.h"
#include "backend/cpu/target/avx512_util.h"

#define SNAPKV_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

namespace snapkv::cpu {
namespace avx512 {

inline constexpr int kBlockRows = 16;

/// The part of a product that one tile computes.
struct TileRange {
  int64_t row = 0;
  int64_t unit_begin = 0;  // units of kGemvUnit columns
  int64_t unit_end = 0;    // the last unit of a row may be incomplete
  int64_t ahead = 0;       // prefetch distance in bytes
};

/// Lane r = the sum of the lanes of v[r].
SNAPKV_AVX512 __attribute__((always_inline)) inline __m512 sum_lanes(
    const __m512 (&v)[kBlockRows]) {
  __m512 quarters[4];  // lanes 4q + r: row 4i + r, summed over each quarter q
  SNAPKV_UNROLL for (int i = 0; i < 4; ++i) {
    const __m512 a = _mm512_add_ps(_mm512_unpacklo_ps(v[4 * i], v[4 * i + 1]),
                                   _mm512_unpackhi_ps(v[4 * i], v[4 * i + 1]));
    const __m512 b = _mm512_add_ps(_mm512_unpacklo_ps(v[4 * i + 2], v[4 * i + 3]),
                                   _mm512_unpackhi_ps(v[4 * i + 2], v[4 * i + 3]));
    const __m512d low = _mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b));
    const __m512d high = _mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b));
    quarters[i] = _mm512_add_ps(_mm512_castpd_ps(low), _mm512_castpd_ps(high));
  }
  const __m512 first = _mm512_add_ps(_mm512_shuffle_f32x4(quarters[0], quarters[1], 0x88),
                                     _mm512_shuffle_f32x4(quarters[0], quarters[1], 0xdd));
  const __m512 second = _mm512_add_ps(_mm512_shuffle_f32x4(quarters[2], quarters[3], 0x88),
                                      _mm512_shuffle_f32x4(quarters[2], quarters[3], 0xdd));
  return _mm512_add_ps(_mm512_shuffle_f32x4(first, second, 0x88),
                       _mm512_shuffle_f32x4(first, second, 0xdd));
}

/// Kernel::tile<R, N>(call, range, acc) adds the products of a range to acc [R][N] (N vectors per
/// weight row). Kernel::kUnitBytes: bytes of a unit of weights.
template <class Kernel, int N>
SNAPKV_AVX512 void multiply_rows(const GemvCall& c) {
  // at most 14 KB of prepared activations (448 bytes a unit, or 512)
  constexpr int64_t kPartUnits = N == 1 ? 1 << 20 : 32 / N;
  const int64_t n_units = (c.n_in + kGemvUnit - 1) / kGemvUnit;
  __m512 acc[kBlockRows][N];
  for (int64_t block = 0; block < c.n_rows; block += kBlockRows) {
    const int n_rows = static_cast<int>(std::min<int64_t>(kBlockRows, c.n_rows - block));
    for (auto& row : acc) {
      SNAPKV_UNROLL for (__m512& v : row) v = _mm512_setzero_ps();
    }
    for (int64_t u = 0; u < n_units; u += kPartUnits) {
      TileRange range{.row = block, .unit_begin = u, .unit_end = std::min(n_units, u + kPartUnits)};
      if (N == 1) {
        range.ahead = kPrefetchBytes;
      } else if (range.unit_end < n_units) {  // the same rows' next part
        range.ahead = kPartUnits * Kernel::kUnitBytes;
      } else {  // the next rows' first part
        range.ahead = kBlockRows * c.w_stride - u * Kernel::kUnitBytes;
      }
      int r = 0;
      if constexpr (N > 1) {
        for (; r + 2 <= n_rows; r += 2, range.row += 2) {
          Kernel::template tile<2, N>(c, range, acc + r);
        }
      }
      for (; r < n_rows; ++r, ++range.row) Kernel::template tile<1, N>(c, range, acc + r);
    }
    const __mmask16 mask = static_cast<__mmask16>((1u << n_rows) - 1);
    for (int t = 0; t < N; ++t) {
      __m512 v[kBlockRows];
      SNAPKV_UNROLL for (int r = 0; r < kBlockRows; ++r) v[r] = acc[r][t];
      _mm512_mask_storeu_ps(c.sums + t * c.sums_stride + block, mask, sum_lanes(v));
    }
  }
}

/// Tiles of more rows of activations need more registers than there are: two calls, of which the
/// second finds the weights in the cache, take less time than one of 8 rows (0.87 on a Zen 4).
template <class Kernel>
void multiply(const GemvCall& c) {
  constexpr int kMostRows = 4;
  GemvCall part = c;
  for (int rest = c.n; rest > 0; rest -= kMostRows) {
    part.n = std::min(rest, kMostRows);
    switch (part.n) {
      case 1:
        multiply_rows<Kernel, 1>(part);
        break;
      case 2:
        multiply_rows<Kernel, 2>(part);
        break;
      case 3:
        multiply_rows<Kernel, 3>(part);
        break;
      default:
        multiply_rows<Kernel, kMostRows>(part);
    }
    part.x += kMostRows * part.x_stride;
    part.sums += kMostRows * part.sums_stride;
  }
}

}  // namespace avx512
}  // namespace snapkv::cpu
