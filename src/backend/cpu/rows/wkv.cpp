// SPDX-License-Identifier: MIT
// Op wkv (backend/ops.def), token by token. With S the state before a token, every rule is
//   held = S^T z
//   out = S^T q + from_held * held + from_value * v
//   S = diag(w) S + m held^T + k v^T
// where the vectors q, z, m, w and k belong to the head and the token, and z and m are of rwkv7
// alone. What a rule reads from the state after the token is read from the one before it, with the
// token's own part added: q = w * r.
//
// Columns of the state do not depend on each other: a block of them is a few vectors wide. Its sums
// held and out stay in registers while the rows of S pass by, and the pass that changes S for a
// token also reads the next token's sums from it: each value of S is loaded and stored once for
// each token, for five multiplications and additions. A head's state (16 KiB at d = 64) stays in
// the first-level cache. Chunks of tokens, as in delta_rule.cpp, would save loads, but these are
// not what limits it, and four kinds of products between the tokens of a chunk would come in
// addition.
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/target/highway_targets.h"
#include "backend/cpu/target/scratch.h"

#ifndef SNAPKV_CPU_WKV_TYPES
#define SNAPKV_CPU_WKV_TYPES

namespace snapkv::cpu {
namespace {

constexpr int kWkvTokens = 8;  // tokens whose vectors are prepared at a time

/// A token of one head: vectors of d values, and two factors.
struct WkvToken {
  float *q, *z, *m, *w, *k;
  float from_held, from_value;
};

}  // namespace
}  // namespace snapkv::cpu
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/rows/wkv.cpp"
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

/// Vectors of a block of columns: with their sums, 5 times as many registers, and 5 for a row's
/// factors.
constexpr int kWkvVectors = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM ? 4 : 2;

/// Where a token's vectors are computed from.
struct WkvRow {
  const float *r, *decay, *k, *rate, *bonus, *removal, *replacement;
};

/// The sums of a token's vectors, which become its factors.
struct WkvSums {
  float squares = 0.0f;  // of removal * k
  float own = 0.0f;      // k' . r
  float bonus = 0.0f;    // (bonus * k') . r
  float removed = 0.0f;  // m . r
};

template <class D>
HWY_INLINE float wkv_sum(D d, hn::Vec<D> v) {
  return hn::GetLane(hn::SumOfLanes(d, v));
}

/// -log of a decay. Above 8 the decay is 0 in f32, and Highway's Exp is wrong above 104.
template <WkvRule rule, class D>
HWY_INLINE hn::Vec<D> forgetting(D d, hn::Vec<D> x) {
  if constexpr (rule == WkvRule::rwkv7) {
    return hn::Mul(hn::Set(d, 0.60653066f), sigmoid(d, x));  // exp(-1/2)
  } else {
    const auto most = hn::Set(d, 8.0f);
    return hn::Exp(d, hn::IfThenElse(hn::Gt(x, most), most, x));  // NaN stays
  }
}

/// Values from i on, whole vectors; z is not of length 1 yet.
template <WkvRule rule, class D>
HWY_INLINE int64_t begin_values(D d, const WkvRow& row, int64_t i, int64_t n, WkvSums& sums,
                                const WkvToken& to) {
  const int64_t n_lanes = hn::Lanes(d);
  const auto one = hn::Set(d, 1.0f);
  auto squares = hn::Zero(d), own = squares, bonus = squares;
  const int64_t begin = i;
  for (; i + n_lanes <= n; i += n_lanes) {
    const auto r = hn::LoadU(d, row.r + i), x = hn::LoadU(d, row.decay + i);
    auto k = hn::LoadU(d, row.k + i);
    const auto w = hn::Exp(d, hn::Neg(forgetting<rule>(d, x)));
    if constexpr (rule == WkvRule::gated) k = hn::NegMulAdd(k, w, k);
    if constexpr (rule == WkvRule::rwkv7) {
      const auto a = sigmoid(d, hn::LoadU(d, row.rate + i));
      const auto z = hn::Mul(hn::LoadU(d, row.removal + i), k);
      squares = hn::MulAdd(z, z, squares);
      hn::StoreU(z, d, to.z + i);
      hn::StoreU(a, d, to.m + i);
      const auto boost = hn::Mul(hn::Sub(a, one), hn::LoadU(d, row.replacement + i));
      k = hn::MulAdd(k, boost, k);
    }
    const auto shown = hn::Mul(k, r);
    own = hn::Add(own, shown);
    if constexpr (rule != WkvRule::gated) {
      bonus = hn::MulAdd(hn::LoadU(d, row.bonus + i), shown, bonus);
    }
    hn::StoreU(w, d, to.w + i);
    hn::StoreU(k, d, to.k + i);
    hn::StoreU(rule == WkvRule::rwkv6 ? r : hn::Mul(w, r), d, to.q + i);
  }
  if (i == begin) return i;
  sums.squares += wkv_sum(d, squares);
  sums.own += wkv_sum(d, own);
  sums.bonus += wkv_sum(d, bonus);
  return i;
}

