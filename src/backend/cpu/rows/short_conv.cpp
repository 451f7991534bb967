// SPDX-License-Identifier: MIT
// Op short_conv: a convolution along each sequence (backend/ops.def). Bound by memory: each row is
// read once for itself and, from the caches, once for each of the next k - 1 rows. Rows are shared
// out to the threads; sums are in f32 in the order of j, the same for any number of threads.
#include <algorithm>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/rows/share_rows.h"
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

constexpr int64_t kChannels = 512;  // whose weights lie in the first-level cache

/// Channels [0, n) of one row, n <= kChannels. Row j of the k inputs is b[j] * x[j], or x[j] where
/// b[j] is null; tap j of channel i has weights[j * kChannels + i]. Sums begin with the biases,
/// unless these are null. Without a gate c, the output is silu of the sum.
template <typename Out, class D>
HWY_INLINE int64_t conv_channels(D d, const float* const* b, const float* const* x, const float* c,
                                 const float* biases, const float* weights, int64_t k, int64_t i,
                                 int64_t n, Out* out) {
  const int64_t n_lanes = hn::Lanes(d);
  for (; i + n_lanes <= n; i += n_lanes) {
    auto sum = biases != nullptr ? hn::LoadU(d, biases + i) : hn::Zero(d);
    for (int64_t j = 0; j < k; ++j) {
      auto y = hn::LoadU(d, x[j] + i);
      if (b[j] != nullptr) y = hn::Mul(y, hn::LoadU(d, b[j] + i));
      sum = hn::MulAdd(hn::LoadU(d, weights + j * kChannels + i), y, sum);
    }
    sum = hn::Mul(sum, c != nullptr ? hn::LoadU(d, c + i) : sigmoid(d, sum));
    if constexpr (hn::MaxLanes(D()) == 1) {
      out[i] = from_f32<Out>(hn::GetLane(sum));
    } else {
      store_as(d, sum, out + i);
    }
  }
  return i;
}

template <typename Out>
void conv_piece(const float* const* b, const float* const* x, const float* c, const float* biases,
                const float* weights, int64_t k, int64_t n, Out* out) {
  const int64_t i = conv_channels(F32(), b, x, c, biases, weights, k, 0, n, out);
  conv_channels(hn::CappedTag<float, 1>(), b, x, c, biases, weights, k, i, n, out);
}

/// to[j * kChannels + i] = taps[i * k + j] of n channels.
void transpose_taps(const float* HWY_RESTRICT taps, int64_t k, int64_t n, float* HWY_RESTRICT to) {
  const F32 d;
  const int64_t n_lanes = hn::Lanes(d);
  int64_t i = 0;
  for (; k == 3 && i + n_lanes <= n; i += n_lanes) {
    VF a, b, c;
    hn::LoadInterleaved3(d, taps + i * k, a, b, c);
    hn::StoreU(a, d, to + i);
    hn::StoreU(b, d, to + kChannels + i);
    hn::StoreU(c, d, to + 2 * kChannels + i);
  }
  for (; k == 4 && i + n_lanes <= n; i += n_lanes) {
    VF a, b, c, e;
    hn::LoadInterleaved4(d, taps + i * k, a, b, c, e);
    hn::StoreU(a, d, to + i);
    hn::StoreU(b, d, to + kChannels + i);
    hn::StoreU(c, d, to + 2 * kChannels + i);
    hn::StoreU(e, d, to + 3 * kChannels + i);
  }
  for (; i < n; ++i) {
    for (int64_t j = 0; j < k; ++j) to[j * kChannels + i] = taps[i * k + j];
  }
}

/// Channels [at, at + n) of row t of a sequence.
void conv_row(const ShortConv& c, const SequenceRows& rows, int64_t t, int64_t at, int64_t n,
              const float* weights) {
  const int64_t d = c.weight.shape[0], k = c.weight.shape[1];
  const bool gates = c.in.shape[1] == 3;
  const float *b[kMostTaps], *x[kMostTaps];
  for (int64_t j = 0; j < k; ++j) {
    const int64_t row = t - (k - 1) + j;
    const bool before = row < rows.begin;
    b[j] = before || !gates ? nullptr : c.in.at<const float>(row, 0) + at;
    x[j] = before ? static_cast<const float*>(rows.from) + (row - rows.begin + k - 1) * d + at
                  : c.in.at<const float>(row, gates ? 2 : 0) + at;
  }
  const float* const gate = gates ? c.in.at<const float>(t, 1) + at : nullptr;
  const float* const biases = c.bias ? c.bias.at<const float>(at) : nullptr;
  if (c.out.dtype == DType::bf16) {
    conv_piece(b, x, gate, biases, weights, k, n, c.out.at<bf16_t>(t) + at);
  } else {
    conv_piece(b, x, gate, biases, weights, k, n, c.out.at<float>(t) + at);
  }
}

/// Rows [begin, end) of a sequence.
void conv_rows(const ShortConv& c, const SequenceRows& rows, int64_t begin, int64_t end) {
  const int64_t d = c.weight.shape[0], k = c.weight.shape[1];
  HWY_ALIGN float weights[kMostTaps * kChannels];
  for (int64_t at = 0; at < d; at += kChannels) {
    const int64_t n = std::min(kChannels, d - at);
    transpose_taps(c.weight.at<const float>(at), k, n, weights);
    for (int64_t t = begin; t < end; ++t) conv_row(c, rows, t, at, n, weights);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {

HWY_EXPORT(conv_rows);

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
  const auto conv = HWY_DYNAMIC_DISPATCH(conv_rows);
  for (const SequenceRows& rows : c.sequences) {
    share_rows(ctx, rows, c.weight.shape[0],
               [&](int64_t begin, int64_t end) { conv(c, rows, begin, end); });
    store_state(c, rows);
  }
}

}  // namespace snapkv::cpu
#endif
