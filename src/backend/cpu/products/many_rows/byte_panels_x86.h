// SPDX-License-Identifier: MIT
// Properties of a weight type that the kernels of byte_panels.h need.
#pragma once

#include "backend/cpu/products/many_rows/byte_panels.h"

#if defined(__x86_64__)

#include <algorithm>
#include <cstring>

#include "backend/cpu/weights/types_x86.h"

namespace snapkv::cpu {

template <DType T>
struct BytePanelType {
  static constexpr int kParts = kSumsHalves<T> ? 16 : 8;
  using Part = BytePart<kParts>;
  /// How much larger the bytes of a piece are than levels.
  static constexpr int kSurplus = [] {
    if constexpr (HasLevelOffset<T>) return X86Block<T>::kOffset;
    if constexpr (HasFloatHalves<T>) return 12;  // the lowest level is -12
    return 128;
  }();
};

/// Levels as the bytes of a piece, unsigned.
template <DType T>
SNAPKV_AVX2_INLINE __m256i to_piece_bytes(__m256i levels) {
  if constexpr (HasLevelOffset<T>) return levels;
  return _mm256_add_epi8(levels, _mm256_set1_epi8(static_cast<char>(BytePanelType<T>::kSurplus)));
}

/// The bytes of the 32 levels of part `part` of a unit.
template <DType T>
SNAPKV_AVX2_INLINE __m256i piece_bytes(const char* unit, int part) {
  constexpr int kBlockParts = block_size(T) / kBlockSize;
  const char* block = unit + part / kBlockParts * block_bytes(T);
  return to_piece_bytes<T>(X86Block<T>::levels(block, part % kBlockParts));
}

/// The negated sums of the activations that part p multiplies.
template <DType T>
const int32_t (&negative_sums(const ByteTile& x, int p))[kByteTileRows] {
  if constexpr (BytePanelType<T>::kParts == 8) {
    return x.negative_sums[p];
  } else {
    return x.negative_half_sums[p];
  }
}

/// Calls f for the rows of the next piece that are copied during tile t.
template <class F>
void for_next_rows(const ByteTilesCall& c, int64_t t, F&& f) {
  const int64_t begin = c.next_rows * t / c.n_tiles, end = c.next_rows * (t + 1) / c.n_tiles;
  for (int64_t r = begin; r < end; ++r) f(c.next + r * c.next_stride, c.copy + r * c.copy_stride);
}

/// Tiles between prefetching a row of the next piece and copying it: longer than memory takes.
constexpr int64_t kCopyLag = 4;

/// Call before tile t is multiplied.
inline void copy_next_piece(const ByteTilesCall& c, int64_t t) {
  for_next_rows(c, t, [&](const char* from, char*) {
    for (int64_t i = 0; i < c.next_bytes; i += 64) __builtin_prefetch(from + i, 0, 2);
  });
  if (t < kCopyLag) return;
  for_next_rows(c, t - kCopyLag,
                [&](const char* from, char* to) { std::memcpy(to, from, c.next_bytes); });
}

/// Call after the last tile.
inline void finish_next_piece(const ByteTilesCall& c) {
  for (int64_t t = std::max<int64_t>(c.n_tiles - kCopyLag, 0); t < c.n_tiles; ++t) {
    for_next_rows(c, t, [&](const char* from, char* to) { std::memcpy(to, from, c.next_bytes); });
  }
}

}  // namespace snapkv::cpu

#endif  // x86-64
