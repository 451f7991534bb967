// SPDX-License-Identifier: MIT
// The weighted sum of values, 32 of a row at a time. vpdpbusd adds four products of bytes into each
// 32-bit lane: here the levels of four rows at one place in the row, brought next to each other,
// with the rows' four probabilities, which are the same in all lanes.
#include "backend/cpu/attention/decode_split.h"
#include "backend/cpu/attention/decode_vnni.h"
#include "base/check.h"

#if defined(__x86_64__)

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/weights/blocks_x86.h"

namespace snapkv::cpu {
namespace {

using Values = X86Block<DType::q8_0>;
constexpr int kBlockBytes = static_cast<int>(sizeof(BlockQ8_0));
constexpr int kUnitBlocks = 8;    // whose scales are read at once
constexpr int kMostBlocks = 8;    // of a row
constexpr float kLevels = 65280;  // below 2^16 by more than rounding adds
constexpr float kLeast = 1e-30f;  // if no weight is larger, all count as 0

/// Scales of 32 values each, for a block of rows; 0 after the last row.
struct Scales {
  alignas(64) float of_rows[kMostBlocks][kBlockRows];
};

/// Probabilities times scales, in units of 1/65280 of the largest, split into high and low bytes.
/// Each element has those of four rows, at place_of_four().
struct Weights {
  alignas(64) int32_t high[kBlockRows / 4];
  alignas(64) int32_t low[kBlockRows / 4];
  float d;  // value of one weight unit times one level
};
constexpr int place_of_four(int four) { return four % 4 * 4 + four / 4; }

/// The largest of nonnegative numbers, compared as integers: a negative number or a NaN counts as
/// larger than all others.
SNAPKV_VNNI_INLINE float largest_of(const __m512 (&x)[kBlockRows / 16]) {
  __m512i max = _mm512_castps_si512(x[0]);
  SNAPKV_UNROLL for (int i = 1; i < kBlockRows / 16; ++i) {
    max = _mm512_max_epu32(max, _mm512_castps_si512(x[i]));
  }
  return std::bit_cast<float>(_mm512_reduce_max_epu32(max));
}

/// The places of the scales of 8 blocks in what load_halves() reads, ordered by place in the row.
template <int kRowBlocks>
struct ScaleOrder {
  alignas(32) int16_t places[16]{};
  constexpr ScaleOrder() {
    constexpr int kRows = kUnitBlocks / kRowBlocks;
    const ScalePlaces<kBlockBytes> found;
    for (int i = 0; i < kUnitBlocks; ++i) {
      places[i] = found.of_blocks[i % kRows * kRowBlocks + i / kRows];
    }
  }
};

/// Loads the scales; false if one is negative or not finite.
template <int kRowBlocks>
SNAPKV_VNNI bool load_scales(const char* v, int n, Scales& scales) {
  constexpr int kUnitRows = kUnitBlocks / kRowBlocks;
  static constexpr ScaleOrder<kRowBlocks> kOrder;
  int row = 0;
  for (; row + kUnitRows <= n; row += kUnitRows) {
    alignas(32) float d[kRowBlocks][kUnitRows];
    const __m256i halves =
        load_halves<kBlockBytes>(v + row * kRowBlocks * kBlockBytes, kOrder.places);
    _mm256_store_ps(d[0], _mm256_cvtph_ps(_mm256_castsi256_si128(halves)));
    SNAPKV_UNROLL for (int b = 0; b < kRowBlocks; ++b) {
      std::memcpy(scales.of_rows[b] + row, d[b], sizeof(d[b]));
    }
  }
  for (; row < kBlockRows; ++row) {
    for (int b = 0; b < kRowBlocks; ++b) {
      scales.of_rows[b][row] = row < n ? load_f16(v + (row * kRowBlocks + b) * kBlockBytes) : 0.0f;
    }
  }
  for (int b = 0; b < kRowBlocks; ++b) {
    __m512 d[kBlockRows / 16];
    SNAPKV_UNROLL for (int i = 0; i < kBlockRows / 16; ++i) {
      d[i] = _mm512_load_ps(scales.of_rows[b] + 16 * i);
    }
    const float largest = largest_of(d);
    if (!(largest < std::numeric_limits<float>::infinity()) || std::signbit(largest)) return false;
  }
  return true;
}

SNAPKV_VNNI_INLINE void find_weights(const float* p, const float* scale, Weights& w) {
  __m512 products[4];
  SNAPKV_UNROLL for (int i = 0; i < 4; ++i) {
    products[i] = _mm512_mul_ps(_mm512_loadu_ps(p + 16 * i), _mm512_load_ps(scale + 16 * i));
  }
  const float largest = largest_of(products);
  const __m512 factor = _mm512_set1_ps(largest > kLeast ? kLevels / largest : 0.0f);
  w.d = largest / kLevels;  // NaN if a probability is
  __m512i weights[4];
  SNAPKV_UNROLL for (int i = 0; i < 4; ++i) {
    weights[i] = _mm512_cvtps_epi32(_mm512_mul_ps(products[i], factor));
  }
  const __m512i first = _mm512_packus_epi32(weights[0], weights[1]);
  const __m512i last = _mm512_packus_epi32(weights[2], weights[3]);
  const __m512i low_byte = _mm512_set1_epi16(0xff);
  _mm512_store_si512(w.high,
                     _mm512_packus_epi16(_mm512_srli_epi16(first, 8), _mm512_srli_epi16(last, 8)));
  _mm512_store_si512(w.low, _mm512_packus_epi16(_mm512_and_si512(first, low_byte),
                                                _mm512_and_si512(last, low_byte)));
}

/// Orders words of row pairs 0, 1 and 2, 3, unpacked below, into fours for 16 places in the row.
constexpr std::array<int16_t, 32> words_of_fours(int first) {
  std::array<int16_t, 32> words = {};
  for (int i = 0; i < 16; ++i) {
    const int word = (i < 8 ? 0 : 32) + first + i % 8;
    words[static_cast<size_t>(2 * i)] = static_cast<int16_t>(word);
    words[static_cast<size_t>(2 * i + 1)] = static_cast<int16_t>(word + 16);
  }
  return words;
}

SNAPKV_VNNI_INLINE __m512i load_two(const char* a, const char* b) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(load_32(a)), load_32(b), 1);
}

