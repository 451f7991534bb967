// SPDX-License-Identifier: MIT
// The block types of 32 values in x86 registers; superblocks_x86.h has superblocks. Kernels are
// written once for all types, in terms of what these files give for each.
//
// X86Block<T> reads 32 values at a time: the block at p, or part `part` of the superblock at p.
//   levels(p, part)     signed bytes or, with kOffset, unsigned bytes that are kOffset larger
//   d(p)                the block's or the superblock's scale
//   min(p)              with kHasMin: -m of a block of 32 values, dmin of a superblock
// for superblocks also
//   scales(p)           the parts' integer scales and minima: PartBytes or HalfPartBytes
// for 256-bit vectors, 8 blocks of 32 values
//   scales_8(p)         their f32 scales, those of blocks 0, 2, 4, 6, 1, 3, 5, 7
//   min_8(p)            with kHasMin: their minima, in the same order
// for types with nibbles
//   from_nibbles(v)     the levels that the nibbles stand for
// for blocks of 64 values with scales of 16
//   half_scales(p, i)   the f32 scales of blocks 2 i and 2 i + 1
// for the superblocks of two rows
//   pair_scales(p, q)   integer scales and minima as bytes
// for VNNI, of blocks of 32 values and of superblocks that are 8 such blocks
//   load_8, kSurplus    see VnniLevels; no surplus with kHasMin
//   d_8(p)              their scales, each in the two lanes of its words
//   half_d_8(p)         the same where a scale belongs to 16 values
//   min_16(p)           with kHasMin: -m of blocks 0 ... 7, then zeros
// for VNNI, other superblocks
//   load_parts          like load_8, for the 8 parts; see superblocks_x86.h
// The portable code multiplies and packs types without X86Block.
#pragma once

#if defined(__x86_64__)

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "backend/cpu/target/avx512_util.h"
#include "format/block_types.h"

#define SNAPKV_AVX2_INLINE __attribute__((target("avx2,f16c"), always_inline)) inline
// Functions with this attribute run only where has(CpuTarget::avx512_vnni).
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
  const __m256i twice = _mm256_broadcastsi128_si256(load_16(p));
  const __m256i shifted = _mm256_srlv_epi64(twice, _mm256_setr_epi64x(0, 0, 4, 4));
  return _mm256_and_si256(shifted, _mm256_set1_epi8(15));
}
/// The low or the high nibbles of 32 bytes.
SNAPKV_AVX2_INLINE __m256i low_or_high(const char* p, bool high) {
  __m256i bytes = load_32(p);
  __asm__("" : "+x"(bytes));
  return _mm256_and_si256(high ? _mm256_srli_epi16(bytes, 4) : bytes, _mm256_set1_epi8(15));
}

// ---------------------------------------------------------------- 8 blocks for VNNI

/// The block of each 64-bit word of a vector.
inline constexpr int kBlockOfWord[8] = {0, 4, 1, 5, 2, 6, 3, 7};

/// The levels of 8 blocks plus X86Block::kSurplus, unsigned: q[v] has values 8v ... 8v + 7 of each.
using VnniLevels = __m512i[4];

/// Scales of the first and the last halves of 8 blocks, in the two lanes of their words.
struct HalfScales {
  __m512 first, last;
};

/// Loads four pieces of 16 bytes, `stride` apart.
template <int kStride>
SNAPKV_VNNI_INLINE __m512i load_pieces(const char* p) {
  if constexpr (kStride == 16) return _mm512_loadu_si512(p);
  const __m256i low =
      _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(p)), load_16(p + kStride), 1);
  const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(p + 2 * kStride)),
                                               load_16(p + 3 * kStride), 1);
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/// Loads the levels of 8 blocks whose 16 bytes of nibbles begin at p, p + kStride, ...
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

