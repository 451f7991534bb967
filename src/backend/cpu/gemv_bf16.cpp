// SPDX-License-Identifier: MIT
// bf16 activations times bf16 weights with AVX512_BF16: vdpbf16ps adds two products into each f32
// lane.
#include "backend/cpu/gemv.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "backend/cpu/x86_kernel.h"
#include "format/block_types.h"

// The functions of this file run only where has_avx512_bf16().
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

template <int R, int N>
SNAPKV_BF16 void multiply_tile(const GemvCall& c, int64_t row) {
  const uint16_t* x[N];
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) x[t] =
      reinterpret_cast<const uint16_t*>(c.x + t * c.x_stride);
  __m512 acc[R][N];
  SNAPKV_UNROLL for (auto& a : acc) { SNAPKV_UNROLL for (__m512& v : a) v = _mm512_setzero_ps(); }
  const char* p = c.w + row * c.w_stride;
  __m512i w[R];
  int64_t i = 0;
  for (; i + kStep <= c.n_in; i += kStep) {
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
      w[r] = _mm512_loadu_si512(p + r * c.w_stride + 2 * i);
      prefetch_weights<R>(p + r * c.w_stride + 2 * i, 2 * i, 2 * c.n_in, c.w_stride, 64);
    }
    multiply_step<R, N>(w, x, i, acc);
  }
  if (i < c.n_in) {
    const __mmask32 mask = (1u << (c.n_in - i)) - 1;
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) w[r] =
        _mm512_maskz_loadu_epi16(mask, p + r * c.w_stride + 2 * i);
    multiply_step<R, N>(w, x, i, acc);
  }
  SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
      c.sums[t * c.sums_stride + row + r] = _mm512_reduce_add_ps(acc[r][t]);
    }
  }
}

template <int N>
void multiply_n(const GemvCall& c) {
  int64_t row = 0;
  if constexpr (N > 1) {
    for (; row + 2 <= c.n_rows; row += 2) multiply_tile<2, N>(c, row);
  }
  for (; row < c.n_rows; ++row) multiply_tile<1, N>(c, row);
}

void multiply(const GemvCall& c) {
  switch (c.n) {
    case 1:
      return multiply_n<1>(c);
    case 2:
      return multiply_n<2>(c);
    case 3:
      return multiply_n<3>(c);
    case 4:
      return multiply_n<4>(c);
    case 5:
      return multiply_n<5>(c);
    case 6:
      return multiply_n<6>(c);
    case 7:
      return multiply_n<7>(c);
    default:
      return multiply_n<kGemvMaxRows>(c);
  }
}

}  // namespace

bool has_avx512_bf16() {
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl");
}

const GemvKernel* gemv_bf16() {
  static const GemvKernel kernel{.name = "bf16 AVX512_BF16",
                                 .unit_bytes = kGemvUnit * sizeof(uint16_t),
                                 .prepare = prepare,
                                 .function = [](DType weight) -> GemvFn {
                                   return weight == DType::bf16 ? multiply : nullptr;
                                 }};
  return has_avx512_bf16() ? &kernel : nullptr;
}

}  // namespace snapkv::cpu

#else

namespace snapkv::cpu {
const GemvKernel* gemv_bf16() { return nullptr; }
}  // namespace snapkv::cpu

#endif  // x86-64
