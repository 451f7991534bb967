// SPDX-License-Identifier: MIT
// 8-bit activations times q8_0 and q4_0 weights with AVX-512 VNNI (superblocks:
// gemv_int8_vnni_k.cpp).
//
// vpdpbusd adds 4 products of bytes into each 32-bit lane. A block's scale belongs to its lanes, so
// the work per 8 blocks is 4 vpdpbusd, one conversion and one f32 multiply-add, when the vectors
// hold 8 blocks with 2 lanes each. Two unpacks per half block bring the weights into that order:
//   lanes 4i, 4i + 1 hold block i, lanes 4i + 2, 4i + 3 block i + 4 (i < 4);
//   vector v holds values 8v ... 8v + 7 of each.
// Activations are stored in the same order by prepare(). Weights are made unsigned (q8_0: + 128;
// q4_0: as stored, + 8), and the surplus 128 or 8 times the sum of the activations is subtracted in
// the accumulator's initial value: the integer sums are exact.
#include "backend/cpu/gemv_int8_vnni.h"

#if defined(__x86_64__)

#include <algorithm>
#include <cstring>

#include "format/block_types.h"

namespace snapkv::cpu {
namespace {

using Unit = VnniUnit;
constexpr int kUnitBlocks = kGemvUnit / kBlockSize;  // 8

/// First of the two neighbouring lanes of a block.
constexpr int lane_of(int block) { return block < 4 ? 4 * block : 4 * (block - 4) + 2; }

SNAPKV_VNNI void prepare(const float* x, int64_t n, void* unit_) {
  Unit& unit = *static_cast<Unit*>(unit_);
  const __m512i absolute = _mm512_set1_epi32(0x7fffffff);
  const __m512i floor = _mm512_set1_epi32(-128);  // of a NaN, as bytes hold it
  for (int b = 0; b < kUnitBlocks; ++b) {
    const int64_t left = std::clamp<int64_t>(n - b * kBlockSize, 0, kBlockSize);
    const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << left) - 1);
    const __m512 x0 = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), x + b * kBlockSize);
    const __m512 x1 =
        _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), x + b * kBlockSize + 16);
    // as integers, so that a NaN is the maximum and shows in the result
    const uint32_t max_bits = _mm512_reduce_max_epu32(
        _mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(x0), absolute),
                         _mm512_and_si512(_mm512_castps_si512(x1), absolute)));
    float max;
    std::memcpy(&max, &max_bits, sizeof(max));
    const __m512 inverse = _mm512_set1_ps(max > 0.0f ? 127.0f / max : 0.0f);
    alignas(32) int8_t q[kBlockSize];
    const __m512i q0 = _mm512_cvtps_epi32(_mm512_mul_ps(x0, inverse));
    const __m512i q1 = _mm512_cvtps_epi32(_mm512_mul_ps(x1, inverse));
    _mm_store_si128(reinterpret_cast<__m128i*>(q), _mm512_cvtsepi32_epi8(q0));
    _mm_store_si128(reinterpret_cast<__m128i*>(q + 16), _mm512_cvtsepi32_epi8(q1));
    const int lane = lane_of(b);
    SNAPKV_UNROLL for (int v = 0; v < 4; ++v) std::memcpy(&unit.q[v][4 * lane], q + 8 * v, 8);
    unit.d[lane] = unit.d[lane + 1] = max / 127.0f;
    unit.sum[b] = max / 127.0f *
                  static_cast<float>(_mm512_reduce_add_epi32(
                      _mm512_add_epi32(_mm512_max_epi32(q0, floor), _mm512_max_epi32(q1, floor))));
    unit.sum[kUnitBlocks + b] = 0.0f;
  }
  const __m512i zero = _mm512_setzero_si512(), ones = _mm512_set1_epi8(1);
  const __m512i first =
      _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(zero, ones, _mm512_load_si512(unit.q[0])), ones,
                          _mm512_load_si512(unit.q[1]));
  const __m512i last =
      _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(zero, ones, _mm512_load_si512(unit.q[2])), ones,
                          _mm512_load_si512(unit.q[3]));
  const __m512i sums = _mm512_mask_blend_epi16(0xaaaaaaaa, first, _mm512_slli_epi32(last, 16));
  _mm512_store_si512(unit.negative_sums, _mm512_sub_epi16(zero, sums));
}

