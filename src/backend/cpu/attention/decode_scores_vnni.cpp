// SPDX-License-Identifier: MIT
// A unit is 8 blocks of keys: 4 rows of 64 values, 2 of 128 or 1 of 256. Each 32-bit lane of a
// register adds up 16 products of one block. The lanes that belong to one row are then added for 16
// scores together: those of 4 rows with 4 query heads, or of 16 rows with one.
#include "backend/cpu/attention/decode_split.h"
#include "backend/cpu/attention/decode_vnni.h"
#include "backend/cpu/target/cpu_target.h"
#include "base/check.h"

#if defined(__x86_64__)

#include <cstring>

#include "backend/cpu/products/few_rows/gemv_int8_vnni.h"

namespace snapkv::cpu {
namespace {

using Keys = X86Block<DType::q8_0>;
constexpr int kUnitBlocks = 8;
constexpr int64_t kUnitBytes = kUnitBlocks * static_cast<int64_t>(sizeof(BlockQ8_0));
constexpr int kLevels = 32512;  // 127 * 256, so that the high part of each fits 8 bits

/// Sums of lanes 2i and 2i + 1: in each group of four lanes first those of a, then those of b.
SNAPKV_VNNI_INLINE __m512 add_lanes(__m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0b10'00'10'00),
                       _mm512_shuffle_ps(a, b, 0b11'01'11'01));
}
/// Sums of groups of four lanes, 2i and 2i + 1: first those of a, then those of b.
SNAPKV_VNNI_INLINE __m512 add_groups(__m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0b10'00'10'00),
                       _mm512_shuffle_f32x4(a, b, 0b11'01'11'01));
}

struct Unit {
  VnniLevels levels;
  __m512 d;
};
SNAPKV_VNNI_INLINE Unit load_unit(const char* p) {
  Unit unit;
  Keys::load_8(p, unit.levels);
  unit.d = Keys::d_8(p);
  return unit;
}

/// The products of a unit, in two lanes for each block.
SNAPKV_VNNI_INLINE __m512 multiply(const Unit& unit, const ScoreQuery& query) {
  static_assert(Keys::kSurplus == 128);
  __m512i high = _mm512_setzero_si512();
  __m512i low = _mm512_load_si512(query.negative_sums);
  SNAPKV_UNROLL for (int v = 0; v < 4; ++v) {
    high = _mm512_dpbusd_epi32(high, unit.levels[v], _mm512_load_si512(query.high[v]));
    low = _mm512_dpbusd_epi32(low, unit.levels[v], _mm512_load_si512(query.low[v]));
  }
  const __m512i sums = _mm512_add_epi32(_mm512_slli_epi32(high, 8), low);
  return _mm512_mul_ps(_mm512_cvtepi32_ps(sums), _mm512_mul_ps(unit.d, _mm512_load_ps(query.d)));
}

/// The lanes in which the sums of score_16() end up: those of its four rows with the first query
/// (with one query: of the first four rows), then with the second, and so on.
template <int kRowBlocks>
inline constexpr int kPlaces[16] = {};
template <>
inline constexpr int kPlaces<2>[16] = {0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15};
template <>
inline constexpr int kPlaces<4>[16] = {0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15};
template <>
inline constexpr int kPlaces<8>[16] = {0, 8, 2, 10, 1, 9, 3, 11, 4, 12, 6, 14, 5, 13, 7, 15};

/// Scores of 4 rows with 4 queries (H = 4), ordered by query, or of 16 rows with one.
template <int kRowBlocks, int H>
SNAPKV_VNNI_INLINE __m512 score_16(const ScoreQuery* queries, const char* k) {
  constexpr int kUnits = kRowBlocks / 2;  // of 4 rows
  __m512 z[kUnits];
  SNAPKV_UNROLL for (int u = 0; u < kUnits; ++u) {
    __m512 s[4];
    if constexpr (H == 4) {
      const Unit unit = load_unit(k + u * kUnitBytes);
      SNAPKV_UNROLL for (int h = 0; h < 4; ++h) s[h] = multiply(unit, queries[h]);
    } else {
      SNAPKV_UNROLL for (int i = 0; i < 4; ++i) {
        s[i] = multiply(load_unit(k + (i * kUnits + u) * kUnitBytes), queries[0]);
      }
    }
    z[u] = add_groups(add_lanes(s[0], s[1]), add_lanes(s[2], s[3]));
  }
  __m512 sums = z[0];
  if constexpr (kUnits == 2) sums = add_groups(z[0], z[1]);
  if constexpr (kUnits == 4) sums = add_lanes(add_groups(z[0], z[1]), add_groups(z[2], z[3]));
  return _mm512_permutexvar_ps(_mm512_loadu_si512(kPlaces<kRowBlocks>), sums);
}

template <int kRowBlocks, int H>
SNAPKV_VNNI void score_heads(const ScoreQuery* queries, const char* k, int n, const char* next,
                             float* scores) {
  constexpr int kRows = 16 / H;
  constexpr int64_t kRowBytes = kRowBlocks * static_cast<int64_t>(sizeof(BlockQ8_0));
  alignas(64) char padded[kRows * kRowBytes];
  for (int j = 0; j < n; j += kRows) {
    const char* rows = k + j * kRowBytes;
    if (next != nullptr) {
      for (int64_t i = 0; i < kRows * kRowBytes; i += 64) {
        __builtin_prefetch(next + j * kRowBytes + i, 0, 2);
      }
    }
    if (n - j < kRows) {
      std::memset(padded, 0, sizeof(padded));
      std::memcpy(padded, rows, static_cast<size_t>((n - j) * kRowBytes));
      rows = padded;
    }
    const __m512 of_16 = score_16<kRowBlocks, H>(queries, rows);
    if constexpr (H == 1) {
      _mm512_storeu_ps(scores + j, of_16);
    } else {
      _mm_storeu_ps(scores + j, _mm512_castps512_ps128(of_16));
      _mm_storeu_ps(scores + kScoreStride + j, _mm512_extractf32x4_ps(of_16, 1));
      _mm_storeu_ps(scores + 2 * kScoreStride + j, _mm512_extractf32x4_ps(of_16, 2));
      _mm_storeu_ps(scores + 3 * kScoreStride + j, _mm512_extractf32x4_ps(of_16, 3));
    }
  }
}

template <int kRowBlocks>
void score_group(const ScoreQuery* queries, int n_group, const char* k, int n, const char* next,
                 float* scores) {
  for (int head = 0; head < n_group;) {
    const auto score =
        head + 4 <= n_group ? score_heads<kRowBlocks, 4> : score_heads<kRowBlocks, 1>;
    score(queries + head, k, n, head == 0 ? next : nullptr, scores + head * kScoreStride);
    head += head + 4 <= n_group ? 4 : 1;
  }
}

}  // namespace

bool decodes_with_vnni(DType key, int64_t head_dim) {
  return key == DType::q8_0 && has(CpuTarget::avx512_vnni) &&
         (head_dim == 64 || head_dim == 128 || head_dim == 256);
}

SNAPKV_VNNI void prepare_score_query(const float* q, int head_dim, ScoreQuery& query) {
  const __m512i absolute = _mm512_set1_epi32(0x7fffffff);
  const __m512i most = _mm512_set1_epi32(kLevels), least = _mm512_set1_epi32(-kLevels);
  const int n_blocks = head_dim / kBlockSize;
  for (int block = 0; block < n_blocks; ++block) {
    const __m512 x[2] = {_mm512_loadu_ps(q + block * kBlockSize),
                         _mm512_loadu_ps(q + block * kBlockSize + 16)};
    // compared as integers, so that a NaN is the maximum and shows in the result
    const uint32_t max_bits = _mm512_reduce_max_epu32(
        _mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(x[0]), absolute),
                         _mm512_and_si512(_mm512_castps_si512(x[1]), absolute)));
    float max;
    std::memcpy(&max, &max_bits, sizeof(max));
    const __m512 inverse = _mm512_set1_ps(max > 0.0f ? kLevels / max : 0.0f);
    alignas(32) int8_t high[kBlockSize], low[kBlockSize];
    __m512i sums = _mm512_setzero_si512();
    SNAPKV_UNROLL for (int i = 0; i < 2; ++i) {
      // clamped, which also bounds a NaN
      const __m512i level = _mm512_max_epi32(
          _mm512_min_epi32(_mm512_cvtps_epi32(_mm512_mul_ps(x[i], inverse)), most), least);
      const __m512i h = _mm512_srai_epi32(_mm512_add_epi32(level, _mm512_set1_epi32(128)), 8);
      const __m512i l = _mm512_sub_epi32(level, _mm512_slli_epi32(h, 8));
      _mm_store_si128(reinterpret_cast<__m128i*>(high + 16 * i), _mm512_cvtepi32_epi8(h));
      _mm_store_si128(reinterpret_cast<__m128i*>(low + 16 * i), _mm512_cvtepi32_epi8(l));
      sums = _mm512_add_epi32(sums, level);
    }
    // a lane multiplies 4 adjacent values of every 8
    const int32_t sum_of_lane[2] = {_mm512_mask_reduce_add_epi32(0x0f0f, sums),
                                    _mm512_mask_reduce_add_epi32(0xf0f0, sums)};
    for (int b = block; b < kUnitBlocks; b += n_blocks) {
      const int lane = lane_of(b);
      SNAPKV_UNROLL for (int v = 0; v < 4; ++v) {
        std::memcpy(&query.high[v][4 * lane], high + 8 * v, 8);
        std::memcpy(&query.low[v][4 * lane], low + 8 * v, 8);
      }
      SNAPKV_UNROLL for (int half = 0; half < 2; ++half) {
        query.negative_sums[lane + half] = -Keys::kSurplus * sum_of_lane[half];
        query.d[lane + half] = max / kLevels;
      }
    }
  }
}

void score_block_vnni(const ScoreQuery* queries, int n_group, const char* k, int n, int head_dim,
                      const char* next, float* scores) {
  SNAPKV_CHECK(head_dim == 64 || head_dim == 128 || head_dim == 256);
  const auto group = head_dim == 64    ? score_group<2>
                     : head_dim == 128 ? score_group<4>
                                       : score_group<8>;
  group(queries, n_group, k, n, next, scores);
}

}  // namespace snapkv::cpu

#else

namespace snapkv::cpu {

bool decodes_with_vnni(DType, int64_t) { return false; }
void prepare_score_query(const float*, int, ScoreQuery&) { SNAPKV_CHECK(false); }
void score_block_vnni(const ScoreQuery*, int, const char*, int, int, const char*, float*) {
  SNAPKV_CHECK(false);
}

}  // namespace snapkv::cpu

#endif  // x86-64
