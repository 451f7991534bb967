// SPDX-License-Identifier: MIT
// The types of codebook_types.h in x86 registers. Groups of levels are loaded from the codebooks
// one by one (gathering them takes twice as long on a Zen 4); their places, signs and scales are
// computed for a whole superblock at a time.
//
// CodebookLevels<T>::read(p) reads the superblock at p. What it stores is loaded in smaller pieces
// soon after, so a loop should call it one superblock ahead. Then
//   magnitudes(a, v, b, w)   group v of part a, then group w of part b, without their signs
//   bytes                    one for each group: with kHasSigns the signs of its levels, from the
//                            lowest bit on, else what is subtracted from its levels
#pragma once

#include "backend/cpu/weights/blocks_x86.h"

#if defined(__x86_64__)

namespace snapkv::cpu {

/// One byte for each group of 8 levels.
struct alignas(32) GroupBytes {
  uint8_t at[kSuperblockParts][4];
  SNAPKV_AVX2_INLINE void set(__m256i bytes) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(at), bytes);
  }
  /// Those of a part, each 8 times.
  SNAPKV_AVX2_INLINE __m256i spread(int part) const {
    const __m256i byte_of =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    return _mm256_shuffle_epi8(_mm256_set1_epi32(load_word<int32_t>(at[part])), byte_of);
  }
  /// The parts' bytes in 128-bit lanes: parts i and i + 4 begin lane i.
  SNAPKV_VNNI_INLINE __m512i in_lanes() const {
    const __m512i order = _mm512_setr_epi32(0, 4, 0, 4, 1, 5, 1, 5, 2, 6, 2, 6, 3, 7, 3, 7);
    const __m512i all =
        _mm512_castsi256_si512(_mm256_load_si256(reinterpret_cast<const __m256i*>(at)));
    return _mm512_permutexvar_epi32(order, all);
  }
  /// From in_lanes() the bytes of group v of every part, 8 times each, in the order of VnniLevels.
  static SNAPKV_VNNI_INLINE __m512i spread(__m512i in_lanes, int v) {
    const __m512i byte_of = _mm512_broadcast_i32x4(
        _mm_set_epi64x(0x0404040404040404 + 0x0101010101010101 * v, 0x0101010101010101 * v));
    return _mm512_shuffle_epi8(in_lanes, byte_of);
  }
};

/// Adds the eighth sign to bytes of seven, so that the number of minus signs is even.
SNAPKV_AVX2_INLINE __m256i with_even_signs(__m256i bytes) {
  constexpr char kOdd = -128;
  const __m128i odd = _mm_setr_epi8(0, kOdd, kOdd, 0, kOdd, 0, 0, kOdd, kOdd, 0, 0, kOdd, 0, kOdd,
                                    kOdd, 0);  // for each nibble
  const __m256i low_bits = _mm256_set1_epi8(15);
  const __m256i high = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), low_bits);
  const __m256i both = _mm256_and_si256(_mm256_xor_si256(bytes, high), low_bits);
  return _mm256_or_si256(bytes, _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(odd), both));
}

/// The signs of parts whose words have four times seven of them, then a scale.
SNAPKV_AVX2_INLINE __m256i signs_of_words(__m256i words) {
  __m256i bytes = _mm256_and_si256(words, _mm256_set1_epi32(127));
  SNAPKV_UNROLL for (int v = 1; v < 4; ++v) {
    const __m256i bits = _mm256_and_si256(words, _mm256_set1_epi32(127 << (7 * v)));
    bytes = _mm256_or_si256(bytes, _mm256_slli_epi32(bits, v));
  }
  return with_even_signs(bytes);
}

/// Two groups of 8 levels.
template <typename Table, typename Entry>
SNAPKV_AVX2_INLINE __m128i join_groups(const Table& table, Entry a, Entry b) {
  return _mm_set_epi64x(static_cast<int64_t>(table[b]), static_cast<int64_t>(table[a]));
}
/// The same of groups that are two entries with 4 levels.
template <typename Table, typename Entry>
SNAPKV_AVX2_INLINE __m128i join_groups(const Table& table, const Entry* a, const Entry* b) {
  return _mm_setr_epi32(static_cast<int32_t>(table[a[0]]), static_cast<int32_t>(table[a[1]]),
                        static_cast<int32_t>(table[b[0]]), static_cast<int32_t>(table[b[1]]));
}

