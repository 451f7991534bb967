// SPDX-License-Identifier: MIT
// Highway: the steps of decode attention that do not depend on the type of the rows: sums of lanes,
// the softmax of a block, prefetching. Include only inside the foreach_target mechanism.
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "backend/cpu/attention/decode_split.h"
#include "backend/cpu/target/simd_math-inl.h"

#if defined(SNAPKV_DECODE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SNAPKV_DECODE_ROWS_INL_H_
#undef SNAPKV_DECODE_ROWS_INL_H_
#else
#define SNAPKV_DECODE_ROWS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {

// How many query heads and vectors of values are computed at once: as many as the registers hold
// accumulators, operands and broadcasts for.
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kHeads = 4;
constexpr int kVectors = 4;
#else
constexpr int kHeads = 2;
constexpr int kVectors = 4;
#endif

#if HWY_TARGET != HWY_SCALAR
using Quad = hn::Full128<float>;

/// Adds the upper half of the lanes to the lower half until 4 lanes are left.
template <class D>
HWY_INLINE hn::Vec<Quad> fold(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> dh;
    return fold(dh, hn::LowerHalf(dh, v) + hn::UpperHalf(dh, v));
  } else {
    (void)d;
    return v;
  }
}
#endif

/// out[i] = sum of the lanes of v[i], i < 4.
template <class D>
HWY_INLINE void store_sums(D d, const hn::Vec<D> v[4], float* HWY_RESTRICT out) {
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < 4; ++i) hn::StoreU(v[i], d, out + i);
#else
  const Quad dq;
  const hn::RepartitionToWide<Quad> dw;
  const auto a = fold(d, v[0]);
  const auto b = fold(d, v[1]);
  const auto c = fold(d, v[2]);
  const auto e = fold(d, v[3]);
  const auto ab = hn::InterleaveLower(dq, a, b) + hn::InterleaveUpper(dq, a, b);
  const auto ce = hn::InterleaveLower(dq, c, e) + hn::InterleaveUpper(dq, c, e);
  const auto first = hn::InterleaveLower(dw, hn::BitCast(dw, ab), hn::BitCast(dw, ce));
  const auto second = hn::InterleaveUpper(dw, hn::BitCast(dw, ab), hn::BitCast(dw, ce));
  hn::StoreU(hn::BitCast(dq, first) + hn::BitCast(dq, second), dq, out);
#endif
}

#if HWY_TARGET != HWY_SCALAR
/// Same for two sets of 8-lane vectors, with half the steps: each half of a vector adds up one set.
template <class D>
HWY_INLINE void store_sums(D d, const hn::Vec<D> v[4], const hn::Vec<D> w[4],
                           float* HWY_RESTRICT v_out, float* HWY_RESTRICT w_out) {
  static_assert(hn::MaxLanes(D()) == 8);
  const hn::Half<D> dh;
  const hn::RepartitionToWide<D> dw;
  hn::Vec<D> x[4];
  for (int i = 0; i < 4; ++i) {
    x[i] = hn::ConcatUpperLower(d, w[i], v[i]) + hn::ConcatLowerUpper(d, w[i], v[i]);
  }
  const auto a = hn::InterleaveLower(d, x[0], x[1]) + hn::InterleaveUpper(d, x[0], x[1]);
  const auto b = hn::InterleaveLower(d, x[2], x[3]) + hn::InterleaveUpper(d, x[2], x[3]);
  const auto first = hn::InterleaveLower(dw, hn::BitCast(dw, a), hn::BitCast(dw, b));
  const auto second = hn::InterleaveUpper(dw, hn::BitCast(dw, a), hn::BitCast(dw, b));
  const auto sums = hn::BitCast(d, first) + hn::BitCast(d, second);
  hn::StoreU(hn::LowerHalf(dh, sums), dh, v_out);
  hn::StoreU(hn::UpperHalf(dh, sums), dh, w_out);
}
#endif

