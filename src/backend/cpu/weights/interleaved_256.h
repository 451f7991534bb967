// SPDX-License-Identifier: MIT
// Interleaved weights (interleave.h) in 256-bit registers, a row in each lane: the 16 rows of a
// unit are two halves of 8.
//
// Interleaved256<T> is a half of a unit of type T, which is Q4_K or Q5_K. Others take longer to
// interleave than to multiply row by row: steps of one token would be slower until the weights have
// moved. Its values are in parts of 32 that share a scale, kDepth vectors with
// 4 values of each row to a part:
//   interleave()         makes a unit, as in interleave.h
//   levels(p, i, k, q)   vector k of parts p + i and p + i + 1, unsigned; p is a multiple of kGroup
//   scale(p), min(p)     what a part's levels are multiplied by, and what is subtracted
// i and k are constants once loops are unrolled, so they choose the shifts of a part's bits.
#pragma once

#include "backend/cpu/weights/interleave.h"
#include "backend/cpu/weights/types_x86.h"

#if defined(__x86_64__)

namespace snapkv::cpu {

template <DType T>
struct Interleaved256;

template <DType T>
concept HasInterleaved256 = requires {
  Interleaved256<T>::kDepth;
};

inline constexpr int kHalfRows = static_cast<int>(kInterleavedRows) / 2;

// ---------------------------------------------------------------- interleaving

/// 8 x 8 words: word k of row r goes to word r of vector k. Rows are `stride` bytes apart, vectors
/// of all 16 rows 64.
SNAPKV_AVX2_INLINE void interleave_8_words(const char* rows, int64_t stride, char* to) {
  __m256i v[8], t[8];
  SNAPKV_UNROLL for (int r = 0; r < 4;
                     ++r) {  // words 0 ... 3 of rows r and 4 + r; then words 4 ... 7
    const char* p = rows + r * stride;
    const char* q = p + 4 * stride;
    v[r] = _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(p)), load_16(q), 1);
    v[4 + r] = _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(p + 16)), load_16(q + 16), 1);
  }
  SNAPKV_UNROLL for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
  }
  SNAPKV_UNROLL for (int i = 0; i < 8; i += 4) {
    SNAPKV_UNROLL for (int j = 0; j < 2; ++j) {
      auto* at = reinterpret_cast<__m256i*>(to + (i + 2 * j) * 64);
      _mm256_storeu_si256(at, _mm256_unpacklo_epi64(t[i + j], t[i + j + 2]));
      _mm256_storeu_si256(at + 2, _mm256_unpackhi_epi64(t[i + j], t[i + j + 2]));
    }
  }
}

/// The same for 4 words.
SNAPKV_AVX2_INLINE void interleave_4_words(const char* rows, int64_t stride, char* to) {
  __m256i v[4];  // of rows r and 4 + r
  SNAPKV_UNROLL for (int r = 0; r < 4; ++r) {
    const char* p = rows + r * stride;
    v[r] = _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(p)), load_16(p + 4 * stride), 1);
  }
  const __m256i low01 = _mm256_unpacklo_epi32(v[0], v[1]),
                low23 = _mm256_unpacklo_epi32(v[2], v[3]);
  const __m256i high01 = _mm256_unpackhi_epi32(v[0], v[1]);
  const __m256i high23 = _mm256_unpackhi_epi32(v[2], v[3]);
  auto* at = reinterpret_cast<__m256i*>(to);
  _mm256_storeu_si256(at, _mm256_unpacklo_epi64(low01, low23));
  _mm256_storeu_si256(at + 2, _mm256_unpackhi_epi64(low01, low23));
  _mm256_storeu_si256(at + 4, _mm256_unpacklo_epi64(high01, high23));
  _mm256_storeu_si256(at + 6, _mm256_unpackhi_epi64(high01, high23));
}

/// kBytes of each of 16 rows, a multiple of 16.
template <int kBytes>
SNAPKV_AVX2_INLINE void interleave_row_words(const char* rows, int64_t stride, char* to) {
  for (int half = 0; half < 2; ++half, rows += kHalfRows * stride, to += 32) {
    for (int begin = 0; begin < kBytes / 32 * 32; begin += 32) {
      interleave_8_words(rows + begin, stride, to + begin * kInterleavedRows);
    }
    if constexpr (kBytes % 32 != 0) {
      constexpr int kBegin = kBytes / 32 * 32;
      interleave_4_words(rows + kBegin, stride, to + kBegin * kInterleavedRows);
    }
  }
}

// ---------------------------------------------------------------- superblocks

/// The numbers of a superblock's parts, a row in each lane.
struct alignas(32) HalfPartLanes {
  float at[kSuperblockParts][kHalfRows];

  SNAPKV_AVX2_INLINE __m256 operator[](int p) const { return _mm256_load_ps(at[p]); }
  SNAPKV_AVX2_INLINE void set(int p, __m256 numbers) { _mm256_store_ps(at[p], numbers); }
};