/// 3^n for a ternary digit n.
inline constexpr int kPowersOf3[] = {1, 3, 9, 27, 81};

/// Digits of tq1_0: of each byte the digit n for which its 16-bit word of `powers` is 3^n.
SNAPKV_AVX2_INLINE __m256i ternary_digits(__m256i bytes, __m256i powers) {
  // (byte * power modulo 256) * 3 >> 8, with even bytes in the high half of their words
  const __m256i three = _mm256_set1_epi16(3), high_bytes = _mm256_set1_epi16(-256);
  const __m256i even = _mm256_mullo_epi16(bytes, _mm256_slli_epi16(powers, 8));
  const __m256i odd = _mm256_mullo_epi16(_mm256_and_si256(bytes, high_bytes), powers);
  return _mm256_or_si256(_mm256_mulhi_epu16(even, three),
                         _mm256_slli_epi16(_mm256_mulhi_epu16(odd, three), 8));
}
SNAPKV_VNNI_INLINE __m512i ternary_digits(__m512i bytes, __m512i powers) {
  const __m512i three = _mm512_set1_epi16(3), high_bytes = _mm512_set1_epi16(-256);
  const __m512i even = _mm512_mullo_epi16(bytes, _mm512_slli_epi16(powers, 8));
  const __m512i odd = _mm512_mullo_epi16(_mm512_and_si512(bytes, high_bytes), powers);
  return _mm512_or_si512(_mm512_mulhi_epu16(even, three),
                         _mm512_slli_epi16(_mm512_mulhi_epu16(odd, three), 8));
}

/// d times the scales of the parts, in the lanes of VnniLevels.
SNAPKV_VNNI_INLINE __m512 part_scales_to_lanes(__m256i scales, float d) {
  const __m512i order = _mm512_setr_epi32(0, 0, 4, 4, 1, 1, 5, 5, 2, 2, 6, 6, 3, 3, 7, 7);
  const __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(scales), _mm256_set1_ps(d));
  return _mm512_permutexvar_ps(order, _mm512_castps256_ps512(scaled));
}
/// 2 k + 1
SNAPKV_AVX2_INLINE __m256i odd_scales(__m256i k) {
  return _mm256_add_epi32(_mm256_add_epi32(k, k), _mm256_set1_epi32(1));
}

template <DType T>
struct CodebookLevels;

template <>
struct CodebookLevels<DType::iq2_xxs> {
  const BlockIQ2_XXS* block;
  static constexpr bool kHasSigns = true;
  GroupBytes bytes;

