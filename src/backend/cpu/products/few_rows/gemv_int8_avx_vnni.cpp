// SPDX-License-Identifier: MIT
// 8-bit activations times weights of block types with AVX-VNNI, the dot products of processors
// without AVX-512: each 32-bit lane adds four products of bytes, or two of 16 bits. The loops
// around this are in gemv_int8_blocks_256-inl.h and gemv_int8_k_256-inl.h.
//
// Bytes of weights are unsigned here: 128 is added to signed levels, and the initial value of the
// sums makes up for it.
#include "backend/cpu/products/few_rows/gemv.h"

#if defined(__x86_64__)

#include <cstddef>
#include <cstring>

#include "backend/cpu/products/few_rows/gemv_int8_256.h"

// The functions of this file run only where has(CpuTarget::avx_vnni).
#define SNAPKV_256 __attribute__((target("avx2,fma,f16c,avxvnni")))
#define SNAPKV_256_INLINE __attribute__((target("avx2,fma,f16c,avxvnni"), always_inline)) inline

namespace snapkv::cpu {
namespace {

template <DType T>
constexpr bool kMultipliesPairs = true;

/// sum + products of unsigned levels with 32 activations.
SNAPKV_256_INLINE __m256i add_products(__m256i sum, __m256i levels, const int8_t* x) {
  return _mm256_dpbusd_avx_epi32(sum, levels,
                                 _mm256_load_si256(reinterpret_cast<const __m256i*>(x)));
}

/// Converts levels to unsigned bytes.
template <DType T>
SNAPKV_256_INLINE __m256i to_unsigned(__m256i levels) {
  if constexpr (HasLevelOffset<T>) return levels;
  return _mm256_xor_si256(levels, _mm256_set1_epi8(-128));
}
/// Initial value of the sums of levels; `x` are the negative_sums of the activations.
template <DType T>
SNAPKV_256_INLINE __m256i first_sums(const int32_t* x) {
  if constexpr (HasLevelOffset<T>) return _mm256_setzero_si256();
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(x));
}

template <DType T>
SNAPKV_256_INLINE __m256i multiply_block(__m256i levels, const BlockUnit& x, int b) {
  return add_products(first_sums<T>(x.negative_sums[b]), to_unsigned<T>(levels), x.q[b]);
}

template <DType T>
SNAPKV_256_INLINE __m256i multiply_pair(__m256i first, __m256i last, const BlockUnit& x, int pair) {
  const __m256i sums =
      add_products(first_sums<T>(x.negative_sums[pair]), to_unsigned<T>(first), x.q[2 * pair]);
  return add_products(sums, to_unsigned<T>(last), x.q[2 * pair + 1]);
}

/// sum + pairs * factors, each over two neighbours.
SNAPKV_256_INLINE __m256i add_scaled_pairs(__m256i sum, __m256i pairs, __m256i factors) {
  return _mm256_dpwssd_avx_epi32(sum, pairs, factors);
}

}  // namespace
}  // namespace snapkv::cpu

#include "backend/cpu/products/few_rows/gemv_int8_blocks_256-inl.h"
#include "backend/cpu/products/few_rows/gemv_int8_k_256-inl.h"

namespace snapkv::cpu {

const GemvKernel& gemv_int8_avx_vnni() {
  static const GemvKernel kernel{.name = "int8 AVX-VNNI",
                                 .unit_bytes = sizeof(BlockUnit),
                                 .prepare = prepare_block_unit,
                                 .function = find_multiply_blocks};
  return kernel;
}

const GemvKernel& gemv_int8_avx_vnni_nibbles() {
  static const GemvKernel kernel{.name = "int8 AVX-VNNI, nibbles",
                                 .unit_bytes = sizeof(BlockUnit),
                                 .prepare = prepare_nibble_unit,
                                 .function = find_multiply_nibbles};
  return kernel;
}

const GemvKernel& gemv_int8_avx_vnni_k() {
  static const GemvKernel kernel{.name = "int8 AVX-VNNI, superblocks",
                                 .unit_bytes = sizeof(KUnit),
                                 .prepare = prepare_k_unit,
                                 .function = find_multiply_superblocks};
  return kernel;
}

}  // namespace snapkv::cpu

#endif  // x86-64
