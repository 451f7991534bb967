// SPDX-License-Identifier: MIT
// pack_panels() with AVX-512: 16 rows are decoded, transposed in registers as 16 x 16 words, and
// written as whole cache lines past the caches (a packed matrix is larger than them). Bound by
// memory.
#include "backend/cpu/cpu_target.h"
#include "backend/cpu/pack.h"

#if defined(__x86_64__)

#include <algorithm>

#include "backend/cpu/cpu_target.h"
#include "backend/cpu/superblocks_x86.h"

// The functions of this file run only where has(CpuTarget::avx512_bf16).
#define SNAPKV_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,f16c")))
#define SNAPKV_AVX512_INLINE SNAPKV_AVX512 __attribute__((always_inline)) inline

namespace snapkv::cpu {
namespace {

constexpr int kTile = 16;  // rows, and words of a row, that are transposed at a time

/// Two vectors of f32: values [i, i + 32) of a row, i a multiple of 32.
template <DType T>
SNAPKV_AVX512_INLINE void decode(const char* row, int64_t i, __m512& low, __m512& high) {
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
    const __m256i levels = B::levels(p, part);
    float scale[2] = {B::d(p), B::d(p)}, min[2] = {};
    if constexpr (kHasMin<T>) min[0] = min[1] = B::min(p);
    if constexpr (block_size(T) > kBlockSize) {
      const auto scales = B::scales(p);
      for (int half = 0; half < 2; ++half) {
        scale[half] *= static_cast<float>(scales.scale(part, half));
        min[half] *= static_cast<float>(scales.min(part, half));
      }
    }
    low = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_castsi256_si128(levels)));
    high = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_extracti128_si256(levels, 1)));
    if constexpr (kHasMin<T>) {
      low = _mm512_fmsub_ps(low, _mm512_set1_ps(scale[0]), _mm512_set1_ps(min[0]));
      high = _mm512_fmsub_ps(high, _mm512_set1_ps(scale[1]), _mm512_set1_ps(min[1]));
    } else {
      low = _mm512_mul_ps(low, _mm512_set1_ps(scale[0]));
      high = _mm512_mul_ps(high, _mm512_set1_ps(scale[1]));
    }
  }
}

/// v[k] word r = v[r] word k.
SNAPKV_AVX512_INLINE void transpose(__m512i (&v)[kTile]) {
  __m512i t[kTile];
  SNAPKV_UNROLL for (int r = 0; r < kTile; r += 2) {  // pairs of rows
    t[r] = _mm512_unpacklo_epi32(v[r], v[r + 1]);
    t[r + 1] = _mm512_unpackhi_epi32(v[r], v[r + 1]);
  }
  SNAPKV_UNROLL for (int r = 0; r < kTile; r += 4) {  // v[r + k]: words k of 4 rows, 4 times
    v[r] = _mm512_unpacklo_epi64(t[r], t[r + 2]);
    v[r + 1] = _mm512_unpackhi_epi64(t[r], t[r + 2]);
    v[r + 2] = _mm512_unpacklo_epi64(t[r + 1], t[r + 3]);
    v[r + 3] = _mm512_unpackhi_epi64(t[r + 1], t[r + 3]);
  }
  SNAPKV_UNROLL for (int k = 0; k < 4; ++k) {  // quarters of 128 bits to their places
    const __m512i a = _mm512_shuffle_i32x4(v[k], v[4 + k], 0x88);
    const __m512i b = _mm512_shuffle_i32x4(v[k], v[4 + k], 0xdd);
    const __m512i c = _mm512_shuffle_i32x4(v[8 + k], v[12 + k], 0x88);
    const __m512i d = _mm512_shuffle_i32x4(v[8 + k], v[12 + k], 0xdd);
    t[k] = _mm512_shuffle_i32x4(a, c, 0x88);
    t[8 + k] = _mm512_shuffle_i32x4(a, c, 0xdd);
    t[4 + k] = _mm512_shuffle_i32x4(b, d, 0x88);
    t[12 + k] = _mm512_shuffle_i32x4(b, d, 0xdd);
  }
  SNAPKV_UNROLL for (int k = 0; k < kTile; ++k) v[k] = t[k];
}

