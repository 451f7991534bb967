// SPDX-License-Identifier: MIT
// The superblock types whose levels are entries of a codebook or ternary digits, in x86 registers;
// codebooks_x86.h looks levels up, superblocks_x86.h has what all superblocks have in common.
#pragma once

#include "backend/cpu/weights/codebooks_x86.h"
#include "backend/cpu/weights/superblocks_x86.h"

#if defined(__x86_64__)

namespace snapkv::cpu {

// ---------------------------------------------------------------- types with codebooks

/// What these types have in common. CodebookLevels is faster where a whole superblock is read.
template <DType T, int kSurplusOfLevels>
struct X86Codebook : X86Superblock<T> {
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int part) {
    const LevelWords words = reinterpret_cast<const Block<T>*>(p)->part_words(part);
    return X86Superblock<T>::join(words[0], words[1], words[2], words[3]);
  }
  static constexpr int kSurplus = kSurplusOfLevels;
  static SNAPKV_VNNI_INLINE void load_8(const char* p, VnniLevels& q) {
    if constexpr (T == DType::iq3_xxs || T == DType::iq3_s) {
      load_quartet_levels<kSurplus, T>(p, q);
    } else {
      CodebookLevels<T> groups;
      groups.read(p);
      load_all_levels<kSurplus>(groups, q);
    }
  }
};

/// Those whose parts' words have four times seven signs, then a scale.
template <DType T>
struct X86SignWords : X86Codebook<T, 64> {
  using PairScales = typename X86Superblock<T>::PairScales;
  static SNAPKV_AVX2_INLINE PairScales pair_scales(const char* p0, const char* p1) {
    const __m256i k0 = _mm256_srli_epi32(CodebookLevels<T>::words(p0), 28);
    const __m256i k1 = _mm256_srli_epi32(CodebookLevels<T>::words(p1), 28);
    // parts 0 ... 3 of both rows, then parts 4 ... 7 of both
    const __m256i bytes = _mm256_packus_epi16(_mm256_packs_epi32(k0, k1), _mm256_setzero_si256());
    return X86Superblock<T>::odd_pair_scales(
        _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 2, 3, 1, 5, 6, 7)));
  }
  static SNAPKV_VNNI_INLINE __m512 d_8(const char* p) {
    const __m256i k = _mm256_srli_epi32(CodebookLevels<T>::words(p), 28);
    return part_scales_to_lanes(odd_scales(k), X86Superblock<T>::d(p));
  }
};
template <>
struct X86Block<DType::iq2_xxs> : X86SignWords<DType::iq2_xxs> {};
template <>
struct X86Block<DType::iq3_xxs> : X86SignWords<DType::iq3_xxs> {};

/// Those whose parts have a byte with a scale for each half.
template <DType T>
struct X86NibbleScales : X86Codebook<T, 64> {
  using PairScales = typename X86Superblock<T>::PairScales;
  static SNAPKV_AVX2_INLINE PairScales pair_scales(const char* p0, const char* p1) {
    constexpr size_t kAt = offsetof(Block<T>, scales);
    const __m256i bytes = _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_cvtsi64_si128(load_word<int64_t>(p0 + kAt))),
        _mm_cvtsi64_si128(load_word<int64_t>(p1 + kAt)), 1);
    const __m256i both = _mm256_unpacklo_epi64(bytes, _mm256_srli_epi16(bytes, 4));
    return X86Superblock<T>::odd_pair_scales(_mm256_and_si256(both, _mm256_set1_epi8(15)));
  }
  static SNAPKV_VNNI_INLINE HalfScales half_d_8(const char* p) {
    const __m128i bytes = _mm_cvtsi64_si128(load_word<int64_t>(p + offsetof(Block<T>, scales)));
    const __m256i both = _mm256_cvtepu8_epi32(bytes);
    const float d = X86Superblock<T>::d(p);
    return {
        .first = part_scales_to_lanes(odd_scales(_mm256_and_si256(both, _mm256_set1_epi32(15))), d),
        .last = part_scales_to_lanes(odd_scales(_mm256_srli_epi32(both, 4)), d)};
  }
};
template <>
struct X86Block<DType::iq2_xs> : X86NibbleScales<DType::iq2_xs> {};
template <>
struct X86Block<DType::iq2_s> : X86NibbleScales<DType::iq2_s> {};

