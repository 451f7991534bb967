// SPDX-License-Identifier: MIT
// bf16 activations times bf16 weights with AVX512_BF16: vdpbf16ps adds two products into each f32
// lane.
#include "backend/cpu/products/few_rows/gemv.h"
#include "backend/cpu/target/cpu_target.h"

#if defined(__x86_64__)

#include "backend/cpu/products/few_rows/gemv_avx512.h"
#include "format/block_types.h"

// The functions of this file run only where has(CpuTarget::avx512_bf16).
#define SNAPKV_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#define SNAPKV_BF16_INLINE SNAPKV_BF16 __attribute__((always_inline)) inline

namespace snapkv::cpu {
namespace {

constexpr int kStep = 32;  // values of one vector

SNAPKV_BF16 void prepare(const float* x, int64_t n, void* unit) {
  for (int64_t i = 0; i < kGemvUnit; i += 16) {
    const int64_t left = n - i < 0 ? 0 : n - i > 16 ? 16 : n - i;
    const __mmask16 mask = static_cast<__mmask16>((1u << left) - 1);
    const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, x + i));
    _mm256_store_si256(reinterpret_cast<__m256i*>(static_cast<uint16_t*>(unit) + i),
                       (__m256i)rounded);
  }
}

template <int R, int N>
SNAPKV_BF16_INLINE void multiply_step(const __m512i (&w)[R], const uint16_t* const (&x)[N],
                                      int64_t i, __m512 (&acc)[R][N]) {
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
    const __m512i values = _mm512_load_si512(x[t] + i);
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
      acc[r][t] = _mm512_dpbf16_ps(acc[r][t], (__m512bh)w[r], (__m512bh)values);
    }
  }
}

struct Kernel {
  static constexpr int64_t kUnitBytes = kGemvUnit * sizeof(uint16_t);

  template <int R, int N>
  SNAPKV_BF16 static void tile(const GemvCall& c, const avx512::TileRange& range,
                               __m512 (*sums)[N]) {
    const uint16_t* x[N];
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
      x[t] = reinterpret_cast<const uint16_t*>(c.x + t * c.x_stride);
    }
    __m512 acc[R][N];
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
      SNAPKV_UNROLL for (int t = 0; t < N; ++t) acc[r][t] = sums[r][t];
    }
    const char* p = c.w + range.row * c.w_stride;
    const int64_t end = std::min(c.n_in, range.unit_end * kGemvUnit);
    __m512i w[R];
    int64_t i = range.unit_begin * kGemvUnit;
    for (; i + kStep <= end; i += kStep) {
      SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
        const char* q = p + r * c.w_stride + 2 * i;
        __builtin_prefetch(q + range.ahead, 0, 2);
        w[r] = _mm512_loadu_si512(q);
      }
      multiply_step<R, N>(w, x, i, acc);
    }
    if (i < end) {
      const __mmask32 mask = (1u << (end - i)) - 1;
      SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
        w[r] = _mm512_maskz_loadu_epi16(mask, p + r * c.w_stride + 2 * i);
      }
      multiply_step<R, N>(w, x, i, acc);
    }
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
      SNAPKV_UNROLL for (int t = 0; t < N; ++t) sums[r][t] = acc[r][t];
    }
  }
};

}  // namespace

const GemvKernel* gemv_bf16() {
  static const GemvKernel kernel{.name = "bf16 AVX512_BF16",
                                 .unit_bytes = kGemvUnit * sizeof(uint16_t),
                                 .prepare = prepare,
                                 .function = [](DType weight) -> GemvFn {
                                   return weight == DType::bf16 ? avx512::multiply<Kernel>
                                                                : nullptr;
                                 }};
  return has(CpuTarget::avx512_bf16) ? &kernel : nullptr;
}

}  // namespace snapkv::cpu

#else

namespace snapkv::cpu {
const GemvKernel* gemv_bf16() { return nullptr; }
}  // namespace snapkv::cpu

#endif  // x86-64
