// SPDX-License-Identifier: MIT
#include "backend/cpu/rowwise.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "backend/cpu/convert.h"
#include "backend/cpu/scratch.h"

// Scalable vectors can't be array elements: NEON serves those processors.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/rowwise.cpp"
// foreach_target.h comes before the -inl headers
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <hwy/contrib/math/math-inl.h>
// clang-format on

#include "backend/cpu/decode-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {
namespace {  // other files have functions of the same names

// One row: out = x / sqrt(mean(x^2) + eps) * w. Four partial sums of squares in f32.
template <typename Out>
void rms_norm_row(const float* HWY_RESTRICT x, const float* HWY_RESTRICT w, float eps, int64_t n,
                  Out* HWY_RESTRICT out) {
  const F32 d;
  const int64_t n_lanes = static_cast<int64_t>(hn::Lanes(d));
  VF s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 4 * n_lanes <= n; i += 4 * n_lanes) {
    const VF x0 = hn::LoadU(d, x + i), x1 = hn::LoadU(d, x + i + n_lanes);
    const VF x2 = hn::LoadU(d, x + i + 2 * n_lanes), x3 = hn::LoadU(d, x + i + 3 * n_lanes);
    s0 = hn::MulAdd(x0, x0, s0);
    s1 = hn::MulAdd(x1, x1, s1);
    s2 = hn::MulAdd(x2, x2, s2);
    s3 = hn::MulAdd(x3, x3, s3);
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  for (; i < n; ++i) sum += x[i] * x[i];
  const float scale = 1.0f / std::sqrt(sum / static_cast<float>(n) + eps);
  const VF scales = hn::Set(d, scale);
  for (i = 0; i + n_lanes <= n; i += n_lanes) {
    store_as(d, hn::Mul(hn::Mul(hn::LoadU(d, x + i), scales), hn::LoadU(d, w + i)), out + i);
  }
  for (; i < n; ++i) out[i] = from_f32<Out>(x[i] * scale * w[i]);
}
void rms_norm_row_f32(const float* x, const float* w, float eps, int64_t n, void* out) {
  rms_norm_row(x, w, eps, n, static_cast<float*>(out));
}
void rms_norm_row_bf16(const float* x, const float* w, float eps, int64_t n, void* out) {
  rms_norm_row(x, w, eps, n, static_cast<bf16_t*>(out));
}

// One head: pairs (a, b) turn to (a cos - b sin, a sin + b cos).
void rope_norm_head(float* HWY_RESTRICT x, const float* HWY_RESTRICT cos_table,
                    const float* HWY_RESTRICT sin_table, int64_t n_pairs) {
  const F32 d;
  const int64_t n_lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + n_lanes <= n_pairs; i += n_lanes) {
    VF a, b;
    hn::LoadInterleaved2(d, x + 2 * i, a, b);
    const VF c = hn::LoadU(d, cos_table + i), s = hn::LoadU(d, sin_table + i);
    hn::StoreInterleaved2(hn::MulSub(a, c, hn::Mul(b, s)), hn::MulAdd(a, s, hn::Mul(b, c)), d,
                          x + 2 * i);
  }
  for (; i < n_pairs; ++i) {
    const float a = x[2 * i], b = x[2 * i + 1];
    x[2 * i] = a * cos_table[i] - b * sin_table[i];
    x[2 * i + 1] = a * sin_table[i] + b * cos_table[i];
  }
}
void rope_neox_head(float* HWY_RESTRICT x, const float* HWY_RESTRICT cos_table,
                    const float* HWY_RESTRICT sin_table, int64_t n_pairs) {
  const F32 d;
  const int64_t n_lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + n_lanes <= n_pairs; i += n_lanes) {
    const VF a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + n_pairs + i);
    const VF c = hn::LoadU(d, cos_table + i), s = hn::LoadU(d, sin_table + i);
    hn::StoreU(hn::MulSub(a, c, hn::Mul(b, s)), d, x + i);
    hn::StoreU(hn::MulAdd(a, s, hn::Mul(b, c)), d, x + n_pairs + i);
  }
  for (; i < n_pairs; ++i) {
    const float a = x[i], b = x[n_pairs + i];
    x[i] = a * cos_table[i] - b * sin_table[i];
    x[n_pairs + i] = a * sin_table[i] + b * cos_table[i];
  }
}

