// SPDX-License-Identifier: MIT
// gemv_interleaved.h with AVX2. vpmaddubsw adds two products of bytes into 16 bits: values 2 i and
// 2 i + 1 of a row of weights times those of a row of activations. Sums stay in 16 bits as long as
// they fit; the 16-bit halves of a lane are then added.
#include "backend/cpu/products/few_rows/gemv_interleaved.h"

#if defined(__x86_64__)

#include <algorithm>
#include <cstring>

#include "backend/cpu/weights/interleaved_256.h"

// The functions of this file run only where has(CpuTarget::avx2).
#define SNAPKV_256 __attribute__((target("avx2,fma,f16c")))
#define SNAPKV_256_INLINE __attribute__((target("avx2,fma,f16c"), always_inline)) inline

namespace snapkv::cpu {
namespace {

template <DType T>
struct PartSum {
  static constexpr int kNarrow = kNarrowWords<T>;
  __m256i narrow, sum;

  SNAPKV_256_INLINE void add(int k, __m256i q, __m256i x) {
    const __m256i pairs = _mm256_maddubs_epi16(q, x);
    narrow = k % kNarrow == 0 ? pairs : _mm256_add_epi16(narrow, pairs);
    // keeps GCC from adding trees of products, for which there are not enough registers
    __asm__("" : "+x"(narrow));
    if (k % kNarrow < kNarrow - 1) return;
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(narrow, _mm256_set1_epi16(1)));
  }
};

}  // namespace
}  // namespace snapkv::cpu

#include "backend/cpu/products/few_rows/gemv_interleaved_256-inl.h"

namespace snapkv::cpu {

const GemvKernel& gemv_interleaved_avx2() {
  static const GemvKernel kernel{.name = "int8 AVX2, interleaved",
                                 .unit_bytes = sizeof(InterleavedUnit),
                                 .prepare = prepare_interleaved_unit,
                                 .function = find_multiply_interleaved<false>};
  return kernel;
}

GemvFn gemv_interleaved_before_avx2(DType weight) {
  return find_multiply_interleaved<true>(weight);
}

}  // namespace snapkv::cpu

#endif  // x86-64