/// Where the f16 numbers of 8 blocks lie: 16-bit words at distance kStride / 2. Their places differ
/// modulo 32, so loads of 64 bytes merge into one vector without moving words.
template <int kStride>
struct ScalePlaces {
  static constexpr int kLoads = 7 * kStride / 64 + 1;
  uint32_t masks[kLoads]{};             // words of each load
  alignas(32) int16_t of_lanes[16]{};   // of each pair of lanes
  alignas(32) int16_t of_blocks[16]{};  // 0 ... 7
  constexpr ScalePlaces() {
    uint32_t taken = 0;
    for (int w = 0; w < 8; ++w) {
      const int word = kBlockOfWord[w] * kStride / 2;
      SNAPKV_CHECK((taken >> word % 32 & 1) == 0);
      taken |= 1u << word % 32;
      masks[word / 32] |= 1u << word % 32;
      of_lanes[2 * w] = of_lanes[2 * w + 1] = static_cast<int16_t>(word % 32);
      of_blocks[kBlockOfWord[w]] = static_cast<int16_t>(word % 32);
    }
  }
};

/// Loads the f16 numbers at p, p + kStride, ... in the given order.
template <int kStride>
SNAPKV_VNNI_INLINE __m256i load_halves(const char* p, const int16_t (&order)[16]) {
  static constexpr ScalePlaces<kStride> kPlaces;
  __m512i words = _mm512_loadu_si512(p);
  SNAPKV_UNROLL for (int i = 1; i < kPlaces.kLoads; ++i) {
    words = _mm512_mask_loadu_epi16(words, kPlaces.masks[i], p + 64 * i);
  }
  const __m512i index =
      _mm512_castsi256_si512(_mm256_load_si256(reinterpret_cast<const __m256i*>(order)));
  return _mm512_castsi512_si256(_mm512_permutexvar_epi16(index, words));
}

/// Loads the scales of 8 blocks, each in the two lanes of its words.
template <int kStride>
SNAPKV_VNNI_INLINE __m512 load_scales(const char* p) {
  static constexpr ScalePlaces<kStride> kPlaces;
  return _mm512_cvtph_ps(load_halves<kStride>(p, kPlaces.of_lanes));
}

/// Loads the numbers of blocks 0 ... 7 times -1, then zeros.
template <int kStride>
SNAPKV_VNNI_INLINE __m512 load_minima(const char* p) {
  static constexpr ScalePlaces<kStride> kPlaces;
  const __m128i halves = _mm256_castsi256_si128(load_halves<kStride>(p, kPlaces.of_blocks));
  const __m256 m = _mm256_cvtph_ps(_mm_xor_si128(halves, _mm_set1_epi16(int16_t{-0x8000})));
  return _mm512_zextps256_ps512(m);
}

/// The levels of a table of 16 that indices stand for, plus `surplus`.
SNAPKV_VNNI_INLINE __m512i look_up(const int8_t* table, int surplus, __m512i indices) {
  const __m512i levels =
      _mm512_add_epi8(_mm512_broadcast_i32x4(load_16(reinterpret_cast<const char*>(table))),
                      _mm512_set1_epi8(static_cast<char>(surplus)));
  return _mm512_shuffle_epi8(levels, indices);
}
SNAPKV_VNNI_INLINE void look_up(const int8_t* table, int surplus, VnniLevels& q) {
  SNAPKV_UNROLL for (int v = 0; v < 4; ++v) q[v] = look_up(table, surplus, q[v]);
}
SNAPKV_AVX2_INLINE __m256i look_up(const int8_t* table, __m256i places) {
  const __m128i levels = load_16(reinterpret_cast<const char*>(table));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(levels), places);
}

/// Bytes of 255 or 0 for the 32 bits at p, set or not.
SNAPKV_AVX2_INLINE __m256i spread_bits(const char* p) {
  int32_t bits;
  std::memcpy(&bits, p, sizeof(bits));
  const __m256i byte_of =
      _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i bit_of = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201u));
  const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(bits), byte_of);
  return _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit_of), bit_of);
}

/// Adds 16 to the levels whose bit, among the 32 at qh, is set.
SNAPKV_AVX2_INLINE __m256i or_fifth_bits(__m256i levels, const char* qh) {
  return _mm256_or_si256(levels, _mm256_and_si256(spread_bits(qh), _mm256_set1_epi8(16)));
}

