// SPDX-License-Identifier: MIT
// 8-bit activations times weights of block types with AVX2: per block |w| * sign(x, w) as 16-bit
// pairs (at most 2 * 128 * 127: no saturation), then 32-bit sums, scaled by d_w * d_x. The pairs of
// a superblock's part are multiplied with its integer scale on the way to 32 bits.
#include "backend/cpu/gemv.h"

#if defined(__x86_64__)

#include <cstddef>
#include <cstring>

#include "backend/cpu/avx512_util.h"
#include "backend/cpu/gemv_int8_plain.h"
#include "backend/cpu/superblock.h"
#include "format/block_types.h"

// The functions of this file run only where has(CpuTarget::avx2).
#define SNAPKV_AVX2 __attribute__((target("avx2,fma,f16c")))
#define SNAPKV_AVX2_INLINE SNAPKV_AVX2 __attribute__((always_inline)) inline

namespace snapkv::cpu {
namespace {

template <DType T>
SNAPKV_AVX2_INLINE __m256i load_block(const char* p) {
  if constexpr (T == DType::q8_0) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 2));
  } else {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 2));
    const __m256i both =
        _mm256_inserti128_si256(_mm256_castsi128_si256(bytes), _mm_srli_epi16(bytes, 4), 1);
    return _mm256_sub_epi8(_mm256_and_si256(both, _mm256_set1_epi8(15)), _mm256_set1_epi8(8));
  }
}
SNAPKV_AVX2_INLINE float load_scale(const char* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof(bits));
  return _cvtsh_ss(bits);
}
SNAPKV_AVX2_INLINE float sum_lanes(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

template <DType T, int N>
SNAPKV_AVX2 void multiply_n(const GemvCall& c) {
  const int64_t n_blocks = c.n_in / kBlockSize;
  const __m256i ones = _mm256_set1_epi16(1);
  for (int64_t row = 0; row < c.n_rows; ++row) {
    const char* p = c.w + row * c.w_stride;
    __m256 acc[N];
    for (__m256& v : acc) v = _mm256_setzero_ps();
    for (int64_t b = 0; b < n_blocks; ++b, p += block_bytes(T)) {
      __builtin_prefetch(p + kPrefetchBytes, 0, 2);
      const __m256i w = load_block<T>(p);
      const __m256i magnitude = _mm256_abs_epi8(w);
      const float d = load_scale(p);
      for (int t = 0; t < N; ++t) {
        const PlainUnit& unit = plain_unit(c, t, b);
        const int64_t k = b % kPlainUnitBlocks;
        const __m256i x = _mm256_load_si256(reinterpret_cast<const __m256i*>(unit.q[k]));
        const __m256i pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(x, w));
        const __m256 sums = _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, ones));
        acc[t] = _mm256_fmadd_ps(sums, _mm256_set1_ps(d * unit.d[k]), acc[t]);
      }
    }
    for (int t = 0; t < N; ++t) c.sums[t * c.sums_stride + row] = sum_lanes(acc[t]);
  }
}

SNAPKV_AVX2_INLINE __m256i load_32(const char* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

/// The low or the high nibbles of 32 bytes.
SNAPKV_AVX2_INLINE __m256i load_nibbles(const char* p, bool high) {
  const __m256i bytes = load_32(p);
  return _mm256_and_si256(high ? _mm256_srli_epi16(bytes, 4) : bytes, _mm256_set1_epi8(15));
}

/// What the levels of a part are multiplied with, 16 bits each, for the pairs of values in order.
template <DType T>
SNAPKV_AVX2_INLINE __m256i part_scale(const char* p, const PartBytes& parts, int part) {
  if constexpr (T == DType::q6_k) {
    const char* q = p + offsetof(BlockQ6_K, scales) + 2 * part;
    return _mm256_setr_m128i(_mm_set1_epi16(static_cast<int8_t>(q[0])),
                             _mm_set1_epi16(static_cast<int8_t>(q[1])));
  } else {
    return _mm256_set1_epi16(static_cast<int16_t>(parts.scale(part)));
  }
}

/// Levels of the part, as signed bytes.
template <DType T>
SNAPKV_AVX2_INLINE __m256i load_part(const char* p, int part) {
  if constexpr (T == DType::q6_k) {
    const __m256i low = load_nibbles(p + part / 4 * 64 + part % 2 * 32, part % 4 >= 2);
    const __m256i bits = load_32(p + offsetof(BlockQ6_K, qh) + part / 4 * 32);
    const int k = part % 4;
    const __m256i to_place =
        k < 2 ? _mm256_slli_epi16(bits, 4 - 2 * k) : _mm256_srli_epi16(bits, 2 * k - 4);
    const __m256i high = _mm256_and_si256(to_place, _mm256_set1_epi8(0x30));
    return _mm256_sub_epi8(_mm256_or_si256(low, high), _mm256_set1_epi8(32));
  } else {
    const size_t qs = T == DType::q4_k ? offsetof(BlockQ4_K, qs) : offsetof(BlockQ5_K, qs);
    const __m256i low = load_nibbles(p + qs + part / 2 * 32, part % 2 == 1);
    if constexpr (T == DType::q4_k) return low;
    const __m256i bit = _mm256_set1_epi8(static_cast<char>(1 << part));
    const __m256i is_set =
        _mm256_cmpeq_epi8(_mm256_and_si256(load_32(p + offsetof(BlockQ5_K, qh)), bit), bit);
    return _mm256_or_si256(low, _mm256_and_si256(is_set, _mm256_set1_epi8(16)));
  }
}

/// acc[t] += the products of part `part`.
template <DType T, int N>
SNAPKV_AVX2_INLINE void multiply_part(const char* p, const PartBytes& parts, float d, int part,
                                      const PlainUnit* const (&x)[N], __m256 (&acc)[N]) {
  const __m256i w = load_part<T>(p, part);
  const __m256i scale = part_scale<T>(p, parts, part);
  const __m256i magnitude = T == DType::q6_k ? _mm256_abs_epi8(w) : w;
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
    __m256i q = _mm256_load_si256(reinterpret_cast<const __m256i*>(x[t]->q[part]));
    if constexpr (T == DType::q6_k) q = _mm256_sign_epi8(q, w);
    const __m256i pairs = _mm256_maddubs_epi16(magnitude, q);
    const __m256 sums = _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, scale));
    acc[t] = _mm256_fmadd_ps(sums, _mm256_set1_ps(d * x[t]->d[part]), acc[t]);
  }
}

