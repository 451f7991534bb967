// SPDX-License-Identifier: MIT
// 8-bit activations times weights in superblocks (q4_k, q5_k, q6_k) with AVX-512 VNNI.
//
// The superblock's 8 parts take the places of 8 blocks in the order of gemv_int8_vnni.cpp, so that
// a vector of scales belongs to the lanes of the integer sums. Eight bytes of a part are a 64-bit
// word: for each vector one permutation fetches its words from the packed levels, one shift by a
// count of its own for each word brings the part's bits down.
#include "backend/cpu/gemv_int8_vnni.h"

#if defined(__x86_64__)

#include <cstddef>
#include <cstring>

#include "backend/cpu/superblock.h"
#include "format/block_types.h"

namespace snapkv::cpu {
namespace {

static_assert(kGemvUnit == kSuperblockSize);

struct Words {
  alignas(64) int64_t at[8];
};
template <class F>
constexpr Words each_word(F f) {
  Words words{};
  for (int w = 0; w < 8; ++w) words.at[w] = f(kBlockOfWord[w]);
  return words;
}
SNAPKV_VNNI_INLINE __m512i load(const Words& words) { return _mm512_load_si512(words.at); }

// ---------------------------------------------------------------- levels

// q4_k, q5_k: parts 2p and 2p + 1 are the nibbles of bytes [32p, 32p + 32). q6_k: part 4h + k has
// its low bits in the nibbles (k >= 2: high) of bytes [64h + 32 (k % 2), ...), its high bits in
// bits 2k, 2k + 1 of bytes [32h, 32h + 32).
constexpr Words kNibbleWords = each_word([](int part) { return part / 2 * 4; });
constexpr Words kNibbleShifts = each_word([](int part) { return part % 2 * 4; });
constexpr Words kNibbleMasks = each_word([](int part) {
  return static_cast<int64_t>(part % 2 == 0 ? 0x0f0f0f0f0f0f0f0fu : 0xf0f0f0f0f0f0f0f0u);
});
constexpr Words kFifthBits =
    each_word([](int part) { return int64_t{0x0101010101010101} << part; });
constexpr Words kLowWords = each_word([](int part) { return part / 4 * 8 + part % 2 * 4; });
constexpr Words kLowShifts = each_word([](int part) { return part % 4 / 2 * 4; });
constexpr Words kHighWords = each_word([](int part) { return part / 4 * 4; });
constexpr Words kHighRotations =  // left: to bits 4, 5
    each_word([](int part) { return (64 + 4 - part % 4 * 2) % 64; });

struct Lanes {
  alignas(64) float at[16];
};
/// What a level of q4_k counts for.
constexpr Lanes kLevelUnits = [] {
  Lanes lanes{};
  for (int i = 0; i < 16; ++i) lanes.at[i] = kBlockOfWord[i / 2] % 2 == 0 ? 1.0f : 0.0625f;
  return lanes;
}();

/// q[v] = levels, 0 or more, of values 8v ... 8v + 7 of each part. With q4_k odd parts are left
/// where they are, 16 times their levels: bytes still hold them, and no shift is needed.
template <DType T>
SNAPKV_VNNI_INLINE void load_levels(const char* p, __m512i (&q)[4]) {
  const __m512i low_bits = _mm512_set1_epi8(15);
  if constexpr (T == DType::q6_k) {
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
      // nibbles & 15 | bits & 48: bits where the mask is 0
      const __m512i both = _mm512_ternarylogic_epi64(low_bits, nibbles, bits, 0xca);
      q[v] = _mm512_and_si512(both, _mm512_set1_epi8(63));
    }
  } else {
    const char* qs = p + (T == DType::q4_k ? offsetof(BlockQ4_K, qs) : offsetof(BlockQ5_K, qs));
    const __m512i pairs0 = _mm512_loadu_si512(qs), pairs1 = _mm512_loadu_si512(qs + 64);
    SNAPKV_UNROLL for (int v = 0; v < 4; ++v) {
      const __m512i index = _mm512_add_epi64(load(kNibbleWords), _mm512_set1_epi64(v));
      const __m512i words = _mm512_permutex2var_epi64(pairs0, index, pairs1);
      if constexpr (T == DType::q4_k) {
        q[v] = _mm512_and_si512(words, load(kNibbleMasks));
      } else {
        q[v] = _mm512_and_si512(_mm512_srlv_epi64(words, load(kNibbleShifts)), low_bits);
        int64_t bits;
        std::memcpy(&bits, p + offsetof(BlockQ5_K, qh) + 8 * v, sizeof(bits));
        const __mmask64 is_set = _mm512_test_epi8_mask(_mm512_set1_epi64(bits), load(kFifthBits));
        q[v] = _mm512_mask_add_epi8(q[v], is_set, q[v], _mm512_set1_epi8(16));
      }
    }
  }
}

// ---------------------------------------------------------------- q4_k, q5_k

template <DType T>
struct Weights {
  __m512i q[4];
  __m512i scale;  // of each lane's part
  __m512 d;
  __m512 min;  // dmin * minimum of parts 0 ... 7; then zeros
};

template <DType T>
SNAPKV_VNNI_INLINE void load_weights(const char* p, Weights<T>& w) {
  load_levels<T>(p, w.q);
  const PartBytes parts = unpack_scales(p);
  // a lane takes its part's byte and, with indices from 128, zeros
  const __m512i order = _mm512_or_si512(
      _mm512_setr_epi32(0, 0, 4, 4, 1, 1, 5, 5, 2, 2, 6, 6, 3, 3, 7, 7), _mm512_set1_epi32(~0xff));
  w.scale = _mm512_shuffle_epi8(_mm512_set1_epi64(static_cast<int64_t>(parts.scales)), order);
  uint32_t bits;
  std::memcpy(&bits, p, sizeof(bits));
  const __m128 d = _mm_cvtph_ps(_mm_cvtsi32_si128(static_cast<int>(bits)));  // d, dmin
  w.d = _mm512_broadcastss_ps(d);
  if constexpr (T == DType::q4_k) w.d = _mm512_mul_ps(w.d, _mm512_load_ps(kLevelUnits.at));
  const __m256 min =
      _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(parts.mins))));
  w.min = _mm512_zextps256_ps512(_mm256_mul_ps(min, _mm256_broadcastss_ps(_mm_movehdup_ps(d))));
}

