// SPDX-License-Identifier: MIT
// The block types in x86 registers: what gemv_int8_avx2.cpp, gemv_int8_vnni.cpp and
// pack_avx512.cpp, which are the same for all types, read of each. (Superblocks with VNNI:
// gemv_int8_vnni_k.cpp.)
//
// X86Block<T> reads 32 values at a time: the block at p, or part `part` of the superblock at p.
//   levels(p, part)     signed bytes
//   kHasMin             whether value = d * scale * level - min, else without min
// of blocks of 32 values also
//   d(p)
//   kSurplus, load_8    for VNNI: 8 blocks, see VnniLevels
// of superblocks
//   d(p)
//   Scales, scales(p)   the parts' integer scales (and minima, if any)
//   pair_scale(s, part) 16 bits for each pair of values, in order
//   part_scale(s, part, half), half 0 or 1: of values 0 ... 15 or 16 ... 31 of the part
// A type without X86Block is multiplied and packed by the portable code.
#pragma once

#if defined(__x86_64__)

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "backend/cpu/avx512_util.h"
#include "backend/cpu/superblock.h"
#include "format/block_types.h"

#define SNAPKV_AVX2_INLINE __attribute__((target("avx2,f16c"), always_inline)) inline
// Functions with this run only where has(CpuTarget::avx512_vnni).
#define SNAPKV_VNNI \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma,f16c")))
#define SNAPKV_VNNI_INLINE SNAPKV_VNNI __attribute__((always_inline)) inline

namespace snapkv::cpu {

SNAPKV_AVX2_INLINE float load_f16(const char* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof(bits));
  return _cvtsh_ss(bits);
}
SNAPKV_AVX2_INLINE __m128i load_16(const char* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
SNAPKV_AVX2_INLINE __m256i load_32(const char* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

/// The low nibbles of 16 bytes, then the high ones.
SNAPKV_AVX2_INLINE __m256i low_then_high(const char* p) {
  const __m128i bytes = load_16(p);
  const __m256i both =
      _mm256_inserti128_si256(_mm256_castsi128_si256(bytes), _mm_srli_epi16(bytes, 4), 1);
  return _mm256_and_si256(both, _mm256_set1_epi8(15));
}
/// The low or the high nibbles of 32 bytes.
SNAPKV_AVX2_INLINE __m256i low_or_high(const char* p, bool high) {
  const __m256i bytes = load_32(p);
  return _mm256_and_si256(high ? _mm256_srli_epi16(bytes, 4) : bytes, _mm256_set1_epi8(15));
}

// ---------------------------------------------------------------- 8 blocks for VNNI

/// Blocks in the order of a vector's 64-bit words.
inline constexpr int kBlockOfWord[8] = {0, 4, 1, 5, 2, 6, 3, 7};

/// 8 blocks' levels plus X86Block::kSurplus, unsigned: q[v] holds values 8v ... 8v + 7 of each.
using VnniLevels = __m512i[4];

/// Four pieces of 16 bytes, `stride` apart.
template <int kStride>
SNAPKV_VNNI_INLINE __m512i load_pieces(const char* p) {
  const __m256i low =
      _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(p)), load_16(p + kStride), 1);
  const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(p + 2 * kStride)),
                                               load_16(p + 3 * kStride), 1);
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/// Of 8 blocks whose 16 bytes of nibbles begin at p, p + kStride, ...
template <int kStride>
SNAPKV_VNNI_INLINE void load_nibbles(const char* p, VnniLevels& q) {
  const __m512i low_bits = _mm512_set1_epi8(15);
  const __m512i a = load_pieces<kStride>(p);
  const __m512i b = load_pieces<kStride>(p + 4 * kStride);
  const __m512i low = _mm512_unpacklo_epi64(a, b), high = _mm512_unpackhi_epi64(a, b);
  q[0] = _mm512_and_si512(low, low_bits);
  q[1] = _mm512_and_si512(high, low_bits);
  q[2] = _mm512_and_si512(_mm512_srli_epi16(low, 4), low_bits);
  q[3] = _mm512_and_si512(_mm512_srli_epi16(high, 4), low_bits);
}

/// Where the f16 scales of 8 blocks lie that begin with them: 16-bit words at distance kStride / 2.
/// Modulo 32 all places are different, so that loads of 64 bytes merge into one vector without
/// moving them.
template <int kStride>
struct ScalePlaces {
  static constexpr int kLoads = 7 * kStride / 64 + 1;
  uint32_t masks[kLoads]{};         // words of each load
  alignas(32) int16_t order[16]{};  // of each pair of lanes
  constexpr ScalePlaces() {
    uint32_t taken = 0;
    for (int w = 0; w < 8; ++w) {
      const int word = kBlockOfWord[w] * kStride / 2;
      SNAPKV_CHECK((taken >> word % 32 & 1) == 0);
      taken |= 1u << word % 32;
      masks[word / 32] |= 1u << word % 32;
      order[2 * w] = order[2 * w + 1] = static_cast<int16_t>(word % 32);
    }
  }
};

