// SPDX-License-Identifier: MIT
// Ops that work row by row: embedding, norm, rotation, activation. backend/ops.def defines them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/rows/add_rows.h"
#include "backend/cpu/target/highway_targets.h"
#include "backend/cpu/target/scratch.h"
#include "backend/cpu/weights/convert.h"
#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/rows/rowwise.cpp"
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

// One row: out = x / sqrt(mean(x^2) + eps) * w. Four partial sums of squares in f32.
template <typename Out>
void rms_norm_row(const float* x, const float* w, float eps, int64_t n, Out* out) {
  const F32 d;
  const int64_t n_lanes = hn::Lanes(d);
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

/// sum_i (x[i] - shift), or of the squares of these differences, in four f32 partial sums.
template <bool square>
HWY_INLINE float sum_row(const float* HWY_RESTRICT x, float shift, int64_t n) {
  const F32 d;
  const int64_t n_lanes = hn::Lanes(d);
  const VF shifts = hn::Set(d, shift);
  const auto term = [&](int64_t i) HWY_ATTR {
    const VF v = hn::Sub(hn::LoadU(d, x + i), shifts);
    return square ? hn::Mul(v, v) : v;
  };
  VF s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 4 * n_lanes <= n; i += 4 * n_lanes) {
    s0 = hn::Add(s0, term(i));
    s1 = hn::Add(s1, term(i + n_lanes));
    s2 = hn::Add(s2, term(i + 2 * n_lanes));
    s3 = hn::Add(s3, term(i + 3 * n_lanes));
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  for (; i < n; ++i) sum += square ? (x[i] - shift) * (x[i] - shift) : x[i] - shift;
  return sum;
}

// One row: out = (x - mean) / sqrt(variance + eps) * w + b. A second pass computes the variance
// from the differences, which avoids cancellation when the mean is large.
template <typename Out>
void layer_norm_row(const float* x, const float* w, const float* b, float eps, int64_t n,
                    Out* out) {
  const F32 d;
  const int64_t n_lanes = hn::Lanes(d);
  const float mean = sum_row<false>(x, 0.0f, n) / static_cast<float>(n);
  const float scale = 1.0f / std::sqrt(sum_row<true>(x, mean, n) / static_cast<float>(n) + eps);
  const VF means = hn::Set(d, mean), scales = hn::Set(d, scale);
  int64_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes) {
    const VF v = hn::Mul(hn::Sub(hn::LoadU(d, x + i), means), scales);
    const VF bias = b != nullptr ? hn::LoadU(d, b + i) : hn::Zero(d);
    store_as(d, hn::MulAdd(v, hn::LoadU(d, w + i), bias), out + i);
  }
  for (; i < n; ++i) {
    out[i] = from_f32<Out>((x[i] - mean) * scale * w[i] + (b != nullptr ? b[i] : 0.0f));
  }
}
void layer_norm_row_to(const float* x, const float* w, const float* b, float eps, int64_t n,
                       void* out, DType to) {
  to == DType::bf16 ? layer_norm_row(x, w, b, eps, n, static_cast<bf16_t*>(out))
                    : layer_norm_row(x, w, b, eps, n, static_cast<float*>(out));
}

// Highway's Tanh is within 4 ulp.
void softcap_row(float* x, float cap, int64_t n) {
  const F32 d;
  const int64_t n_lanes = hn::Lanes(d);
  const VF caps = hn::Set(d, cap), inverse = hn::Set(d, 1.0f / cap);
  int64_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes) {
    hn::StoreU(hn::Mul(caps, hn::Tanh(d, hn::Mul(hn::LoadU(d, x + i), inverse))), d, x + i);
  }
  for (; i < n; ++i) x[i] = cap * std::tanh(x[i] / cap);
}

// Comparisons rather than Min and Max, of which processors differ in what they do with NaN: it
// stays.
void clamp_row(float* x, float low, float high, int64_t n) {
  const F32 d;
  const int64_t n_lanes = hn::Lanes(d);
  const VF least = hn::Set(d, low), most = hn::Set(d, high);
  int64_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes) {
    const VF v = hn::LoadU(d, x + i);
    const VF below = hn::IfThenElse(hn::Gt(v, most), most, v);
    hn::StoreU(hn::IfThenElse(hn::Lt(v, least), least, below), d, x + i);
  }
  for (; i < n; ++i) x[i] = x[i] > high ? high : x[i] < low ? low : x[i];
}