/// Adds 16 to the levels of 8 blocks whose bit is set: 32 bits per block at qh, qh + kStride, ...
template <int kStride>
SNAPKV_VNNI_INLINE void add_fifth_bits(const char* qh, VnniLevels& q) {
  // the bits of blocks i and i + 4 in each quarter; then byte v of both, v = 0 ... 3; then byte v
  // of all 8 in the order of the words, which is the mask of vector v
  const __m512i pairs =
      _mm512_unpacklo_epi32(load_pieces<kStride>(qh), load_pieces<kStride>(qh + 4 * kStride));
  const __m512i bytes =
      _mm512_shuffle_epi8(pairs, _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, -1,
                                                                      -1, -1, -1, -1, -1, -1, -1)));
  const __m512i order = _mm512_castsi256_si512(
      _mm256_setr_epi16(0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27));
  alignas(32) uint64_t masks[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(masks),
                     _mm512_castsi512_si256(_mm512_permutexvar_epi16(order, bytes)));
  SNAPKV_UNROLL for (int v = 0; v < 4; ++v) {
    q[v] = _mm512_mask_add_epi8(q[v], _cvtu64_mask64(masks[v]), q[v], _mm512_set1_epi8(16));
  }
}

// ---------------------------------------------------------------- blocks of 32 values

template <DType T>
struct X86Block;

/// N numbers at p, p + kStride, ..., the first in the lowest bits. (Scalar, since the vector units
/// have enough to do. GCC would assemble bytes in memory, and the load of a vector would wait for
/// its parts to be stored: half of the time of mxfp4's products.)
template <typename Number, int N, int kStride>
SNAPKV_AVX2_INLINE int64_t join(const char* p) {
  uint64_t joined = 0;
  SNAPKV_UNROLL for (int i = 0; i < N; ++i) {
    joined |= uint64_t{load_word<Number>(p + i * kStride)} << (64 / N * i);
    __asm__("" : "+r"(joined));
  }
  return static_cast<int64_t>(joined);
}

/// Loads the f16 numbers of 8 blocks, at p, p + kStride, ...: the even ones, then the odd ones.
template <int kStride>
SNAPKV_AVX2_INLINE __m256 load_f16_8(const char* p) {
  return _mm256_cvtph_ps(_mm_set_epi64x(join<uint16_t, 4, 2 * kStride>(p + kStride),
                                        join<uint16_t, 4, 2 * kStride>(p)));
}

/// Blocks that begin with an f16 scale.
template <DType T>
struct X86ScaledBlock {
  static SNAPKV_AVX2_INLINE float d(const char* p) { return load_f16(p); }
  static SNAPKV_AVX2_INLINE __m256 scales_8(const char* p) {
    return load_f16_8<sizeof(Block<T>)>(p);
  }
  static SNAPKV_VNNI_INLINE __m512 d_8(const char* p) { return load_scales<sizeof(Block<T>)>(p); }
};

/// Blocks that begin with an f16 scale and m.
template <DType T>
struct X86MinBlock : X86ScaledBlock<T> {
  static constexpr int kOffset = 0, kSurplus = 0;
  static SNAPKV_AVX2_INLINE float min(const char* p) { return -load_f16(p + kMinAt<T>); }
  static SNAPKV_AVX2_INLINE __m256 min_8(const char* p) {
    const __m256 m = load_f16_8<sizeof(Block<T>)>(p + kMinAt<T>);
    return _mm256_xor_ps(m, _mm256_set1_ps(-0.0f));
  }
  static SNAPKV_VNNI_INLINE __m512 min_16(const char* p) {
    return load_minima<sizeof(Block<T>)>(p + kMinAt<T>);
  }
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
  static constexpr int kOffset = 8;
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int) { return low_then_high(p + 2); }
  static SNAPKV_AVX2_INLINE __m256i from_nibbles(__m256i nibbles) { return nibbles; }

  static constexpr int kSurplus = 8;
  static SNAPKV_VNNI_INLINE void load_8(const char* p, VnniLevels& q) {
    load_nibbles<sizeof(BlockQ4_0)>(p + 2, q);
  }
};

template <>
struct X86Block<DType::q4_1> : X86MinBlock<DType::q4_1> {
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int) {
    return low_then_high(p + offsetof(BlockQ4_1, qs));
  }
  static SNAPKV_AVX2_INLINE __m256i from_nibbles(__m256i nibbles) { return nibbles; }
  static SNAPKV_VNNI_INLINE void load_8(const char* p, VnniLevels& q) {
    load_nibbles<sizeof(BlockQ4_1)>(p + offsetof(BlockQ4_1, qs), q);
  }
};

