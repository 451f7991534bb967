// SPDX-License-Identifier: MIT
// Highway helpers of the attention and selection kernels, compiled once per target: loads that
// widen to f32, bf16 rounding, 4x4 transposes, 2^x. Include only inside the foreach_target
// mechanism.
#include <hwy/highway.h>
#include <hwy/contrib/math/math-inl.h>

#include <cstdint>

#include "backend/cpu/attention/attention_tile.h"

#if defined(SNAPKV_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SNAPKV_SIMD_MATH_INL_H_
#undef SNAPKV_SIMD_MATH_INL_H_
#else
#define SNAPKV_SIMD_MATH_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The kernels' vectors: at most 16 lanes, so that padding to 16 values suits any target.
using F32 = hn::CappedTag<float, 16>;
using VF = hn::Vec<F32>;

template <class D>
HWY_INLINE hn::Vec<D> load_f32(D d, const float* p) {
  return hn::LoadU(d, p);
}
/// 1 / (1 + exp(-x)). With e = exp(-|x|) in (0, 1] nothing overflows: 1 / (1 + e) for x >= 0, e / (1 +
/// e) below. Highway's Exp is within 1 ulp.
template <class D>
HWY_INLINE hn::Vec<D> sigmoid(D d, hn::Vec<D> x) {
  const auto one = hn::Set(d, 1.0f);
  const auto e = hn::Exp(d, hn::Neg(hn::Abs(x)));
  const auto numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
  return hn::Div(numerator, hn::Add(one, e));
}
/// Converts f16 values, given as bits, to f32. Only these targets have an instruction for it.
/// Highway's emulation treats infinities and NaN as large numbers, so they are set here.
template <class D>
HWY_INLINE hn::Vec<D> promote_f16(D d, hn::Vec<hn::Rebind<uint16_t, D>> bits) {
  const hn::Rebind<hwy::float16_t, D> dh;
  const auto x = hn::PromoteTo(d, hn::BitCast(dh, bits));
#if HWY_TARGET <= HWY_AVX2 || HWY_TARGET == HWY_NEON
  return x;
#else
  const hn::Rebind<uint32_t, D> du;
  const auto wide = hn::PromoteTo(du, bits);
  const auto exponent = hn::Set(du, 0x7c00u), mantissa = hn::Set(du, 0x3ffu);
  const auto is_special = hn::RebindMask(d, hn::Eq(hn::And(wide, exponent), exponent));
  const auto special = hn::Or(hn::Set(du, 0x7f800000u), hn::ShiftLeft<13>(hn::And(wide, mantissa)));
  return hn::IfThenElse(is_special, hn::CopySign(hn::BitCast(d, special), x), x);
#endif
}
template <class D>
HWY_INLINE hn::Vec<D> load_f32(D d, const hwy::float16_t* p) {
  const hn::Rebind<uint16_t, D> du;
  return promote_f16(d, hn::LoadU(du, reinterpret_cast<const uint16_t*>(p)));
}
template <class D>
HWY_INLINE hn::Vec<D> load_f32(D d, const hwy::bfloat16_t* p) {
  // a bf16 is the upper half of an f32
  const hn::Rebind<uint32_t, D> du;
  const hn::Rebind<uint16_t, D> dh;
  const auto bits = hn::PromoteTo(du, hn::LoadU(dh, reinterpret_cast<const uint16_t*>(p)));
  return hn::BitCast(d, hn::ShiftLeft<16>(bits));
}

/// Rounds to the nearest bf16 (ties to even), as f32; NaN stays NaN.
template <class D>
HWY_INLINE hn::Vec<D> round_bf16(D d, hn::Vec<D> x) {
  const hn::Rebind<uint32_t, D> du;
  const auto u = hn::BitCast(du, x);
  const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(du, 1u));
  const auto rounded = hn::And(u + hn::Set(du, 0x7fffu) + odd, hn::Set(du, 0xffff0000u));
  const auto quiet = hn::Or(hn::And(u, hn::Set(du, 0xffff0000u)), hn::Set(du, 0x00400000u));
  return hn::IfThenElse(hn::IsNaN(x), hn::BitCast(d, quiet), hn::BitCast(d, rounded));
}

#if HWY_TARGET != HWY_SCALAR
/// dst[i * stride + r] = lane i of row r, for 4 rows of 4 lanes of 32 bits.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void store_transposed_4x4(D d, V r0, V r1, V r2, V r3, hn::TFromD<D>* HWY_RESTRICT dst,
                                     int64_t stride) {
  const hn::RepartitionToWide<D> dw;
  const auto r01_low = hn::BitCast(dw, hn::InterleaveLower(d, r0, r1));  // 00 10 | 01 11
  const auto r01_high = hn::BitCast(dw, hn::InterleaveUpper(d, r0, r1));
  const auto r23_low = hn::BitCast(dw, hn::InterleaveLower(d, r2, r3));
  const auto r23_high = hn::BitCast(dw, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dw, r01_low, r23_low)), d, dst);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dw, r01_low, r23_low)), d, dst + stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dw, r01_high, r23_high)), d, dst + 2 * stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dw, r01_high, r23_high)), d, dst + 3 * stride);
}
#endif

/// 2^x for x <= 0, relative error below 1.5e-7; 0 for x < -127 and for -inf; NaN for NaN.
/// 2^x = 2^n * 2^f, n = round(x), f in [-1/2, 1/2]; the polynomial is the minimax one of degree 6
/// with value 1 at 0. Adding 1.5 * 2^23 leaves round(x) in the low bits of the sum.
template <class D>
HWY_INLINE hn::Vec<D> exp2_nonpositive(D d, hn::Vec<D> x) {
  const hn::Rebind<int32_t, D> di;
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  x = hn::Max(hn::Set(d, -127.0f), x);  // in this order, which keeps a NaN
#else  // where Max drops it
  x = hn::IfThenElse(hn::Lt(x, hn::Set(d, -127.0f)), hn::Set(d, -127.0f), x);
#endif
  const auto shifted = x + hn::Set(d, 12582912.0f);
  const auto f = x - (shifted - hn::Set(d, 12582912.0f));
  auto p = hn::Set(d, 1.559467547e-4f);
  p = hn::MulAdd(p, f, hn::Set(d, 1.340664390e-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 9.617692975e-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 5.550310551e-2f));
  p = hn::MulAdd(p, f, hn::Set(d, 2.402265278e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 6.931472150e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
  // n = -127 gives exponent field 0: at most a denormal, which counts as 0 here
  const auto n = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  return hn::BitCast(d, hn::BitCast(di, p) + n);
}

/// Caps scores in log2 units: see SoftcapFactors in attention_tile.h.
template <class D>
HWY_INLINE hn::Vec<D> cap_score(D d, hn::Vec<D> s, SoftcapFactors f) {
  const auto magnitude = hn::Abs(s), one = hn::Set(d, 1.0f);
  const auto e = exp2_nonpositive(d, magnitude * hn::Set(d, f.exponent));
  const auto large = hn::Set(d, f.amplitude) * ((one - e) / (one + e));
  const auto t = magnitude * hn::Set(d, f.inverse), t2 = t * t;
  auto series = hn::Set(d, f.kSeries[0]);
  for (int i = 1; i < 4; ++i) series = hn::MulAdd(series, t2, hn::Set(d, f.kSeries[i]));
  const auto is_small = hn::Lt(t, hn::Set(d, f.kSmall));  // false for NaN
  return hn::CopySign(hn::IfThenElse(is_small, magnitude * series, large), s);
}

}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
