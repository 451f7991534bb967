// SPDX-License-Identifier: MIT
// Interleaved weights (interleave.h) in AVX-512 registers, a row in each lane.
//
// Interleaved<T> is a unit of type T. Its values are in parts that share a scale, kDepth vectors
// with 4 values of each row to a part:
//   interleave()      makes a unit, as in interleave.h
//   n_parts()
//   kInOrder          whether a unit is read from its beginning to its end
//   levels(p, k, q)   vector k of parts p ... p + kTogether - 1: levels plus kSurplus, unsigned
//   scale(p), min(p)  what a part's levels are multiplied by, and what is subtracted; min() only
//                     with kHasMin<T>
#pragma once

#include "backend/cpu/weights/interleave.h"
#include "backend/cpu/weights/types_x86.h"

#if defined(__x86_64__)

#include "backend/cpu/target/transpose_avx512.h"

namespace snapkv::cpu {

template <DType T>
struct Interleaved;

template <DType T>
concept HasInterleaved = requires {
  Interleaved<T>::kDepth;
};

// ---------------------------------------------------------------- interleaving

/// 16 rows that are `stride` bytes apart.
struct RowsToInterleave {
  const char* at;
  int64_t stride;

  RowsToInterleave from(int64_t offset) const { return {at + offset, stride}; }
};

/// One number of each row.
template <typename Number>
SNAPKV_VNNI_INLINE void interleave_numbers(RowsToInterleave rows, char* to) {
  SNAPKV_UNROLL for (int r = 0; r < kInterleavedRows; ++r) {
    std::memcpy(to + r * sizeof(Number), rows.at + r * rows.stride, sizeof(Number));
  }
}

/// 4 words of each row, 16 bytes.
SNAPKV_VNNI_INLINE void interleave_4_words(RowsToInterleave rows, char* to) {
  __m512i v[4];  // v[i]: rows i, 4 + i, 8 + i, 12 + i
  SNAPKV_UNROLL for (int i = 0; i < 4; ++i) {
    const char* p = rows.at + i * rows.stride;
    v[i] = _mm512_castsi128_si512(load_16(p));
    v[i] = _mm512_inserti32x4(v[i], load_16(p + 4 * rows.stride), 1);
    v[i] = _mm512_inserti32x4(v[i], load_16(p + 8 * rows.stride), 2);
    v[i] = _mm512_inserti32x4(v[i], load_16(p + 12 * rows.stride), 3);
  }
  const __m512i low01 = _mm512_unpacklo_epi32(v[0], v[1]), low23 = _mm512_unpacklo_epi32(v[2], v[3]);
  const __m512i high01 = _mm512_unpackhi_epi32(v[0], v[1]);
  const __m512i high23 = _mm512_unpackhi_epi32(v[2], v[3]);
  _mm512_storeu_si512(to, _mm512_unpacklo_epi64(low01, low23));
  _mm512_storeu_si512(to + 64, _mm512_unpackhi_epi64(low01, low23));
  _mm512_storeu_si512(to + 128, _mm512_unpacklo_epi64(high01, high23));
  _mm512_storeu_si512(to + 192, _mm512_unpackhi_epi64(high01, high23));
}

/// kBytes of each row, a multiple of 16.
template <int kBytes>
SNAPKV_VNNI_INLINE void interleave_words(RowsToInterleave rows, char* to) {
  constexpr int kWide = kBytes / 64 * 64;
  for (int begin = 0; begin < kWide; begin += 64) {
    __m512i v[kInterleavedRows];
    SNAPKV_UNROLL for (int r = 0; r < kInterleavedRows; ++r) {
      v[r] = _mm512_loadu_si512(rows.at + r * rows.stride + begin);
    }
    avx512::transpose(v);
    SNAPKV_UNROLL for (int k = 0; k < kInterleavedRows; ++k) {
      _mm512_storeu_si512(to + begin * kInterleavedRows + 64 * k, v[k]);
    }
  }
  SNAPKV_UNROLL for (int begin = kWide; begin < kBytes; begin += 16) {
    interleave_4_words(rows.from(begin), to + begin * kInterleavedRows);
  }
}

// ---------------------------------------------------------------- blocks of 32 values

/// Blocks of a scale of kScaleBytes, kBitBytes of fifth bits, and kBytes of levels.
template <DType T, int kScaleBytes, int kBitBytes, int kBytes>
class InterleavedBlocks {
 public:
  static constexpr int kDepth = kBlockSize / 4;
  static constexpr int kTogether = 1;
  static constexpr bool kInOrder = true;