template <>
struct X86Block<DType::q5_0> : X86ScaledBlock<DType::q5_0> {
  static constexpr int kOffset = 16;
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int) {
    return or_fifth_bits(low_then_high(p + offsetof(BlockQ5_0, qs)), p + offsetof(BlockQ5_0, qh));
  }

  static constexpr int kSurplus = 16;
  static SNAPKV_VNNI_INLINE void load_8(const char* p, VnniLevels& q) {
    load_nibbles<sizeof(BlockQ5_0)>(p + offsetof(BlockQ5_0, qs), q);
    add_fifth_bits<sizeof(BlockQ5_0)>(p + offsetof(BlockQ5_0, qh), q);
  }
};

template <>
struct X86Block<DType::q5_1> : X86MinBlock<DType::q5_1> {
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int) {
    return or_fifth_bits(low_then_high(p + offsetof(BlockQ5_1, qs)), p + offsetof(BlockQ5_1, qh));
  }
  static SNAPKV_VNNI_INLINE void load_8(const char* p, VnniLevels& q) {
    load_nibbles<sizeof(BlockQ5_1)>(p + offsetof(BlockQ5_1, qs), q);
    add_fifth_bits<sizeof(BlockQ5_1)>(p + offsetof(BlockQ5_1, qh), q);
  }
};

template <>
struct X86Block<DType::iq4_nl> : X86ScaledBlock<DType::iq4_nl> {
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int) {
    return from_nibbles(low_then_high(p + offsetof(BlockIQ4_NL, qs)));
  }
  static SNAPKV_AVX2_INLINE __m256i from_nibbles(__m256i nibbles) {
    return look_up(BlockIQ4_NL::kLevels, nibbles);
  }

  static constexpr int kSurplus = 128;
  static SNAPKV_VNNI_INLINE void load_8(const char* p, VnniLevels& q) {
    load_nibbles<sizeof(BlockIQ4_NL)>(p + offsetof(BlockIQ4_NL, qs), q);
    look_up(BlockIQ4_NL::kLevels, kSurplus, q);
  }
};

template <>
struct X86Block<DType::mxfp4> {
  static SNAPKV_AVX2_INLINE float d(const char* p) {
    return BlockMXFP4::scale(static_cast<uint8_t>(*p));
  }
  static constexpr int kOffset = 12;
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int) {
    return from_nibbles(low_then_high(p + offsetof(BlockMXFP4, qs)));
  }
  static SNAPKV_AVX2_INLINE __m256i from_nibbles(__m256i nibbles) {
    const __m128i table = load_16(reinterpret_cast<const char*>(BlockMXFP4::kLevels));
    return _mm256_shuffle_epi8(
        _mm256_broadcastsi128_si256(_mm_add_epi8(table, _mm_set1_epi8(kOffset))), nibbles);
  }
  static SNAPKV_AVX2_INLINE __m256 scales_8(const char* p) {
    constexpr int kStride = sizeof(BlockMXFP4);
    const int64_t even = join<uint8_t, 4, 2 * kStride>(p);
    const int64_t odd = join<uint8_t, 4, 2 * kStride>(p + kStride);
    return scales_of(_mm256_cvtepu16_epi32(_mm_set_epi64x(odd, even)));
  }
  /// Of exponents, as in BlockMXFP4::scale().
  static SNAPKV_AVX2_INLINE __m256 scales_of(__m256i e) {
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    const __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
    const __m256i is_subnormal = _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(normal, subnormal, is_subnormal));
  }

  static constexpr int kSurplus = 12;
  static SNAPKV_VNNI_INLINE void load_8(const char* p, VnniLevels& q) {
    load_nibbles<sizeof(BlockMXFP4)>(p + offsetof(BlockMXFP4, qs), q);
    look_up(BlockMXFP4::kLevels, kSurplus, q);
  }
  /// The exponent of block i < 4 is byte i of quarter i of the first 64 bytes; that of block 4 + i
  /// is byte 4 + i of quarter i of the next 64.
  static SNAPKV_VNNI_INLINE __m512 d_8(const char* p) {
    static_assert(sizeof(BlockMXFP4) == 17);
    constexpr uint64_t kSecond =
        uint64_t{0x10} | uint64_t{0x20} << 16 | uint64_t{0x40} << 32 | uint64_t{0x80} << 48;
    const __m512i bytes = _mm512_mask_loadu_epi8(_mm512_loadu_si512(p), kSecond, p + 64);
    const __m512i zeros = _mm512_set1_epi32(~0xff);  // indices from 128
    const __m512i order =
        _mm512_or_si512(_mm512_setr_epi32(0, 0, 4, 4, 1, 1, 5, 5, 2, 2, 6, 6, 3, 3, 7, 7), zeros);
    return scales(_mm512_shuffle_epi8(bytes, order));
  }
  /// Of exponents, as in BlockMXFP4::scale().
  static SNAPKV_VNNI_INLINE __m512 scales(__m512i e) {
    const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    const __m512i subnormal = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
    const __mmask16 is_subnormal = _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2));
    return _mm512_castsi512_ps(_mm512_mask_mov_epi32(normal, is_subnormal, subnormal));
  }
};

