// SPDX-License-Identifier: MIT
// pack_panel() with AVX-512: 16 rows are decoded, transposed in registers as 16 x 16 words, and
// written as whole cache lines. Memory limits its speed.
#include "backend/cpu/target/cpu_target.h"
#include "backend/cpu/weights/pack.h"

#if defined(__x86_64__)

#include <algorithm>

#include "backend/cpu/target/cpu_target.h"
#include "backend/cpu/target/transpose_avx512.h"
#include "backend/cpu/weights/types_x86.h"
#include "base/check.h"

// The functions of this file run only where has(CpuTarget::avx512_bf16).
#define SNAPKV_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,f16c,prfchw")))
#define SNAPKV_AVX512_INLINE SNAPKV_AVX512 __attribute__((always_inline)) inline

namespace snapkv::cpu {
namespace {

constexpr int kTile = 16;  // rows, and words of a row, that are transposed at a time

/// Lines are prefetched for writing this many words of a panel ahead.
constexpr int64_t kStoreAhead = 4 * kTile * kPanelRows;

/// Factors of the levels in a tile's superblocks, and what is then subtracted; unpacked once for
/// 256 values.
struct TileFactors {
  alignas(64) float scales[kTile][16];  // [row][part], or [row][2 * part + half of the part]
  alignas(64) float mins[kTile][16];
};

template <DType T>
constexpr bool kIsSuperblock = block_size(T) == kSuperblockSize;

/// Multiplies 8 or 16 integers of a superblock by `unit`.
SNAPKV_AVX512_INLINE void scale_up(const PartBytes&, uint64_t integers, float unit, float* to) {
  const __m256i words = _mm256_cvtepi8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(integers)));
  _mm256_store_ps(to, _mm256_mul_ps(_mm256_set1_ps(unit), _mm256_cvtepi32_ps(words)));
}
SNAPKV_AVX512_INLINE void scale_up(const HalfPartBytes&, const uint64_t (&integers)[2], float unit,
                                   float* to) {
  const __m512i words = _mm512_cvtepi8_epi32(
      _mm_set_epi64x(static_cast<int64_t>(integers[1]), static_cast<int64_t>(integers[0])));
  _mm512_store_ps(to, _mm512_mul_ps(_mm512_set1_ps(unit), _mm512_cvtepi32_ps(words)));
}

/// Unpacks the factors of the superblocks at p, p + stride, ... in n rows.
template <DType T>
SNAPKV_AVX512_INLINE void unpack_factors(const char* p, int64_t stride, int n, TileFactors& to) {
  using B = X86Block<T>;
  for (int r = 0; r < n; ++r, p += stride) {
    // 16 rows below: see pack_tile()
    for (int64_t at = 0; at < block_bytes(T); at += 64) {
      __builtin_prefetch(p + kTile * stride + at, 0, 2);
    }
    const auto scales = B::scales(p);
    scale_up(scales, scales.scales, B::d(p), to.scales[r]);
    if constexpr (kHasMin<T>) scale_up(scales, scales.mins, B::min(p), to.mins[r]);
  }
}

/// Decodes values [i, i + 32) of row `r` of a tile into two f32 vectors; i is a multiple of 32.
/// `factors`: of the superblocks, for types that have them.
template <DType T>
SNAPKV_AVX512_INLINE void decode(const char* row, int64_t i, const TileFactors& factors, int r,
                                 __m512& low, __m512& high) {
  const char* p = row + row_bytes(T, i);
  if constexpr (T == DType::f32) {
    low = _mm512_loadu_ps(p);
    high = _mm512_loadu_ps(p + 64);
  } else if constexpr (T == DType::f16) {
    low = _mm512_cvtph_ps(load_32(p));
    high = _mm512_cvtph_ps(load_32(p + 32));
  } else if constexpr (T == DType::bf16) {
    low = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_32(p)), 16));
    high = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_32(p + 32)), 16));
  } else {
    using B = X86Block<T>;
    const int part = static_cast<int>(i % block_size(T) / kBlockSize);
    __m256i levels = B::levels(p, part);
    if constexpr (HasLevelOffset<T>) {
      levels = _mm256_sub_epi8(levels, _mm256_set1_epi8(B::kOffset));
    }
    __m512 scale[2], min[2];
    if constexpr (kIsSuperblock<T>) {
      SNAPKV_UNROLL for (int half = 0; half < 2; ++half) {
        const int at = HasHalfScales<T> ? 2 * part + half : part;
        scale[half] = _mm512_set1_ps(factors.scales[r][at]);
        if constexpr (kHasMin<T>) min[half] = _mm512_set1_ps(factors.mins[r][at]);
      }
    } else {
      scale[0] = scale[1] = _mm512_set1_ps(B::d(p));
      if constexpr (kHasMin<T>) min[0] = min[1] = _mm512_set1_ps(B::min(p));
    }
    low = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_castsi256_si128(levels)));
    high = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_extracti128_si256(levels, 1)));
    if constexpr (kHasMin<T>) {
      low = _mm512_fmsub_ps(low, scale[0], min[0]);
      high = _mm512_fmsub_ps(high, scale[1], min[1]);
    } else {
      low = _mm512_mul_ps(low, scale[0]);
      high = _mm512_mul_ps(high, scale[1]);
    }
  }
}

