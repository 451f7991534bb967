// SPDX-License-Identifier: MIT
// f32 activations times weights of any type, decoded in registers.
#include <algorithm>

#include "backend/cpu/products/few_rows/gemv.h"
#include "backend/cpu/target/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/products/few_rows/gemv_f32.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backend/cpu/weights/decode-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {
namespace {  // other files have functions of the same names

// R weight rows times N activation rows: R * N accumulators, each adding its row's values in order.
template <DType T, int R, int N>
void multiply_tile(const GemvCall& c, int64_t row, int first) {
  const F32 d;
  const char* w = c.w + row * c.w_stride;
  const float* x[N];
  for (int t = 0; t < N; ++t) {
    x[t] = reinterpret_cast<const float*>(c.x + (first + t) * c.x_stride);
  }
  VF acc[R][N];
  for (auto& a : acc) {
    for (VF& v : a) v = hn::Zero(d);
  }
  // prefetching for R adjacent rows covers the lines R rows below
  const int64_t prefetch = kPrefetchBytes + (R - 1) * c.w_stride;
  constexpr int64_t kFetchValues = std::max<int64_t>(kBlockSize, block_size(T));  // whole blocks
  int64_t i = 0;
  for (; i + kBlockSize <= c.n_in; i += kBlockSize) {
    for (int r = 0; r < R; ++r) {
      if (i % kFetchValues == 0) {
        const char* ahead = w + r * c.w_stride + row_bytes(T, i) + prefetch;
        for (int64_t k = 0; k < row_bytes(T, kFetchValues); k += 64)
          __builtin_prefetch(ahead + k, 0, 2);
      }
      decode_32<T>(d, w + r * c.w_stride, i, [&](int k, VF v) HWY_ATTR {
        for (int t = 0; t < N; ++t) {
          acc[r][t] = hn::MulAdd(v, hn::LoadU(d, x[t] + i + k), acc[r][t]);
        }
      });
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < N; ++t) {
      float sum = hn::GetLane(hn::SumOfLanes(d, acc[r][t]));
      if constexpr (block_size(T) == 1) {
        for (int64_t j = i; j < c.n_in; ++j) {
          sum += decode_one<T>(w + r * c.w_stride, j) * x[t][j];
        }
      }
      c.sums[(first + t) * c.sums_stride + row + r] = sum;
    }
  }
}

template <DType T>
void multiply(const GemvCall& c) {
  constexpr int kRows = HWY_TARGET <= HWY_AVX3 ? 4 : 2;  // depends on the number of registers
  int64_t row = 0;
  for (; row + kRows <= c.n_rows; row += kRows) {
    int t = 0;
    for (; t + 4 <= c.n; t += 4) multiply_tile<T, kRows, 4>(c, row, t);
    if (t + 2 <= c.n) {
      multiply_tile<T, kRows, 2>(c, row, t);
      t += 2;
    }
    if (t < c.n) multiply_tile<T, kRows, 1>(c, row, t);
  }
  for (; row < c.n_rows; ++row) {  // a few rows, which need no tiles of their own
    for (int t = 0; t < c.n; ++t) multiply_tile<T, 1, 1>(c, row, t);
  }
}

GemvFn find_multiply(DType weight) {
  return visit_weight_type(weight, [](auto type) -> GemvFn { return multiply<type.dtype>; });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {

HWY_EXPORT(find_multiply);

const GemvKernel& gemv_f32() {
  static const GemvKernel kernel{.name = "f32", .function = [](DType weight) {
                                   return HWY_DYNAMIC_DISPATCH(find_multiply)(weight);
                                 }};
  return kernel;
}

}  // namespace snapkv::cpu
#endif  // HWY_ONCE
