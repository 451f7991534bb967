// SPDX-License-Identifier: MIT
// multiply_byte_tiles_*() with 256-bit vectors. A file that includes this one defines SNAPKV_256
// (its functions' target) and
//   multiply_part<T>(part, x, p, first, sums)   the integer sums of part p of a tile for
//                                               kVectorsAtOnce vectors of outputs from `first` on
// 16 registers do not hold integer and f32 sums at once, so the f32 sums stay in the L1 cache.
#pragma once

namespace snapkv::cpu {
namespace {

constexpr int kVectors = kBytePanelRows / kLanes;

template <DType T>
SNAPKV_256_INLINE void multiply_tile(const typename BytePanelType<T>::Part* parts,
                                     const ByteTile& x, float* sums) {
  using Type = BytePanelType<T>;
  constexpr int kAtOnce = kVectorsAtOnce;
  for (int first = 0; first < kVectors; first += kAtOnce) {
    for (int p = 0; p < Type::kParts; ++p) {
      const auto& part = parts[p];
      __m256i sum[kByteTileRows][kAtOnce];
      multiply_part<T>(part, x, p, first, sum);
      SNAPKV_UNROLL for (int i = 0; i < kByteTileRows; ++i) {
        const float d = x.d[p * 8 / Type::kParts][i];
        const __m256 d_x = _mm256_set1_ps(d);
        SNAPKV_UNROLL for (int v = 0; v < kAtOnce; ++v) {
          const int64_t at = (first + v) * kLanes;
          float* to = sums + i * kBytePanelRows + at;
          const __m256 d_both = _mm256_mul_ps(_mm256_load_ps(part.d + at), d_x);
          __m256 s = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[i][v]), d_both, _mm256_load_ps(to));
          if constexpr (kHasMin<T>) {
            const float sum_x = d * static_cast<float>(negative_sums<T>(x, p)[i]);
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
  for (int64_t t = 0; t < c.n_tiles; ++t) {
    copy_next_piece(c, t);
    float* sums = c.sums + t * kByteTileRows * kBytePanelRows;
    if (!c.adds) std::fill_n(sums, kByteTileRows * kBytePanelRows, 0.0f);
    multiply_tile<T>(parts, c.x[t], sums);
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