#if HWY_TARGET <= HWY_AVX3
/// Same for four sets of 16-lane vectors, one per head: each 128-bit block of a vector adds up one
/// set.
template <class D>
HWY_INLINE void store_sums(D d, const hn::Vec<D> v[4][4], float* HWY_RESTRICT out) {
  static_assert(hn::MaxLanes(D()) == 16);
  const hn::RepartitionToWide<D> dw;
  hn::Vec<D> x[4];
  for (int r = 0; r < 4; ++r) {
    const auto even =
        hn::ConcatUpperLower(d, v[2][r], v[0][r]) + hn::ConcatLowerUpper(d, v[2][r], v[0][r]);
    const auto odd =
        hn::ConcatUpperLower(d, v[3][r], v[1][r]) + hn::ConcatLowerUpper(d, v[3][r], v[1][r]);
    x[r] = hn::OddEvenBlocks(odd, even) + hn::SwapAdjacentBlocks(hn::OddEvenBlocks(even, odd));
  }
  const auto a = hn::InterleaveLower(d, x[0], x[1]) + hn::InterleaveUpper(d, x[0], x[1]);
  const auto b = hn::InterleaveLower(d, x[2], x[3]) + hn::InterleaveUpper(d, x[2], x[3]);
  const auto first = hn::InterleaveLower(dw, hn::BitCast(dw, a), hn::BitCast(dw, b));
  const auto second = hn::InterleaveUpper(dw, hn::BitCast(dw, a), hn::BitCast(dw, b));
  const auto sums = hn::BitCast(d, first) + hn::BitCast(d, second);
  alignas(64) float of_heads[16];
  hn::Store(sums, d, of_heads);
  const Quad dq;
  for (int h = 0; h < 4; ++h) {
    hn::StoreU(hn::Load(dq, of_heads + 4 * h), dq, out + h * kScoreStride);
  }
}
#endif

/// scores[h, r] = sum of the lanes of sum[h][r] for H query heads and 4 rows.
template <int H, class D>
HWY_INLINE void store_head_sums(D d, const hn::Vec<D> (&sum)[H][4], float* HWY_RESTRICT scores) {
#if HWY_TARGET <= HWY_AVX3
  if constexpr (H == 4 && hn::MaxLanes(D()) == 16) return store_sums(d, sum, scores);
#endif
  if constexpr (H % 2 == 0 && hn::MaxLanes(D()) == 8) {
    for (int h = 0; h < H; h += 2) {
      float* out = scores + h * kScoreStride;
      store_sums(d, sum[h], sum[h + 1], out, out + kScoreStride);
    }
  } else {
    for (int h = 0; h < H; ++h) store_sums(d, sum[h], scores + h * kScoreStride);
  }
}

/// Prefetches memory that will be read soon; an address beyond the allocation is harmless.
HWY_INLINE void prefetch(const void* begin, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) {
    __builtin_prefetch(static_cast<const char*>(begin) + i, 0, 2);
  }
}

/// Turns scores into probabilities relative to the new maximum, and rescales sum and acc to it.
template <class D>
HWY_INLINE void softmax_block(D d, const DecodeSplit& c, int head, int n) {
  const int lanes = hn::Lanes(d);
  float* HWY_RESTRICT s = c.scores + head * kScoreStride;
  const int end = (n + lanes - 1) / lanes * lanes;
  if (c.softcap > 0.0f) {
    const SoftcapFactors factors(c.softcap);
    for (int j = 0; j < end; j += lanes) {
      hn::StoreU(cap_score(d, hn::LoadU(d, s + j), factors), d, s + j);
    }
  }
  std::fill(s + n, s + end, -std::numeric_limits<float>::infinity());
  auto max = hn::LoadU(d, s);
  for (int j = lanes; j < end; j += lanes) max = hn::Max(max, hn::LoadU(d, s + j));
  OnlineSoftmax block;
  block.max = hn::GetLane(hn::MaxOfLanes(d, max));
  const float common = std::fmax(block.max, c.state[head].max);
  auto sum = hn::Zero(d);
  for (int j = 0; j < end; j += lanes) {
    const auto p = exp2_nonpositive(d, hn::LoadU(d, s + j) - hn::Set(d, common));
    sum = sum + p;
    hn::StoreU(p, d, s + j);
  }
  block.max = common;
  block.sum = hn::GetLane(hn::SumOfLanes(d, sum));
  const float factor = c.state[head].merge(block).self;
  float* acc = c.acc + static_cast<int64_t>(head) * c.value_dim;
  if (factor != 1.0f) {
    for (int i = 0; i < c.value_dim; ++i) acc[i] *= factor;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
