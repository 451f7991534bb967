// SPDX-License-Identifier: MIT
// Interleaved weights (interleave.h) in 256-bit registers, a row in each lane: the 16 rows of a
// unit are two halves of 8.
//
// Interleaved256<T> is a half of a unit of type T. Its values are in parts that share a scale,
// kDepth vectors with 4 values of each row to a part:
//   interleave()         makes a unit, as in interleave.h
//   n_parts()            a multiple of kGroup
//   kTogether            parts that levels() reads at once; divides kGroup
//   levels(p, i, k, q)   vector k of parts p + i ... p + i + kTogether - 1, p a multiple of kGroup:
//                        signed levels or, with HasLevelOffset<T>, unsigned ones that are
//                        X86Block<T>::kOffset larger
//   scale(p), min(p)     what a part's levels are multiplied by, and what is subtracted; min() only
//                        with kHasMin<T>
// i and k are constants once loops are unrolled, so they choose the shifts of a part's bits.
#pragma once

#include "backend/cpu/weights/interleave.h"
#include "backend/cpu/weights/superblocks_x86.h"

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

/// One number of each of 16 rows.
template <typename Number>
SNAPKV_AVX2_INLINE void interleave_row_numbers(const char* rows, int64_t stride, char* to) {
  SNAPKV_UNROLL for (int r = 0; r < kInterleavedRows; ++r) {
    std::memcpy(to + r * sizeof(Number), rows + r * stride, sizeof(Number));
  }
}

// ---------------------------------------------------------------- blocks of 32 values

/// Blocks of a scale of kScaleBytes, kBitBytes of fifth bits, and kBytes of levels.
template <DType T, int kScaleBytes, int kBitBytes, int kBytes>
class Interleaved256Blocks {
 public:
  static constexpr int kDepth = kBlockSize / 4;
  static constexpr int kTogether = 1, kGroup = 1;

  SNAPKV_AVX2_INLINE static void interleave(const char* rows, int64_t stride, int64_t n_values,
                                            char* to) {
    static_assert(kScaleBytes + kBitBytes + kBytes == block_bytes(T));
    using Scale = std::conditional_t<kScaleBytes == 1, uint8_t, uint16_t>;
    const int64_t n = n_values / kBlockSize;
    char* bits = to + n * kScaleBytes * kInterleavedRows;
    char* levels = bits + n * kBitBytes * kInterleavedRows;
    for (int64_t b = 0; b < n; ++b, rows += block_bytes(T)) {
      interleave_row_numbers<Scale>(rows, stride, to + b * kScaleBytes * kInterleavedRows);
      if constexpr (kBitBytes > 0) {
        interleave_row_numbers<uint32_t>(rows + kScaleBytes, stride,
                                         bits + b * kBitBytes * kInterleavedRows);
      }
      interleave_row_words<kBytes>(rows + kScaleBytes + kBitBytes, stride,
                                   levels + b * kBytes * kInterleavedRows);
    }
  }

  SNAPKV_AVX2_INLINE Interleaved256Blocks(const char* unit, int64_t n_values, int half)
      : n_(static_cast<int>(n_values / kBlockSize)),
        scales_(unit + half * kScaleBytes * kHalfRows),
        bits_(unit + n_ * kScaleBytes * kInterleavedRows + half * 32),
        levels_(bits_ + n_ * kBitBytes * kInterleavedRows) {}
  SNAPKV_AVX2_INLINE int n_parts() const { return n_; }

 protected:
  SNAPKV_AVX2_INLINE const char* scale_at(int p) const {
    return scales_ + p * kScaleBytes * kInterleavedRows;
  }
  SNAPKV_AVX2_INLINE __m256 f16_scale(int p) const { return _mm256_cvtph_ps(load_16(scale_at(p))); }
  SNAPKV_AVX2_INLINE __m256i word(int p, int k) const {
    return load_32(levels_ + (p * kBytes / 4 + k) * 64);
  }
  /// The low nibbles of 16 bytes of a block, then the high ones.
  SNAPKV_AVX2_INLINE __m256i nibbles(int p, int k) const {
    const __m256i both = word(p, k % 4);
    return _mm256_and_si256(k < 4 ? both : _mm256_srli_epi16(both, 4), _mm256_set1_epi8(15));
  }
  /// 16 in the bytes of word k that have a fifth bit: bit i of 32 belongs to value i.
  SNAPKV_AVX2_INLINE __m256i fifth_bits(int p, int k) const {
    static_assert(kBitBytes == 0 || kBitBytes == 4);
    const __m256i byte_of_word =
        _mm256_add_epi8(_mm256_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12, 0, 0,
                                         0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12),
                        _mm256_set1_epi8(static_cast<char>(k / 2)));
    const __m256i bits = _mm256_shuffle_epi8(load_32(bits_ + p * 64), byte_of_word);
    const __m256i bit = _mm256_set1_epi32(k % 2 == 0 ? 0x08040201 : static_cast<int>(0x80402010));
    const __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(bits, bit), bit);
    return _mm256_and_si256(is_set, _mm256_set1_epi8(16));
  }

 private:
  int n_;
  const char *scales_, *bits_, *levels_;
};

