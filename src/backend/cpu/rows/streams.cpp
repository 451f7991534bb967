// SPDX-License-Identifier: MIT
// Ops of models with several residual streams (backend/ops.def). Bound by memory: every value is
// read once, or twice where a sum over its row comes first. Rows are shared out to the threads;
// sums are in f32, in an order that does not depend on the number of threads.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/target/highway_targets.h"
#include "backend/cpu/weights/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/rows/streams.cpp"
// foreach_target.h comes before the -inl headers
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "backend/cpu/rows/row_math-inl.h"
#include "backend/cpu/weights/decode-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {
namespace {  // other files have functions of the same names

/// sum_i (x[i] - shift), or of the squares of these differences, in two f32 partial sums of
/// vectors.
template <bool square>
HWY_INLINE float sum_of_row(const float* HWY_RESTRICT x, float shift, int64_t n) {
  const F32 d;
  const int64_t n_lanes = hn::Lanes(d);
  const VF shifts = hn::Set(d, shift);
  const auto term = [&](int64_t i) HWY_ATTR {
    const VF v = hn::Sub(hn::LoadU(d, x + i), shifts);
    return square ? hn::Mul(v, v) : v;
  };
  VF s0 = hn::Zero(d), s1 = s0;
  int64_t i = 0;
  for (; i + 2 * n_lanes <= n; i += 2 * n_lanes) {
    s0 = hn::Add(s0, term(i));
    s1 = hn::Add(s1, term(i + n_lanes));
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
  for (; i < n; ++i) sum += square ? (x[i] - shift) * (x[i] - shift) : x[i] - shift;
  return sum;
}

void keep_peaks_row(float* x, float deviations, int64_t n) {
  const F32 d;
  const int64_t n_lanes = hn::Lanes(d);
  const float mean = sum_of_row<false>(x, 0.0f, n) / static_cast<float>(n);
  const float deviation = std::sqrt(sum_of_row<true>(x, mean, n) / static_cast<float>(n));
  const float cut = mean + deviations * deviation;
  const VF cuts = hn::Set(d, cut), zero = hn::Zero(d);
  int64_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes) {
    const VF above = hn::Sub(hn::LoadU(d, x + i), cuts);
    hn::StoreU(hn::IfThenElse(hn::Lt(above, zero), zero, above), d, x + i);  // NaN stays
  }
  for (; i < n; ++i) x[i] = x[i] - cut < 0.0f ? 0.0f : x[i] - cut;
}

void multiply_row(const float* HWY_RESTRICT x, const float* HWY_RESTRICT factors,
                  float* HWY_RESTRICT out, int64_t n) {
  const F32 d;
  const int64_t n_lanes = hn::Lanes(d);
  int64_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::LoadU(d, factors + i)), d, out + i);
  }
  for (; i < n; ++i) out[i] = x[i] * factors[i];
}

/// The k streams of one token, n values each; a column's values of all streams are read before any
/// is written.
void mix_token(float* x, const float* coefficients, int64_t k, int64_t n) {
  const F32 d;
  const int64_t n_lanes = hn::Lanes(d);
  HWY_ALIGN float before[kMostStreams * hn::MaxLanes(F32())];
  int64_t c = 0;
  for (; c + n_lanes <= n; c += n_lanes) {
    for (int64_t j = 0; j < k; ++j) {
      hn::Store(hn::LoadU(d, x + j * n + c), d, before + j * n_lanes);
    }
    for (int64_t i = 0; i < k; ++i) {
      VF sum = hn::Load(d, before + i * n_lanes);
      for (int64_t j = 0; j < k; ++j) {
        const VF coefficient = hn::Set(d, coefficients[i * k + j]);
        sum = hn::MulAdd(coefficient, hn::Load(d, before + j * n_lanes), sum);
      }
      hn::StoreU(sum, d, x + i * n + c);
    }
  }
  for (; c < n; ++c) {
    for (int64_t j = 0; j < k; ++j) before[j] = x[j * n + c];
    for (int64_t i = 0; i < k; ++i) {
      float sum = before[i];
      for (int64_t j = 0; j < k; ++j) sum += coefficients[i * k + j] * before[j];
      x[i * n + c] = sum;
    }
  }
}

