// SPDX-License-Identifier: MIT
// The superblock types with plain levels (q2_k ... q6_k, iq4_xs) in x86 registers, and what all have
// in common. blocks_x86.h explains X86Block, codebook_blocks_x86.h has the other superblocks.
//
// With VNNI a superblock's 8 parts take the places of 8 blocks. Eight bytes of a part are a 64-bit
// word. For each vector one permutation fetches its words from the packed levels, and one shift,
// with a count of its own for each word, brings the part's bits down.
//   load_parts(p, q)   unsigned levels; for types without minima they are 2^kPartSurplusBits
//                      larger
//   kPartUnits         the value of a level in each lane, if not 1
#pragma once

#include "backend/cpu/weights/blocks_x86.h"

#if defined(__x86_64__)

namespace snapkv::cpu {

template <DType T>
struct X86Superblock {
  using Scales = decltype(std::declval<Block<T>>().unpack_scales());
  static SNAPKV_AVX2_INLINE float d(const char* p) {
    if constexpr (!kHasF16Scale<T>) {
      return reinterpret_cast<const Block<T>*>(p)->scale();
    } else {
      return load_f16(p + kScaleAt<T>) * kScaleUnit<T>;
    }
  }
  static SNAPKV_AVX2_INLINE float min(const char* p) { return load_f16(p + kMinAt<T>); }
  static SNAPKV_AVX2_INLINE Scales scales(const char* p) {
    return reinterpret_cast<const Block<T>*>(p)->unpack_scales();
  }

  /// Each 128-bit lane belongs to a row. With PartBytes, `scales` holds the parts' scales and,
  /// above them, their minima. With HalfPartBytes both hold the numbers of the parts' first halves
  /// and, above them, those of the last halves.
  struct PairScales {
    __m256i scales, mins;
  };
  static SNAPKV_AVX2_INLINE PairScales pair_scales(const char* p0, const char* p1) {
    const Scales a = scales(p0), b = scales(p1);
    if constexpr (std::is_same_v<Scales, HalfPartBytes>) {
      return {.scales = first_then_last(join(a.scales[0], a.scales[1], b.scales[0], b.scales[1])),
              .mins = first_then_last(join(a.mins[0], a.mins[1], b.mins[0], b.mins[1]))};
    }
    if constexpr (std::is_same_v<Scales, PartBytes>) {
      return {.scales = join(a.scales, a.mins, b.scales, b.mins), .mins = _mm256_setzero_si256()};
    }
  }

 protected:
  static SNAPKV_AVX2_INLINE __m256i join(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    return _mm256_setr_epi64x(static_cast<int64_t>(a), static_cast<int64_t>(b),
                              static_cast<int64_t>(c), static_cast<int64_t>(d));
  }
  static SNAPKV_AVX2_INLINE __m256i first_then_last(__m256i bytes) {
    const __m128i order = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    return _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(order));
  }
  static SNAPKV_AVX2_INLINE __m256i load_pair(const char* p0, const char* p1) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(p0)), load_16(p1), 1);
  }
  /// Scales 2 k + 1 from the bytes k.
  static SNAPKV_AVX2_INLINE PairScales odd_pair_scales(__m256i k) {
    return {.scales = _mm256_or_si256(_mm256_add_epi8(k, k), _mm256_set1_epi8(1)),
            .mins = _mm256_setzero_si256()};
  }
};