// One head: each pair (a, b) turns to (a cos - b sin, a sin + b cos).
void rope_norm_head(float* HWY_RESTRICT x, const float* HWY_RESTRICT cos_table,
                    const float* HWY_RESTRICT sin_table, int64_t n_pairs) {
  const F32 d;
  const int64_t n_lanes = hn::Lanes(d);
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
  const int64_t n_lanes = hn::Lanes(d);
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

// x / 2 (1 + erf(x / sqrt(2))), as x - tail or -tail: tail is |x| / 2 erfc(|x| / sqrt(2)). With z
// the argument of erfc and t = 1 / (1 + z / 2), erfc(z) is t exp(-z^2 + P(t)), a Chebyshev fit of
// which (Press et al., Numerical Recipes) is relatively exact to 1.2e-7.
HWY_INLINE VF exact_gelu(F32 d, VF x) {
  constexpr float kFit[] = {0.17087277f,  -0.82215223f, 1.48851587f, -1.13520398f, 0.27886807f,
                            -0.18628806f, 0.09678418f,  0.37409196f, 1.00002368f,  -1.26551223f};
  const VF a = hn::Abs(x), half = hn::Mul(a, hn::Set(d, 0.5f));
  const VF one = hn::Set(d, 1.0f);
  const VF t = hn::Div(one, hn::MulAdd(a, hn::Set(d, 0.5f * 0.70710678f), one));
  VF p = hn::Set(d, kFit[0]);
  for (int i = 1; i < 10; ++i) p = hn::MulAdd(p, t, hn::Set(d, kFit[i]));
  const VF erfc = hn::Mul(t, hn::Exp(d, hn::NegMulAdd(a, half, p)));
  const VF tail = hn::IfThenElse(hn::Gt(a, hn::Set(d, 100.0f)), hn::Zero(d), hn::Mul(half, erfc));
  return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Sub(x, tail), hn::Neg(tail));
}

// Every activation that has no line of its own, but the sigmoid itself, is x sigmoid(s): s
// = x for silu, kClampedAlpha x for clamped_swiglu (where x is limited first), and for gelu_tanh s
// = 2 sqrt(2 / pi) (x + 0.044715 x^3), since (1 + tanh(y)) / 2 = sigmoid(2 y).
template <Activation activation>
HWY_INLINE VF activated(F32 d, VF x) {
  if constexpr (activation == Activation::relu_squared) {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), hn::Mul(x, x));  // NaN stays
  }
  if constexpr (activation == Activation::relu) {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
  }
  if constexpr (activation == Activation::softplus) {
    const VF positive = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
    return hn::Add(positive, hn::Log1p(d, hn::Exp(d, hn::Neg(hn::Abs(x)))));
  }
  if constexpr (activation == Activation::gelu) return exact_gelu(d, x);
  if constexpr (activation == Activation::tanh) return hn::Tanh(d, x);
  if constexpr (activation == Activation::identity) return x;
  VF s = x;
  if constexpr (activation == Activation::gelu_tanh) {
    const VF cubic = hn::MulAdd(hn::Mul(x, x), hn::Set(d, 0.044715f), hn::Set(d, 1.0f));
    s = hn::Mul(hn::Mul(x, hn::Set(d, 1.5957691216f)), cubic);
  }
  if constexpr (activation == Activation::clamped_swiglu) {
    const VF limit = hn::Set(d, kClampedLimit);
    x = hn::IfThenElse(hn::Gt(x, limit), limit, x);  // NaN stays
    s = hn::Mul(x, hn::Set(d, kClampedAlpha));
  }
  const VF factor = sigmoid(d, s);
  return activation == Activation::sigmoid ? factor : hn::Mul(x, factor);
}
/// What f(x) is multiplied with.
template <Activation activation>
HWY_INLINE VF factor_of(F32 d, VF y) {
  if constexpr (activation == Activation::clamped_swiglu) {
    const VF limit = hn::Set(d, kClampedLimit), least = hn::Neg(limit);
    y = hn::IfThenElse(hn::Gt(y, limit), limit, y);
    y = hn::Add(hn::IfThenElse(hn::Lt(y, least), least, y), hn::Set(d, 1.0f));
  }
  return y;
}
template <Activation activation, typename In, typename Out>
void activate_values(const In* x, const In* factor, int64_t n, Out* out) {
  using Lane = std::conditional_t<sizeof(In) == 4, float, hwy::bfloat16_t>;
  const F32 d;
  const int64_t n_lanes = hn::Lanes(d);
  int64_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes) {
    VF v = activated<activation>(d, load_f32(d, reinterpret_cast<const Lane*>(x + i)));
    if (factor != nullptr) {
      v = hn::Mul(v,
                  factor_of<activation>(d, load_f32(d, reinterpret_cast<const Lane*>(factor + i))));
    }
    store_as(d, v, out + i);
  }
  if (i == n) return;
  HWY_ALIGN float last[hn::MaxLanes(F32())] = {};
  HWY_ALIGN float factors[hn::MaxLanes(F32())] = {};
  for (int64_t k = 0; k < n - i; ++k) {
    last[k] = to_f32(x[i + k]);
    if (factor != nullptr) factors[k] = to_f32(factor[i + k]);
  }
  VF v = activated<activation>(d, hn::Load(d, last));
  if (factor != nullptr) v = hn::Mul(v, factor_of<activation>(d, hn::Load(d, factors)));
  hn::Store(v, d, last);
  for (int64_t k = 0; k < n - i; ++k) out[i + k] = from_f32<Out>(last[k]);
}

