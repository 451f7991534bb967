// SPDX-License-Identifier: MIT
// Ops token_shift and blend (backend/ops.def). Bound by memory: each row is read once for all of
// its mixes, and once more, from the caches, for the next row. Rows are shared out to the threads.
#include <algorithm>
#include <iterator>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/rows/share_rows.h"
#include "backend/cpu/target/highway_targets.h"
#include "backend/cpu/weights/convert.h"
#include "base/half.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/rows/token_shift.cpp"
// foreach_target.h comes before the -inl headers
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "backend/cpu/weights/decode-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {
namespace {  // other files have functions of the same names

/// Values of one row, from value i on, as long as there are whole vectors: out = x + (before - x) *
/// (mix + added). added: null if there is none.
template <class D, typename In, typename Before, typename Out>
HWY_INLINE int64_t shift_values(D d, const In* x, const Before* before, const float* mix,
                                const float* added, int64_t i, int64_t n, Out* out) {
  const int64_t n_lanes = hn::Lanes(d);
  for (; i + n_lanes <= n; i += n_lanes) {
    const auto now = load_f32(d, x + i);
    auto m = hn::LoadU(d, mix + i);
    if (added != nullptr) m = hn::Add(m, hn::LoadU(d, added + i));
    const auto mixed = hn::MulAdd(hn::Sub(load_f32(d, before + i), now), m, now);
    if constexpr (hn::MaxLanes(D()) == 1) {
      out[i] = from_f32<Out>(hn::GetLane(mixed));
    } else {
      store_as(d, mixed, out + i);
    }
  }
  return i;
}

/// All mixes of row t; `before`: the row before it.
template <typename In, typename Before, typename Out>
void shift_row(const TokenShift& s, int64_t t, const Before* before) {
  const int64_t n = s.x.shape[1];
  const auto* const x = static_cast<const In*>(s.x.at<const void>(t));
  for (int64_t i = 0; i < std::ssize(s.outs); ++i) {
    const float* const mix = s.mix.at<const float>(i);
    const float* const added = s.added.empty() ? nullptr : s.added[i].at<const float>(t);
    Out* const out = s.outs[i].at<Out>(t);
    const int64_t done = shift_values(F32(), x, before, mix, added, 0, n, out);
    shift_values(hn::CappedTag<float, 1>(), x, before, mix, added, done, n, out);
  }
}

/// Rows [begin, end) of a sequence.
template <typename In, typename Out>
void shift_rows_as(const TokenShift& s, const SequenceRows& rows, int64_t begin, int64_t end) {
  if (begin == rows.begin) {
    shift_row<In, float, Out>(s, begin++, static_cast<const float*>(rows.from));
  }
  for (; begin < end; ++begin) {
    shift_row<In, In, Out>(s, begin, static_cast<const In*>(s.x.at<const void>(begin - 1)));
  }
}

void shift_rows(const TokenShift& s, const SequenceRows& rows, int64_t begin, int64_t end) {
  using Half = hwy::bfloat16_t;
  const bool to_half = s.outs[0].dtype == DType::bf16;
  if (s.x.dtype == DType::bf16) {
    to_half ? shift_rows_as<Half, bf16_t>(s, rows, begin, end)
            : shift_rows_as<Half, float>(s, rows, begin, end);
  } else {
    to_half ? shift_rows_as<float, bf16_t>(s, rows, begin, end)
            : shift_rows_as<float, float>(s, rows, begin, end);
  }
}

template <class D>
HWY_INLINE int64_t blend_values(D d, const float* y, const float* gates, int64_t i, int64_t n,
                                float* x) {
  const int64_t n_lanes = hn::Lanes(d);
  for (; i + n_lanes <= n; i += n_lanes) {
    const auto from = hn::LoadU(d, x + i), between = hn::Sub(hn::LoadU(d, y + i), from);
    hn::StoreU(hn::MulAdd(between, sigmoid(d, hn::LoadU(d, gates + i)), from), d, x + i);
  }
  return i;
}

/// x += (y - x) * sigmoid(gates)
void blend_row(const float* y, const float* gates, int64_t n, float* x) {
  const int64_t i = blend_values(F32(), y, gates, 0, n, x);
  blend_values(hn::CappedTag<float, 1>(), y, gates, i, n, x);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {

HWY_EXPORT(shift_rows);
HWY_EXPORT(blend_row);

namespace {

/// The last row, which the sequence's next one needs.
void store_last_row(const TokenShift& s, const SequenceRows& rows) {
  const int64_t d = s.x.shape[1];
  auto* const to = static_cast<float*>(rows.to);
  if (s.x.dtype == DType::f32) {
    std::copy_n(s.x.at<const float>(rows.end - 1), d, to);
    return;
  }
  const auto* const last = s.x.at<const bf16_t>(rows.end - 1);
  for (int64_t i = 0; i < d; ++i) to[i] = to_f32(last[i]);
}

}  // namespace

void token_shift(const CpuContext& ctx, const TokenShift& s) {
  const auto run = HWY_DYNAMIC_DISPATCH(shift_rows);
  for (const SequenceRows& rows : s.sequences) {
    share_rows(ctx, rows, s.x.shape[1],
               [&](int64_t begin, int64_t end) { run(s, rows, begin, end); });
    store_last_row(s, rows);
  }
}

void blend(const CpuContext& ctx, const Tensor& x, const Tensor& y, const Tensor& gates) {
  const int64_t n = x.shape[0], d = x.shape[1];
  const auto row = HWY_DYNAMIC_DISPATCH(blend_row);
#pragma omp parallel for num_threads(ctx.n_threads) if (n > 1 && n * d >= kParallelRowValues)
  for (int64_t t = 0; t < n; ++t) {
    row(y.at<const float>(t), gates.at<const float>(t), d, x.at<float>(t));
  }
}

}  // namespace snapkv::cpu
#endif