/// The scales of 8 blocks, each in the two lanes of its words.
template <int kStride>
SNAPKV_VNNI_INLINE __m512 load_scales(const char* p) {
  static constexpr ScalePlaces<kStride> kPlaces;
  __m512i words = _mm512_loadu_si512(p);
  SNAPKV_UNROLL for (int i = 1; i < kPlaces.kLoads; ++i) {
    words = _mm512_mask_loadu_epi16(words, kPlaces.masks[i], p + 64 * i);
  }
  const __m512i order =
      _mm512_castsi256_si512(_mm256_load_si256(reinterpret_cast<const __m256i*>(kPlaces.order)));
  return _mm512_cvtph_ps(_mm512_castsi512_si256(_mm512_permutexvar_epi16(order, words)));
}

// ---------------------------------------------------------------- blocks of 32 values

template <DType T>
struct X86Block;

/// Blocks that begin with an f16 scale.
template <DType T>
struct X86ScaledBlock {
  static constexpr bool kHasMin = false;
  static SNAPKV_AVX2_INLINE float d(const char* p) { return load_f16(p); }
  static SNAPKV_VNNI_INLINE __m512 d_8(const char* p) { return load_scales<sizeof(Block<T>)>(p); }
};

template <>
struct X86Block<DType::q8_0> : X86ScaledBlock<DType::q8_0> {
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int) { return load_32(p + 2); }

  static constexpr int kSurplus = 128;
  static SNAPKV_VNNI_INLINE void load_8(const char* p, VnniLevels& q) {
    constexpr int kStride = sizeof(BlockQ8_0);
    const __m512i offset = _mm512_set1_epi8(static_cast<char>(0x80));
    SNAPKV_UNROLL for (int half = 0; half < 2; ++half) {
      const char* at = p + 2 + 16 * half;
      const __m512i a = _mm512_xor_si512(load_pieces<kStride>(at), offset);
      const __m512i b = _mm512_xor_si512(load_pieces<kStride>(at + 4 * kStride), offset);
      q[2 * half] = _mm512_unpacklo_epi64(a, b);
      q[2 * half + 1] = _mm512_unpackhi_epi64(a, b);
    }
  }
};

template <>
struct X86Block<DType::q4_0> : X86ScaledBlock<DType::q4_0> {
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int) {
    return _mm256_sub_epi8(low_then_high(p + 2), _mm256_set1_epi8(8));
  }

  static constexpr int kSurplus = 8;
  static SNAPKV_VNNI_INLINE void load_8(const char* p, VnniLevels& q) {
    load_nibbles<sizeof(BlockQ4_0)>(p + 2, q);
  }
};

template <>
struct X86Block<DType::q5_0> : X86ScaledBlock<DType::q5_0> {
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int) {
    int32_t high_bits;
    std::memcpy(&high_bits, p + offsetof(BlockQ5_0, qh), sizeof(high_bits));
    const __m256i byte_of =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit_of = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201u));
    const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(high_bits), byte_of);
    const __m256i is_clear =
        _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit_of), _mm256_setzero_si256());
    const __m256i minus_16 = _mm256_set1_epi8(static_cast<char>(0xf0));  // below 16: less 16
    return _mm256_or_si256(low_then_high(p + offsetof(BlockQ5_0, qs)),
                           _mm256_and_si256(is_clear, minus_16));
  }

  static constexpr int kSurplus = 16;
  static SNAPKV_VNNI_INLINE void load_8(const char* p, VnniLevels& q) {
    constexpr int kStride = sizeof(BlockQ5_0);
    load_nibbles<kStride>(p + offsetof(BlockQ5_0, qs), q);
    // the high bits of blocks i and i + 4 in each quarter; then byte v of both, v = 0 ... 3; then
    // byte v of all 8 in the order of words, which is vector v's mask
    const char* qh = p + offsetof(BlockQ5_0, qh);
    const __m512i pairs =
        _mm512_unpacklo_epi32(load_pieces<kStride>(qh), load_pieces<kStride>(qh + 4 * kStride));
    const __m512i bytes =
        _mm512_shuffle_epi8(pairs, _mm512_broadcast_i32x4(_mm_setr_epi8(
                                       0, 4, 1, 5, 2, 6, 3, 7, -1, -1, -1, -1, -1, -1, -1, -1)));
    const __m512i order = _mm512_castsi256_si512(
        _mm256_setr_epi16(0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27));
    alignas(32) uint64_t masks[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(masks),
                       _mm512_castsi512_si256(_mm512_permutexvar_epi16(order, bytes)));
    SNAPKV_UNROLL for (int v = 0; v < 4; ++v) {
      q[v] = _mm512_mask_add_epi8(q[v], _cvtu64_mask64(masks[v]), q[v], _mm512_set1_epi8(16));
    }
  }
};