template <PackTo To>
SNAPKV_AVX512_INLINE void store_tile(__m512i (&v)[kTile], uint32_t* dst) {
  avx512::transpose(v);
  if constexpr (To == PackTo::caches) {  // lines of a later tile, which may be far away
    SNAPKV_UNROLL for (int k = 0; k < kTile; ++k) {
      __builtin_prefetch(dst + kStoreAhead + k * kPanelRows, 1, 3);
    }
  }
  SNAPKV_UNROLL for (int k = 0; k < kTile; ++k) {
    auto* line = reinterpret_cast<__m512i*>(dst + k * kPanelRows);
    To == PackTo::memory ? _mm512_stream_si512(line, v[k]) : _mm512_store_si512(line, v[k]);
  }
}

/// Packs values [i, i + 32) of 16 rows, of which the first n exist, into columns of a panel.
template <DType T, DType Compute, PackTo To>
SNAPKV_AVX512_INLINE void pack_tile(const char* rows, int64_t stride, int n, int64_t i,
                                    const TileFactors& factors, uint32_t* dst) {
  __m512i v[kTile], w[kTile];
  SNAPKV_UNROLL for (int r = 0; r < kTile; ++r) {
    v[r] = w[r] = _mm512_setzero_si512();
    if (r >= n) continue;
    const char* row = rows + r * stride;
    // the same place 16 rows below: 16 adjacent streams are too many for the processor's own
    // prefetcher
    if constexpr (!kIsSuperblock<T>) {
      __builtin_prefetch(row + kTile * stride + row_bytes(T, i), 0, 2);
    }
    if constexpr (Compute == DType::bf16 && T == DType::bf16) {
      v[r] = _mm512_loadu_si512(row + 2 * i);
      continue;
    }
    __m512 low, high;
    decode<T>(row, i, factors, r, low, high);
    if constexpr (Compute == DType::bf16) {
      v[r] = (__m512i)_mm512_cvtne2ps_pbh(high, low);
    } else {
      v[r] = _mm512_castps_si512(low);
      w[r] = _mm512_castps_si512(high);
    }
  }
  store_tile<To>(v, dst);
  if constexpr (Compute == DType::f32) store_tile<To>(w, dst + kTile * kPanelRows);
}

template <DType T, DType Compute, PackTo To>
SNAPKV_AVX512 void pack_panel_as(const Tensor& weight, int64_t panel, uint32_t* dst) {
  constexpr int64_t kWords = Compute == DType::bf16 ? 16 : 32;  // words of k in 32 values
  const int64_t n_in = weight.shape[1];
  TileFactors factors;
  for (int64_t r = 0; r < kPanelRows; r += kTile) {
    const int64_t row = panel * kPanelRows + r;
    const int n = static_cast<int>(std::clamp<int64_t>(weight.shape[0] - row, 0, kTile));
    const char* rows = weight.at<const char>(row);
    for (int64_t i = 0; i < n_in; i += 32) {
      if constexpr (kIsSuperblock<T>) {
        if (i % kSuperblockSize == 0) {
          unpack_factors<T>(rows + row_bytes(T, i), weight.stride[0], n, factors);
        }
      }
      pack_tile<T, Compute, To>(rows, weight.stride[0], n, i, factors,
                                dst + i / 32 * kWords * kPanelRows + r);
    }
  }
  if constexpr (To == PackTo::memory) _mm_sfence();  // makes streamed stores visible
}

template <DType T>
constexpr bool kPacks = block_size(T) == 1 || (HasX86Block<T> && !HasFloatHalves<T>);

template <DType Compute, PackTo To>
void pack_panel_of(const Tensor& weight, int64_t panel, uint32_t* dst) {
  visit_weight_type(weight.dtype, [&](auto type) {
    if constexpr (kPacks<type.dtype>) {
      pack_panel_as<type.dtype, Compute, To>(weight, panel, dst);
    } else {
      SNAPKV_CHECK(false);
    }
  });
}

}  // namespace

bool packs_avx512(DType weight) {
  return has(CpuTarget::avx512_bf16) &&
         visit_weight_type(weight, [](auto type) { return kPacks<type.dtype>; });
}

void pack_panel_avx512(DType compute, const Tensor& weight, int64_t panel, PackTo to, void* dst) {
  auto* words = static_cast<uint32_t*>(dst);
  if (compute == DType::bf16) {
    to == PackTo::memory ? pack_panel_of<DType::bf16, PackTo::memory>(weight, panel, words)
                         : pack_panel_of<DType::bf16, PackTo::caches>(weight, panel, words);
  } else {
    to == PackTo::memory ? pack_panel_of<DType::f32, PackTo::memory>(weight, panel, words)
                         : pack_panel_of<DType::f32, PackTo::caches>(weight, panel, words);
  }
}

}  // namespace snapkv::cpu

#endif  // x86-64