/// rwkv7: z and m of the right length. m holds the rates.
template <class D>
HWY_INLINE int64_t finish_values(D d, const float* r, float inverse, int64_t i, int64_t n,
                                 WkvSums& sums, const WkvToken& to) {
  const int64_t n_lanes = hn::Lanes(d);
  const auto factor = hn::Set(d, inverse);
  auto removed = hn::Zero(d);
  const int64_t begin = i;
  for (; i + n_lanes <= n; i += n_lanes) {
    const auto z = hn::Mul(hn::LoadU(d, to.z + i), factor);
    const auto m = hn::Neg(hn::Mul(hn::LoadU(d, to.m + i), z));
    removed = hn::MulAdd(m, hn::LoadU(d, r + i), removed);
    hn::StoreU(z, d, to.z + i);
    hn::StoreU(m, d, to.m + i);
  }
  if (i > begin) sums.removed += wkv_sum(d, removed);
  return i;
}

/// Returns rwkv7's share.
template <WkvRule rule>
float prepare_token(const Wkv& w, int64_t head, int64_t t, WkvToken& to) {
  const int64_t d = w.d(), at = head * d, key_at = w.key_head(head) * d;
  const auto weight = [at](const Tensor& values) {
    return values ? values.at<const float>(at) : nullptr;
  };
  const WkvRow row = {.r = w.r.at<const float>(t, at),
                      .decay = w.decay.at<const float>(t, at),
                      .k = w.k.at<const float>(t, key_at),
                      .rate = rule == WkvRule::rwkv7 ? w.rate.at<const float>(t, at) : nullptr,
                      .bonus = weight(w.bonus),
                      .removal = weight(w.removal),
                      .replacement = weight(w.replacement)};
  const hn::CappedTag<float, 1> one;
  WkvSums sums;
  const int64_t i = begin_values<rule>(F32(), row, 0, d, sums, to);
  begin_values<rule>(one, row, i, d, sums, to);
  to.from_held = 0.0f;
  to.from_value = rule == WkvRule::rwkv6 ? sums.bonus : sums.own;
  if constexpr (rule == WkvRule::gated) {
    const float scale = 1.0f / std::sqrt(static_cast<float>(d));
    to.from_value *= scale;
    for (int64_t j = 0; j < d; ++j) to.q[j] *= scale;
  }
  if constexpr (rule == WkvRule::rwkv7) {
    const float inverse = 1.0f / std::max(std::sqrt(sums.squares), kLeastKeyLength);
    const int64_t done = finish_values(F32(), row.r, inverse, 0, d, sums, to);
    finish_values(one, row.r, inverse, done, d, sums, to);
    to.from_held = sums.removed;
  }
  return sums.bonus;
}

/// Adds what a token reads from row `row` of the state, s.
template <bool kRemoves, int kVectors, class D, class V>
HWY_INLINE void read_row(D d, const WkvToken& token, int64_t row, const V* s, V* held, V* read) {
  const auto q = hn::Set(d, token.q[row]);
  for (int c = 0; c < kVectors; ++c) read[c] = hn::MulAdd(q, s[c], read[c]);
  if constexpr (kRemoves) {
    const auto z = hn::Set(d, token.z[row]);
    for (int c = 0; c < kVectors; ++c) held[c] = hn::MulAdd(z, s[c], held[c]);
  }
}