/// Four pieces of 16 bytes, `stride` apart.
template <int kStride>
SNAPKV_VNNI_INLINE __m512i load_pieces(const char* p) {
  const auto load = [](const char* q) __attribute__((always_inline, target("avx512f"))) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(q));
  };
  const __m256i low =
      _mm256_inserti128_si256(_mm256_castsi128_si256(load(p)), load(p + kStride), 1);
  const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(load(p + 2 * kStride)),
                                               load(p + 3 * kStride), 1);
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/// 8 blocks of weights in registers.
struct Weights {
  __m512i q[4];
  __m512 d;
};

// The 8 scales are 16-bit words at distance 17 (q8_0) or 9 (q4_0): modulo 32 all different, so
// loads of 64 bytes merge into one vector without moving them.
SNAPKV_VNNI_INLINE __m512 load_scales_q8_0(const char* p) {
  __m512i words = _mm512_loadu_si512(p);                                    // words 0, 17
  words = _mm512_mask_loadu_epi16(words, (1u << 2) | (1u << 19), p + 64);   // 34, 51
  words = _mm512_mask_loadu_epi16(words, (1u << 4) | (1u << 21), p + 128);  // 68, 85
  words = _mm512_mask_loadu_epi16(words, (1u << 6) | (1u << 23), p + 192);  // 102, 119
  const __m512i order = _mm512_castsi256_si512(
      _mm256_setr_epi16(0, 0, 4, 4, 17, 17, 21, 21, 2, 2, 6, 6, 19, 19, 23, 23));
  return _mm512_cvtph_ps(_mm512_castsi512_si256(_mm512_permutexvar_epi16(order, words)));
}
SNAPKV_VNNI_INLINE __m512 load_scales_q4_0(const char* p) {
  __m512i words = _mm512_loadu_si512(p);  // words 0, 9, 18, 27
  words = _mm512_mask_loadu_epi16(words, (1u << 4) | (1u << 13) | (1u << 22) | (1u << 31), p + 64);
  const __m512i order = _mm512_castsi256_si512(
      _mm256_setr_epi16(0, 0, 4, 4, 9, 9, 13, 13, 18, 18, 22, 22, 27, 27, 31, 31));
  return _mm512_cvtph_ps(_mm512_castsi512_si256(_mm512_permutexvar_epi16(order, words)));
}

template <DType T>
SNAPKV_VNNI_INLINE Weights load_weights(const char* p) {
  Weights w;
  if constexpr (T == DType::q8_0) {
    constexpr int kStride = sizeof(BlockQ8_0);
    const __m512i offset = _mm512_set1_epi8(static_cast<char>(0x80));
    SNAPKV_UNROLL for (int half = 0; half < 2; ++half) {
      const char* q = p + 2 + 16 * half;
      const __m512i a = _mm512_xor_si512(load_pieces<kStride>(q), offset);
      const __m512i b = _mm512_xor_si512(load_pieces<kStride>(q + 4 * kStride), offset);
      w.q[2 * half] = _mm512_unpacklo_epi64(a, b);
      w.q[2 * half + 1] = _mm512_unpackhi_epi64(a, b);
    }
    w.d = load_scales_q8_0(p);
  } else {
    constexpr int kStride = sizeof(BlockQ4_0);
    const __m512i low_bits = _mm512_set1_epi8(15);
    const __m512i a = load_pieces<kStride>(p + 2);
    const __m512i b = load_pieces<kStride>(p + 2 + 4 * kStride);
    const __m512i low = _mm512_unpacklo_epi64(a, b), high = _mm512_unpackhi_epi64(a, b);
    w.q[0] = _mm512_and_si512(low, low_bits);
    w.q[1] = _mm512_and_si512(high, low_bits);
    w.q[2] = _mm512_and_si512(_mm512_srli_epi16(low, 4), low_bits);
    w.q[3] = _mm512_and_si512(_mm512_srli_epi16(high, 4), low_bits);
    w.d = load_scales_q4_0(p);
  }
  return w;
}

