// SPDX-License-Identifier: MIT
// 8-bit activations times weights of block types with AVX2. Unsigned levels are multiplied
// directly, as 16-bit pairs of neighbours, and their surplus is subtracted with the minima; signed
// levels are multiplied as |w| * sign(x, w). (At most 2 * 128 * 127: no saturation.) The loops
// around this are in gemv_int8_blocks_256-inl.h and gemv_int8_k_256-inl.h.
#include "backend/cpu/products/few_rows/gemv.h"

#if defined(__x86_64__)

#include <cstddef>
#include <cstring>

#include "backend/cpu/products/few_rows/gemv_int8_256.h"

// The functions of this file run only where has(CpuTarget::avx2).
#define SNAPKV_256 __attribute__((target("avx2,fma,f16c")))
#define SNAPKV_256_INLINE __attribute__((target("avx2,fma,f16c"), always_inline)) inline

namespace snapkv::cpu {
namespace {

SNAPKV_256_INLINE __m256i add_neighbours(__m256i pairs) {
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/// Not for iq4_nl: pairs would need two more sums than single blocks (measured: 1.1 times the
/// time).
template <DType T>
constexpr bool kMultipliesPairs = HasLevelOffset<T>;

template <DType T>
SNAPKV_256_INLINE __m256i multiply_block(__m256i levels, const BlockUnit& x, int b) {
  return add_neighbours(multiply_neighbours<T>(levels, x.q[b], x.magnitudes[b]));
}

template <DType T>
SNAPKV_256_INLINE __m256i multiply_pair(__m256i first, __m256i last, const BlockUnit& x, int pair) {
  const int b = 2 * pair;
  const __m256i low = multiply_neighbours<T>(first, x.q[b], x.magnitudes[b]);
  const __m256i high = multiply_neighbours<T>(last, x.q[b + 1], x.magnitudes[b + 1]);
  return add_neighbours(_mm256_add_epi16(low, high));  // at most 4 * 24 * 127
}

/// sum + pairs * factors, each over two neighbours.
SNAPKV_256_INLINE __m256i add_scaled_pairs(__m256i sum, __m256i pairs, __m256i factors) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, factors));
}

}  // namespace
}  // namespace snapkv::cpu

#include "backend/cpu/products/few_rows/gemv_int8_blocks_256-inl.h"
#include "backend/cpu/products/few_rows/gemv_int8_k_256-inl.h"

namespace snapkv::cpu {

const GemvKernel& gemv_int8_avx2() {
  static const GemvKernel kernel{.name = "int8 AVX2",
                                 .unit_bytes = sizeof(BlockUnit),
                                 .prepare = prepare_block_unit,
                                 .function = find_multiply_blocks};
  return kernel;
}

const GemvKernel& gemv_int8_avx2_nibbles() {
  static const GemvKernel kernel{.name = "int8 AVX2, nibbles",
                                 .unit_bytes = sizeof(BlockUnit),
                                 .prepare = prepare_nibble_unit,
                                 .function = find_multiply_nibbles};
  return kernel;
}

const GemvKernel& gemv_int8_avx2_k() {
  static const GemvKernel kernel{.name = "int8 AVX2, superblocks",
                                 .unit_bytes = sizeof(KUnit),
                                 .prepare = prepare_k_unit,
                                 .function = find_multiply_superblocks};
  return kernel;
}

}  // namespace snapkv::cpu

#endif  // x86-64