template <>
struct Interleaved256<DType::q8_0> : Interleaved256Blocks<DType::q8_0, 2, 0, 32> {
  SNAPKV_AVX2_INLINE Interleaved256(const char* unit, int64_t n_values, int half)
      : Interleaved256Blocks(unit, n_values, half) {}
  SNAPKV_AVX2_INLINE void levels(int p, int, int k, __m256i (&q)[1]) const { q[0] = word(p, k); }
  SNAPKV_AVX2_INLINE __m256 scale(int p) const { return f16_scale(p); }
};

template <>
struct Interleaved256<DType::q4_0> : Interleaved256Blocks<DType::q4_0, 2, 0, 16> {
  SNAPKV_AVX2_INLINE Interleaved256(const char* unit, int64_t n_values, int half)
      : Interleaved256Blocks(unit, n_values, half) {}
  SNAPKV_AVX2_INLINE void levels(int p, int, int k, __m256i (&q)[1]) const { q[0] = nibbles(p, k); }
  SNAPKV_AVX2_INLINE __m256 scale(int p) const { return f16_scale(p); }
};

template <>
struct Interleaved256<DType::q5_0> : Interleaved256Blocks<DType::q5_0, 2, 4, 16> {
  SNAPKV_AVX2_INLINE Interleaved256(const char* unit, int64_t n_values, int half)
      : Interleaved256Blocks(unit, n_values, half) {}
  SNAPKV_AVX2_INLINE void levels(int p, int, int k, __m256i (&q)[1]) const {
    q[0] = _mm256_or_si256(nibbles(p, k), fifth_bits(p, k));
  }
  SNAPKV_AVX2_INLINE __m256 scale(int p) const { return f16_scale(p); }
};

template <>
struct Interleaved256<DType::iq4_nl> : Interleaved256Blocks<DType::iq4_nl, 2, 0, 16> {
  SNAPKV_AVX2_INLINE Interleaved256(const char* unit, int64_t n_values, int half)
      : Interleaved256Blocks(unit, n_values, half) {}
  SNAPKV_AVX2_INLINE void levels(int p, int, int k, __m256i (&q)[1]) const {
    q[0] = X86Block<DType::iq4_nl>::from_nibbles(nibbles(p, k));
  }
  SNAPKV_AVX2_INLINE __m256 scale(int p) const { return f16_scale(p); }
};

template <>
struct Interleaved256<DType::mxfp4> : Interleaved256Blocks<DType::mxfp4, 1, 0, 16> {
  SNAPKV_AVX2_INLINE Interleaved256(const char* unit, int64_t n_values, int half)
      : Interleaved256Blocks(unit, n_values, half) {}
  SNAPKV_AVX2_INLINE void levels(int p, int, int k, __m256i (&q)[1]) const {
    q[0] = X86Block<DType::mxfp4>::from_nibbles(nibbles(p, k));
  }
  SNAPKV_AVX2_INLINE __m256 scale(int p) const {
    const auto bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(scale_at(p)));
    return X86Block<DType::mxfp4>::scales_of(_mm256_cvtepu8_epi32(bytes));
  }
};

// ---------------------------------------------------------------- superblocks

/// The numbers of a superblock's kParts parts, a row in each lane.
template <int kParts>
struct alignas(32) HalfPartLanes {
  float at[kParts][kHalfRows];

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
  static constexpr int kTogether = 2;

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
  SNAPKV_AVX2_INLINE int n_parts() const { return kSuperblockParts; }
  SNAPKV_AVX2_INLINE __m256 scale(int p) const { return scales_[p]; }
  SNAPKV_AVX2_INLINE __m256 min(int p) const { return mins_[p]; }