template <>
struct X86Block<DType::iq3_s> : X86Codebook<DType::iq3_s, 16> {
  static SNAPKV_AVX2_INLINE PairScales pair_scales(const char* p0, const char* p1) {
    constexpr size_t kAt = offsetof(BlockIQ3_S, scales);
    const __m256i bytes = _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_cvtsi32_si128(load_word<int32_t>(p0 + kAt))),
        _mm_cvtsi32_si128(load_word<int32_t>(p1 + kAt)), 1);
    const __m256i nibbles = _mm256_unpacklo_epi8(bytes, _mm256_srli_epi16(bytes, 4));
    return odd_pair_scales(_mm256_and_si256(nibbles, _mm256_set1_epi8(15)));
  }
  static SNAPKV_VNNI_INLINE __m512 d_8(const char* p) {
    const auto nibbles = load_word<int32_t>(p + offsetof(BlockIQ3_S, scales));
    const __m256i k =
        _mm256_and_si256(_mm256_srlv_epi32(_mm256_set1_epi32(nibbles),
                                           _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28)),
                         _mm256_set1_epi32(15));
    return part_scales_to_lanes(odd_scales(k), d(p));
  }
};

template <>
struct X86Block<DType::iq1_s> : X86Codebook<DType::iq1_s, 16> {
  static SNAPKV_AVX2_INLINE PairScales pair_scales(const char* p0, const char* p1) {
    constexpr size_t kAt = offsetof(BlockIQ1_S, qh);
    const __m256i words = _mm256_srli_epi16(load_pair(p0 + kAt, p1 + kAt), 12);
    const __m256i k = _mm256_and_si256(words, _mm256_set1_epi16(7));
    return odd_pair_scales(_mm256_packus_epi16(k, k));
  }
  /// What is subtracted from the levels of each part of two rows, as 16-bit words.
  static SNAPKV_AVX2_INLINE __m256i pair_deltas(const char* p0, const char* p1) {
    constexpr size_t kAt = offsetof(BlockIQ1_S, qh);
    const __m256i is_low = _mm256_srai_epi16(load_pair(p0 + kAt, p1 + kAt), 15);
    // 7 less twice the mask
    return _mm256_sub_epi16(_mm256_set1_epi16(7), _mm256_add_epi16(is_low, is_low));
  }
  static SNAPKV_VNNI_INLINE __m512 d_8(const char* p) {
    const __m256i words = _mm256_cvtepu16_epi32(load_16(p + offsetof(BlockIQ1_S, qh)));
    const __m256i k = _mm256_and_si256(_mm256_srli_epi32(words, 12), _mm256_set1_epi32(7));
    return part_scales_to_lanes(odd_scales(k), d(p));
  }
};

template <>
struct X86Block<DType::iq1_m> : X86Codebook<DType::iq1_m, 16> {
  static SNAPKV_AVX2_INLINE float d(const char* p) {
    const auto words = load_word<uint64_t>(p + offsetof(BlockIQ1_M, scales));
    const uint64_t bits =
        (words >> 12 & 0xf) | (words >> 24 & 0xf0) | (words >> 36 & 0xf00) | (words >> 48 & 0xf000);
    return _cvtsh_ss(static_cast<uint16_t>(bits)) * BlockIQ1_M::kScaleUnit;
  }
  static SNAPKV_AVX2_INLINE PairScales pair_scales(const char* p0, const char* p1) {
    constexpr size_t kAt = offsetof(BlockIQ1_M, scales);
    const __m256i words = _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_cvtsi64_si128(load_word<int64_t>(p0 + kAt))),
        _mm_cvtsi64_si128(load_word<int64_t>(p1 + kAt)), 1);
    const __m256i of_parts = _mm256_unpacklo_epi16(words, words);
    // the three bits go to bits 13 ... 15
    const __m256i first = _mm256_mullo_epi16(of_parts, _mm256_set1_epi32(1 << 23 | 1 << 13));
    const __m256i last = _mm256_mullo_epi16(of_parts, _mm256_set1_epi32(1 << 20 | 1 << 10));
    return odd_pair_scales(
        _mm256_packus_epi16(_mm256_srli_epi16(first, 13), _mm256_srli_epi16(last, 13)));
  }
  /// What is subtracted from the levels of each group of two rows, as bytes: the groups of all
  /// parts' first halves, then those of their last halves.
  struct PairDeltas {
    __m256i first, last;
  };
  static SNAPKV_AVX2_INLINE PairDeltas pair_deltas(const char* p0, const char* p1) {
    constexpr size_t kAt = offsetof(BlockIQ1_M, qh);
    const __m256i bytes = first_then_last(load_pair(p0 + kAt, p1 + kAt));
    const __m256i even = to_delta(_mm256_srli_epi16(bytes, 2));
    const __m256i odd = to_delta(_mm256_srli_epi16(bytes, 6));
    return {.first = _mm256_unpacklo_epi8(even, odd), .last = _mm256_unpackhi_epi8(even, odd)};
  }
  /// 9 for bytes with bit 1, 7 for others.
  static SNAPKV_AVX2_INLINE __m256i to_delta(__m256i bytes) {
    return _mm256_add_epi8(_mm256_and_si256(bytes, _mm256_set1_epi8(2)), _mm256_set1_epi8(7));
  }
  static SNAPKV_VNNI_INLINE HalfScales half_d_8(const char* p) {
    const auto words = load_word<int64_t>(p + offsetof(BlockIQ1_M, scales));
    const __m256i of_pairs = _mm256_cvtepu16_epi32(
        _mm_unpacklo_epi16(_mm_cvtsi64_si128(words), _mm_cvtsi64_si128(words)));
    const __m256i bits = _mm256_srlv_epi32(of_pairs, _mm256_setr_epi32(0, 6, 0, 6, 0, 6, 0, 6));
    const __m256i low_bits = _mm256_set1_epi32(7);
    return {.first = part_scales_to_lanes(odd_scales(_mm256_and_si256(bits, low_bits)), d(p)),
            .last = part_scales_to_lanes(
                odd_scales(_mm256_and_si256(_mm256_srli_epi32(bits, 3), low_bits)), d(p))};
  }
};