/// acc[r][t] += d * d_x * scale * (sum of q x) - min * (sum of x)
template <DType T, int R, int N>
SNAPKV_VNNI_INLINE void multiply_unit(const Weights<T> (&w)[R], const VnniUnit* const (&x)[N],
                                      int64_t u, __m512 (&acc)[R][N]) {
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
    const VnniUnit& unit = x[t][u];
    const __m512 d = _mm512_load_ps(unit.d), sum_x = _mm512_load_ps(unit.sum);
    __m512i sum[R];
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) sum[r] = _mm512_setzero_si512();
    SNAPKV_UNROLL for (int v = 0; v < 4; ++v) {
      const __m512i q = _mm512_load_si512(unit.q[v]);
      SNAPKV_UNROLL for (int r = 0; r < R; ++r) sum[r] = _mm512_dpbusd_epi32(sum[r], w[r].q[v], q);
    }
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
      const __m512 product = _mm512_cvtepi32_ps(_mm512_mullo_epi32(sum[r], w[r].scale));
      acc[r][t] = _mm512_fnmadd_ps(w[r].min, sum_x, acc[r][t]);
      acc[r][t] = _mm512_fmadd_ps(product, _mm512_mul_ps(w[r].d, d), acc[r][t]);
    }
  }
}

// ---------------------------------------------------------------- q6_k

template <>
struct Weights<DType::q6_k> {
  __m512i q[4];    // levels + 32
  __m512i scales;  // 16 bits each, of the first and the last 16 values of each lane's part
  __m512 d;
};