  SNAPKV_VNNI_INLINE static void interleave(RowsToInterleave rows, int64_t n_values, char* to) {
    static_assert(kScaleBytes + kBitBytes + kBytes == block_bytes(T));
    const int64_t n = n_values / kBlockSize;
    for (int64_t b = 0; b < n; ++b) {
      const RowsToInterleave block = rows.from(b * block_bytes(T));
      if constexpr (kScaleBytes == 1) {
        interleave_numbers<uint8_t>(block, to + b * kInterleavedRows);
      } else {
        interleave_numbers<uint16_t>(block, to + b * kInterleavedRows * 2);
      }
    }
    char* bits = to + n * kScaleBytes * kInterleavedRows;
    for (int64_t b = 0; kBitBytes > 0 && b < n; ++b) {
      interleave_numbers<uint32_t>(rows.from(b * block_bytes(T) + kScaleBytes), bits + b * 64);
    }
    char* levels = bits + n * kBitBytes * kInterleavedRows;
    for (int64_t b = 0; b < n; ++b) {
      interleave_words<kBytes>(rows.from(b * block_bytes(T) + kScaleBytes + kBitBytes),
                               levels + b * kBytes * kInterleavedRows);
    }
  }

  SNAPKV_VNNI_INLINE InterleavedBlocks(const char* unit, int64_t n_values)
      : scales_(unit),
        n_(static_cast<int>(n_values / kBlockSize)),
        bits_(unit + n_ * kScaleBytes * kInterleavedRows),
        levels_(bits_ + n_ * kBitBytes * kInterleavedRows) {}
  SNAPKV_VNNI_INLINE int n_parts() const { return n_; }

 protected:
  SNAPKV_VNNI_INLINE const char* scale_at(int p) const {
    return scales_ + p * kScaleBytes * kInterleavedRows;
  }
  SNAPKV_VNNI_INLINE __m512 f16_scale(int p) const {
    return _mm512_cvtph_ps(load_32(scale_at(p)));
  }
  SNAPKV_VNNI_INLINE __m512i word(int p, int k) const {
    return _mm512_loadu_si512(levels_ + (p * kBytes / 4 + k) * 64);
  }
  /// Which bytes of word k have a fifth bit: bit i of 32 belongs to value i.
  SNAPKV_VNNI_INLINE __mmask64 fifth_bits(int p, int k) const {
    static_assert(kBitBytes == 0 || kBitBytes == 4);
    const __m512i byte_of_word = _mm512_add_epi8(
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12)),
        _mm512_set1_epi8(static_cast<char>(k / 2)));
    const __m512i bits = _mm512_shuffle_epi8(_mm512_loadu_si512(bits_ + p * 64), byte_of_word);
    return _mm512_test_epi8_mask(bits, _mm512_set1_epi32(k % 2 == 0 ? 0x08040201 : 0x80402010));
  }
  /// The low nibbles of 16 bytes of a block, then the high ones.
  SNAPKV_VNNI_INLINE __m512i nibbles(int p, int k) const {
    const __m512i both = word(p, k % 4);
    return _mm512_and_si512(k < 4 ? both : _mm512_srli_epi16(both, 4), _mm512_set1_epi8(15));
  }

 private:
  const char* scales_;
  int n_;
  const char* bits_;
  const char* levels_;
};