/// Byte i of each word as a float, unsigned.
SNAPKV_AVX2_INLINE __m256 float_of_byte(__m256i words, int i) {
  const __m256i place = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, -1, -1, -1, 4, -1, -1, -1, 8, -1, -1, -1, 12, -1, -1, -1));
  const __m256i byte = _mm256_shuffle_epi8(words, _mm256_add_epi8(place, _mm256_set1_epi32(i)));
  return _mm256_cvtepi32_ps(byte);
}

/// Superblocks that begin with PartScales, of which two parts share bytes.
class Interleaved256PartScales {
 public:
  static constexpr int kDepth = kBlockSize / 4;

  SNAPKV_AVX2_INLINE Interleaved256PartScales(const char* unit, int half) {
    unit += half * 32;
    const __m256i numbers = load_32(unit);  // d and dmin, f16, of each row
    const __m256i apart = _mm256_permute4x64_epi64(
        _mm256_packus_epi32(_mm256_and_si256(numbers, _mm256_set1_epi32(0xffff)),
                            _mm256_srli_epi32(numbers, 16)),
        0b11'01'10'00);
    const __m256 d = _mm256_cvtph_ps(_mm256_castsi256_si128(apart));
    const __m256 dmin = _mm256_cvtph_ps(_mm256_extracti128_si256(apart, 1));
    // as in PartScales::unpack()
    const __m256i a = load_32(unit + 64), b = load_32(unit + 128), c = load_32(unit + 192);
    const __m256i low_bits = _mm256_set1_epi8(0x3f);
    const __m256i scales[2] = {_mm256_and_si256(a, low_bits), last_parts(c, a)};
    const __m256i mins[2] = {_mm256_and_si256(b, low_bits), last_parts(_mm256_srli_epi32(c, 4), b)};
    SNAPKV_UNROLL for (int p = 0; p < kSuperblockParts; ++p) {
      scales_.set(p, _mm256_mul_ps(float_of_byte(scales[p / 4], p % 4), d));
      mins_.set(p, _mm256_mul_ps(float_of_byte(mins[p / 4], p % 4), dmin));
    }
  }
  SNAPKV_AVX2_INLINE __m256 scale(int p) const { return scales_[p]; }
  SNAPKV_AVX2_INLINE __m256 min(int p) const { return mins_[p]; }

 private:
  /// low & 15 | high >> 2 & 48, of bytes.
  SNAPKV_AVX2_INLINE static __m256i last_parts(__m256i low, __m256i high) {
    return _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi8(0x0f)),
                           _mm256_and_si256(_mm256_srli_epi32(high, 2), _mm256_set1_epi8(0x30)));
  }
  HalfPartLanes scales_, mins_;
};

template <>
struct Interleaved256<DType::q4_k> : Interleaved256PartScales {
  static constexpr int kGroup = 2;
  SNAPKV_AVX2_INLINE static void interleave(const char* rows, int64_t stride, char* to) {
    interleave_row_words<sizeof(BlockQ4_K)>(rows, stride, to);
  }
  SNAPKV_AVX2_INLINE Interleaved256(const char* unit, int half)
      : Interleaved256PartScales(unit, half), levels_(unit + 256 + half * 32) {}
  SNAPKV_AVX2_INLINE void levels(int p, int i, int k, __m256i (&q)[2]) const {
    const __m256i both = load_32(levels_ + ((p + i) * 4 + k) * 64);
    q[0] = _mm256_and_si256(both, _mm256_set1_epi8(15));
    q[1] = _mm256_and_si256(_mm256_srli_epi16(both, 4), _mm256_set1_epi8(15));
  }

 private:
  const char* levels_;
};

template <>
struct Interleaved256<DType::q5_k> : Interleaved256PartScales {
  static constexpr int kGroup = 4;
  SNAPKV_AVX2_INLINE static void interleave(const char* rows, int64_t stride, char* to) {
    interleave_row_words<sizeof(BlockQ5_K)>(rows, stride, to);
  }
  SNAPKV_AVX2_INLINE Interleaved256(const char* unit, int half)
      : Interleaved256PartScales(unit, half), bits_(unit + 256 + half * 32), levels_(bits_ + 512) {}
  SNAPKV_AVX2_INLINE void levels(int p, int i, int k, __m256i (&q)[2]) const {
    const __m256i both = load_32(levels_ + ((p + i) * 4 + k) * 64);
    // bits p ... p + 3 of each byte go to bits 4 ... 7
    const __m256i bits = _mm256_sllv_epi32(load_32(bits_ + k * 64), _mm256_set1_epi32(4 - p));
    const __m256i low_bits = _mm256_set1_epi8(15), fifth_bit = _mm256_set1_epi8(16);
    q[0] = _mm256_or_si256(_mm256_and_si256(both, low_bits),
                           _mm256_and_si256(_mm256_srli_epi16(bits, i), fifth_bit));
    q[1] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(both, 4), low_bits),
                           _mm256_and_si256(_mm256_srli_epi16(bits, i + 1), fifth_bit));
  }

 private:
  const char* bits_;
  const char* levels_;
};

}  // namespace snapkv::cpu

#endif  // x86-64