/// Superblocks that begin with PartScales; the 12 bytes of two rows are unpacked together.
template <DType T>
struct X86PartScales : X86Superblock<T> {
  using PairScales = typename X86Superblock<T>::PairScales;
  static SNAPKV_AVX2_INLINE PairScales pair_scales(const char* p0, const char* p1) {
    // 32-bit words 1, 2, 3 are a, b, c in PartScales::unpack()
    const __m256i words = X86Superblock<T>::load_pair(p0, p1);
    const __m256i low =
        _mm256_and_si256(_mm256_srlv_epi32(_mm256_shuffle_epi32(words, 0b11'10'11'01),
                                           _mm256_setr_epi32(0, 0, 0, 4, 0, 0, 0, 4)),
                         _mm256_set1_epi64x(0x0f0f0f0f3f3f3f3f));
    const __m256i high =
        _mm256_and_si256(_mm256_srli_epi32(_mm256_shuffle_epi32(words, 0b10'10'01'01), 2),
                         _mm256_set1_epi64x(0x3030303000000000));
    return {.scales = _mm256_or_si256(low, high), .mins = _mm256_setzero_si256()};
  }
};

/// One number for each of a vector's 64-bit words, computed from the part that the word belongs to.
struct PartWords {
  alignas(64) int64_t at[8];
};
template <class F>
constexpr PartWords each_word(F f) {
  PartWords words{};
  for (int w = 0; w < 8; ++w) words.at[w] = f(kBlockOfWord[w]);
  return words;
}
SNAPKV_VNNI_INLINE __m512i load(const PartWords& words) { return _mm512_load_si512(words.at); }

/// In each part's words, the bit of every byte whose index is the part's number.
inline constexpr PartWords kPartBits =
    each_word([](int part) { return int64_t{0x0101010101010101} << part; });

/// Adds `value` to levels whose bit is set: bit j of bits[i] belongs to level i of part j.
SNAPKV_VNNI_INLINE void add_part_bits(const char* bits, int8_t value, VnniLevels& q) {
  SNAPKV_UNROLL for (int v = 0; v < 4; ++v) {
    const __m512i word = _mm512_set1_epi64(load_word<int64_t>(bits + 8 * v));
    const __mmask64 is_set = _mm512_test_epi8_mask(word, load(kPartBits));
    q[v] = _mm512_mask_add_epi8(q[v], is_set, q[v], _mm512_set1_epi8(value));
  }
}

/// Bit `part` of each of the 32 bytes at p, moved to bit kPlace.
template <int kPlace>
SNAPKV_AVX2_INLINE __m256i part_bits_at(const char* p, int part) {
  const __m256i bits = load_32(p);
  const __m256i moved = part < kPlace ? _mm256_slli_epi16(bits, kPlace - part)
                                      : _mm256_srli_epi16(bits, part - kPlace);
  return _mm256_and_si256(moved, _mm256_set1_epi8(1 << kPlace));
}

// ---------------------------------------------------------------- q2_k, q3_k

// Part 4h + k has bits 2k, 2k + 1 of bytes [32h, 32h + 32).
inline constexpr PartWords kPairWords = each_word([](int part) { return part / 4 * 4; });
inline constexpr PartWords kPairShifts = each_word([](int part) { return part % 4 * 2; });

SNAPKV_AVX2_INLINE __m256i bit_pairs(const char* qs, int part) {
  const __m256i fours = load_32(qs + part / 4 * 32);
  return _mm256_and_si256(_mm256_srli_epi16(fours, part % 4 * 2), _mm256_set1_epi8(3));
}
SNAPKV_VNNI_INLINE void load_pairs(const char* qs, VnniLevels& q) {
  const __m512i fours = _mm512_loadu_si512(qs);
  SNAPKV_UNROLL for (int v = 0; v < 4; ++v) {
    const __m512i index = _mm512_add_epi64(load(kPairWords), _mm512_set1_epi64(v));
    const __m512i words = _mm512_permutexvar_epi64(index, fours);
    q[v] = _mm512_and_si512(_mm512_srlv_epi64(words, load(kPairShifts)), _mm512_set1_epi8(3));
  }
}

template <>
struct X86Block<DType::q2_k> : X86Superblock<DType::q2_k> {
  static constexpr int kOffset = 0;
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int part) {
    return bit_pairs(p + offsetof(BlockQ2_K, qs), part);
  }
  static SNAPKV_AVX2_INLINE PairScales pair_scales(const char* p0, const char* p1) {
    const __m256i bytes = first_then_last(load_pair(p0, p1));
    const __m256i low_bits = _mm256_set1_epi8(15);
    return {.scales = _mm256_and_si256(bytes, low_bits),
            .mins = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), low_bits)};
  }
  static SNAPKV_VNNI_INLINE void load_parts(const char* p, VnniLevels& q) {
    load_pairs(p + offsetof(BlockQ2_K, qs), q);
  }
};