template <Activation activation, typename In>
void activate_from(const void* x, const void* factor, int64_t n, void* out, DType to) {
  const In* in = static_cast<const In*>(x);
  const In* factors = static_cast<const In*>(factor);
  to == DType::bf16 ? activate_values<activation>(in, factors, n, static_cast<bf16_t*>(out))
                    : activate_values<activation>(in, factors, n, static_cast<float*>(out));
}
template <Activation activation>
void activate_row(const void* x, const void* factor, DType from, int64_t n, void* out, DType to) {
  from == DType::bf16 ? activate_from<activation, bf16_t>(x, factor, n, out, to)
                      : activate_from<activation, float>(x, factor, n, out, to);
}
void silu_row(const void* x, const void* factor, DType from, int64_t n, void* out, DType to) {
  activate_row<Activation::silu>(x, factor, from, n, out, to);
}
void gelu_tanh_row(const void* x, const void* factor, DType from, int64_t n, void* out, DType to) {
  activate_row<Activation::gelu_tanh>(x, factor, from, n, out, to);
}
void gelu_row(const void* x, const void* factor, DType from, int64_t n, void* out, DType to) {
  activate_row<Activation::gelu>(x, factor, from, n, out, to);
}
void clamped_swiglu_row(const void* x, const void* factor, DType from, int64_t n, void* out,
                        DType to) {
  activate_row<Activation::clamped_swiglu>(x, factor, from, n, out, to);
}
void sigmoid_row(const void* x, const void* factor, DType from, int64_t n, void* out, DType to) {
  activate_row<Activation::sigmoid>(x, factor, from, n, out, to);
}
void relu_squared_row(const void* x, const void* factor, DType from, int64_t n, void* out,
                      DType to) {
  activate_row<Activation::relu_squared>(x, factor, from, n, out, to);
}
void relu_row(const void* x, const void* factor, DType from, int64_t n, void* out, DType to) {
  activate_row<Activation::relu>(x, factor, from, n, out, to);
}
void softplus_row(const void* x, const void* factor, DType from, int64_t n, void* out, DType to) {
  activate_row<Activation::softplus>(x, factor, from, n, out, to);
}
void tanh_row(const void* x, const void* factor, DType from, int64_t n, void* out, DType to) {
  activate_row<Activation::tanh>(x, factor, from, n, out, to);
}
void identity_row(const void* x, const void* factor, DType from, int64_t n, void* out, DType to) {
  activate_row<Activation::identity>(x, factor, from, n, out, to);
}

struct XieluNumbers {
  float alpha_p, alpha_n, beta, eps;
};

