// SPDX-License-Identifier: MIT
// Checks of ops that go through the rows of sequences, whose states they read and write.
#include <cmath>

#include "backend/op_checks.h"
#include "base/check.h"

namespace snapkv::op_checks {
namespace {

void check_sequences(std::span<const SequenceRows> sequences, int64_t n) {
  int64_t end = 0;
  for (const SequenceRows& rows : sequences) {
    SNAPKV_CHECK(rows.begin == end && rows.end > rows.begin);
    SNAPKV_CHECK(rows.from != nullptr && rows.to != nullptr && rows.from != rows.to);
    end = rows.end;
  }
  SNAPKV_CHECK(end == n);
}

}  // namespace

bool short_conv(const Backend& backend, const ShortConv& c) {
  SNAPKV_CHECK(is_f32(c.in, {kAny, 3, kAny}) || is_f32(c.in, {kAny, 1, kAny}));
  const int64_t n = c.in.shape[0], d = c.in.shape[2];
  SNAPKV_CHECK(is_f32(c.weight, {d, kAny}) && c.weight.shape[1] >= 2 &&
               c.weight.shape[1] <= kMostTaps);
  SNAPKV_CHECK(is_activation(backend, c.out, {n, d}));
  SNAPKV_CHECK(is_bias(c.bias, d) && (!c.bias || c.in.shape[1] == 1));
  check_sequences(c.sequences, n);
  return n * d > 0;
}

bool delta_rule(const Backend&, const DeltaRule& r) {
  SNAPKV_CHECK(is_f32(r.out, {kAny, kAny, kAny}));
  const int64_t n = r.out.shape[0];
  SNAPKV_CHECK(r.n_head_k > 0 && r.d_k > 0 && r.n_head() % r.n_head_k == 0 && r.eps >= 0.0f);
  SNAPKV_CHECK(std::isfinite(r.log_floor) && r.log_floor <= 0.0f);
  SNAPKV_CHECK(is_f32(r.qkv, {n, r.n_qkv()}));
  SNAPKV_CHECK(is_f32(r.decay, {n, r.n_head()}) || is_f32(r.decay, {n, r.n_head() * r.d_k}));
  SNAPKV_CHECK(is_f32(r.decay_bias, {r.decay.shape[1]}));
  SNAPKV_CHECK(is_f32(r.beta, {n, r.n_head()}) && is_f32(r.rate, {r.n_head()}));
  check_sequences(r.sequences, n);
  return r.out.numel() > 0;
}

bool selective_scan(const Backend&, const SelectiveScan& s) {
  SNAPKV_CHECK(is_f32(s.out, {kAny, kAny, kAny}));
  const int64_t n = s.out.shape[0];
  SNAPKV_CHECK(s.n_group > 0 && s.d_state > 0 && s.n_head() % s.n_group == 0);
  SNAPKV_CHECK(is_f32(s.xbc, {n, s.n_xbc()}) && is_f32(s.step, {n, s.n_head()}));
  SNAPKV_CHECK(is_f32(s.rate, {s.n_head()}) && is_f32(s.step_bias, {s.n_head()}));
  SNAPKV_CHECK(is_f32(s.skip, {s.n_head()}));
  check_sequences(s.sequences, n);
  return s.out.numel() > 0;
}

bool channel_scan(const Backend&, const ChannelScan& s) {
  SNAPKV_CHECK(is_f32(s.out, {kAny, kAny}) && is_f32(s.rate, {kAny, s.n_channel()}));
  const int64_t n = s.out.shape[0], d = s.n_channel(), d_state = s.d_state();
  SNAPKV_CHECK(d_state > 0);
  SNAPKV_CHECK(is_f32(s.x, {n, d}) && is_f32(s.step, {n, d}));
  SNAPKV_CHECK(is_f32(s.b, {n, d_state}) && is_f32(s.c, {n, d_state}));
  SNAPKV_CHECK(is_f32(s.skip, {d}));
  check_sequences(s.sequences, n);
  return s.out.numel() > 0;
}

bool token_shift(const Backend& backend, const TokenShift& s) {
  SNAPKV_CHECK(is_activation(backend, s.x, {kAny, kAny}));
  const int64_t n = s.x.shape[0], d = s.x.shape[1], n_mix = std::ssize(s.outs);
  SNAPKV_CHECK(n_mix > 0 && n_mix <= kMostMixes && is_f32(s.mix, {n_mix, d}));
  SNAPKV_CHECK(s.added.empty() || std::ssize(s.added) == n_mix);
  for (const Tensor& added : s.added) SNAPKV_CHECK(is_f32(added, {n, d}));
  for (const Tensor& out : s.outs) {
    SNAPKV_CHECK(is_activation(backend, out, {n, d}) && out.dtype == s.outs[0].dtype);
  }
  check_sequences(s.sequences, n);
  return s.x.numel() > 0;
}

bool wkv(const Backend&, const Wkv& w) {
  SNAPKV_CHECK(is_f32(w.out, {kAny, kAny, kAny}));
  const int64_t n = w.out.shape[0], width = w.n_head() * w.d();
  SNAPKV_CHECK(is_f32(w.r, {n, width}) && is_f32(w.decay, {n, width}));
  SNAPKV_CHECK(is_f32(w.k, {n, kAny}) && is_f32(w.v, {n, w.k.shape[1]}));
  const int64_t n_kv = w.k.shape[1];
  SNAPKV_CHECK(width > 0 && n_kv > 0 && n_kv % w.d() == 0 && width % n_kv == 0);
  const bool has_bonus = w.rule != WkvRule::gated, is_rwkv7 = w.rule == WkvRule::rwkv7;
  SNAPKV_CHECK(has_bonus ? is_f32(w.bonus, {width}) : !w.bonus);
  for (const Tensor& t : {w.removal, w.replacement}) {
    SNAPKV_CHECK(is_rwkv7 ? is_f32(t, {width}) : !t);
  }
  SNAPKV_CHECK(is_rwkv7 ? is_f32(w.rate, {n, width}) : !w.rate);
  SNAPKV_CHECK(is_rwkv7 ? is_f32(w.shares, {n, w.n_head()}) : !w.shares);
  check_sequences(w.sequences, n);
  return n > 0;
}

}  // namespace snapkv::op_checks