template <>
struct X86Block<DType::q3_k> : X86Superblock<DType::q3_k> {
  static constexpr int kOffset = 4;
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int part) {
    return _mm256_or_si256(bit_pairs(p + offsetof(BlockQ3_K, qs), part),
                           part_bits_at<2>(p + offsetof(BlockQ3_K, hmask), part));
  }

  static constexpr int kPartSurplusBits = 2;
  static SNAPKV_VNNI_INLINE void load_parts(const char* p, VnniLevels& q) {
    load_pairs(p + offsetof(BlockQ3_K, qs), q);
    add_part_bits(p + offsetof(BlockQ3_K, hmask), 4, q);
  }
};

// ---------------------------------------------------------------- q4_k, q5_k

// Parts 2p and 2p + 1 are the nibbles of bytes [32p, 32p + 32).
inline constexpr PartWords kNibbleWords = each_word([](int part) { return part / 2 * 4; });
inline constexpr PartWords kNibbleShifts = each_word([](int part) { return part % 2 * 4; });
inline constexpr PartWords kNibbleMasks = each_word([](int part) {
  return static_cast<int64_t>(part % 2 == 0 ? 0x0f0f0f0f0f0f0f0fu : 0xf0f0f0f0f0f0f0f0u);
});

/// Loads vector v's words, each with the nibbles of its own part and of the other.
SNAPKV_VNNI_INLINE void load_nibble_words(const char* qs, VnniLevels& q) {
  const __m512i pairs0 = _mm512_loadu_si512(qs), pairs1 = _mm512_loadu_si512(qs + 64);
  SNAPKV_UNROLL for (int v = 0; v < 4; ++v) {
    const __m512i index = _mm512_add_epi64(load(kNibbleWords), _mm512_set1_epi64(v));
    q[v] = _mm512_permutex2var_epi64(pairs0, index, pairs1);
  }
}

template <>
struct X86Block<DType::q4_k> : X86PartScales<DType::q4_k> {
  static constexpr int kOffset = 0;
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int part) {
    return low_or_high(p + offsetof(BlockQ4_K, qs) + part / 2 * 32, part % 2 == 1);
  }

  /// Odd parts keep their place, 16 times their levels: they still fit into bytes, and no shift is
  /// needed.
  static SNAPKV_VNNI_INLINE void load_parts(const char* p, VnniLevels& q) {
    load_nibble_words(p + offsetof(BlockQ4_K, qs), q);
    SNAPKV_UNROLL for (int v = 0; v < 4; ++v) q[v] = _mm512_and_si512(q[v], load(kNibbleMasks));
  }
  struct Lanes {
    alignas(64) float at[16];
  };
  static constexpr Lanes kPartUnits = [] {
    Lanes lanes{};
    for (int i = 0; i < 16; ++i) lanes.at[i] = kBlockOfWord[i / 2] % 2 == 0 ? 1.0f : 0.0625f;
    return lanes;
  }();
};

template <>
struct X86Block<DType::q5_k> : X86PartScales<DType::q5_k> {
  static constexpr int kOffset = 0;
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int part) {
    const __m256i low = low_or_high(p + offsetof(BlockQ5_K, qs) + part / 2 * 32, part % 2 == 1);
    return _mm256_or_si256(low, part_bits_at<4>(p + offsetof(BlockQ5_K, qh), part));
  }
  static SNAPKV_VNNI_INLINE void load_parts(const char* p, VnniLevels& q) {
    load_nibble_words(p + offsetof(BlockQ5_K, qs), q);
    SNAPKV_UNROLL for (int v = 0; v < 4; ++v) {
      q[v] = _mm512_and_si512(_mm512_srlv_epi64(q[v], load(kNibbleShifts)), _mm512_set1_epi8(15));
    }
    add_part_bits(p + offsetof(BlockQ5_K, qh), 16, q);
  }
};

// ---------------------------------------------------------------- q6_k

