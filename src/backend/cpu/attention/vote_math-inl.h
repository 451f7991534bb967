// SPDX-License-Identifier: MIT
// What both ways to compute votes do with a row of scores. Compiled once per target: include it
// after <hwy/highway.h>, as Highway's own -inl headers.
#if defined(SNAPKV_VOTE_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SNAPKV_VOTE_MATH_INL_H_
#undef SNAPKV_VOTE_MATH_INL_H_
#else
#define SNAPKV_VOTE_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "backend/cpu/attention/online_softmax.h"
#include "backend/cpu/target/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {

/// max and sum of 2^(s - max) over s[0, n); overwrites what follows, up to a whole vector, with
/// -inf.
HWY_INLINE void summarize(float* HWY_RESTRICT s, int n, OnlineSoftmax& out) {
  const F32 d;
  const int lanes = hn::Lanes(d);
  const int end = (n + lanes - 1) / lanes * lanes;
  out.init();
  if (n <= 0) return;
  std::fill(s + n, s + end, -std::numeric_limits<float>::infinity());
  auto max = hn::LoadU(d, s);
  for (int j = lanes; j < end; j += lanes) max = hn::Max(max, hn::LoadU(d, s + j));
  out.max = hn::GetLane(hn::MaxOfLanes(d, max));
  auto sum = hn::Zero(d);
  for (int j = 0; j < end; j += lanes) {
    sum = sum + exp2_nonpositive(d, hn::LoadU(d, s + j) - hn::Set(d, out.max));
  }
  out.sum = hn::GetLane(hn::SumOfLanes(d, sum));
}

}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
