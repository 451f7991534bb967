// SPDX-License-Identifier: MIT
// multiply_byte_tiles_*() with 256-bit vectors. A file that includes this one defines SNAPKV_256
// (its functions' target) and
//   kTilesAtOnce<T>                             tiles that are multiplied together: 1 or 2
//   kSumsAtOnce                                 rows of these times vectors of outputs
//   TileTerms<T, kRows>                         what is computed from a tile's rows first
//   multiply_part<T>(part, x, terms, p, first, sums)
//                                               the integer sums of part p of the tiles at x for
//                                               vectors of outputs from `first` on
// 16 registers do not hold integer and f32 sums at once, so the f32 sums stay in the L1 cache.
#pragma once

namespace snapkv::cpu {
namespace {

constexpr int kVectors = kBytePanelRows / kLanes;

/// d times the negated sums of the activations that each part multiplies.
template <DType T, int kTiles>
SNAPKV_256_INLINE void scale_negative_sums(
    const ByteTile* x, float (&sums)[BytePanelType<T>::kParts][kTiles * kByteTileRows]) {
  constexpr int kParts = BytePanelType<T>::kParts;
  SNAPKV_UNROLL for (int p = 0; p < kParts; ++p) {
    SNAPKV_UNROLL for (int i = 0; i < kTiles * kByteTileRows; ++i) {
      const ByteTile& tile = x[i / kByteTileRows];
      const int row = i % kByteTileRows;
      sums[p][i] = tile.d[p * 8 / kParts][row] * static_cast<float>(negative_sums<T>(tile, p)[row]);
    }
  }
}

/// sums (+)= the piece times kTiles tiles of activations.
template <DType T, int kTiles>
SNAPKV_256_INLINE void multiply_tile(const typename BytePanelType<T>::Part* parts,
                                     const ByteTile* x, float* sums) {
  using Type = BytePanelType<T>;
  constexpr int kRows = kTiles * kByteTileRows, kAtOnce = kSumsAtOnce / kRows;
  const TileTerms<T, kRows> terms(x);
  alignas(32) float sum_x[Type::kParts][kRows];
  if constexpr (kHasMin<T>) scale_negative_sums<T, kTiles>(x, sum_x);
  for (int first = 0; first < kVectors; first += kAtOnce) {
    for (int p = 0; p < Type::kParts; ++p) {
      const auto& part = parts[p];
      __m256i sum[kRows][kAtOnce];
      multiply_part<T>(part, x, terms, p, first, sum);
      float* to = sums + first * kLanes;
      __asm__("" : "+r"(to));  // keeps GCC from copying sums to its stack too
      SNAPKV_UNROLL for (int i = 0; i < kRows; ++i) {
        const float* d = &x[i / kByteTileRows].d[p * 8 / Type::kParts][i % kByteTileRows];
        const __m256 d_x = _mm256_broadcast_ss(d);
        SNAPKV_UNROLL for (int v = 0; v < kAtOnce; ++v) {
          const int at = (first + v) * kLanes;
          float* sum_at = to + i * kBytePanelRows + v * kLanes;
          const __m256 d_both = _mm256_mul_ps(_mm256_load_ps(part.d + at), d_x);
          __m256 s = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[i][v]), d_both, _mm256_load_ps(sum_at));
          if constexpr (kHasMin<T>) {
            const __m256 x_sum = _mm256_broadcast_ss(&sum_x[p][i]);
            s = _mm256_fmadd_ps(_mm256_load_ps(part.min + at), x_sum, s);
          }
          _mm256_store_ps(sum_at, s);
        }
      }
    }
  }
}

template <DType T>
SNAPKV_256 void multiply_tiles(const ByteTilesCall& c) {
  const auto* parts = reinterpret_cast<const typename BytePanelType<T>::Part*>(c.piece);
  for (int64_t t = 0; t < c.n_tiles;) {
    const int64_t n = std::min<int64_t>(c.n_tiles - t, kTilesAtOnce<T>);
    for (int64_t i = 0; i < n; ++i) copy_next_piece(c, t + i);
    float* sums = c.sums + t * kByteTileRows * kBytePanelRows;
    if (!c.adds) std::fill_n(sums, n * kByteTileRows * kBytePanelRows, 0.0f);
    if (n == kTilesAtOnce<T>) {
      multiply_tile<T, kTilesAtOnce<T>>(parts, c.x + t, sums);
    } else {
      multiply_tile<T, 1>(parts, c.x + t, sums);
    }
    t += n;
  }
  finish_next_piece(c);
}

MultiplyByteTilesFn find_multiply_tiles(DType weight) {
  return visit_weight_type(weight, [](auto type) -> MultiplyByteTilesFn {
    if constexpr (HasX86Block<type.dtype>) return multiply_tiles<type.dtype>;
    return nullptr;
  });
}

}  // namespace
}  // namespace snapkv::cpu
