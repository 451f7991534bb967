// SPDX-License-Identifier: MIT
// Sums and multiples of a row of f32, compiled once per target. Include only inside the
// foreach_target mechanism.
#include "backend/cpu/target/simd_math-inl.h"

#if defined(SNAPKV_ROW_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SNAPKV_ROW_MATH_INL_H_
#undef SNAPKV_ROW_MATH_INL_H_
#else
#define SNAPKV_ROW_MATH_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {

/// x += factor * y
inline void add_row(float* HWY_RESTRICT x, const float* HWY_RESTRICT y, float factor, int64_t n) {
  const F32 d;
  const int64_t n_lanes = hn::Lanes(d);
  const VF factors = hn::Set(d, factor);
  int64_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes) {
    hn::StoreU(hn::MulAdd(factors, hn::LoadU(d, y + i), hn::LoadU(d, x + i)), d, x + i);
  }
  for (; i < n; ++i) x[i] += factor * y[i];
}

inline void scale_row(float* x, float factor, int64_t n) {
  const F32 d;
  const int64_t n_lanes = hn::Lanes(d);
  const VF factors = hn::Set(d, factor);
  int64_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes) {
    hn::StoreU(hn::Mul(factors, hn::LoadU(d, x + i)), d, x + i);
  }
  for (; i < n; ++i) x[i] *= factor;
}

}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#endif  // toggled for each target