/// acc[h, 0 .. 32) += the weighted levels of the blocks at v, v + a row, ... in n rows. Prefetches
/// as many blocks from `next` on, unless it is null.
template <int kRowBlocks, int H>
SNAPKV_VNNI_INLINE void add_block(const Weights (&w)[H], const char* v, int n, const char* next,
                                  float* acc) {
  constexpr int kRowBytes = kRowBlocks * kBlockBytes;
  static constexpr auto kFirst = words_of_fours(0), kLast = words_of_fours(8);
  const __m512i first_words = _mm512_loadu_si512(kFirst.data());
  const __m512i last_words = _mm512_loadu_si512(kLast.data());
  __m512i high[H][2], low[H][2];
  SNAPKV_UNROLL for (int h = 0; h < H; ++h) {
    high[h][0] = high[h][1] = low[h][0] = low[h][1] = _mm512_setzero_si512();
  }
  alignas(32) char last_rows[4 * kRowBytes] = {};
  for (int row = 0; row < n; row += 4) {
    if (next != nullptr) {
      for (int i = 0; i < 4 * kBlockBytes; i += 64) {
        __builtin_prefetch(next + row * kBlockBytes + i, 0, 2);
      }
    }
    const char* levels = v + row * kRowBytes + 2;
    if (n - row < 4) {  // the last rows; weights after row n are 0
      for (int r = 0; r < n - row; ++r) {
        std::memcpy(last_rows + r * kRowBytes, levels + r * kRowBytes, kBlockSize);
      }
      levels = last_rows;
    }
    const __m512i even = load_two(levels, levels + 2 * kRowBytes);
    const __m512i odd = load_two(levels + kRowBytes, levels + 3 * kRowBytes);
    const __m512i a = _mm512_unpacklo_epi8(even, odd), b = _mm512_unpackhi_epi8(even, odd);
    const __m512i fours[2] = {_mm512_permutex2var_epi16(a, first_words, b),
                              _mm512_permutex2var_epi16(a, last_words, b)};
    const int place = place_of_four(row / 4);
    SNAPKV_UNROLL for (int h = 0; h < H; ++h) {
      const __m512i high_bytes = _mm512_set1_epi32(w[h].high[place]);
      const __m512i low_bytes = _mm512_set1_epi32(w[h].low[place]);
      SNAPKV_UNROLL for (int x = 0; x < 2; ++x) {
        high[h][x] = _mm512_dpbusd_epi32(high[h][x], high_bytes, fours[x]);
        low[h][x] = _mm512_dpbusd_epi32(low[h][x], low_bytes, fours[x]);
        // keeps GCC from moving all sums to other registers and back
        __asm__("" : "+v"(high[h][x]), "+v"(low[h][x]));
      }
    }
  }
  SNAPKV_UNROLL for (int h = 0; h < H; ++h) {
    SNAPKV_UNROLL for (int x = 0; x < 2; ++x) {
      float* out = acc + h * kRowBlocks * kBlockSize + 16 * x;
      const __m512i sums = _mm512_add_epi32(_mm512_slli_epi32(high[h][x], 8), low[h][x]);
      _mm512_storeu_ps(out, _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums), _mm512_set1_ps(w[h].d),
                                            _mm512_loadu_ps(out)));
    }
  }
}

