// SPDX-License-Identifier: MIT
// multiply_byte_tiles_*() with 256-bit vectors. A file that includes this one defines SNAPKV_256
// (its functions' target) and
//   kTilesAtOnce<T>                             tiles that are multiplied together: 1 or 2
//   kSumsAtOnce                                 rows of these times vectors of outputs
//   multiply_part<T>(part, x, p, first, sums)   the integer sums of part p of the tiles at x for
//                                               vectors of outputs from `first` on
// 16 registers do not hold integer and f32 sums at once, so the f32 sums stay in the L1 cache.
#pragma once

namespace snapkv::cpu {
namespace {

constexpr int kVectors = kBytePanelRows / kLanes;

/// sums (+)= the piece times kTiles tiles of activations.
template <DType T, int kTiles>
SNAPKV_256_INLINE void multiply_tile(const typename BytePanelType<T>::Part* parts,
                                     const ByteTile* x, float* sums) {
  using Type = BytePanelType<T>;
  constexpr int kRows = kTiles * kByteTileRows, kAtOnce = kSumsAtOnce / kRows;
  for (int first = 0; first < kVectors; first += kAtOnce) {
    for (int p = 0; p < Type::kParts; ++p) {
      const auto& part = parts[p];
      __m256i sum[kRows][kAtOnce];
      multiply_part<T>(part, x, p, first, sum);
      SNAPKV_UNROLL for (int i = 0; i < kRows; ++i) {
        const ByteTile& tile = x[i / kByteTileRows];
        const int row = i % kByteTileRows;
        const float d = tile.d[p * 8 / Type::kParts][row];
        const __m256 d_x = _mm256_set1_ps(d);
        SNAPKV_UNROLL for (int v = 0; v < kAtOnce; ++v) {
          const int64_t at = (first + v) * kLanes;
          float* to = sums + i * kBytePanelRows + at;
          const __m256 d_both = _mm256_mul_ps(_mm256_load_ps(part.d + at), d_x);
          __m256 s = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[i][v]), d_both, _mm256_load_ps(to));
          if constexpr (kHasMin<T>) {
            const float sum_x = d * static_cast<float>(negative_sums<T>(tile, p)[row]);
            s = _mm256_fmadd_ps(_mm256_load_ps(part.min + at), _mm256_set1_ps(sum_x), s);
          }
          _mm256_store_ps(to, s);
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