template <DType T, int N>
SNAPKV_AVX2 void multiply_superblocks(const GemvCall& c) {
  const int64_t n_superblocks = c.n_in / kSuperblockSize;
  for (int64_t row = 0; row < c.n_rows; ++row) {
    const char* p = c.w + row * c.w_stride;
    __m256 acc[N];
    SNAPKV_UNROLL for (__m256& v : acc) v = _mm256_setzero_ps();
    for (int64_t b = 0; b < n_superblocks; ++b, p += block_bytes(T)) {
      for (int64_t i = 0; i < block_bytes(T); i += 64) {
        __builtin_prefetch(p + kPrefetchBytes + i, 0, 2);
      }
      const PlainUnit* x[N];
      SNAPKV_UNROLL for (int t = 0; t < N; ++t) x[t] = &plain_unit(c, t, kSuperblockParts * b);
      const PartBytes parts = unpack_scales(p);  // (unused with q6_k)
      const float d = load_scale(p + (T == DType::q6_k ? offsetof(BlockQ6_K, d) : 0));
      SNAPKV_UNROLL for (int part = 0; part < kSuperblockParts; ++part) {
        multiply_part<T, N>(p, parts, d, part, x, acc);
      }
      if constexpr (T != DType::q6_k) {
        const __m256i min = _mm256_cvtepu8_epi32(_mm_set1_epi64x(static_cast<int64_t>(parts.mins)));
        const __m256 mins = _mm256_mul_ps(
            _mm256_cvtepi32_ps(min), _mm256_set1_ps(load_scale(p + offsetof(PartScales, dmin))));
        SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
          acc[t] = _mm256_fnmadd_ps(mins, _mm256_load_ps(x[t]->sum), acc[t]);
        }
      }
    }
    for (int t = 0; t < N; ++t) c.sums[t * c.sums_stride + row] = sum_lanes(acc[t]);
  }
}

template <DType T, int N>
SNAPKV_AVX2 void multiply_rows(const GemvCall& c) {
  if constexpr (block_size(T) == kSuperblockSize) {
    multiply_superblocks<T, N>(c);
  } else {
    multiply_n<T, N>(c);
  }
}

template <DType T>
void multiply(const GemvCall& c) {
  GemvCall part = c;
  while (part.n > 0) {
    const int n = part.n >= 4 ? 4 : part.n >= 2 ? 2 : 1;
    if (n == 4) multiply_rows<T, 4>(part);
    if (n == 2) multiply_rows<T, 2>(part);
    if (n == 1) multiply_rows<T, 1>(part);
    part.x += n * c.x_stride;
    part.sums += n * c.sums_stride;
    part.n -= n;
  }
}

}  // namespace

const GemvKernel& gemv_int8_avx2() {
  static const GemvKernel kernel{.name = "int8 AVX2",
                                 .unit_bytes = sizeof(PlainUnit),
                                 .prepare = prepare_plain_unit,
                                 .function = [](DType weight) -> GemvFn {
                                   if (weight == DType::q8_0) return multiply<DType::q8_0>;
                                   if (weight == DType::q4_0) return multiply<DType::q4_0>;
                                   if (weight == DType::q4_k) return multiply<DType::q4_k>;
                                   if (weight == DType::q5_k) return multiply<DType::q5_k>;
                                   if (weight == DType::q6_k) return multiply<DType::q6_k>;
                                   return nullptr;
                                 }};
  return kernel;
}

}  // namespace snapkv::cpu

#endif  // x86-64