/// acc[r][t] += the dot products of one unit.
template <DType T, int R, int N>
SNAPKV_VNNI_INLINE void multiply_unit(const Weights (&w)[R], const Unit* const (&x)[N], int64_t u,
                                      __m512 (&acc)[R][N]) {
  const __m512i surplus_of_weight = _mm512_set1_epi16(T == DType::q8_0 ? 128 : 8);
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
    const Unit& unit = x[t][u];
    const __m512i surplus =
        _mm512_madd_epi16(_mm512_load_si512(unit.negative_sums), surplus_of_weight);
    const __m512 d = _mm512_load_ps(unit.d);
    __m512i sum[R];
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) sum[r] = surplus;
    SNAPKV_UNROLL for (int v = 0; v < 4; ++v) {
      const __m512i q = _mm512_load_si512(unit.q[v]);
      SNAPKV_UNROLL for (int r = 0; r < R; ++r) sum[r] = _mm512_dpbusd_epi32(sum[r], w[r].q[v], q);
    }
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
      acc[r][t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r]), _mm512_mul_ps(w[r].d, d), acc[r][t]);
    }
  }
}

template <DType T>
struct Kernel {
  static constexpr int64_t kUnitBytes = kUnitBlocks * block_bytes(T);

  template <int R, int N>
  SNAPKV_VNNI static void tile(const GemvCall& c, const avx512::TileRange& range,
                               __m512 (*sums)[N]) {
    const Unit* x[N];
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
      x[t] = reinterpret_cast<const Unit*>(c.x + t * c.x_stride);
    }
    __m512 acc[R][N];
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
      SNAPKV_UNROLL for (int t = 0; t < N; ++t) acc[r][t] = sums[r][t];
    }
    const int64_t n_complete = c.n_in / kGemvUnit;
    const char* p = c.w + range.row * c.w_stride + range.unit_begin * kUnitBytes;
    Weights w[R];
    for (int64_t u = range.unit_begin; u < std::min(range.unit_end, n_complete); ++u) {
      SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
        const char* q = p + r * c.w_stride;
        for (int64_t i = 0; i < kUnitBytes; i += 64) __builtin_prefetch(q + range.ahead + i, 0, 2);
        w[r] = load_weights<T>(q);
      }
      multiply_unit<T, R, N>(w, x, u, acc);
      p += kUnitBytes;
    }
    if (range.unit_end > n_complete) {  // missing blocks are zero, scale included
      const int64_t n_bytes = c.n_in % kGemvUnit / kBlockSize * block_bytes(T);
      SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
        alignas(64) char padded[kUnitBytes] = {};
        std::memcpy(padded, p + r * c.w_stride, static_cast<size_t>(n_bytes));
        w[r] = load_weights<T>(padded);
      }
      multiply_unit<T, R, N>(w, x, n_complete, acc);
    }
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
      SNAPKV_UNROLL for (int t = 0; t < N; ++t) sums[r][t] = acc[r][t];
    }
  }
};

}  // namespace

const GemvKernel& gemv_int8_vnni() {
  static const GemvKernel kernel{.name = "int8 AVX-512 VNNI",
                                 .unit_bytes = sizeof(Unit),
                                 .prepare = prepare,
                                 .function = [](DType weight) -> GemvFn {
                                   if (weight == DType::q8_0)
                                     return avx512::multiply<Kernel<DType::q8_0>>;
                                   if (weight == DType::q4_0)
                                     return avx512::multiply<Kernel<DType::q4_0>>;
                                   return vnni_superblock_function(weight);
                                 }};
  return kernel;
}

}  // namespace snapkv::cpu

#endif  // x86-64