// silu(g) * u = g * sigmoid(g) * u. With e = exp(-|g|) in (0, 1] nothing overflows:
// sigmoid(g) = 1 / (1 + e) for g >= 0, e / (1 + e) below. Highway's Exp is within 1 ulp.
HWY_INLINE VF swiglu_vector(F32 d, VF g, VF u) {
  const VF one = hn::Set(d, 1.0f);
  const VF e = hn::Exp(d, hn::Neg(hn::Abs(g)));
  const VF numerator = hn::IfThenElse(hn::Lt(g, hn::Zero(d)), e, one);
  return hn::Mul(hn::Mul(g, hn::Div(numerator, hn::Add(one, e))), u);
}
template <typename In, typename Out>
void swiglu_values(const void* gate_, const void* up_, int64_t n, void* out_) {
  using Lane = std::conditional_t<sizeof(In) == 4, float, hwy::bfloat16_t>;
  const F32 d;
  const int64_t n_lanes = static_cast<int64_t>(hn::Lanes(d));
  const In* gate = static_cast<const In*>(gate_);
  const In* up = static_cast<const In*>(up_);
  Out* out = static_cast<Out*>(out_);
  int64_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes) {
    const VF g = load_f32(d, reinterpret_cast<const Lane*>(gate + i));
    const VF u = load_f32(d, reinterpret_cast<const Lane*>(up + i));
    store_as(d, swiglu_vector(d, g, u), out + i);
  }
  if (i == n) return;
  HWY_ALIGN float g[hn::MaxLanes(F32())] = {}, u[hn::MaxLanes(F32())] = {};
  for (int64_t k = 0; k < n - i; ++k) {
    g[k] = to_f32(gate[i + k]);
    u[k] = to_f32(up[i + k]);
  }
  hn::Store(swiglu_vector(d, hn::Load(d, g), hn::Load(d, u)), d, g);
  for (int64_t k = 0; k < n - i; ++k) out[i + k] = from_f32<Out>(g[k]);
}
void swiglu_f32_f32(const void* gate, const void* up, int64_t n, void* out) {
  swiglu_values<float, float>(gate, up, n, out);
}
void swiglu_f32_bf16(const void* gate, const void* up, int64_t n, void* out) {
  swiglu_values<float, bf16_t>(gate, up, n, out);
}
void swiglu_bf16_f32(const void* gate, const void* up, int64_t n, void* out) {
  swiglu_values<bf16_t, float>(gate, up, n, out);
}
void swiglu_bf16_bf16(const void* gate, const void* up, int64_t n, void* out) {
  swiglu_values<bf16_t, bf16_t>(gate, up, n, out);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {

HWY_EXPORT(rms_norm_row_f32);
HWY_EXPORT(rms_norm_row_bf16);
HWY_EXPORT(rope_norm_head);
HWY_EXPORT(rope_neox_head);
HWY_EXPORT(swiglu_f32_f32);
HWY_EXPORT(swiglu_f32_bf16);
HWY_EXPORT(swiglu_bf16_f32);
HWY_EXPORT(swiglu_bf16_bf16);

namespace {

// Waking the other threads costs a few microseconds; less work than this many values is done sooner
// by one.
constexpr int64_t kParallelValues = 16 * 1024;

}  // namespace

void embed(const CpuContext& ctx, const Tensor& weight, std::span<const int32_t> ids,
           const Tensor& out) {
  const int64_t n = static_cast<int64_t>(ids.size()), d = out.n_cols();
#pragma omp parallel for num_threads(ctx.n_threads) if (n > 1 && n * d >= kParallelValues)
  for (int64_t t = 0; t < n; ++t) {
    convert_row(weight.at<const void>(ids[static_cast<size_t>(t)]), weight.dtype, d,
                out.at<float>(t));
  }
}

void rms_norm(const CpuContext& ctx, const Tensor& x, const Tensor& weight, float eps,
              const Tensor& out) {
  const int64_t n = x.shape[0], d = x.shape[1];
  const auto row = out.dtype == DType::bf16 ? HWY_DYNAMIC_DISPATCH(rms_norm_row_bf16)
                                            : HWY_DYNAMIC_DISPATCH(rms_norm_row_f32);
  const float* w = static_cast<const float*>(weight.data);
#pragma omp parallel for num_threads(ctx.n_threads) if (n > 1 && n * d >= kParallelValues)
  for (int64_t t = 0; t < n; ++t) row(x.at<const float>(t), w, eps, d, out.at<void>(t));
}

void rope(const CpuContext& ctx, const Tensor& x, std::span<const int32_t> pos,
          const RopeFrequencies& rope) {
  const int64_t n = x.shape[0], n_head = x.shape[1];
  const int64_t n_pairs = static_cast<int64_t>(rope.inv_freq.size());
  const auto head = rope.layout == RopeLayout::norm ? HWY_DYNAMIC_DISPATCH(rope_norm_head)
                                                    : HWY_DYNAMIC_DISPATCH(rope_neox_head);
  // cos and sin of a position, shared by its heads
  float* tables =
      reinterpret_cast<float*>(scratch(static_cast<size_t>(n * 2 * n_pairs) * sizeof(float)));
#pragma omp parallel for num_threads(ctx.n_threads) if (n > 1 && n * n_head * n_pairs * 2 >= \
                                                                     kParallelValues)
  for (int64_t t = 0; t < n; ++t) {
    float* cos_table = tables + t * 2 * n_pairs;
    float* sin_table = cos_table + n_pairs;
    const double p = pos[static_cast<size_t>(t)];
    for (int64_t i = 0; i < n_pairs; ++i) {
      const double angle = p * rope.inv_freq[static_cast<size_t>(i)];
      cos_table[i] = static_cast<float>(std::cos(angle));
      sin_table[i] = static_cast<float>(std::sin(angle));
    }
    for (int64_t h = 0; h < n_head; ++h) head(x.at<float>(t, h), cos_table, sin_table, n_pairs);
  }
}

void swiglu(const CpuContext& ctx, const Tensor& gate, const Tensor& up, const Tensor& out) {
  const int64_t n = gate.shape[0], n_ff = gate.shape[1];
  const bool from_bf16 = gate.dtype == DType::bf16, to_bf16 = out.dtype == DType::bf16;
  const auto values = from_bf16 ? (to_bf16 ? HWY_DYNAMIC_DISPATCH(swiglu_bf16_bf16)
                                           : HWY_DYNAMIC_DISPATCH(swiglu_bf16_f32))
                                : (to_bf16 ? HWY_DYNAMIC_DISPATCH(swiglu_f32_bf16)
                                           : HWY_DYNAMIC_DISPATCH(swiglu_f32_f32));
#pragma omp parallel for num_threads(ctx.n_threads) if (n > 1 && n * n_ff >= kParallelValues)
  for (int64_t t = 0; t < n; ++t) {
    values(gate.at<const void>(t), up.at<const void>(t), n_ff, out.at<void>(t));
  }
}

}  // namespace snapkv::cpu
#endif  // HWY_ONCE