template <int kRowBlocks, int H>
SNAPKV_VNNI void add_heads(float* p, const Scales& scales, const char* v, int n, const char* next,
                           float* acc) {
  for (int h = 0; h < H; ++h) {
    std::fill(p + h * kScoreStride + n, p + h * kScoreStride + kBlockRows, 0.0f);
  }
  for (int b = 0; b < kRowBlocks; ++b) {
    Weights weights[H];
    SNAPKV_UNROLL for (int h = 0; h < H; ++h) {
      find_weights(p + h * kScoreStride, scales.of_rows[b], weights[h]);
    }
    const char* part = next != nullptr ? next + b * n * kBlockBytes : nullptr;
    add_block<kRowBlocks>(weights, v + b * kBlockBytes, n, part, acc + b * kBlockSize);
  }
}

template <int kRowBlocks>
bool add_group(float* p, int n_group, const char* v, int n, const char* next, float* acc) {
  Scales scales;
  if (!load_scales<kRowBlocks>(v, n, scales)) return false;
  for (int head = 0; head < n_group;) {
    const bool four = head + 4 <= n_group;
    const auto add = four ? add_heads<kRowBlocks, 4> : add_heads<kRowBlocks, 1>;
    add(p + head * kScoreStride, scales, v, n, head == 0 ? next : nullptr,
        acc + head * kRowBlocks * kBlockSize);
    head += four ? 4 : 1;
  }
  return true;
}

}  // namespace

bool add_values_vnni(float* p, int n_group, const char* v, int n, int head_dim, const char* next,
                     float* acc) {
  SNAPKV_CHECK(head_dim == 64 || head_dim == 128 || head_dim == 256);
  const auto add = head_dim == 64 ? add_group<2> : head_dim == 128 ? add_group<4> : add_group<8>;
  return add(p, n_group, v, n, next, acc);
}

}  // namespace snapkv::cpu

#else

namespace snapkv::cpu {

bool add_values_vnni(float*, int, const char*, int, int, const char*, float*) { return false; }

}  // namespace snapkv::cpu

#endif  // x86-64
