// SPDX-License-Identifier: MIT
// Op channel_scan (backend/ops.def): a vector of channels along a whole sequence, kChannelTokens
// tokens at a time. A row of the channels' state stays in a register for these tokens, whose
// exponentials do not wait for each other; the sums of S^T C stay in registers for all rows. The
// rows of a vector of channels are copied side by side first, since in the state they lie d values
// apart, where they would drive each other out of the cache. Each token is computed in the same
// order wherever a text is cut. Exponentials, one for each token and value of the state, are most
// of the work: about 13 operations beside 4 others.
#include <omp.h>

#include <algorithm>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/target/highway_targets.h"
#include "backend/cpu/target/scratch.h"

#ifndef SNAPKV_CPU_CHANNEL_SCAN_TYPES
#define SNAPKV_CPU_CHANNEL_SCAN_TYPES

namespace snapkv::cpu {
namespace {

constexpr int kChannelTokens = 4;

/// A thread's memory: rows of a vector of channels, [d_state, lanes].
struct ChannelScratch {
  float *rates, *state;  // rates: times log2(e)
};

}  // namespace
}  // namespace snapkv::cpu
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/rows/channel_scan.cpp"
// foreach_target.h comes before the -inl headers
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "backend/cpu/target/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {
namespace {  // other files have functions of the same names

/// Channels [channel, channel + lanes) of n tokens from token t on. softplus(x) = max(x, 0) + log(1
/// + exp(-|x|)).
template <int n, class D>
HWY_INLINE void scan_tokens(D d, const ChannelScan& s, int64_t t, int64_t channel,
                            const ChannelScratch& memory) {
  using V = hn::Vec<D>;
  const int64_t n_lanes = hn::Lanes(d), d_state = s.d_state();
  const V skip = hn::LoadU(d, s.skip.at<const float>(channel));
  V step[n], update[n], read[n];
  for (int i = 0; i < n; ++i) {
    const V wanted = hn::LoadU(d, s.step.at<const float>(t + i, channel));
    const V x = hn::LoadU(d, s.x.at<const float>(t + i, channel));
    const V rest = hn::Log1p(d, hn::Exp(d, hn::Neg(hn::Abs(wanted))));
    step[i] = hn::Add(hn::Max(wanted, hn::Zero(d)), rest);
    update[i] = hn::Mul(step[i], x);
    read[i] = hn::Mul(skip, x);
  }
  const float* const b = s.b.at<const float>(t);
  const float* const c = s.c.at<const float>(t);
  for (int64_t row = 0; row < d_state; ++row) {
    const V rate = hn::Load(d, memory.rates + row * n_lanes);
    V state = hn::Load(d, memory.state + row * n_lanes);
    V decay[n];
    for (int i = 0; i < n; ++i) decay[i] = exp2_nonpositive(d, hn::Mul(rate, step[i]));
    for (int i = 0; i < n; ++i) {
      const V added = hn::Mul(hn::Set(d, b[i * d_state + row]), update[i]);
      state = hn::MulAdd(decay[i], state, added);
      read[i] = hn::MulAdd(hn::Set(d, c[i * d_state + row]), state, read[i]);
    }
    hn::Store(state, d, memory.state + row * n_lanes);
  }
  for (int i = 0; i < n; ++i) hn::StoreU(read[i], d, s.out.at<float>(t + i, channel));
}

template <class D>
void scan_sequence(D d, const ChannelScan& s, const SequenceRows& rows, int64_t channel,
                   const ChannelScratch& memory) {
  const int64_t n_lanes = hn::Lanes(d), n_channel = s.n_channel(), d_state = s.d_state();
  const auto* const from = static_cast<const float*>(rows.from) + channel;
  auto* const to = static_cast<float*>(rows.to) + channel;
  for (int64_t row = 0; row < d_state; ++row) {
    hn::Store(hn::LoadU(d, from + row * n_channel), d, memory.state + row * n_lanes);
  }
  int64_t t = rows.begin;
  for (; t + kChannelTokens <= rows.end; t += kChannelTokens) {
    scan_tokens<kChannelTokens>(d, s, t, channel, memory);
  }
  for (; t < rows.end; ++t) scan_tokens<1>(d, s, t, channel, memory);
  for (int64_t row = 0; row < d_state; ++row) {
    hn::StoreU(hn::Load(d, memory.state + row * n_lanes), d, to + row * n_channel);
  }
}

template <class D>
void scan_all(D d, const ChannelScan& s, int64_t channel, const ChannelScratch& memory) {
  const int64_t n_lanes = hn::Lanes(d);
  const auto log2_e = hn::Set(d, 1.44269504f);
  for (int64_t row = 0; row < s.d_state(); ++row) {
    const auto rate = hn::LoadU(d, s.rate.at<const float>(row, channel));
    hn::Store(hn::Mul(rate, log2_e), d, memory.rates + row * n_lanes);
  }
  for (const SequenceRows& rows : s.sequences) scan_sequence(d, s, rows, channel, memory);
}

int64_t channels_of_vector() { return static_cast<int64_t>(hn::Lanes(F32())); }

/// Channels [begin, end) of all sequences.
void scan_channels(const ChannelScan& s, int64_t begin, int64_t end, const ChannelScratch& memory) {
  const F32 d;
  const int64_t n_lanes = hn::Lanes(d);
  for (; begin + n_lanes <= end; begin += n_lanes) scan_all(d, s, begin, memory);
  const hn::CappedTag<float, 1> one;
  for (; begin < end; ++begin) scan_all(one, s, begin, memory);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {

HWY_EXPORT(scan_channels);
HWY_EXPORT(channels_of_vector);

namespace {

ChannelScratch take_channel_scratch(ScratchCutter& cutter, int64_t n) {
  ChannelScratch memory;
  memory.rates = cutter.take<float>(n);
  memory.state = cutter.take<float>(n);
  return memory;
}

size_t channel_scratch_bytes(const ChannelScan& s) {
  ScratchCutter cutter(nullptr);
  take_channel_scratch(cutter, s.d_state() * HWY_DYNAMIC_DISPATCH(channels_of_vector)());
  return cutter.used();
}

}  // namespace

size_t channel_scan_workspace(const CpuContext& ctx, const ChannelScan& s) {
  return ctx.n_threads * channel_scratch_bytes(s);
}

// Vectors of channels are shared out to the threads.
void channel_scan(const CpuContext& ctx, const ChannelScan& s) {
  const int64_t n_lanes = HWY_DYNAMIC_DISPATCH(channels_of_vector)(), n = s.n_channel();
  const int64_t n_blocks = (n + n_lanes - 1) / n_lanes;
  const int64_t n_shares = std::min<int64_t>(ctx.n_threads, n_blocks);
  const size_t bytes = channel_scratch_bytes(s);
  char* const memory = scratch(channel_scan_workspace(ctx, s));
  const auto run = HWY_DYNAMIC_DISPATCH(scan_channels);
#pragma omp parallel for num_threads(ctx.n_threads) if (n_shares > 1)
  for (int64_t share = 0; share < n_shares; ++share) {
    ScratchCutter cutter(memory + share * bytes);
    const ChannelScratch mine = take_channel_scratch(cutter, s.d_state() * n_lanes);
    const int64_t begin = share * n_blocks / n_shares * n_lanes;
    run(s, begin, std::min(n, (share + 1) * n_blocks / n_shares * n_lanes), mine);
  }
}

}  // namespace snapkv::cpu
#endif
