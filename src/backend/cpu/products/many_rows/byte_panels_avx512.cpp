// SPDX-License-Identifier: MIT
// unpack_byte_piece_avx512(): takes 16 rows at a time and transposes them in registers as 16 x 16
// words. unpack_interleaved_avx512() finds them transposed.
#include "backend/cpu/products/many_rows/byte_panels_x86.h"

#if defined(__x86_64__)

#include <cstring>

#include "backend/cpu/products/few_rows/gemv_int8_vnni.h"
#include "backend/cpu/target/transpose_avx512.h"
#include "backend/cpu/weights/interleaved_avx512.h"

namespace snapkv::cpu {
namespace {

constexpr int kLanes = 16;

SNAPKV_VNNI_INLINE __m512i scaled_bytes(uint64_t low, uint64_t high, float unit) {
  const __m128i bytes = _mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low));
  const __m512 values = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
  return _mm512_castps_si512(_mm512_mul_ps(_mm512_set1_ps(unit), values));
}

/// The scales, or the minima, of the superblock at p: one for each part or half of a part.
template <DType T>
SNAPKV_VNNI_INLINE __m512i part_numbers(const char* p, bool minima) {
  const auto scales = X86Block<T>::scales(p);
  float unit = X86Block<T>::d(p);
  if constexpr (kHasMin<T>) unit = minima ? X86Block<T>::min(p) : unit;
  const auto& numbers = minima ? scales.mins : scales.scales;
  if constexpr (HasHalfScales<T>) {
    return scaled_bytes(numbers[0], numbers[1], unit);
  } else {
    return scaled_bytes(numbers, 0, unit);
  }
}

/// Unpacks scales and minima of 16 rows, of which n exist, to outputs [first, ...).
template <DType T>
SNAPKV_VNNI_INLINE void unpack_scales(const char* rows, int64_t stride, int64_t n, int64_t first,
                                      typename BytePanelType<T>::Part* parts) {
  using B = X86Block<T>;
  constexpr bool kIsBlocks = HasVnniBlocks<T> && BytePanelType<T>::kParts == kSuperblockParts;
  __m512i d[kLanes], min[kLanes];
  SNAPKV_UNROLL for (int r = 0; r < kLanes; ++r) {
    d[r] = min[r] = _mm512_setzero_si512();
    if (r >= n) continue;
    const char* p = rows + r * stride;
    if constexpr (kIsBlocks) {
      d[r] = _mm512_castps_si512(B::d_8(p));
      if constexpr (kHasMin<T>) min[r] = _mm512_castps_si512(B::min_16(p));
    } else {
      d[r] = part_numbers<T>(p, false);
      if constexpr (kHasMin<T>) min[r] = part_numbers<T>(p, true);
    }
  }
  avx512::transpose(d);
  if constexpr (kHasMin<T>) avx512::transpose(min);
  SNAPKV_UNROLL for (int part = 0; part < BytePanelType<T>::kParts; ++part) {
    // d_8() has each block's scale in the two lanes of its words
    const int lane = kIsBlocks ? lane_of(part) : part;
    _mm512_store_si512(parts[part].d + first, d[lane]);
    if constexpr (kHasMin<T>) _mm512_store_si512(parts[part].min + first, min[part]);
  }
}

template <DType T>
SNAPKV_VNNI void unpack(const char* rows, int64_t stride, int64_t n_rows, char* piece) {
  using Part = typename BytePanelType<T>::Part;
  auto* parts = reinterpret_cast<Part*>(piece);
  for (int64_t first = 0; first < kBytePanelRows; first += kLanes, rows += kLanes * stride) {
    const int64_t n = n_rows - first;  // existing rows, of the next 16
    for (int pair = 0; pair < kGemvUnit / (2 * kBlockSize); ++pair) {
      __m512i v[kLanes];
      SNAPKV_UNROLL for (int r = 0; r < kLanes; ++r) {
        v[r] = _mm512_setzero_si512();
        if (r >= n) continue;
        const char* unit = rows + r * stride;
        v[r] = _mm512_inserti64x4(_mm512_castsi256_si512(piece_bytes<T>(unit, 2 * pair)),
                                  piece_bytes<T>(unit, 2 * pair + 1), 1);
      }
      avx512::transpose(v);
      SNAPKV_UNROLL for (int k = 0; k < kLanes; ++k) {
        const int word = pair * kLanes + k;
        _mm512_store_si512(parts[word / Part::kDepth].q[word % Part::kDepth] + first, v[k]);
      }
    }
    unpack_scales<T>(rows, stride, n, first, parts);
  }
}

template <DType T>
SNAPKV_VNNI void unpack_interleaved(const char* units, int64_t stride, int64_t n_rows,
                                    int64_t n_values, char* piece) {
  using W = Interleaved<T>;
  constexpr int kParts = BytePanelType<T>::kParts;
  auto* parts = reinterpret_cast<typename BytePanelType<T>::Part*>(piece);
  if (n_rows < kBytePanelRows || n_values < kGemvUnit) std::memset(piece, 0, kParts * sizeof(*parts));
  for (int64_t first = 0; first < n_rows; first += kInterleavedRows, units += stride) {
    const W w(units, n_values);
    for (int p = 0; p < w.n_parts(); p += W::kTogether) {
      SNAPKV_UNROLL for (int k = 0; k < W::kDepth; ++k) {
        __m512i q[W::kTogether];
        w.levels(p, k, q);
        SNAPKV_UNROLL for (int i = 0; i < W::kTogether; ++i) {
          _mm512_store_si512(parts[p + i].q[k] + first, q[i]);
        }
      }
      SNAPKV_UNROLL for (int i = 0; i < W::kTogether; ++i) {
        _mm512_store_ps(parts[p + i].d + first, w.scale(p + i));
        if constexpr (kHasMin<T>) _mm512_store_ps(parts[p + i].min + first, w.min(p + i));
      }
    }
  }
}

}  // namespace

UnpackInterleavedFn unpack_interleaved_avx512(DType weight) {
  return visit_weight_type(weight, [](auto type) -> UnpackInterleavedFn {
    if constexpr (HasInterleaved<type.dtype>) return unpack_interleaved<type.dtype>;
    return nullptr;
  });
}

UnpackBytePieceFn unpack_byte_piece_avx512(DType weight) {
  return visit_weight_type(weight, [](auto type) -> UnpackBytePieceFn {
    constexpr DType T = type.dtype;
    if constexpr (HasX86Block<T> && !HasFloatHalves<T>) return unpack<T>;
    return nullptr;
  });
}

}  // namespace snapkv::cpu

#endif  // x86-64
