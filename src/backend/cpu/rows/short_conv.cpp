// SPDX-License-Identifier: MIT
// Op short_conv: a convolution along each sequence (backend/ops.def). Bound by memory: each
// row is read once for itself and, from the caches, once for each of the next k - 1 rows. Rows are
// shared out to the threads; sums are in f32 in the order of j, the same for any number of threads.
#include <algorithm>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/target/highway_targets.h"
#include "backend/cpu/weights/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/rows/short_conv.cpp"
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

constexpr int64_t kPiece = 1024;  // channels whose sums are in the caches

/// Channels [0, n) of one row, n <= kPiece. Row j of the k inputs is b[j] * x[j], or x[j] where
/// b[j] is null; without a gate c, the output is silu of the sum.
template <typename Out>
void conv_piece(const float* const* b, const float* const* x, const float* c, const float* weights,
                int64_t k, int64_t n, Out* out) {
  HWY_ALIGN float sums[kPiece] = {};
  for (int64_t j = 0; j < k; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      const float y = b[j] != nullptr ? b[j][i] * x[j][i] : x[j][i];
      sums[i] += weights[i * k + j] * y;
    }
  }
  const F32 d;
  const int64_t n_lanes = hn::Lanes(d);
  int64_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes) {
    const VF sum = hn::Load(d, sums + i);
    store_as(d, hn::Mul(c != nullptr ? hn::LoadU(d, c + i) : sigmoid(d, sum), sum), out + i);
  }
  const hn::CappedTag<float, 1> one;
  for (; i < n; ++i) {
    const float gate = c != nullptr ? c[i] : hn::GetLane(sigmoid(one, hn::Set(one, sums[i])));
    out[i] = from_f32<Out>(gate * sums[i]);
  }
}

/// Row t of a sequence.
void conv_row(const ShortConv& c, const SequenceRows& rows, int64_t t) {
  const int64_t d = c.weight.shape[0], k = c.weight.shape[1];
  const bool gates = c.in.shape[1] == 3;
  const float *b[kMostTaps], *x[kMostTaps];
  for (int64_t at = 0; at < d; at += kPiece) {
    const int64_t n = std::min(kPiece, d - at);
    for (int64_t j = 0; j < k; ++j) {
      const int64_t row = t - (k - 1) + j;
      const bool before = row < rows.begin;
      b[j] = before || !gates ? nullptr : c.in.at<const float>(row, 0) + at;
      x[j] = before ? static_cast<const float*>(rows.from) + (row - rows.begin + k - 1) * d + at
                    : c.in.at<const float>(row, gates ? 2 : 0) + at;
    }
    const float* const gate = gates ? c.in.at<const float>(t, 1) + at : nullptr;
    const float* const weights = c.weight.at<const float>(at);
    if (c.out.dtype == DType::bf16) {
      conv_piece(b, x, gate, weights, k, n, c.out.at<bf16_t>(t) + at);
    } else {
      conv_piece(b, x, gate, weights, k, n, c.out.at<float>(t) + at);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {

HWY_EXPORT(conv_row);

namespace {

/// The last k - 1 inputs, which the sequence's next rows need.
void store_state(const ShortConv& c, const SequenceRows& rows) {
  const int64_t d = c.weight.shape[0], n_before = c.weight.shape[1] - 1;
  const bool gates = c.in.shape[1] == 3;
  for (int64_t j = 0; j < n_before; ++j) {
    const int64_t row = rows.end - n_before + j;
    float* const to = static_cast<float*>(rows.to) + j * d;
    if (row < rows.begin) {
      const float* from = static_cast<const float*>(rows.from) + (row - rows.begin + n_before) * d;
      std::copy(from, from + d, to);
      continue;
    }
    const float* const b = c.in.at<const float>(row, 0);
    if (!gates) {
      std::copy_n(b, d, to);
      continue;
    }
    const float* const x = c.in.at<const float>(row, 2);
    for (int64_t i = 0; i < d; ++i) to[i] = b[i] * x[i];
  }
}

}  // namespace

void short_conv(const CpuContext& ctx, const ShortConv& c) {
  constexpr int64_t kParallelValues = 16 * 1024;  // as in rowwise.cpp
  const int64_t d = c.weight.shape[0];
  const auto row = HWY_DYNAMIC_DISPATCH(conv_row);
  for (const SequenceRows& rows : c.sequences) {
    const int64_t n = rows.end - rows.begin;
#pragma omp parallel for num_threads(ctx.n_threads) if (n > 1 && n * d >= kParallelValues)
    for (int64_t t = rows.begin; t < rows.end; ++t) row(c, rows, t);
    store_state(c, rows);
  }
}

}  // namespace snapkv::cpu
#endif