/// Changes the state for a token, and with kReadsNext reads from it for the next one, into held and
/// read. value: of the columns; from, to: the state's rows, n_row values apart.
template <bool kRemoves, bool kReadsNext, int kVectors, class D>
HWY_INLINE void change_state(D d, const WkvToken& token, const WkvToken& next, int64_t n_row,
                             const hn::Vec<D>* value, const float* from, float* to,
                             hn::Vec<D>* held, hn::Vec<D>* read) {
  using V = hn::Vec<D>;
  const int64_t n_lanes = hn::Lanes(d);
  const float *const w = token.w, *const k = token.k, *const m = token.m;
  const float *const q = next.q, *const z = next.z;
  V read_sum[kVectors], held_sum[kVectors];
  for (int c = 0; c < kVectors; ++c) read_sum[c] = held_sum[c] = hn::Zero(d);
  for (int64_t row = 0; row < n_row; ++row) {
    const V decay = hn::Set(d, w[row]), key = hn::Set(d, k[row]);
    V s[kVectors];
    for (int c = 0; c < kVectors; ++c) {
      s[c] = hn::Mul(decay, hn::LoadU(d, from + row * n_row + c * n_lanes));
    }
    for (int c = 0; c < kVectors; ++c) s[c] = hn::MulAdd(key, value[c], s[c]);
    if constexpr (kRemoves) {
      const V removed = hn::Set(d, m[row]);
      for (int c = 0; c < kVectors; ++c) s[c] = hn::MulAdd(removed, held[c], s[c]);
    }
    for (int c = 0; c < kVectors; ++c) hn::StoreU(s[c], d, to + row * n_row + c * n_lanes);
    if constexpr (kReadsNext) {
      const V query = hn::Set(d, q[row]);
      for (int c = 0; c < kVectors; ++c) read_sum[c] = hn::MulAdd(query, s[c], read_sum[c]);
      if constexpr (kRemoves) {
        const V removal = hn::Set(d, z[row]);
        for (int c = 0; c < kVectors; ++c) held_sum[c] = hn::MulAdd(removal, s[c], held_sum[c]);
      }
    }
  }
  for (int c = 0; c < kVectors; ++c) {
    read[c] = read_sum[c];
    held[c] = held_sum[c];
  }
}

/// Columns [0, kVectors * lanes) of `n` tokens of a head. v, out: of the first token, whose next
/// ones are v_stride and out_stride values away; from, to: the state's rows, n_row values apart.
template <bool kRemoves, int kVectors, class D>
HWY_INLINE void run_tokens(D d, const WkvToken* tokens, int n, int64_t n_row, const float* v,
                           int64_t v_stride, const float* from, float* to, float* out,
                           int64_t out_stride) {
  using V = hn::Vec<D>;
  const int64_t n_lanes = hn::Lanes(d);
  V held[kVectors], read[kVectors];  // what the next token reads from the state
  for (int c = 0; c < kVectors; ++c) held[c] = read[c] = hn::Zero(d);
  for (int64_t row = 0; row < n_row; ++row) {
    V s[kVectors];
    for (int c = 0; c < kVectors; ++c) s[c] = hn::LoadU(d, from + row * n_row + c * n_lanes);
    read_row<kRemoves, kVectors>(d, tokens[0], row, s, held, read);
  }
  for (int t = 0; t < n; ++t) {
    const WkvToken& token = tokens[t];
    V value[kVectors];
    for (int c = 0; c < kVectors; ++c) {
      value[c] = hn::LoadU(d, v + t * v_stride + c * n_lanes);
      V result = hn::MulAdd(hn::Set(d, token.from_value), value[c], read[c]);
      if constexpr (kRemoves) result = hn::MulAdd(hn::Set(d, token.from_held), held[c], result);
      hn::StoreU(result, d, out + t * out_stride + c * n_lanes);
    }
    if (t + 1 < n) {
      change_state<kRemoves, true, kVectors>(d, token, tokens[t + 1], n_row, value, from, to, held,
                                             read);
    } else {
      change_state<kRemoves, false, kVectors>(d, token, token, n_row, value, from, to, held, read);
    }
    from = to;
  }
}

/// Columns [begin, end) of a head along a sequence's tokens [t, t + n).
template <bool kRemoves>
void run_head_columns(const Wkv& w, int64_t head, const WkvToken* tokens, int64_t t, int n,
                      int64_t begin, int64_t end, const float* from, float* to) {
  const F32 d;
  const hn::CappedTag<float, 1> one;
  const int64_t n_lanes = hn::Lanes(d), wide = kWkvVectors * n_lanes, n_row = w.d();
  const int64_t v_stride = w.v.shape[1], out_stride = w.n_head() * n_row;
  const float* const v = w.v.at<const float>(t, w.key_head(head) * n_row);
  float* const out = w.out.at<float>(t, head);
  int64_t c = begin;
  for (; c + wide <= end; c += wide) {
    run_tokens<kRemoves, kWkvVectors>(d, tokens, n, n_row, v + c, v_stride, from + c, to + c,
                                      out + c, out_stride);
  }
  for (; c + n_lanes <= end; c += n_lanes) {
    run_tokens<kRemoves, 1>(d, tokens, n, n_row, v + c, v_stride, from + c, to + c, out + c,
                            out_stride);
  }
  for (; c < end; ++c) {
    run_tokens<kRemoves, 1>(one, tokens, n, n_row, v + c, v_stride, from + c, to + c, out + c,
                            out_stride);
  }
}