SNAPKV_VNNI_INLINE void load_weights(const char* p, Weights<DType::q6_k>& w) {
  load_levels<DType::q6_k>(p, w.q);
  const __m128i bytes =
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + offsetof(BlockQ6_K, scales)));
  const __m512i order = _mm512_setr_epi32(0, 0, 4, 4, 1, 1, 5, 5, 2, 2, 6, 6, 3, 3, 7, 7);
  w.scales = _mm512_permutexvar_epi32(order, _mm512_castsi256_si512(_mm256_cvtepi8_epi16(bytes)));
  uint16_t d;
  std::memcpy(&d, p + offsetof(BlockQ6_K, d), sizeof(d));
  w.d = _mm512_set1_ps(_cvtsh_ss(d));
}

/// The sums of the two halves of a part are at most 8 * 63 * 127 with levels from 0, which is below
/// 2^16, and within 8 * 32 * 127 with the surplus taken off: 16 bits hold them, modulo 2^16 before.
template <int R, int N>
SNAPKV_VNNI_INLINE void multiply_unit(const Weights<DType::q6_k> (&w)[R],
                                      const VnniUnit* const (&x)[N], int64_t u,
                                      __m512 (&acc)[R][N]) {
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
    const VnniUnit& unit = x[t][u];
    const __m512i surplus =
        _mm512_slli_epi16(_mm512_load_si512(unit.negative_sums), 5);  // 32 times
    const __m512 d = _mm512_load_ps(unit.d);
    __m512i first[R], last[R];
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) first[r] = last[r] = _mm512_setzero_si512();
    SNAPKV_UNROLL for (int v = 0; v < 2; ++v) {
      const __m512i q = _mm512_load_si512(unit.q[v]), q2 = _mm512_load_si512(unit.q[2 + v]);
      SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
        first[r] = _mm512_dpbusd_epi32(first[r], w[r].q[v], q);
        last[r] = _mm512_dpbusd_epi32(last[r], w[r].q[2 + v], q2);
      }
    }
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
      const __m512i sums =
          _mm512_mask_blend_epi16(0xaaaaaaaa, first[r], _mm512_slli_epi32(last[r], 16));
      const __m512i product = _mm512_madd_epi16(_mm512_add_epi16(sums, surplus), w[r].scales);
      acc[r][t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(product), _mm512_mul_ps(w[r].d, d), acc[r][t]);
    }
  }
}

// ---------------------------------------------------------------- all three

template <DType T>
struct Kernel {
  static constexpr int64_t kUnitBytes = block_bytes(T);

  template <int R, int N>
  SNAPKV_VNNI static void tile(const GemvCall& c, const avx512::TileRange& range,
                               __m512 (*sums)[N]) {
    const VnniUnit* x[N];
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
      x[t] = reinterpret_cast<const VnniUnit*>(c.x + t * c.x_stride);
    }
    __m512 acc[R][N];
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
      SNAPKV_UNROLL for (int t = 0; t < N; ++t) acc[r][t] = sums[r][t];
    }
    const char* p = c.w + range.row * c.w_stride + range.unit_begin * kUnitBytes;
    Weights<T> w[R];
    for (int64_t u = range.unit_begin; u < range.unit_end; ++u) {  // rows are whole superblocks
      SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
        const char* q = p + r * c.w_stride;
        for (int64_t i = 0; i < kUnitBytes; i += 64) __builtin_prefetch(q + range.ahead + i, 0, 2);
        load_weights(q, w[r]);
      }
      multiply_unit(w, x, u, acc);
      p += kUnitBytes;
    }
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
      SNAPKV_UNROLL for (int t = 0; t < N; ++t) sums[r][t] = acc[r][t];
    }
  }
};

}  // namespace

GemvFn vnni_superblock_function(DType weight) {
  if (weight == DType::q4_k) return avx512::multiply<Kernel<DType::q4_k>>;
  if (weight == DType::q5_k) return avx512::multiply<Kernel<DType::q5_k>>;
  if (weight == DType::q6_k) return avx512::multiply<Kernel<DType::q6_k>>;
  return nullptr;
}

}  // namespace snapkv::cpu

#endif  // x86-64