 private:
  /// low & 15 | high >> 2 & 48, of bytes.
  SNAPKV_AVX2_INLINE static __m256i last_parts(__m256i low, __m256i high) {
    return _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi8(0x0f)),
                           _mm256_and_si256(_mm256_srli_epi32(high, 2), _mm256_set1_epi8(0x30)));
  }
  HalfPartLanes<kSuperblockParts> scales_, mins_;
};

template <>
struct Interleaved256<DType::q4_k> : Interleaved256PartScales {
  static constexpr int kGroup = 2;
  SNAPKV_AVX2_INLINE static void interleave(const char* rows, int64_t stride, int64_t, char* to) {
    interleave_row_words<sizeof(BlockQ4_K)>(rows, stride, to);
  }
  SNAPKV_AVX2_INLINE Interleaved256(const char* unit, int64_t, int half)
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
  SNAPKV_AVX2_INLINE static void interleave(const char* rows, int64_t stride, int64_t, char* to) {
    interleave_row_words<sizeof(BlockQ5_K)>(rows, stride, to);
  }
  SNAPKV_AVX2_INLINE Interleaved256(const char* unit, int64_t, int half)
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

template <>
class Interleaved256<DType::q6_k> {
 public:
  static constexpr int kDepth = kBlockSize / 8;
  static constexpr int kTogether = 1, kGroup = 4;

  SNAPKV_AVX2_INLINE static void interleave(const char* rows, int64_t stride, int64_t, char* to) {
    constexpr int kWords = offsetof(BlockQ6_K, d);
    interleave_row_words<kWords>(rows, stride, to);
    interleave_row_numbers<uint16_t>(rows + kWords, stride, to + kWords * kInterleavedRows);
  }

  SNAPKV_AVX2_INLINE Interleaved256(const char* unit, int64_t, int half) : unit_(unit + half * 32) {
    const __m256 d = _mm256_cvtph_ps(
        load_16(unit + offsetof(BlockQ6_K, d) * kInterleavedRows + half * sizeof(__m128i)));
    SNAPKV_UNROLL for (int i = 0; i < kParts / 4; ++i) {
      const __m256i words =
          load_32(unit_ + offsetof(BlockQ6_K, scales) * kInterleavedRows + 64 * i);
      SNAPKV_UNROLL for (int b = 0; b < 4; ++b) {
        const __m256i scale = _mm256_srai_epi32(_mm256_slli_epi32(words, 24 - 8 * b), 24);
        scales_.set(4 * i + b, _mm256_mul_ps(_mm256_cvtepi32_ps(scale), d));
      }
    }
  }
  SNAPKV_AVX2_INLINE int n_parts() const { return kParts; }
  /// 4 parts of 32 values, in two halves each, have their low bits in 16 words and their high bits
  /// in 8.
  SNAPKV_AVX2_INLINE void levels(int p, int i, int k, __m256i (&q)[1]) const {
    const int part = i / 2, word = i % 2 * 4 + k;  // 2 of the 4 parts
    const int last = p % 8;  // 4 for the last two, which have the high nibbles
    const __m256i low = load_32(unit_ + (p / 8 * 16 + part * 8 + word) * 64);
    const __m256i high = load_32(unit_ + (32 + p / 8 * 8 + word) * 64);
    const __m256i nibbles = _mm256_srlv_epi32(low, _mm256_set1_epi32(last));
    // the two parts' bits go to bits 4 ... 7 of each byte
    const __m256i bits = _mm256_sllv_epi32(high, _mm256_set1_epi32(4 - last));
    q[0] = _mm256_or_si256(
        _mm256_and_si256(nibbles, _mm256_set1_epi8(15)),
        _mm256_and_si256(_mm256_srli_epi16(bits, 2 * part), _mm256_set1_epi8(0x30)));
  }
  SNAPKV_AVX2_INLINE __m256 scale(int p) const { return scales_[p]; }

 private:
  static constexpr int kParts = kSuperblockSize / 16;
  const char* unit_;
  HalfPartLanes<kParts> scales_;
};

}  // namespace snapkv::cpu

#endif  // x86-64