// Part 4h + k has its low bits in the nibbles (high ones for k >= 2) of bytes [64h + 32 (k % 2),
// ...), and its high bits in bits 2k, 2k + 1 of bytes [32h, 32h + 32).
inline constexpr PartWords kLowWords =
    each_word([](int part) { return part / 4 * 8 + part % 2 * 4; });
inline constexpr PartWords kLowShifts = each_word([](int part) { return part % 4 / 2 * 4; });
inline constexpr PartWords kHighWords = each_word([](int part) { return part / 4 * 4; });
inline constexpr PartWords kHighRotations =  // left: to bits 4, 5
    each_word([](int part) { return (64 + 4 - part % 4 * 2) % 64; });

template <>
struct X86Block<DType::q6_k> : X86Superblock<DType::q6_k> {
  static constexpr int kOffset = 32;
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int part) {
    const __m256i low = low_or_high(p + part / 4 * 64 + part % 2 * 32, part % 4 >= 2);
    const __m256i bits = load_32(p + offsetof(BlockQ6_K, qh) + part / 4 * 32);
    const int k = part % 4;
    const __m256i to_place =
        k < 2 ? _mm256_slli_epi16(bits, 4 - 2 * k) : _mm256_srli_epi16(bits, 2 * k - 4);
    const __m256i high = _mm256_and_si256(to_place, _mm256_set1_epi8(0x30));
    return _mm256_or_si256(low, high);
  }
  static SNAPKV_AVX2_INLINE PairScales pair_scales(const char* p0, const char* p1) {
    constexpr size_t kAt = offsetof(BlockQ6_K, scales);
    return {.scales = first_then_last(load_pair(p0 + kAt, p1 + kAt)),
            .mins = _mm256_setzero_si256()};
  }

  static constexpr int kPartSurplusBits = 5;
  static SNAPKV_VNNI_INLINE void load_parts(const char* p, VnniLevels& q) {
    const __m512i low0 = _mm512_loadu_si512(p), low1 = _mm512_loadu_si512(p + 64);
    const __m512i high = _mm512_loadu_si512(p + offsetof(BlockQ6_K, qh));
    SNAPKV_UNROLL for (int v = 0; v < 4; ++v) {
      const __m512i step = _mm512_set1_epi64(v);
      const __m512i nibbles = _mm512_srlv_epi64(
          _mm512_permutex2var_epi64(low0, _mm512_add_epi64(load(kLowWords), step), low1),
          load(kLowShifts));
      const __m512i bits = _mm512_rolv_epi64(
          _mm512_permutexvar_epi64(_mm512_add_epi64(load(kHighWords), step), high),
          load(kHighRotations));
      // nibbles & 15 | bits & 48: `bits` where the mask is 0
      const __m512i both = _mm512_ternarylogic_epi64(_mm512_set1_epi8(15), nibbles, bits, 0xca);
      q[v] = _mm512_and_si512(both, _mm512_set1_epi8(63));
    }
  }
};

// ---------------------------------------------------------------- iq4_xs

template <>
struct X86Block<DType::iq4_xs> : X86Superblock<DType::iq4_xs> {
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int part) {
    return look_up(BlockIQ4_NL::kLevels, low_then_high(p + offsetof(BlockIQ4_XS, qs) + part * 16));
  }

  static constexpr int kSurplus = 128;
  static SNAPKV_VNNI_INLINE void load_8(const char* p, VnniLevels& q) {
    load_nibbles<16>(p + offsetof(BlockIQ4_XS, qs), q);
    look_up(BlockIQ4_NL::kLevels, kSurplus, q);
  }
  static SNAPKV_VNNI_INLINE __m512 d_8(const char* p) {
    // each lane takes its part's byte as its highest byte; a shift then extends the sign
    const __m512i order =
        _mm512_slli_epi32(_mm512_setr_epi32(0, 0, 4, 4, 1, 1, 5, 5, 2, 2, 6, 6, 3, 3, 7, 7), 24);
    const __m512i bytes =
        _mm512_shuffle_epi8(_mm512_set1_epi64(static_cast<int64_t>(scales(p).scales)), order);
    return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_srai_epi32(bytes, 24)), _mm512_set1_ps(d(p)));
  }
};

}  // namespace snapkv::cpu

#endif  // x86-64