template <>
struct Interleaved<DType::q8_0> : InterleavedBlocks<DType::q8_0, 2, 0, 32> {
  SNAPKV_VNNI_INLINE Interleaved(const char* unit, int64_t n_values)
      : InterleavedBlocks(unit, n_values) {}
  static constexpr int kSurplus = 128;
  SNAPKV_VNNI_INLINE void levels(int p, int k, __m512i (&q)[1]) const {
    q[0] = _mm512_xor_si512(word(p, k), _mm512_set1_epi8(static_cast<char>(0x80)));
  }
  SNAPKV_VNNI_INLINE __m512 scale(int p) const { return f16_scale(p); }
};

template <>
struct Interleaved<DType::q4_0> : InterleavedBlocks<DType::q4_0, 2, 0, 16> {
  SNAPKV_VNNI_INLINE Interleaved(const char* unit, int64_t n_values)
      : InterleavedBlocks(unit, n_values) {}
  static constexpr int kSurplus = 8;
  SNAPKV_VNNI_INLINE void levels(int p, int k, __m512i (&q)[1]) const { q[0] = nibbles(p, k); }
  SNAPKV_VNNI_INLINE __m512 scale(int p) const { return f16_scale(p); }
};

template <>
struct Interleaved<DType::q5_0> : InterleavedBlocks<DType::q5_0, 2, 4, 16> {
  SNAPKV_VNNI_INLINE Interleaved(const char* unit, int64_t n_values)
      : InterleavedBlocks(unit, n_values) {}
  static constexpr int kSurplus = 16;
  SNAPKV_VNNI_INLINE void levels(int p, int k, __m512i (&q)[1]) const {
    const __m512i low = nibbles(p, k);
    q[0] = _mm512_mask_add_epi8(low, fifth_bits(p, k), low, _mm512_set1_epi8(16));
  }
  SNAPKV_VNNI_INLINE __m512 scale(int p) const { return f16_scale(p); }
};

template <>
struct Interleaved<DType::iq4_nl> : InterleavedBlocks<DType::iq4_nl, 2, 0, 16> {
  SNAPKV_VNNI_INLINE Interleaved(const char* unit, int64_t n_values)
      : InterleavedBlocks(unit, n_values) {}
  static constexpr int kSurplus = 128;
  SNAPKV_VNNI_INLINE void levels(int p, int k, __m512i (&q)[1]) const {
    q[0] = look_up(BlockIQ4_NL::kLevels, kSurplus, nibbles(p, k));
  }
  SNAPKV_VNNI_INLINE __m512 scale(int p) const { return f16_scale(p); }
};

template <>
struct Interleaved<DType::mxfp4> : InterleavedBlocks<DType::mxfp4, 1, 0, 16> {
  SNAPKV_VNNI_INLINE Interleaved(const char* unit, int64_t n_values)
      : InterleavedBlocks(unit, n_values) {}
  static constexpr int kSurplus = 12;
  SNAPKV_VNNI_INLINE void levels(int p, int k, __m512i (&q)[1]) const {
    q[0] = look_up(BlockMXFP4::kLevels, kSurplus, nibbles(p, k));
  }
  SNAPKV_VNNI_INLINE __m512 scale(int p) const {
    return X86Block<DType::mxfp4>::scales(_mm512_cvtepu8_epi32(load_16(scale_at(p))));
  }
};

// ---------------------------------------------------------------- superblocks

/// The numbers of a superblock's kParts parts, a row in each lane.
template <int kParts>
struct alignas(64) PartLanes {
  float at[kParts][kInterleavedRows];

  SNAPKV_VNNI_INLINE __m512 operator[](int p) const { return _mm512_load_ps(at[p]); }
  SNAPKV_VNNI_INLINE void set(int p, __m512 numbers) { _mm512_store_ps(at[p], numbers); }
};

/// Byte i of each word, unsigned.
SNAPKV_VNNI_INLINE __m512i byte_of_words(__m512i words, int i) {
  return _mm512_and_si512(_mm512_srli_epi32(words, 8 * i), _mm512_set1_epi32(255));
}