// Highway's Expm1 is within 4 ulp. The last values are computed as a whole vector too.
HWY_INLINE VF xielu(F32 d, const XieluNumbers& f, VF x) {
  const VF least = hn::Min(x, hn::Set(d, f.eps));
  const VF below = hn::Mul(hn::Set(d, f.alpha_n), hn::Sub(hn::Expm1(d, least), x));
  const VF above = hn::Mul(hn::Set(d, f.alpha_p), hn::Mul(x, x));
  const VF curve = hn::IfThenElse(hn::Gt(x, hn::Zero(d)), above, below);
  return hn::MulAdd(hn::Set(d, f.beta), x, curve);
}
template <typename Out>
void xielu_values(const XieluNumbers& f, const float* x, int64_t n, Out* out) {
  const F32 d;
  const int64_t n_lanes = hn::Lanes(d);
  int64_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes) store_as(d, xielu(d, f, hn::LoadU(d, x + i)), out + i);
  if (i == n) return;
  HWY_ALIGN float last[hn::MaxLanes(F32())] = {};
  std::copy(x + i, x + n, last);
  hn::Store(xielu(d, f, hn::Load(d, last)), d, last);
  for (int64_t k = 0; k < n - i; ++k) out[i + k] = from_f32<Out>(last[k]);
}
void xielu_row(const float* x, float alpha_p, float alpha_n, float beta, float eps, int64_t n,
               void* out, DType to) {
  const XieluNumbers f{alpha_p, alpha_n, beta, eps};
  to == DType::bf16 ? xielu_values(f, x, n, static_cast<bf16_t*>(out))
                    : xielu_values(f, x, n, static_cast<float*>(out));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {

HWY_EXPORT(rms_norm_row_f32);
HWY_EXPORT(rms_norm_row_bf16);
HWY_EXPORT(layer_norm_row_to);
HWY_EXPORT(add_row);
HWY_EXPORT(scale_row);
HWY_EXPORT(softcap_row);
HWY_EXPORT(clamp_row);
HWY_EXPORT(rope_norm_head);
HWY_EXPORT(rope_neox_head);
HWY_EXPORT(silu_row);
HWY_EXPORT(gelu_tanh_row);
HWY_EXPORT(gelu_row);
HWY_EXPORT(clamped_swiglu_row);
HWY_EXPORT(sigmoid_row);
HWY_EXPORT(relu_squared_row);
HWY_EXPORT(relu_row);
HWY_EXPORT(softplus_row);
HWY_EXPORT(tanh_row);
HWY_EXPORT(identity_row);
HWY_EXPORT(xielu_row);

namespace {

auto row_of(Activation activation) {
  switch (activation) {
    case Activation::silu:
      return HWY_DYNAMIC_DISPATCH(silu_row);
    case Activation::gelu_tanh:
      return HWY_DYNAMIC_DISPATCH(gelu_tanh_row);
    case Activation::gelu:
      return HWY_DYNAMIC_DISPATCH(gelu_row);
    case Activation::clamped_swiglu:
      return HWY_DYNAMIC_DISPATCH(clamped_swiglu_row);
    case Activation::sigmoid:
      return HWY_DYNAMIC_DISPATCH(sigmoid_row);
    case Activation::relu_squared:
      return HWY_DYNAMIC_DISPATCH(relu_squared_row);
    case Activation::relu:
      return HWY_DYNAMIC_DISPATCH(relu_row);
    case Activation::softplus:
      return HWY_DYNAMIC_DISPATCH(softplus_row);
    case Activation::tanh:
      return HWY_DYNAMIC_DISPATCH(tanh_row);
    case Activation::identity:
      return HWY_DYNAMIC_DISPATCH(identity_row);
  }
  SNAPKV_CHECK(false);
}

/// Copies n values; both types are f32 or bf16.
void copy_values(const void* from, DType from_type, int64_t n, void* to, DType to_type) {
  if (from_type == to_type) {
    std::memcpy(to, from, n * block_bytes(to_type));
  } else if (to_type == DType::f32) {
    convert_row(from, from_type, n, static_cast<float*>(to));
  } else {
    convert_row(from, from_type, n, static_cast<bf16_t*>(to));
  }
}

// Waking the other threads takes a few microseconds: with fewer values than this, one thread alone
// is done sooner.
constexpr int64_t kParallelValues = 16 * 1024;

}  // namespace

void embed(const CpuContext& ctx, const Tensor& weight, std::span<const int32_t> ids,
           const Tensor& out) {
  const int64_t n = std::ssize(ids), d = out.n_cols();
#pragma omp parallel for num_threads(ctx.n_threads) if (n > 1 && n * d >= kParallelValues)
  for (int64_t t = 0; t < n; ++t) {
    convert_row(weight.at<const void>(ids[t]), weight.dtype, d, out.at<float>(t));
  }
}

void split(const CpuContext& ctx, const Tensor& x, std::span<const Tensor> parts) {
  const int64_t n = x.shape[0];
#pragma omp parallel for num_threads(ctx.n_threads) if (n > 1 && x.numel() >= kParallelValues)
  for (int64_t t = 0; t < n; ++t) {
    const char* from = x.at<const char>(t);
    for (const Tensor& part : parts) {
      copy_values(from, x.dtype, part.shape[1], part.at<char>(t), part.dtype);
      from += part.shape[1] * block_bytes(x.dtype);
    }
  }
}

void join(const CpuContext& ctx, std::span<const Tensor> parts, const Tensor& out) {
  const int64_t n = out.shape[0];
#pragma omp parallel for num_threads(ctx.n_threads) if (n > 1 && out.numel() >= kParallelValues)
  for (int64_t t = 0; t < n; ++t) {
    char* to = out.at<char>(t);
    for (const Tensor& part : parts) {
      copy_values(part.at<const char>(t), part.dtype, part.shape[1], to, out.dtype);
      to += part.shape[1] * block_bytes(out.dtype);
    }
  }
}

void rms_norm(const CpuContext& ctx, const Tensor& x, const Tensor& weight, float eps,
              const Tensor& out) {
  const int64_t n = x.shape[0], d = x.shape[1], n_weights = weight.numel() / d;
  const auto row = out.dtype == DType::bf16 ? HWY_DYNAMIC_DISPATCH(rms_norm_row_bf16)
                                            : HWY_DYNAMIC_DISPATCH(rms_norm_row_f32);
  const float* w = static_cast<const float*>(weight.data);
#pragma omp parallel for num_threads(ctx.n_threads) if (n > 1 && n * d >= kParallelValues)
  for (int64_t t = 0; t < n; ++t) {
    row(x.at<const float>(t), w + t % n_weights * d, eps, d, out.at<void>(t));
  }
}

void layer_norm(const CpuContext& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                float eps, const Tensor& out) {
  const int64_t n = x.shape[0], d = x.shape[1], n_weights = weight.numel() / d;
  const auto row = HWY_DYNAMIC_DISPATCH(layer_norm_row_to);
  const int64_t n_biases = bias ? bias.numel() / d : 1;
  const float* w = static_cast<const float*>(weight.data);
  const float* b = static_cast<const float*>(bias.data);
#pragma omp parallel for num_threads(ctx.n_threads) if (n > 1 && n * d >= kParallelValues)
  for (int64_t t = 0; t < n; ++t) {
    row(x.at<const float>(t), w + t % n_weights * d, b != nullptr ? b + t % n_biases * d : nullptr,
        eps, d, out.at<void>(t), out.dtype);
  }
}

void add(const CpuContext& ctx, const Tensor& x, const Tensor& y, float factor) {
  const int64_t n = x.shape[0], d = x.shape[1];
  const auto row = HWY_DYNAMIC_DISPATCH(add_row);
#pragma omp parallel for num_threads(ctx.n_threads) if (n > 1 && n * d >= kParallelValues)
  for (int64_t t = 0; t < n; ++t) row(x.at<float>(t), y.at<const float>(t), factor, d);
}

void add_rows(const CpuContext& ctx, const Tensor& x, const Tensor& y,
              std::span<const int32_t> rows, std::span<const float> factors) {
  const int64_t n = std::ssize(rows), d = x.shape[1];
  const auto row = HWY_DYNAMIC_DISPATCH(add_row);
#pragma omp parallel for num_threads(ctx.n_threads) if (n > 1 && n * d >= kParallelValues)
  for (int64_t t = 0; t < n; ++t) {
    row(x.at<float>(rows[t]), y.at<const float>(t), factors[t], d);
  }
}

void add_rows_alone(const Tensor& x, const Tensor& y, std::span<const int32_t> rows,
                    std::span<const float> factors) {
  const auto row = HWY_DYNAMIC_DISPATCH(add_row);
  for (int64_t t = 0; t < std::ssize(rows); ++t) {
    row(x.at<float>(rows[t]), y.at<const float>(t), factors[t], x.shape[1]);
  }
}

void scale(const CpuContext& ctx, const Tensor& x, std::span<const float> factors) {
  const int64_t n = x.shape[0], d = x.numel() / n;
  const auto row = HWY_DYNAMIC_DISPATCH(scale_row);
#pragma omp parallel for num_threads(ctx.n_threads) if (n > 1 && n * d >= kParallelValues)
  for (int64_t t = 0; t < n; ++t) {
    row(x.at<float>(t), factors.size() == 1 ? factors[0] : factors[t], d);
  }
}

void scale_rows(const CpuContext& ctx, const Tensor& x, const Tensor& factors) {
  const int64_t n = x.shape[0], d = x.shape[1];
  const auto row = HWY_DYNAMIC_DISPATCH(scale_row);
#pragma omp parallel for num_threads(ctx.n_threads) if (n > 1 && n * d >= kParallelValues)
  for (int64_t t = 0; t < n; ++t) row(x.at<float>(t), *factors.at<const float>(t), d);
}

// Threads share pieces rather than rows, because the logits of one token are one long row.
void softcap(const CpuContext& ctx, const Tensor& x, float cap) {
  constexpr int64_t kPiece = 4096;
  const int64_t n = x.numel();
  const auto row = HWY_DYNAMIC_DISPATCH(softcap_row);
  float* values = static_cast<float*>(x.data);
#pragma omp parallel for num_threads(ctx.n_threads) if (n >= kParallelValues)
  for (int64_t i = 0; i < n; i += kPiece) row(values + i, cap, std::min(kPiece, n - i));
}

void clamp(const CpuContext& ctx, const Tensor& x, float low, float high) {
  constexpr int64_t kPiece = 4096;
  const int64_t n = x.numel();
  const auto row = HWY_DYNAMIC_DISPATCH(clamp_row);
  float* values = static_cast<float*>(x.data);
#pragma omp parallel for num_threads(ctx.n_threads) if (n >= kParallelValues)
  for (int64_t i = 0; i < n; i += kPiece) row(values + i, low, high, std::min(kPiece, n - i));
}

size_t rope_workspace(const CpuContext&, const Tensor& x, std::span<const int32_t>,
                      const RopeFrequencies& frequencies) {
  // cosines and sines of a position, shared by its heads
  return x.shape[0] * 2 * frequencies.inv_freq.size() * sizeof(float);
}

void rope(const CpuContext& ctx, const Tensor& x, std::span<const int32_t> pos,
          const RopeFrequencies& frequencies) {
  const int64_t n = x.shape[0], n_head = x.shape[1];
  const int64_t n_pairs = std::ssize(frequencies.inv_freq);
  const auto head = frequencies.layout == RopeLayout::norm ? HWY_DYNAMIC_DISPATCH(rope_norm_head)
                                                           : HWY_DYNAMIC_DISPATCH(rope_neox_head);
  float* tables = reinterpret_cast<float*>(scratch(rope_workspace(ctx, x, pos, frequencies)));
#pragma omp parallel for num_threads(ctx.n_threads) if (n > 1 && n * n_head * n_pairs * 2 >= \
                                                                     kParallelValues)
  for (int64_t t = 0; t < n; ++t) {
    float* cos_table = tables + t * 2 * n_pairs;
    float* sin_table = cos_table + n_pairs;
    const double p = pos[t];
    for (int64_t i = 0; i < n_pairs; ++i) {
      const double angle = p * frequencies.inv_freq[i];
      cos_table[i] = frequencies.magnitude * static_cast<float>(std::cos(angle));
      sin_table[i] = frequencies.magnitude * static_cast<float>(std::sin(angle));
    }
    for (int64_t h = 0; h < n_head; ++h) head(x.at<float>(t, h), cos_table, sin_table, n_pairs);
  }
}

void xielu(const CpuContext& ctx, const Tensor& x, float alpha_p, float alpha_n, float beta,
           float eps, const Tensor& out) {
  const int64_t n = x.shape[0], d = x.shape[1];
  const auto row = HWY_DYNAMIC_DISPATCH(xielu_row);
#pragma omp parallel for num_threads(ctx.n_threads) if (n > 1 && n * d >= kParallelValues)
  for (int64_t t = 0; t < n; ++t) {
    row(x.at<const float>(t), alpha_p, alpha_n, beta, eps, d, out.at<void>(t), out.dtype);
  }
}

void activate(const CpuContext& ctx, Activation activation, const Tensor& x, const Tensor& factor,
              const Tensor& out) {
  const int64_t n = x.shape[0], d = x.shape[1];
  const auto row = row_of(activation);
#pragma omp parallel for num_threads(ctx.n_threads) if (n > 1 && n * d >= kParallelValues)
  for (int64_t t = 0; t < n; ++t) {
    row(x.at<const void>(t), factor ? factor.at<const void>(t) : nullptr, x.dtype, d,
        out.at<void>(t), out.dtype);
  }
}

}  // namespace snapkv::cpu
#endif  // HWY_ONCE