SNAPKV_AVX512_INLINE void store_tile(__m512i (&v)[kTile], uint32_t* dst) {
  transpose(v);
  SNAPKV_UNROLL for (int k = 0; k < kTile; ++k) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(dst + k * kPanelRows), v[k]);
  }
}

/// Values [i, i + 32) of 16 rows, of which the first n exist, to columns of a panel.
template <DType T, DType Compute>
SNAPKV_AVX512_INLINE void pack_tile(const char* rows, int64_t stride, int n, int64_t i,
                                    uint32_t* dst) {
  __m512i v[kTile], w[kTile];
  SNAPKV_UNROLL for (int r = 0; r < kTile; ++r) {
    v[r] = w[r] = _mm512_setzero_si512();
    if (r >= n) continue;
    const char* row = rows + r * stride;
    // the same place 16 rows below: 16 neighbouring streams are too many for the processor's own
    // prefetcher
    __builtin_prefetch(row + kTile * stride + row_bytes(T, i), 0, 2);
    if constexpr (Compute == DType::bf16 && T == DType::bf16) {
      v[r] = _mm512_loadu_si512(row + 2 * i);
      continue;
    }
    __m512 low, high;
    decode<T>(row, i, low, high);
    if constexpr (Compute == DType::bf16) {
      v[r] = (__m512i)_mm512_cvtne2ps_pbh(high, low);
    } else {
      v[r] = _mm512_castps_si512(low);
      w[r] = _mm512_castps_si512(high);
    }
  }
  store_tile(v, dst);
  if constexpr (Compute == DType::f32) store_tile(w, dst + kTile * kPanelRows);
}

template <DType T, DType Compute>
SNAPKV_AVX512 void pack_panel(const Tensor& weight, int64_t panel, uint32_t* dst) {
  constexpr int64_t kWords = Compute == DType::bf16 ? 16 : 32;  // of k, of 32 values
  const int64_t n_in = weight.shape[1];
  for (int64_t r = 0; r < kPanelRows; r += kTile) {
    const int64_t row = panel * kPanelRows + r;
    const int n = static_cast<int>(std::clamp<int64_t>(weight.shape[0] - row, 0, kTile));
    const char* rows = weight.at<const char>(row);
    for (int64_t i = 0; i < n_in; i += 32) {
      pack_tile<T, Compute>(rows, weight.stride[0], n, i, dst + i / 32 * kWords * kPanelRows + r);
    }
  }
}

template <DType T>
constexpr bool kPacks = block_size(T) == 1 || HasX86Block<T>;

template <DType Compute>
void pack_panel_of(const Tensor& weight, int64_t panel, uint32_t* dst) {
  visit_weight_type(weight.dtype, [&](auto type) {
    if constexpr (kPacks<type.dtype>) pack_panel<type.dtype, Compute>(weight, panel, dst);
  });
}

}  // namespace

bool packs_avx512(DType weight) {
  return has(CpuTarget::avx512_bf16) &&
         visit_weight_type(weight, [](auto type) { return kPacks<type.dtype>; });
}

void pack_panels_avx512(const CpuContext& ctx, const Tensor& weight, void* dst) {
  const int64_t n_panels = (weight.shape[0] + kPanelRows - 1) / kPanelRows;
  const int64_t panel_words = static_cast<int64_t>(
      packed_bytes(ctx.compute, kPanelRows, weight.shape[1]) / sizeof(uint32_t));
#pragma omp parallel num_threads(ctx.n_threads)
  {
#pragma omp for schedule(dynamic, 1)
    for (int64_t panel = 0; panel < n_panels; ++panel) {
      uint32_t* out = static_cast<uint32_t*>(dst) + panel * panel_words;
      if (ctx.compute == DType::bf16) {
        pack_panel_of<DType::bf16>(weight, panel, out);
      } else {
        pack_panel_of<DType::f32>(weight, panel, out);
      }
    }
    _mm_sfence();  // streamed stores become visible
  }
}

}  // namespace snapkv::cpu

#endif  // x86-64
