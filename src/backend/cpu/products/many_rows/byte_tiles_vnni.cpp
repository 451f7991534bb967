// SPDX-License-Identifier: MIT
// multiply_byte_tiles_*() with AVX-512 VNNI. For 32 values of k, a row and 16 outputs it takes 8
// vpdpbusd, which add 4 products of bytes into each lane, a conversion, a multiplication and a
// multiply-add.
#include "backend/cpu/products/many_rows/byte_panels_x86.h"

#if defined(__x86_64__)

namespace snapkv::cpu {
namespace {

constexpr int kLanes = 16;
constexpr int kVectors = kBytePanelRows / kLanes;

/// sums (+)= tile * piece.
template <DType T, bool kAdds>
SNAPKV_VNNI_INLINE void multiply_tile(const typename BytePanelType<T>::Part* parts,
                                      const ByteTile& x, float* sums) {
  using Type = BytePanelType<T>;
  constexpr int kDepth = Type::Part::kDepth;
  __m512 acc[kByteTileRows][kVectors];
  SNAPKV_UNROLL for (int i = 0; i < kByteTileRows; ++i) {
    SNAPKV_UNROLL for (int v = 0; v < kVectors; ++v) {
      acc[i][v] =
          kAdds ? _mm512_load_ps(sums + i * kBytePanelRows + v * kLanes) : _mm512_setzero_ps();
    }
  }
  for (int p = 0; p < Type::kParts; ++p) {
    const auto& part = parts[p];
    const auto& sums_x = negative_sums<T>(x, p);
    __m512i sum[kByteTileRows][kVectors];
    SNAPKV_UNROLL for (int i = 0; i < kByteTileRows; ++i) {
      const __m512i surplus = _mm512_set1_epi32(Type::kSurplus * sums_x[i]);
      SNAPKV_UNROLL for (int v = 0; v < kVectors; ++v) sum[i][v] = surplus;
    }
    SNAPKV_UNROLL for (int k = 0; k < kDepth; ++k) {
      SNAPKV_UNROLL for (int i = 0; i < kByteTileRows; ++i) {
        const __m512i q = _mm512_set1_epi32(load_word<int32_t>(x.q[p * kDepth + k][i]));
        SNAPKV_UNROLL for (int v = 0; v < kVectors; ++v) {
          sum[i][v] = _mm512_dpbusd_epi32(sum[i][v], _mm512_load_si512(part.q[k] + v * kLanes), q);
        }
      }
    }
    SNAPKV_UNROLL for (int i = 0; i < kByteTileRows; ++i) {
      const float d = x.d[p * 8 / Type::kParts][i];
      const __m512 d_x = _mm512_set1_ps(d);
      [[maybe_unused]] const __m512 sum_x = _mm512_set1_ps(d * static_cast<float>(sums_x[i]));
      SNAPKV_UNROLL for (int v = 0; v < kVectors; ++v) {
        const __m512 d_both = _mm512_mul_ps(_mm512_load_ps(part.d + v * kLanes), d_x);
        acc[i][v] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[i][v]), d_both, acc[i][v]);
        if constexpr (kHasMin<T>) {
          acc[i][v] = _mm512_fmadd_ps(_mm512_load_ps(part.min + v * kLanes), sum_x, acc[i][v]);
        }
      }
    }
  }
  SNAPKV_UNROLL for (int i = 0; i < kByteTileRows; ++i) {
    SNAPKV_UNROLL for (int v = 0; v < kVectors; ++v) {
      _mm512_store_ps(sums + i * kBytePanelRows + v * kLanes, acc[i][v]);
    }
  }
}

template <DType T, bool kAdds>
SNAPKV_VNNI void multiply_tiles(const ByteTilesCall& c) {
  const auto* parts = reinterpret_cast<const typename BytePanelType<T>::Part*>(c.piece);
  for (int64_t t = 0; t < c.n_tiles; ++t) {
    copy_next_piece(c, t);
    multiply_tile<T, kAdds>(parts, c.x[t], c.sums + t * kByteTileRows * kBytePanelRows);
  }
  finish_next_piece(c);
}

}  // namespace

MultiplyByteTilesFn multiply_byte_tiles_vnni(DType weight) {
  return visit_weight_type(weight, [](auto type) -> MultiplyByteTilesFn {
    constexpr DType T = type.dtype;
    if constexpr (HasX86Block<T>) {
      return [](const ByteTilesCall& c) {
        c.adds ? multiply_tiles<T, true>(c) : multiply_tiles<T, false>(c);
      };
    }
    return nullptr;
  });
}

}  // namespace snapkv::cpu

#endif  // x86-64
