// SPDX-License-Identifier: MIT
// pack_panels() with AVX-512: 16 rows are decoded, transposed in registers as 16 x 16 words, and
// written as whole cache lines past the caches (a packed matrix is larger than them). Bound by
// memory.
#include "backend/cpu/pack.h"

#if defined(__x86_64__)

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "backend/cpu/avx512_util.h"
#include "backend/cpu/superblock.h"
#include "base/half.h"
#include "format/block_types.h"

// The functions of this file run only where has(CpuTarget::avx512_bf16).
#define SNAPKV_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,f16c")))
#define SNAPKV_AVX512_INLINE SNAPKV_AVX512 __attribute__((always_inline)) inline

namespace snapkv::cpu {
namespace {

constexpr int kTile = 16;  // rows, and words of a row, that are transposed at a time

SNAPKV_AVX512_INLINE float load_f16(const char* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof(bits));
  return _cvtsh_ss(bits);
}
SNAPKV_AVX512_INLINE __m512 load_scale(const char* p) { return _mm512_set1_ps(load_f16(p)); }
SNAPKV_AVX512_INLINE __m128i load_16(const char* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

/// scale * q (- min) for a vector of 16 levels.
SNAPKV_AVX512_INLINE __m512 scale_levels(__m512i q, float scale, float min) {
  return _mm512_fmsub_ps(_mm512_cvtepi32_ps(q), _mm512_set1_ps(scale), _mm512_set1_ps(min));
}

/// Part `part` of a q4_k or q5_k superblock at p.
template <DType T>
SNAPKV_AVX512_INLINE void decode_with_min(const char* p, int part, __m512& low, __m512& high) {
  using Block = std::conditional_t<T == DType::q4_k, BlockQ4_K, BlockQ5_K>;
  const PartBytes parts = unpack_scales(p);
  const float scale = load_f16(p) * static_cast<float>(parts.scale(part));
  const float min = load_f16(p + offsetof(PartScales, dmin)) * static_cast<float>(parts.min(part));
  const char* qs = p + offsetof(Block, qs) + part / 2 * kBlockSize;
  __m512i q[2];
  SNAPKV_UNROLL for (int k = 0; k < 2; ++k) {
    const __m512i nibbles = _mm512_cvtepu8_epi32(load_16(qs + 16 * k));
    q[k] = _mm512_and_si512(_mm512_srl_epi32(nibbles, _mm_cvtsi32_si128(part % 2 * 4)),
                            _mm512_set1_epi32(15));
    if constexpr (T == DType::q5_k) {
      const __m512i bits = _mm512_cvtepu8_epi32(load_16(p + offsetof(BlockQ5_K, qh) + 16 * k));
      const __mmask16 high_bit = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(1 << part));
      q[k] = _mm512_mask_add_epi32(q[k], high_bit, q[k], _mm512_set1_epi32(16));
    }
  }
  low = scale_levels(q[0], scale, min);
  high = scale_levels(q[1], scale, min);
}

/// Part `part` of a q6_k superblock at p.
SNAPKV_AVX512_INLINE void decode_q6_k(const char* p, int part, __m512& low, __m512& high) {
  const float d = load_f16(p + offsetof(BlockQ6_K, d));
  const char* ql = p + part / 4 * 64 + part % 2 * 32;
  const char* qh = p + offsetof(BlockQ6_K, qh) + part / 4 * 32;
  const __m128i low_shift = _mm_cvtsi32_si128(part % 4 / 2 * 4);
  const __m128i high_shift = _mm_cvtsi32_si128(part % 4 * 2);
  __m512 values[2];
  SNAPKV_UNROLL for (int k = 0; k < 2; ++k) {
    const __m512i nibbles =
        _mm512_and_si512(_mm512_srl_epi32(_mm512_cvtepu8_epi32(load_16(ql + 16 * k)), low_shift),
                         _mm512_set1_epi32(15));
    const __m512i bits =
        _mm512_and_si512(_mm512_srl_epi32(_mm512_cvtepu8_epi32(load_16(qh + 16 * k)), high_shift),
                         _mm512_set1_epi32(3));
    const __m512i q = _mm512_sub_epi32(_mm512_or_si512(nibbles, _mm512_slli_epi32(bits, 4)),
                                       _mm512_set1_epi32(32));
    const auto scale = static_cast<int8_t>(p[offsetof(BlockQ6_K, scales) + 2 * part + k]);
    values[k] = _mm512_mul_ps(_mm512_cvtepi32_ps(q), _mm512_set1_ps(d * scale));
  }
  low = values[0];
  high = values[1];
}

/// Two vectors of f32: values [i, i + 32) of a row, i a multiple of 32.
template <DType T>
SNAPKV_AVX512_INLINE void decode(const char* row, int64_t i, __m512& low, __m512& high) {
  const char* p = row + row_bytes(T, i);
  if constexpr (T == DType::q8_0) {
    const __m512 d = load_scale(p);
    low = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_16(p + 2))), d);
    high = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_16(p + 18))), d);
  } else if constexpr (T == DType::q4_0) {
    const __m512 d = load_scale(p);
    const __m512i eight = _mm512_set1_epi32(8);
    const __m512i q = _mm512_cvtepu8_epi32(load_16(p + 2));
    const __m512i low_q = _mm512_sub_epi32(_mm512_and_si512(q, _mm512_set1_epi32(15)), eight);
    const __m512i high_q = _mm512_sub_epi32(_mm512_srli_epi32(q, 4), eight);
    low = _mm512_mul_ps(_mm512_cvtepi32_ps(low_q), d);
    high = _mm512_mul_ps(_mm512_cvtepi32_ps(high_q), d);
  } else if constexpr (T == DType::q4_k || T == DType::q5_k) {
    decode_with_min<T>(p, static_cast<int>(i % kSuperblockSize / kBlockSize), low, high);
  } else if constexpr (T == DType::q6_k) {
    decode_q6_k(p, static_cast<int>(i % kSuperblockSize / kBlockSize), low, high);
  } else if constexpr (T == DType::f32) {
    low = _mm512_loadu_ps(p);
    high = _mm512_loadu_ps(p + 64);
  } else if constexpr (T == DType::f16) {
    low = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    high = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32)));
  } else {
    const __m512i bits = _mm512_loadu_si512(p);
    const __m256i first = _mm512_castsi512_si256(bits);
    const __m256i second = _mm512_extracti64x4_epi64(bits, 1);
    low = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(first), 16));
    high = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(second), 16));
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

template <DType Compute>
void pack_panel_of(const Tensor& weight, int64_t panel, uint32_t* dst) {
  switch (weight.dtype) {
    case DType::f32:
      return pack_panel<DType::f32, Compute>(weight, panel, dst);
    case DType::f16:
      return pack_panel<DType::f16, Compute>(weight, panel, dst);
    case DType::bf16:
      return pack_panel<DType::bf16, Compute>(weight, panel, dst);
    case DType::q8_0:
      return pack_panel<DType::q8_0, Compute>(weight, panel, dst);
    case DType::q4_0:
      return pack_panel<DType::q4_0, Compute>(weight, panel, dst);
    case DType::q4_k:
      return pack_panel<DType::q4_k, Compute>(weight, panel, dst);
    case DType::q5_k:
      return pack_panel<DType::q5_k, Compute>(weight, panel, dst);
    case DType::q6_k:
      return pack_panel<DType::q6_k, Compute>(weight, panel, dst);
    case DType::i32:
      break;
  }
}

}  // namespace

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