/// Superblocks that begin with PartScales, of which two parts share bytes. `kOddUnit`: the value of
/// a level of odd parts.
class InterleavedPartScales {
 public:
  static constexpr int kDepth = kBlockSize / 4;
  static constexpr int kTogether = 2;
  static constexpr int kSurplus = 0;

  SNAPKV_VNNI_INLINE InterleavedPartScales(const char* unit, float odd_unit) {
    const __m512i numbers = _mm512_loadu_si512(unit);
    const __m512 d = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(numbers));
    const __m512 dmin = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(numbers, 16)));
    // as in PartScales::unpack()
    const __m512i a = _mm512_loadu_si512(unit + 64), b = _mm512_loadu_si512(unit + 128);
    const __m512i c = _mm512_loadu_si512(unit + 192);
    const __m512i low_bits = _mm512_set1_epi8(0x3f);
    const __m512i scales[2] = {_mm512_and_si512(a, low_bits), last_parts(c, a)};
    const __m512i mins[2] = {_mm512_and_si512(b, low_bits), last_parts(_mm512_srli_epi32(c, 4), b)};
    const __m512 odd_d = _mm512_mul_ps(d, _mm512_set1_ps(odd_unit));
    SNAPKV_UNROLL for (int p = 0; p < kSuperblockParts; ++p) {
      const __m512i scale = byte_of_words(scales[p / 4], p % 4);
      const __m512i min = byte_of_words(mins[p / 4], p % 4);
      scales_.set(p, _mm512_mul_ps(_mm512_cvtepi32_ps(scale), p % 2 == 0 ? d : odd_d));
      mins_.set(p, _mm512_mul_ps(_mm512_cvtepi32_ps(min), dmin));
    }
  }
  SNAPKV_VNNI_INLINE int n_parts() const { return kSuperblockParts; }
  SNAPKV_VNNI_INLINE __m512 scale(int p) const { return scales_[p]; }
  SNAPKV_VNNI_INLINE __m512 min(int p) const { return mins_[p]; }

 private:
  /// low & 15 | high >> 2 & 48, of bytes.
  SNAPKV_VNNI_INLINE static __m512i last_parts(__m512i low, __m512i high) {
    return _mm512_or_si512(
        _mm512_and_si512(low, _mm512_set1_epi8(0x0f)),
        _mm512_and_si512(_mm512_srli_epi32(high, 2), _mm512_set1_epi8(0x30)));
  }
  PartLanes<kSuperblockParts> scales_, mins_;
};

/// High nibbles keep their place, 16 times their levels: they fit into bytes, and need no shift.
template <>
struct Interleaved<DType::q4_k> : InterleavedPartScales {
  static constexpr bool kInOrder = true;
  SNAPKV_VNNI_INLINE static void interleave(RowsToInterleave rows, int64_t, char* to) {
    interleave_words<sizeof(BlockQ4_K)>(rows, to);
  }
  SNAPKV_VNNI_INLINE Interleaved(const char* unit, int64_t)
      : InterleavedPartScales(unit, 0.0625f), levels_(unit + 256) {}
  SNAPKV_VNNI_INLINE void levels(int p, int k, __m512i (&q)[2]) const {
    const __m512i both = _mm512_loadu_si512(levels_ + (p * 4 + k) * 64);
    q[0] = _mm512_and_si512(both, _mm512_set1_epi8(0x0f));
    q[1] = _mm512_and_si512(both, _mm512_set1_epi8(static_cast<char>(0xf0)));
  }

 private:
  const char* levels_;
};

