// SPDX-License-Identifier: MIT
// Prepares activations and unpacks weights for byte_panels.h. One AVX2 version serves all kernels,
// since it takes only a few percent of their time.
#include "backend/cpu/products/many_rows/byte_panels_x86.h"

#if defined(__x86_64__)

#include <cstring>

#include "backend/cpu/products/few_rows/round_block_x86.h"
#include "backend/cpu/weights/interleaved_256.h"

// The functions of this file run only where has(CpuTarget::avx2).
#define SNAPKV_AVX2 __attribute__((target("avx2,fma,f16c")))

namespace snapkv::cpu {
namespace {

constexpr int kLanes = 8;

// ---------------------------------------------------------------- activations

template <typename X>
SNAPKV_AVX2 void prepare_as(const void* const (&rows)[kByteTileRows], int64_t n, ByteTile& tile) {
  for (int b = 0; b < kGemvUnit / kBlockSize; ++b) {
    __m256i blocks[kByteTileRows];
    for (int i = 0; i < kByteTileRows; ++i) {
      const auto* x = static_cast<const X*>(rows[i]);
      blocks[i] = _mm256_setzero_si256();
      tile.d[b][i] = 0;
      if (x != nullptr && b * kBlockSize < n) {
        FloatBlock values;
        load_block(x + b * kBlockSize, values);
        const float max = max_magnitude(values);
        blocks[i] = round_block(values, max > 0 ? 127.0f / max : 0.0f);
        tile.d[b][i] = max / 127.0f;
      }
      const auto [first, last] = negative_half_sums(blocks[i]);
      tile.negative_half_sums[2 * b][i] = first;
      tile.negative_half_sums[2 * b + 1][i] = last;
      tile.negative_sums[b][i] = first + last;
    }
    static_assert(kByteTileRows == 2);
    const __m256i low = _mm256_unpacklo_epi32(blocks[0], blocks[1]);   // words 0, 1 and 4, 5
    const __m256i high = _mm256_unpackhi_epi32(blocks[0], blocks[1]);  // 2, 3 and 6, 7
    auto* words = reinterpret_cast<__m256i*>(tile.q[b * kBlockSize / 4]);
    _mm256_store_si256(words, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_store_si256(words + 1, _mm256_permute2x128_si256(low, high, 0x31));
  }
}

SNAPKV_AVX2 void prepare(const void* const (&rows)[kByteTileRows], DType dtype, int64_t n,
                         ByteTile& tile) {
  dtype == DType::bf16 ? prepare_as<bf16_t>(rows, n, tile) : prepare_as<float>(rows, n, tile);
}

// ---------------------------------------------------------------- weights

/// v[k] lane r = v[r] lane k.
SNAPKV_AVX2_INLINE void transpose(__m256 (&v)[kLanes]) {
  __m256 t[kLanes];
  SNAPKV_UNROLL for (int r = 0; r < kLanes; r += 2) {  // pairs of rows
    t[r] = _mm256_unpacklo_ps(v[r], v[r + 1]);
    t[r + 1] = _mm256_unpackhi_ps(v[r], v[r + 1]);
  }
  SNAPKV_UNROLL for (int r = 0; r < kLanes; r += 4) {  // v[r + k]: lanes k and 4 + k of 4 rows
    v[r] = _mm256_shuffle_ps(t[r], t[r + 2], 0b01'00'01'00);
    v[r + 1] = _mm256_shuffle_ps(t[r], t[r + 2], 0b11'10'11'10);
    v[r + 2] = _mm256_shuffle_ps(t[r + 1], t[r + 3], 0b01'00'01'00);
    v[r + 3] = _mm256_shuffle_ps(t[r + 1], t[r + 3], 0b11'10'11'10);
  }
  SNAPKV_UNROLL for (int k = 0; k < 4; ++k) {
    const __m256 low = v[k], high = v[4 + k];
    v[k] = _mm256_permute2f128_ps(low, high, 0x20);
    v[4 + k] = _mm256_permute2f128_ps(low, high, 0x31);
  }
}

SNAPKV_AVX2_INLINE __m256 scaled_bytes(uint64_t bytes, float unit) {
  const __m128i b = _mm_cvtsi64_si128(static_cast<int64_t>(bytes));
  return _mm256_mul_ps(_mm256_set1_ps(unit), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(b)));
}

/// The lane of scales_8() and min_8() for blocks 0 ... 7.
constexpr int kLaneOfBlock[8] = {0, 4, 1, 5, 2, 6, 3, 7};

/// Unpacks scales and minima of 8 rows, of which n exist, to outputs [first, ...).
template <DType T>
SNAPKV_AVX2_INLINE void unpack_scales(const char* rows, int64_t stride, int64_t n, int64_t first,
                                      typename BytePanelType<T>::Part* parts) {
  using B = X86Block<T>;
  constexpr int kParts = BytePanelType<T>::kParts;
  SNAPKV_UNROLL for (int half = 0; half < kParts / 8; ++half) {
    __m256 d[kLanes], min[kLanes];
    SNAPKV_UNROLL for (int r = 0; r < kLanes; ++r) {
      d[r] = min[r] = _mm256_setzero_ps();
      if (r >= n) continue;
      const char* p = rows + r * stride;
      if constexpr (block_size(T) == kBlockSize) {
        d[r] = B::scales_8(p);
        if constexpr (kHasMin<T>) min[r] = B::min_8(p);
      } else if constexpr (HasFloatHalves<T>) {
        d[r] = B::half_scales(p, half);
      } else {
        const auto scales = B::scales(p);
        if constexpr (HasHalfScales<T>) {
          d[r] = scaled_bytes(scales.scales[half], B::d(p));
          if constexpr (kHasMin<T>) min[r] = scaled_bytes(scales.mins[half], B::min(p));
        } else {
          d[r] = scaled_bytes(scales.scales, B::d(p));
          if constexpr (kHasMin<T>) min[r] = scaled_bytes(scales.mins, B::min(p));
        }
      }
    }
    transpose(d);
    if constexpr (kHasMin<T>) transpose(min);
    SNAPKV_UNROLL for (int i = 0; i < 8; ++i) {
      const int lane = block_size(T) == kBlockSize ? kLaneOfBlock[i] : i;
      _mm256_store_ps(parts[8 * half + i].d + first, d[lane]);
      if constexpr (kHasMin<T>) _mm256_store_ps(parts[8 * half + i].min + first, min[lane]);
    }
  }
}

template <DType T>
SNAPKV_AVX2 void unpack(const char* rows, int64_t stride, int64_t n_rows, char* piece) {
  using Part = typename BytePanelType<T>::Part;
  auto* parts = reinterpret_cast<Part*>(piece);
  for (int64_t first = 0; first < kBytePanelRows; first += kLanes, rows += kLanes * stride) {
    const int64_t n = n_rows - first;  // existing rows, of the next 8
    for (int block = 0; block < kGemvUnit / kBlockSize; ++block) {
      __m256 v[kLanes];
      SNAPKV_UNROLL for (int r = 0; r < kLanes; ++r) {
        v[r] = r < n ? _mm256_castsi256_ps(piece_bytes<T>(rows + r * stride, block))
                     : _mm256_setzero_ps();
      }
      transpose(v);
      SNAPKV_UNROLL for (int k = 0; k < kLanes; ++k) {
        const int word = block * kLanes + k;
        _mm256_store_si256(
            reinterpret_cast<__m256i*>(parts[word / Part::kDepth].q[word % Part::kDepth] + first),
            _mm256_castps_si256(v[k]));
      }
    }
    unpack_scales<T>(rows, stride, n, first, parts);
  }
}

template <DType T>
SNAPKV_AVX2 void unpack_interleaved_halves(const char* units, int64_t stride, int64_t n_rows,
                                           int64_t, char* piece) {
  using W = Interleaved256<T>;
  auto* parts = reinterpret_cast<typename BytePanelType<T>::Part*>(piece);
  if (n_rows < kBytePanelRows) std::memset(piece, 0, kSuperblockParts * sizeof(*parts));
  for (int64_t first = 0; first < n_rows; first += kHalfRows) {
    const auto half = static_cast<int>(first / kHalfRows % 2);
    const W w(units + first / kInterleavedRows * stride, half);
    for (int p = 0; p < kSuperblockParts; p += W::kGroup) {
      SNAPKV_UNROLL for (int i = 0; i < W::kGroup; i += 2) {
        SNAPKV_UNROLL for (int k = 0; k < W::kDepth; ++k) {
          __m256i q[2];
          w.levels(p, i, k, q);
          SNAPKV_UNROLL for (int j = 0; j < 2; ++j) {
            _mm256_store_si256(reinterpret_cast<__m256i*>(parts[p + i + j].q[k] + first),
                               to_piece_bytes<T>(q[j]));
          }
        }
        SNAPKV_UNROLL for (int j = 0; j < 2; ++j) {
          _mm256_store_ps(parts[p + i + j].d + first, w.scale(p + i + j));
          _mm256_store_ps(parts[p + i + j].min + first, w.min(p + i + j));
        }
      }
    }
  }
}

}  // namespace

UnpackInterleavedFn unpack_interleaved_avx2(DType weight) {
  return visit_weight_type(weight, [](auto type) -> UnpackInterleavedFn {
    if constexpr (HasInterleaved256<type.dtype>) return unpack_interleaved_halves<type.dtype>;
    return nullptr;
  });
}

PrepareByteTileFn prepare_byte_tile_avx2() { return prepare; }

UnpackBytePieceFn unpack_byte_piece_avx2(DType weight) {
  return visit_weight_type(weight, [](auto type) -> UnpackBytePieceFn {
    if constexpr (HasX86Block<type.dtype>) return unpack<type.dtype>;
    return nullptr;
  });
}

}  // namespace snapkv::cpu

#endif  // x86-64