// ---------------------------------------------------------------- blocks of 64 values

/// The nibbles of 32 values, 8 at a time, are the low halves of 8 bytes, then the high ones.
template <>
struct X86Block<DType::nvfp4> {
  static SNAPKV_AVX2_INLINE __m256i levels(const char* p, int part) {
    const __m256i nibbles = low_then_high(p + offsetof(BlockNVFP4, qs) + part * 16);
    return look_up(BlockMXFP4::kLevels, _mm256_permute4x64_epi64(nibbles, 0b11'01'10'00));
  }
  /// As BlockNVFP4::scale().
  static SNAPKV_AVX2_INLINE __m256 half_scales(const char* p, int i) {
    constexpr int kStride = sizeof(BlockNVFP4);
    const int64_t words = join<uint32_t, 2, kStride>(p + 2 * i * kStride);
    const __m128i bytes = _mm_cvtsi64_si128(words), nan = _mm_set1_epi8(0x7f);
    const __m128i e4m3 = _mm_andnot_si128(_mm_cmpeq_epi8(bytes, nan), _mm_and_si128(bytes, nan));
    const __m128i halves = _mm_slli_epi16(_mm_cvtepu8_epi16(e4m3), 7);
    return _mm256_mul_ps(_mm256_cvtph_ps(halves), _mm256_set1_ps(128.0f));
  }

  static constexpr int kSurplus = 12;
  static SNAPKV_VNNI_INLINE void load_8(const char* p, VnniLevels& q) {
    const char* qs = p + offsetof(BlockNVFP4, qs);
    const __m512i low_bits = _mm512_set1_epi8(15);
    const __m512i a = load_two_blocks(qs), b = load_two_blocks(qs + 2 * sizeof(BlockNVFP4));
    const __m512i first = _mm512_unpacklo_epi64(a, b), last = _mm512_unpackhi_epi64(a, b);
    q[0] = _mm512_and_si512(first, low_bits);
    q[1] = _mm512_and_si512(_mm512_srli_epi16(first, 4), low_bits);
    q[2] = _mm512_and_si512(last, low_bits);
    q[3] = _mm512_and_si512(_mm512_srli_epi16(last, 4), low_bits);
    look_up(BlockMXFP4::kLevels, kSurplus, q);
  }
  static SNAPKV_VNNI_INLINE HalfScales half_d_8(const char* p) {
    const __m512 all =
        _mm512_insertf32x8(_mm512_castps256_ps512(half_scales(p, 0)), half_scales(p, 1), 1);
    const __m512i first = _mm512_setr_epi32(0, 0, 8, 8, 2, 2, 10, 10, 4, 4, 12, 12, 6, 6, 14, 14);
    const __m512i last = _mm512_add_epi32(first, _mm512_set1_epi32(1));
    return {.first = _mm512_permutexvar_ps(first, all), .last = _mm512_permutexvar_ps(last, all)};
  }

 private:
  static SNAPKV_VNNI_INLINE __m512i load_two_blocks(const char* qs) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(load_32(qs)), load_32(qs + sizeof(BlockNVFP4)),
                              1);
  }
};

}  // namespace snapkv::cpu

#endif  // x86-64