template <WkvRule rule>
void run_rule(const Wkv& w, int64_t head, int64_t begin, int64_t end, WkvToken* tokens) {
  const int64_t to_state = head * w.d() * w.d();
  for (const SequenceRows& rows : w.sequences) {
    const float* from = static_cast<const float*>(rows.from) + to_state;
    float* const to = static_cast<float*>(rows.to) + to_state;
    for (int64_t t = rows.begin; t < rows.end; t += kWkvTokens) {
      const int n = static_cast<int>(std::min<int64_t>(kWkvTokens, rows.end - t));
      for (int i = 0; i < n; ++i) {
        const float share = prepare_token<rule>(w, head, t + i, tokens[i]);
        if (rule == WkvRule::rwkv7 && begin == 0) *w.shares.at<float>(t + i, head) = share;
      }
      run_head_columns<rule == WkvRule::rwkv7>(w, head, tokens, t, n, begin, end, from, to);
      from = to;
    }
  }
}

/// Columns [begin, end) of a head, along all sequences.
void run_wkv_columns(const Wkv& w, int64_t head, int64_t begin, int64_t end, WkvToken* tokens) {
  switch (w.rule) {
    case WkvRule::rwkv6:
      return run_rule<WkvRule::rwkv6>(w, head, begin, end, tokens);
    case WkvRule::gated:
      return run_rule<WkvRule::gated>(w, head, begin, end, tokens);
    case WkvRule::rwkv7:
      return run_rule<WkvRule::rwkv7>(w, head, begin, end, tokens);
  }
}

int64_t columns_of_wkv_block() { return kWkvVectors * static_cast<int64_t>(hn::Lanes(F32())); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {

HWY_EXPORT(run_wkv_columns);
HWY_EXPORT(columns_of_wkv_block);

namespace {

/// The vectors of kWkvTokens tokens, side by side.
WkvToken* take_wkv_tokens(ScratchCutter& cutter, int64_t d) {
  auto* const tokens = cutter.take<WkvToken>(kWkvTokens);
  float* values = cutter.take<float>(kWkvTokens * 5 * d);
  for (int i = 0; values != nullptr && tokens != nullptr && i < kWkvTokens; ++i) {
    tokens[i] = {values, values + d, values + 2 * d, values + 3 * d, values + 4 * d, 0.0f, 0.0f};
    values += 5 * d;
  }
  return tokens;
}

size_t wkv_scratch_bytes(int64_t d) {
  ScratchCutter cutter(nullptr);
  cutter.take<WkvToken>(kWkvTokens);
  cutter.take<float>(kWkvTokens * 5 * d);
  return cutter.used();
}

}  // namespace

size_t wkv_workspace(const CpuContext& ctx, const Wkv& w) {
  return ctx.n_threads * wkv_scratch_bytes(w.d());
}

// Heads are shared out to the threads, or parts of them if there are few.
void wkv(const CpuContext& ctx, const Wkv& w) {
  const int64_t wide = HWY_DYNAMIC_DISPATCH(columns_of_wkv_block)(), d = w.d();
  const int64_t n_blocks = (d + wide - 1) / wide;
  const int64_t most_parts = (ctx.n_threads + w.n_head() - 1) / w.n_head();
  const int64_t n_parts = std::clamp<int64_t>(most_parts, 1, n_blocks);
  const size_t bytes = wkv_scratch_bytes(d);
  char* const memory = scratch(wkv_workspace(ctx, w));
  const auto run = HWY_DYNAMIC_DISPATCH(run_wkv_columns);
#pragma omp parallel for num_threads(ctx.n_threads) if (ctx.n_threads > 1)
  for (int64_t part = 0; part < w.n_head() * n_parts; ++part) {
    ScratchCutter cutter(memory + omp_get_thread_num() * bytes);
    WkvToken* const tokens = take_wkv_tokens(cutter, d);
    const int64_t head = part / n_parts, at = part % n_parts;
    run(w, head, at * n_blocks / n_parts * wide, std::min(d, (at + 1) * n_blocks / n_parts * wide),
        tokens);
  }
}

}  // namespace snapkv::cpu
#endif
