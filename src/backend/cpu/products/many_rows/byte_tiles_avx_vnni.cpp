// SPDX-License-Identifier: MIT
// multiply_byte_tiles_*() with AVX-VNNI, the dot products of processors without AVX-512.
#include "backend/cpu/products/many_rows/byte_panels_x86.h"

#if defined(__x86_64__)

// The functions of this file run only where has(CpuTarget::avx_vnni).
#define SNAPKV_256 __attribute__((target("avx2,fma,f16c,avxvnni")))
#define SNAPKV_256_INLINE __attribute__((target("avx2,fma,f16c,avxvnni"), always_inline)) inline

namespace snapkv::cpu {
namespace {

constexpr int kLanes = 8;

/// 8 sums: enough that no product waits for the previous one.
constexpr int kSumsAtOnce = 8;

template <DType T>
constexpr int kTilesAtOnce = 1;

template <DType T, int kRows>
struct TileTerms {
  SNAPKV_256_INLINE explicit TileTerms(const ByteTile*) {}
};

template <DType T, int kAtOnce>
SNAPKV_256_INLINE void multiply_part(const typename BytePanelType<T>::Part& part, const ByteTile* x,
                                     const TileTerms<T, kByteTileRows>&, int p, int first,
                                     __m256i (&sum)[kByteTileRows][kAtOnce]) {
  constexpr int kDepth = BytePanelType<T>::Part::kDepth;
  SNAPKV_UNROLL for (int i = 0; i < kByteTileRows; ++i) {
    const __m256i surplus =
        _mm256_set1_epi32(BytePanelType<T>::kSurplus * negative_sums<T>(*x, p)[i]);
    SNAPKV_UNROLL for (int v = 0; v < kAtOnce; ++v) sum[i][v] = surplus;
  }
  SNAPKV_UNROLL for (int k = 0; k < kDepth; ++k) {
    __m256i q[kByteTileRows];
    SNAPKV_UNROLL for (int i = 0; i < kByteTileRows; ++i) {
      q[i] = _mm256_set1_epi32(load_word<int32_t>(x->q[p * kDepth + k][i]));
    }
    SNAPKV_UNROLL for (int v = 0; v < kAtOnce; ++v) {
      const __m256i w = load_32(reinterpret_cast<const char*>(part.q[k] + (first + v) * kLanes));
      SNAPKV_UNROLL for (int i = 0; i < kByteTileRows; ++i) {
        sum[i][v] = _mm256_dpbusd_avx_epi32(sum[i][v], w, q[i]);
      }
    }
  }
}

}  // namespace
}  // namespace snapkv::cpu

#include "backend/cpu/products/many_rows/byte_tiles_256-inl.h"

namespace snapkv::cpu {

MultiplyByteTilesFn multiply_byte_tiles_avx_vnni(DType weight) {
  return find_multiply_tiles(weight);
}

}  // namespace snapkv::cpu

#endif  // x86-64