template <>
struct X86Block<DType::iq4_nl> : X86ScaledBlock<DType::iq4_nl> {
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int) {
    const auto* table = reinterpret_cast<const char*>(BlockIQ4_NL::kLevels);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load_16(table)),
                               low_then_high(p + offsetof(BlockIQ4_NL, qs)));
  }

  static constexpr int kSurplus = 128;
  static SNAPKV_VNNI_INLINE void load_8(const char* p, VnniLevels& q) {
    load_nibbles<sizeof(BlockIQ4_NL)>(p + offsetof(BlockIQ4_NL, qs), q);
    const auto* table = reinterpret_cast<const char*>(BlockIQ4_NL::kLevels);
    const __m512i levels = _mm512_xor_si512(_mm512_broadcast_i32x4(load_16(table)),
                                            _mm512_set1_epi8(static_cast<char>(0x80)));
    SNAPKV_UNROLL for (int v = 0; v < 4; ++v) q[v] = _mm512_shuffle_epi8(levels, q[v]);
  }
};

// ---------------------------------------------------------------- superblocks

/// Superblocks that begin with PartScales.
struct X86MinSuperblock {
  static constexpr bool kHasMin = true;
  using Scales = PartBytes;
  static SNAPKV_AVX2_INLINE float d(const char* p) { return load_f16(p); }
  static SNAPKV_AVX2_INLINE Scales scales(const char* p) { return unpack_scales(p); }
  static SNAPKV_AVX2_INLINE __m256i pair_scale(const Scales& s, int part) {
    return _mm256_set1_epi16(static_cast<int16_t>(s.scale(part)));
  }
  static SNAPKV_AVX2_INLINE int part_scale(const Scales& s, int part, int) { return s.scale(part); }
};

template <>
struct X86Block<DType::q4_k> : X86MinSuperblock {
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int part) {
    return low_or_high(p + offsetof(BlockQ4_K, qs) + part / 2 * 32, part % 2 == 1);
  }
};

template <>
struct X86Block<DType::q5_k> : X86MinSuperblock {
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int part) {
    const __m256i low = low_or_high(p + offsetof(BlockQ5_K, qs) + part / 2 * 32, part % 2 == 1);
    const __m256i bit = _mm256_set1_epi8(static_cast<char>(1 << part));
    const __m256i bits = _mm256_and_si256(load_32(p + offsetof(BlockQ5_K, qh)), bit);
    const __m256i is_set = _mm256_cmpeq_epi8(bits, bit);
    return _mm256_or_si256(low, _mm256_and_si256(is_set, _mm256_set1_epi8(16)));
  }
};

template <>
struct X86Block<DType::q6_k> {
  static constexpr bool kHasMin = false;
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int part) {
    const __m256i low = low_or_high(p + part / 4 * 64 + part % 2 * 32, part % 4 >= 2);
    const __m256i bits = load_32(p + offsetof(BlockQ6_K, qh) + part / 4 * 32);
    const int k = part % 4;
    const __m256i to_place =
        k < 2 ? _mm256_slli_epi16(bits, 4 - 2 * k) : _mm256_srli_epi16(bits, 2 * k - 4);
    const __m256i high = _mm256_and_si256(to_place, _mm256_set1_epi8(0x30));
    return _mm256_sub_epi8(_mm256_or_si256(low, high), _mm256_set1_epi8(32));
  }

  using Scales = const int8_t*;
  static SNAPKV_AVX2_INLINE float d(const char* p) { return load_f16(p + offsetof(BlockQ6_K, d)); }
  static SNAPKV_AVX2_INLINE Scales scales(const char* p) {
    return reinterpret_cast<const int8_t*>(p + offsetof(BlockQ6_K, scales));
  }
  static SNAPKV_AVX2_INLINE __m256i pair_scale(Scales s, int part) {
    return _mm256_setr_m128i(_mm_set1_epi16(s[2 * part]), _mm_set1_epi16(s[2 * part + 1]));
  }
  static SNAPKV_AVX2_INLINE int part_scale(Scales s, int part, int half) {
    return s[2 * part + half];
  }
};

/// Whether 8-bit products of the type exist.
template <DType T>
concept HasX86Block = requires {
  X86Block<T>::kHasMin;
};

}  // namespace snapkv::cpu

#endif  // x86-64