  /// The last four bytes of each part.
  static SNAPKV_AVX2_INLINE __m256i words(const char* p) {
    const char* qs = p + offsetof(BlockIQ2_XXS, qs);
    const __m256 both = _mm256_shuffle_ps(_mm256_castsi256_ps(load_32(qs)),
                                          _mm256_castsi256_ps(load_32(qs + 32)), 0b11'01'11'01);
    return _mm256_permute4x64_epi64(_mm256_castps_si256(both), 0b11'01'10'00);
  }
  SNAPKV_AVX2_INLINE void read(const char* p) {
    block = reinterpret_cast<const BlockIQ2_XXS*>(p);
    bytes.set(signs_of_words(words(p)));
  }
  SNAPKV_AVX2_INLINE __m128i magnitudes(int a, int v, int b, int w) const {
    return join_groups(codebooks::kIq2Xxs, block->qs[a][v], block->qs[b][w]);
  }
};

template <>
struct CodebookLevels<DType::iq2_xs> {
  alignas(32) uint16_t entries[kSuperblockParts][4];
  static constexpr bool kHasSigns = true;
  GroupBytes bytes;

  SNAPKV_AVX2_INLINE void read(const char* p) {
    const char* qs = p + offsetof(BlockIQ2_XS, qs);
    const __m256i first = load_32(qs), last = load_32(qs + 32), low_bits = _mm256_set1_epi16(511);
    auto* to = reinterpret_cast<__m256i*>(entries);
    _mm256_store_si256(to, _mm256_and_si256(first, low_bits));
    _mm256_store_si256(to + 1, _mm256_and_si256(last, low_bits));
    const __m256i signs =
        _mm256_packus_epi16(_mm256_srli_epi16(first, 9), _mm256_srli_epi16(last, 9));
    bytes.set(with_even_signs(_mm256_permute4x64_epi64(signs, 0b11'01'10'00)));
  }
  SNAPKV_AVX2_INLINE __m128i magnitudes(int a, int v, int b, int w) const {
    return join_groups(codebooks::kIq2Xs, entries[a][v], entries[b][w]);
  }
};

/// A byte of each of four parts, at p, times `factors`, in the 16-bit words of the parts' groups.
SNAPKV_AVX2_INLINE __m256i multiply_part_bytes(const char* p, int64_t factors) {
  const __m256i word_of = _mm256_setr_epi64x(
      static_cast<int64_t>(0x8000800080008000u), static_cast<int64_t>(0x8001800180018001u),
      static_cast<int64_t>(0x8002800280028002u), static_cast<int64_t>(0x8003800380038003u));
  const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(load_word<int32_t>(p)), word_of);
  return _mm256_mullo_epi16(bytes, _mm256_set1_epi64x(factors));
}
/// 16 bytes as words, or `high`.
SNAPKV_AVX2_INLINE __m256i join_entries(const char* low, __m256i high) {
  return _mm256_or_si256(_mm256_cvtepu8_epi16(load_16(low)), high);
}

template <>
struct CodebookLevels<DType::iq2_s> {
  alignas(32) uint16_t entries[kSuperblockParts][4];
  static constexpr bool kHasSigns = true;
  GroupBytes bytes;

  SNAPKV_AVX2_INLINE void read(const char* p) {
    const char* qs = p + offsetof(BlockIQ2_S, qs);
    const char* qh = p + offsetof(BlockIQ2_S, qh);
    SNAPKV_UNROLL for (int half = 0; half < 2; ++half) {
      // bits 2 v and 2 v + 1 go to bits 8 and 9
      const __m256i high = _mm256_and_si256(
          multiply_part_bytes(qh + 4 * half, 0x0004'0010'0040'0100), _mm256_set1_epi16(0x300));
      _mm256_store_si256(reinterpret_cast<__m256i*>(entries) + half,
                         join_entries(qs + 16 * half, high));
    }
    bytes.set(load_32(p + offsetof(BlockIQ2_S, signs)));
  }
  SNAPKV_AVX2_INLINE __m128i magnitudes(int a, int v, int b, int w) const {
    return join_groups(codebooks::kIq2S, entries[a][v], entries[b][w]);
  }
};

template <>
struct CodebookLevels<DType::iq3_xxs> {
  const BlockIQ3_XXS* block;
  static constexpr bool kHasSigns = true;
  GroupBytes bytes;

  static SNAPKV_AVX2_INLINE __m256i words(const char* p) {
    return load_32(p + offsetof(BlockIQ3_XXS, signs));
  }
  SNAPKV_AVX2_INLINE void read(const char* p) {
    block = reinterpret_cast<const BlockIQ3_XXS*>(p);
    bytes.set(signs_of_words(words(p)));
  }
  SNAPKV_AVX2_INLINE __m128i magnitudes(int a, int v, int b, int w) const {
    return join_groups(codebooks::kIq3Xxs, block->qs[a] + 2 * v, block->qs[b] + 2 * w);
  }
};

template <>
struct CodebookLevels<DType::iq3_s> {
  alignas(32) uint16_t entries[kSuperblockParts][8];
  static constexpr bool kHasSigns = true;
  GroupBytes bytes;

  SNAPKV_AVX2_INLINE void read(const char* p) {
    const char* qs = p + offsetof(BlockIQ3_S, qs);
    const auto qh = load_word<uint64_t>(p + offsetof(BlockIQ3_S, qh));
    const __m256i bit_of = _mm256_broadcastsi128_si256(
        _mm_setr_epi16(0x100, 0x80, 0x40, 0x20, 0x10, 8, 4, 2));  // bit k goes to bit 8
    const __m256i all = _mm256_set1_epi64x(static_cast<int64_t>(qh));
    SNAPKV_UNROLL for (int i = 0; i < 4; ++i) {
      // words of byte 2 i, then of byte 2 i + 1
      const __m256i word_of = _mm256_inserti128_si256(
          _mm256_castsi128_si256(_mm_set1_epi16(static_cast<int16_t>(-0x8000 + 2 * i))),
          _mm_set1_epi16(static_cast<int16_t>(-0x8000 + 2 * i + 1)), 1);
      const __m256i high = _mm256_and_si256(
          _mm256_mullo_epi16(_mm256_shuffle_epi8(all, word_of), bit_of), _mm256_set1_epi16(0x100));
      _mm256_store_si256(reinterpret_cast<__m256i*>(entries) + i, join_entries(qs + 16 * i, high));
    }
    bytes.set(load_32(p + offsetof(BlockIQ3_S, signs)));
  }
  SNAPKV_AVX2_INLINE __m128i magnitudes(int a, int v, int b, int w) const {
    return join_groups(codebooks::kIq3S, entries[a] + 2 * v, entries[b] + 2 * w);
  }
};

template <>
struct CodebookLevels<DType::iq1_s> {
  alignas(32) uint16_t entries[kSuperblockParts][4];
  static constexpr bool kHasSigns = false;
  GroupBytes bytes;

  SNAPKV_AVX2_INLINE void read(const char* p) {
    const char* qs = p + offsetof(BlockIQ1_S, qs);
    const __m128i qh = load_16(p + offsetof(BlockIQ1_S, qh));
    SNAPKV_UNROLL for (int half = 0; half < 2; ++half) {
      const __m256i word_of =
          _mm256_add_epi8(_mm256_setr_epi64x(0x0100010001000100, 0x0302030203020302,
                                             0x0504050405040504, 0x0706070607060706),
                          _mm256_set1_epi8(static_cast<char>(8 * half)));
      const __m256i words = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(qh), word_of);
      // bits 3 v ... 3 v + 2 go to bits 8 ... 10
      const __m256i left = _mm256_mullo_epi16(words, _mm256_set1_epi64x(0x0000'0004'0020'0100));
      const __m256i right = _mm256_mulhi_epu16(
          words, _mm256_set1_epi64x(static_cast<int64_t>(0x8000'0000'0000'0000u)));
      const __m256i high = _mm256_and_si256(_mm256_or_si256(left, right), _mm256_set1_epi16(0x700));
      _mm256_store_si256(reinterpret_cast<__m256i*>(entries) + half,
                         join_entries(qs + 16 * half, high));
    }
    // 7, or 9 with the highest bit, in all four bytes of a part
    const __m256i is_low = _mm256_srai_epi32(_mm256_cvtepi16_epi32(qh), 31);
    bytes.set(_mm256_add_epi8(_mm256_set1_epi8(7), _mm256_and_si256(is_low, _mm256_set1_epi8(2))));
  }
  SNAPKV_AVX2_INLINE __m128i magnitudes(int a, int v, int b, int w) const {
    return join_groups(codebooks::kIq1S, entries[a][v], entries[b][w]);
  }
};

template <>
struct CodebookLevels<DType::iq1_m> {
  alignas(32) uint16_t entries[kSuperblockParts][4];
  static constexpr bool kHasSigns = false;
  GroupBytes bytes;

  SNAPKV_AVX2_INLINE void read(const char* p) {
    const char* qs = p + offsetof(BlockIQ1_M, qs);
    const __m128i qh = load_16(p + offsetof(BlockIQ1_M, qh));
    const __m128i low_bits = _mm_set1_epi8(15);
    const __m128i even = _mm_and_si128(qh, low_bits);
    const __m128i odd = _mm_and_si128(_mm_srli_epi16(qh, 4), low_bits);
    const __m128i nibbles[2] = {_mm_unpacklo_epi8(even, odd), _mm_unpackhi_epi8(even, odd)};
    SNAPKV_UNROLL for (int half = 0; half < 2; ++half) {
      const __m256i high = _mm256_and_si256(
          _mm256_slli_epi16(_mm256_cvtepu8_epi16(nibbles[half]), 8), _mm256_set1_epi16(0x700));
      _mm256_store_si256(reinterpret_cast<__m256i*>(entries) + half,
                         join_entries(qs + 16 * half, high));
    }
    const __m256i all = _mm256_inserti128_si256(_mm256_castsi128_si256(nibbles[0]), nibbles[1], 1);
    const __m256i twice =  // 2 with the highest bit
        _mm256_and_si256(_mm256_srli_epi16(all, 2), _mm256_set1_epi8(2));
    bytes.set(_mm256_add_epi8(_mm256_set1_epi8(7), twice));
  }
  SNAPKV_AVX2_INLINE __m128i magnitudes(int a, int v, int b, int w) const {
    return join_groups(codebooks::kIq1S, entries[a][v], entries[b][w]);
  }
};

/// The magnitudes of a part's 32 levels.
template <DType T>
SNAPKV_AVX2_INLINE __m256i part_magnitudes(const CodebookLevels<T>& x, int part) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(x.magnitudes(part, 0, part, 1)),
                                 x.magnitudes(part, 2, part, 3), 1);
}
/// Their signs: 1 or -1.
template <DType T>
requires(CodebookLevels<T>::kHasSigns) SNAPKV_AVX2_INLINE __m256i
    part_signs(const CodebookLevels<T>& x, int part) {
  const __m256i bit_of = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201u));
  const __m256i bits = _mm256_and_si256(x.bytes.spread(part), bit_of);
  return _mm256_or_si256(_mm256_cmpeq_epi8(bits, bit_of), _mm256_set1_epi8(1));
}

/// table[index] for each word; indices are below the table's size, a power of 2 from 64 on. Two
/// registers hold 64 entries, among which a permutation chooses by the low 6 bits.
template <size_t n>
SNAPKV_VNNI_INLINE __m512i look_up_words(const uint16_t* table, __m512i indices) {
  if constexpr (n == 64) {
    return _mm512_permutex2var_epi16(_mm512_loadu_si512(table), indices,
                                     _mm512_loadu_si512(table + 32));
  } else {
    const __mmask32 is_high = _mm512_test_epi16_mask(indices, _mm512_set1_epi16(n / 2));
    return _mm512_mask_blend_epi16(is_high, look_up_words<n / 2>(table, indices),
                                   look_up_words<n / 2>(table + n / 2, indices));
  }
}

/// Entries with 4 levels, of which all of a superblock are looked up at a time.
template <DType T>
struct Quartets;

template <>
struct Quartets<DType::iq3_xxs> {
  static SNAPKV_VNNI_INLINE __m512i places(const char* p, int half) {
    const __m512i indices =
        _mm512_cvtepu8_epi16(load_32(p + offsetof(BlockIQ3_XXS, qs) + 32 * half));
    return look_up_words<256>(codebooks::kIq3XxsPlaces.data(), indices);
  }
  static SNAPKV_VNNI_INLINE __m128i magnitudes() {
    return _mm_setr_epi8(4, 12, 20, 28, 36, 44, 52, 62, 0, 0, 0, 0, 0, 0, 0, 0);
  }
  static SNAPKV_VNNI_INLINE void read_signs(const char* p, GroupBytes& signs) {
    signs.set(signs_of_words(CodebookLevels<DType::iq3_xxs>::words(p)));
  }
};

template <>
struct Quartets<DType::iq3_s> {
  static SNAPKV_VNNI_INLINE __m512i places(const char* p, int half) {
    const __m512i indices = _mm512_cvtepu8_epi16(load_32(p + offsetof(BlockIQ3_S, qs) + 32 * half));
    const auto is_high = load_word<uint32_t>(p + offsetof(BlockIQ3_S, qh) + 4 * half);
    const uint16_t* table = codebooks::kIq3SPlaces.data();
    return _mm512_mask_blend_epi16(is_high, look_up_words<256>(table, indices),
                                   look_up_words<256>(table + 256, indices));
  }
  static SNAPKV_VNNI_INLINE __m128i magnitudes() {
    return _mm_setr_epi8(1, 3, 5, 7, 9, 11, 13, 15, 0, 0, 0, 0, 0, 0, 0, 0);
  }
  static SNAPKV_VNNI_INLINE void read_signs(const char* p, GroupBytes& signs) {
    signs.set(load_32(p + offsetof(BlockIQ3_S, signs)));
  }
};

/// The levels of all parts plus kSurplus, in the order of VnniLevels.
template <int kSurplus, DType T>
SNAPKV_VNNI_INLINE void load_quartet_levels(const char* p, VnniLevels& q) {
  GroupBytes signs;
  Quartets<T>::read_signs(p, signs);
  const __m512i in_lanes = signs.in_lanes();
  const __m512i low_bits = _mm512_set1_epi8(15);
  __m512i groups[2][2];  // of parts 0 ... 3 or 4 ... 7, one in each lane: groups 0, 1 and 2, 3
  SNAPKV_UNROLL for (int half = 0; half < 2; ++half) {
    const __m512i places = Quartets<T>::places(p, half);
    const __m512i even = _mm512_and_si512(places, low_bits);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi16(places, 4), low_bits);
    groups[half][0] = _mm512_unpacklo_epi8(even, odd);
    groups[half][1] = _mm512_unpackhi_epi8(even, odd);
  }
  const __m512i magnitudes = _mm512_broadcast_i32x4(Quartets<T>::magnitudes());
  const __m512i surplus = _mm512_set1_epi8(kSurplus);
  const __m512i bit_of = _mm512_set1_epi64(static_cast<int64_t>(0x8040201008040201u));
  SNAPKV_UNROLL for (int v = 0; v < 4; ++v) {
    const __m512i &a = groups[0][v / 2], &b = groups[1][v / 2];
    const __m512i places = v % 2 == 0 ? _mm512_unpacklo_epi64(a, b) : _mm512_unpackhi_epi64(a, b);
    const __m512i levels = _mm512_shuffle_epi8(magnitudes, places);
    const __mmask64 is_negative = _mm512_test_epi8_mask(GroupBytes::spread(in_lanes, v), bit_of);
    q[v] = _mm512_mask_sub_epi8(_mm512_add_epi8(levels, surplus), is_negative, surplus, levels);
  }
}

/// The levels of all parts plus kSurplus, in the order of VnniLevels.
template <int kSurplus, DType T>
SNAPKV_VNNI_INLINE void load_all_levels(const CodebookLevels<T>& x, VnniLevels& q) {
  const __m512i surplus = _mm512_set1_epi8(kSurplus);
  const __m512i groups = x.bytes.in_lanes();
  SNAPKV_UNROLL for (int v = 0; v < 4; ++v) {
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(x.magnitudes(0, v, 4, v)),
                                                x.magnitudes(1, v, 5, v), 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(x.magnitudes(2, v, 6, v)),
                                                 x.magnitudes(3, v, 7, v), 1);
    const __m512i levels = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    const __m512i bytes = GroupBytes::spread(groups, v);
    const __m512i raised = _mm512_add_epi8(levels, surplus);
    if constexpr (CodebookLevels<T>::kHasSigns) {
      const __mmask64 is_negative = _mm512_test_epi8_mask(
          bytes, _mm512_set1_epi64(static_cast<int64_t>(0x8040201008040201u)));
      q[v] = _mm512_mask_sub_epi8(raised, is_negative, surplus, levels);
    } else {
      q[v] = _mm512_sub_epi8(raised, bytes);
    }
  }
}

}  // namespace snapkv::cpu

#endif  // x86-64