template <>
struct Interleaved<DType::q5_k> : InterleavedPartScales {
  static constexpr bool kInOrder = false;
  SNAPKV_VNNI_INLINE static void interleave(RowsToInterleave rows, int64_t, char* to) {
    interleave_words<sizeof(BlockQ5_K)>(rows, to);
  }
  SNAPKV_VNNI_INLINE Interleaved(const char* unit, int64_t)
      : InterleavedPartScales(unit, 1.0f), bits_(unit + 256), levels_(bits_ + 512) {}
  SNAPKV_VNNI_INLINE void levels(int p, int k, __m512i (&q)[2]) const {
    const __m512i both = _mm512_loadu_si512(levels_ + (p * 4 + k) * 64);
    const __m512i bits = _mm512_loadu_si512(bits_ + k * 64);
    // bit p of each byte goes to bit 4, and bit p + 1
    const __m512i first = _mm512_rorv_epi32(bits, _mm512_set1_epi32((p + 28) % 32));
    q[0] = with_fifth_bit(both, first);
    q[1] = with_fifth_bit(_mm512_srli_epi16(both, 4), _mm512_srli_epi32(first, 1));
  }

 private:
  /// low & 15 | bits & 16
  SNAPKV_VNNI_INLINE static __m512i with_fifth_bit(__m512i low, __m512i bits) {
    const __m512i both = _mm512_ternarylogic_epi32(_mm512_set1_epi8(15), low, bits, 0xca);
    return _mm512_and_si512(both, _mm512_set1_epi8(31));
  }
  const char* bits_;
  const char* levels_;
};

template <>
struct Interleaved<DType::q6_k> {
  static constexpr int kDepth = kBlockSize / 8;
  static constexpr int kTogether = 1;
  static constexpr bool kInOrder = false;
  static constexpr int kSurplus = 32;

  SNAPKV_VNNI_INLINE static void interleave(RowsToInterleave rows, int64_t, char* to) {
    constexpr int kWords = offsetof(BlockQ6_K, d);
    interleave_words<kWords>(rows, to);
    interleave_numbers<uint16_t>(rows.from(kWords), to + kWords * kInterleavedRows);
  }

  SNAPKV_VNNI_INLINE Interleaved(const char* unit, int64_t) : unit_(unit) {
    const __m512 d = _mm512_cvtph_ps(load_32(unit + offsetof(BlockQ6_K, d) * kInterleavedRows));
    SNAPKV_UNROLL for (int i = 0; i < kParts / 4; ++i) {
      const __m512i words =
          _mm512_loadu_si512(unit + offsetof(BlockQ6_K, scales) * kInterleavedRows + 64 * i);
      SNAPKV_UNROLL for (int b = 0; b < 4; ++b) {
        const __m512i scale = _mm512_srai_epi32(_mm512_slli_epi32(words, 24 - 8 * b), 24);
        scales_.set(4 * i + b, _mm512_mul_ps(_mm512_cvtepi32_ps(scale), d));
      }
    }
  }
  SNAPKV_VNNI_INLINE int n_parts() const { return kParts; }
  SNAPKV_VNNI_INLINE void levels(int p, int k, __m512i (&q)[1]) const {
    // values 32 part ... of which p is the first or the last half
    const int part = p / 2, word = p % 2 * 4 + k;
    const __m512i low =
        _mm512_loadu_si512(unit_ + (part / 4 * 16 + part % 2 * 8 + word) * 64);
    const __m512i high = _mm512_loadu_si512(unit_ + (32 + part / 4 * 8 + word) * 64);
    // bits 2 k, 2 k + 1 of each byte go to bits 4, 5
    const int shift = part % 4 * 2;
    const __m512i nibbles = _mm512_srl_epi16(low, _mm_cvtsi32_si128(part % 4 / 2 * 4));
    const __m512i bits = _mm512_rorv_epi32(high, _mm512_set1_epi32((shift + 28) % 32));
    const __m512i both = _mm512_ternarylogic_epi32(_mm512_set1_epi8(15), nibbles, bits, 0xca);
    q[0] = _mm512_and_si512(both, _mm512_set1_epi8(63));
  }
  SNAPKV_VNNI_INLINE __m512 scale(int p) const { return scales_[p]; }

 private:
  static constexpr int kParts = kSuperblockSize / 16;
  const char* unit_;
  PartLanes<kParts> scales_;
};

}  // namespace snapkv::cpu

#endif  // x86-64
