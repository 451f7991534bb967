// SPDX-License-Identifier: MIT
// gemv_interleaved.h with AVX-VNNI, the dot products of processors without AVX-512: each lane,
// which belongs to an output, adds 4 products of bytes.
#include "backend/cpu/products/few_rows/gemv_interleaved.h"

#if defined(__x86_64__)

#include <algorithm>
#include <cstring>

#include "backend/cpu/weights/interleaved_256.h"

// The functions of this file run only where has(CpuTarget::avx_vnni).
#define SNAPKV_256 __attribute__((target("avx2,fma,f16c,avxvnni")))
#define SNAPKV_256_INLINE __attribute__((target("avx2,fma,f16c,avxvnni"), always_inline)) inline

namespace snapkv::cpu {
namespace {

template <DType T>
struct PartSum {
  __m256i sum;

  SNAPKV_256_INLINE void add(int, __m256i q, __m256i x) {
    sum = _mm256_dpbusd_avx_epi32(sum, q, x);
  }
};

}  // namespace
}  // namespace snapkv::cpu

#include "backend/cpu/products/few_rows/gemv_interleaved_256-inl.h"

namespace snapkv::cpu {

const GemvKernel& gemv_interleaved_avx_vnni() {
  static const GemvKernel kernel{.name = "int8 AVX-VNNI, interleaved",
                                 .unit_bytes = sizeof(InterleavedUnit),
                                 .prepare = prepare_interleaved_unit,
                                 .function = find_multiply_interleaved<false>};
  return kernel;
}

GemvFn gemv_interleaved_before_avx_vnni(DType weight) {
  return find_multiply_interleaved<true>(weight);
}

}  // namespace snapkv::cpu

#endif  // x86-64
