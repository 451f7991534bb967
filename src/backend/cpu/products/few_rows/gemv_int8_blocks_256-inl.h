// SPDX-License-Identifier: MIT
// 8-bit activations times weights in blocks of 32 values with 256-bit vectors, 8 blocks at a time,
// or in 4 blocks of 64 with a scale for each 16.
// A file that includes this one defines SNAPKV_256 (its functions' target), kMultipliesPairs<T>,
// which says whether nibbles are taken from two blocks at a time, and two products:
//   multiply_block<T>(levels, x, b)        of block b with its activations: integers to be
//                                          multiplied by its scale, spread over the lanes
//   multiply_pair<T>(first, last, x, pair) of two blocks of nibbles, in a 128-bit lane each
// Sums are exact integers within each block, and f32 between blocks.
#pragma once

namespace snapkv::cpu {
namespace {

/// Whether nibbles of two blocks are split together: each block's 16 bytes are a 128-bit lane, so
/// that the low nibbles are the first halves of both blocks, and the high ones the last.
template <DType T>
concept InPairs = HasNibbles<T> && kMultipliesPairs<T>;

/// From numbers in the order of BlockUnit::d, those of pair `pair`, each in its block's lane.
SNAPKV_256_INLINE __m256 numbers_of_pair(__m256 numbers, int pair) {
  if (pair == 0) return _mm256_permute_ps(numbers, 0x00);
  if (pair == 1) return _mm256_permute_ps(numbers, 0x55);
  if (pair == 2) return _mm256_permute_ps(numbers, 0xaa);
  return _mm256_permute_ps(numbers, 0xff);
}

/// What is subtracted per unit of the sum of a block's activations. `scale`: scales_8().
template <DType T>
SNAPKV_256_INLINE __m256 min_units(const char* p, __m256 scale) {
  if constexpr (kHasMin<T>) {
    return X86Block<T>::min_8(p);
  } else {
    return _mm256_mul_ps(scale, _mm256_set1_ps(X86Block<T>::kOffset));
  }
}

/// The last unit of rows that are not whole units: 1 ... 7 blocks. The bytes after them may be
/// those of the next rows.
struct LastUnit {
  /// Which scales belong to the row, in the order of scales_8().
  alignas(32) int32_t mask[kUnitBlocks] = {};

  explicit LastUnit(int64_t n_blocks) {
    for (int b = 0; b < n_blocks; ++b) mask[place_of_block(b)] = -1;
  }
  /// Other scales become zeros, so that they cannot add infinities or NaNs.
  SNAPKV_256_INLINE __m256 keep_own(__m256 scales) const {
    return _mm256_and_ps(scales, _mm256_load_ps(reinterpret_cast<const float*>(mask)));
  }
};

/// acc[t] += the products of the blocks at p: kUnitBlocks, or, with `tail`, at most kBlocks. They
/// are first summed separately, in two chains, so that products do not all wait for each other.
template <DType T, int N, int kBlocks = kUnitBlocks>
SNAPKV_256_INLINE void multiply_unit(const char* p, const LastUnit* tail,
                                     const BlockUnit* const (&x)[N], __m256 (&acc)[N]) {
  using B = X86Block<T>;
  __m256 scale = B::scales_8(p);
  if (tail != nullptr) scale = tail->keep_own(scale);
  __m256 d[N], even[N], odd[N];
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
    d[t] = _mm256_mul_ps(scale, _mm256_load_ps(x[t]->d));
    even[t] = odd[t] = _mm256_setzero_ps();
  }
  if constexpr (HasLevelOffset<T>) {
    __m256 units = min_units<T>(p, scale);
    if (kHasMin<T> && tail != nullptr) units = tail->keep_own(units);
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
      even[t] = _mm256_fnmadd_ps(units, _mm256_load_ps(x[t]->sum), even[t]);
    }
  }
  if constexpr (InPairs<T>) {
    const __m256i low_bits = _mm256_set1_epi8(15);
    SNAPKV_UNROLL for (int pair = 0; pair < kBlocks / 2; ++pair) {
      const char* qs = p + 2 * pair * block_bytes(T) + offsetof(Block<T>, qs);
      const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(qs)),
                                                   load_16(qs + block_bytes(T)), 1);
      const __m256i first = B::from_nibbles(_mm256_and_si256(both, low_bits));
      const __m256i last = B::from_nibbles(_mm256_and_si256(_mm256_srli_epi16(both, 4), low_bits));
      SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
        const __m256 sums = _mm256_cvtepi32_ps(multiply_pair<T>(first, last, *x[t], pair));
        __m256& sum = pair % 2 == 0 ? even[t] : odd[t];
        sum = _mm256_fmadd_ps(sums, numbers_of_pair(d[t], pair), sum);
      }
    }
  } else {
    alignas(32) float d_of[N][kUnitBlocks];
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) _mm256_store_ps(d_of[t], d[t]);
    SNAPKV_UNROLL for (int b = 0; b < kBlocks; ++b) {
      const __m256i levels = B::levels(p + b * block_bytes(T), 0);
      SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
        const __m256 sums = _mm256_cvtepi32_ps(multiply_block<T>(levels, *x[t], b));
        __m256& sum = b % 2 == 0 ? even[t] : odd[t];
        sum = _mm256_fmadd_ps(sums, _mm256_broadcast_ss(&d_of[t][place_of_block(b)]), sum);
      }
    }
  }
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
    acc[t] = _mm256_add_ps(acc[t], _mm256_add_ps(even[t], odd[t]));
  }
}