// ---------------------------------------------------------------- tq1_0, tq2_0

/// Ternary levels are the digits less 1.
template <DType T>
struct X86Ternary : X86Superblock<T> {
  static constexpr int kOffset = 1, kSurplus = 1;
  static SNAPKV_VNNI_INLINE __m512 d_8(const char* p) {
    return _mm512_set1_ps(X86Superblock<T>::d(p));
  }
};

template <>
struct X86Block<DType::tq2_0> : X86Ternary<DType::tq2_0> {
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int part) { return bit_pairs(p, part); }
  static SNAPKV_VNNI_INLINE void load_8(const char* p, VnniLevels& q) { load_pairs(p, q); }
};

/// Powers of 3 for the words of a part's group v, whose two halves are digits `first` and `last`.
constexpr int64_t ternary_powers(int first, int last) {
  return kPowersOf3[first] * int64_t{0x0000000000010001} |
         kPowersOf3[last] * int64_t{0x0001000100000000};
}
/// Those of group v of a part.
constexpr int64_t ternary_powers_of(int part, int v) {
  if (part < 5) return ternary_powers(part, part);
  if (part == 7 && v >= 2) return ternary_powers(2 * v - 4, 2 * v - 3);
  return ternary_powers((part - 5) * 2 + v / 2, (part - 5) * 2 + v / 2);
}

template <>
struct X86Block<DType::tq1_0> : X86Ternary<DType::tq1_0> {
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int part) {
    const __m256i powers =
        _mm256_setr_epi64x(ternary_powers_of(part, 0), ternary_powers_of(part, 1),
                           ternary_powers_of(part, 2), ternary_powers_of(part, 3));
    if (part < 5) return ternary_digits(load_32(p), powers);
    const __m128i next = load_16(p + 32);
    __m128i last = next;
    if (part == 7) last = _mm_set1_epi32(load_word<int32_t>(p + offsetof(BlockTQ1_0, qh)));
    return ternary_digits(_mm256_inserti128_si256(_mm256_castsi128_si256(next), last, 1), powers);
  }
  static SNAPKV_VNNI_INLINE void load_8(const char* p, VnniLevels& q) {
    static constexpr PartWords kPowers[4] = {
        each_word([](int part) { return ternary_powers_of(part, 0); }),
        each_word([](int part) { return ternary_powers_of(part, 1); }),
        each_word([](int part) { return ternary_powers_of(part, 2); }),
        each_word([](int part) { return ternary_powers_of(part, 3); })};
    constexpr __mmask8 kFrom5 = 0b10101000, kOf7 = 0b10000000;  // the words of parts 5, 6, 7
    const __m512i qh = _mm512_set1_epi32(load_word<int32_t>(p + offsetof(BlockTQ1_0, qh)));
    SNAPKV_UNROLL for (int v = 0; v < 4; ++v) {
      __m512i bytes = _mm512_set1_epi64(load_word<int64_t>(p + 8 * v));
      bytes = _mm512_mask_set1_epi64(bytes, kFrom5, load_word<int64_t>(p + 32 + v % 2 * 8));
      if (v >= 2) bytes = _mm512_mask_mov_epi64(bytes, kOf7, qh);
      q[v] = ternary_digits(bytes, load(kPowers[v]));
    }
  }
};

}  // namespace snapkv::cpu

#endif  // x86-64