void match_norm_row(float* x, const float* like, int64_t n) {
  const auto count = static_cast<float>(n);
  const float mean = sum_of_row<true>(x, 0.0f, n) / count;
  const float wanted = sum_of_row<true>(like, 0.0f, n) / count;
  const float factor = std::sqrt(wanted / std::max(mean, kLeastMeanSquare));
  scale_row(x, factor, n);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {

HWY_EXPORT(keep_peaks_row);
HWY_EXPORT(multiply_row);
HWY_EXPORT(mix_token);
HWY_EXPORT(add_row);
HWY_EXPORT(match_norm_row);

namespace {

/// Whether an op on so many rows is worth waking the other threads, which takes some microseconds.
bool wakes_threads(int64_t n, int64_t n_values) {
  constexpr int64_t kLeast = 16 * 1024;
  return n > 1 && n_values >= kLeast;
}

}  // namespace

void keep_peaks(const CpuContext& ctx, const Tensor& x, float deviations) {
  const int64_t n = x.shape[0], d = x.shape[1];
  const auto row = HWY_DYNAMIC_DISPATCH(keep_peaks_row);
#pragma omp parallel for num_threads(ctx.n_threads) if (wakes_threads(n, x.numel()))
  for (int64_t t = 0; t < n; ++t) row(x.at<float>(t), deviations, d);
}

void take_stream(const CpuContext& ctx, const Tensor& x, int64_t stream, const Tensor& factors,
                 const Tensor& out) {
  const int64_t n = x.shape[0], d = x.shape[2];
  const auto row = HWY_DYNAMIC_DISPATCH(multiply_row);
#pragma omp parallel for num_threads(ctx.n_threads) if (wakes_threads(n, n * d))
  for (int64_t t = 0; t < n; ++t) {
    const float* const from = x.at<const float>(t, stream);
    if (factors) {
      row(from, static_cast<const float*>(factors.data), out.at<float>(t), d);
    } else {
      std::memcpy(out.at<float>(t), from, d * sizeof(float));
    }
  }
}

void mix_streams(const CpuContext& ctx, const Tensor& x, const Tensor& coefficients) {
  const int64_t n = x.shape[0], k = x.shape[1], d = x.shape[2];
  const auto token = HWY_DYNAMIC_DISPATCH(mix_token);
#pragma omp parallel for num_threads(ctx.n_threads) if (wakes_threads(n, x.numel()))
  for (int64_t t = 0; t < n; ++t) token(x.at<float>(t), coefficients.at<const float>(t), k, d);
}

void add_to_streams(const CpuContext& ctx, const Tensor& x, const Tensor& y, const Tensor& factors,
                    int64_t first) {
  const int64_t n = x.shape[0], k = x.shape[1], d = x.shape[2];
  const auto row = HWY_DYNAMIC_DISPATCH(add_row);
#pragma omp parallel for num_threads(ctx.n_threads) if (wakes_threads(n, x.numel()))
  for (int64_t t = 0; t < n; ++t) {
    for (int64_t i = first; i < k; ++i) {
      row(x.at<float>(t, i), y.at<const float>(t), factors ? factors.at<const float>(t)[i] : 1.0f,
          d);
    }
  }
}

void match_norms(const CpuContext& ctx, const Tensor& x, const Tensor& like) {
  const int64_t n = x.shape[0], d = x.shape[1];
  const auto row = HWY_DYNAMIC_DISPATCH(match_norm_row);
#pragma omp parallel for num_threads(ctx.n_threads) if (wakes_threads(n, x.numel()))
  for (int64_t t = 0; t < n; ++t) row(x.at<float>(t), like.at<const float>(t), d);
}

}  // namespace snapkv::cpu
#endif  // HWY_ONCE