/// The same for 4 blocks of 64 values. The first and the last 16 values of a part are a 128-bit
/// lane each, and so are their scales.
template <DType T, int N>
SNAPKV_256_INLINE void multiply_halves(const char* p, const BlockUnit* const (&x)[N],
                                       __m256 (&acc)[N]) {
  using B = X86Block<T>;
  alignas(32) float scales[2 * kUnitBlocks];
  _mm256_store_ps(scales, B::half_scales(p, 0));
  _mm256_store_ps(scales + kUnitBlocks, B::half_scales(p, 1));
  __m256 even[N], odd[N];
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) even[t] = odd[t] = _mm256_setzero_ps();
  SNAPKV_UNROLL for (int b = 0; b < kUnitBlocks; ++b) {
    const __m256i levels = B::levels(p + b / 2 * block_bytes(T), b % 2);
    const __m256 scale = _mm256_insertf128_ps(
        _mm256_broadcast_ss(scales + 2 * b), _mm_broadcast_ss(scales + 2 * b + 1), 1);
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
      const __m256 sums = _mm256_cvtepi32_ps(multiply_block<T>(levels, *x[t], b));
      const __m256 d = _mm256_mul_ps(scale, _mm256_broadcast_ss(&x[t]->d[place_of_block(b)]));
      __m256& sum = b % 2 == 0 ? even[t] : odd[t];
      sum = _mm256_fmadd_ps(sums, d, sum);
    }
  }
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
    acc[t] = _mm256_add_ps(acc[t], _mm256_add_ps(even[t], odd[t]));
  }
}

template <DType T, int N>
SNAPKV_256_INLINE void multiply_whole_unit(const char* p, const BlockUnit* const (&x)[N],
                                           __m256 (&acc)[N]) {
  if constexpr (HasFloatHalves<T>) {
    multiply_halves<T, N>(p, x, acc);
  } else {
    multiply_unit<T, N>(p, nullptr, x, acc);
  }
}

template <DType T, int N>
SNAPKV_256_INLINE void multiply_last_unit(const char* p, int64_t n_blocks, const LastUnit& last,
                                          const BlockUnit* const (&x)[N], __m256 (&acc)[N]) {
  if constexpr (HasFloatHalves<T>) {
    multiply_halves<T, N>(p, x, acc);  // its scales are finite
  } else if (n_blocks <= kUnitBlocks / 2) {
    multiply_unit<T, N, kUnitBlocks / 2>(p, &last, x, acc);
  } else {
    multiply_unit<T, N>(p, &last, x, acc);
  }
}

template <DType T, int N>
SNAPKV_256 void multiply_block_rows(const GemvCall& c) {
  constexpr int64_t kUnitBytes = row_bytes(T, kGemvUnit);
  const int64_t n_complete = c.n_in / kGemvUnit, n_left = c.n_in % kGemvUnit;
  const LastUnit last(n_left / kBlockSize);
  const char* end = c.w + (c.n_rows - 1) * c.w_stride + row_bytes(T, c.n_in);
  for (int64_t row = 0; row < c.n_rows; ++row) {
    const char* p = c.w + row * c.w_stride;
    const BlockUnit* x[N];
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
      x[t] = reinterpret_cast<const BlockUnit*>(c.x + t * c.x_stride);
    }
    __m256 acc[N];
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) acc[t] = _mm256_setzero_ps();
    for (int64_t u = 0; u < n_complete; ++u, p += kUnitBytes) {
      for (int64_t i = 0; i < kUnitBytes; i += 64) {
        __builtin_prefetch(p + kPrefetchBytes + i, 0, 2);
      }
      multiply_whole_unit<T, N>(p, x, acc);
      SNAPKV_UNROLL for (int t = 0; t < N; ++t)++ x[t];
    }
    if (n_left > 0) {  // activations of missing blocks are zero
      alignas(32) char padded[kUnitBytes];
      if (end - p < kUnitBytes) {  // too few rows follow to be read in place of missing blocks
        std::memset(padded, 0, sizeof(padded));
        std::memcpy(padded, p, static_cast<size_t>(row_bytes(T, n_left)));
        p = padded;
      }
      multiply_last_unit<T, N>(p, n_left / kBlockSize, last, x, acc);
    }
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
      c.sums[t * c.sums_stride + row] = sum_lanes(acc[t]);
    }
  }
}

template <DType T>
void multiply_blocks(const GemvCall& c) {
  for_activation_rows(c, [](auto n, const GemvCall& part) { multiply_block_rows<T, n>(part); });
}

GemvFn find_multiply_blocks(DType weight) {
  return visit_weight_type(weight, [](auto type) -> GemvFn {
    constexpr DType T = type.dtype;
    constexpr bool kIsBlocks = block_size(T) == kBlockSize || HasFloatHalves<T>;
    if constexpr (HasX86Block<T> && kIsBlocks && !InPairs<T>) {
      return multiply_blocks<T>;
    }
    return nullptr;
  });
}

GemvFn find_multiply_nibbles(DType weight) {
  return visit_weight_type(weight, [](auto type) -> GemvFn {
    if constexpr (InPairs<type.dtype>) return multiply_blocks<type.dtype>;
    return nullptr;
  });
}

}  // namespace
}  // namespace snapkv::cpu
