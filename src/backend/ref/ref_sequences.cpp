// SPDX-License-Identifier: MIT
// Ops along sequences, with states, as plain loops; ops.def defines them.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "backend/ref/ref_access.h"
#include "backend/ref/ref_ops.h"

namespace snapkv::ref {
namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double softplus(double x) {
  return x > 0.0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

}  // namespace

// With gates: out[t, i] = c[t, i] sum_j weight[i, j] y[t - (k - 1) + j, i], y = b x
// Without: out[t, i] = silu(sum_j weight[i, j] y[t - (k - 1) + j, i] + bias[i])
void short_conv(const ShortConv& c) {
  const int64_t d = c.weight.shape[0], n_before = c.weight.shape[1] - 1;
  const bool gates = c.in.shape[1] == 3;
  for (const SequenceRows& rows : c.sequences) {
    const auto y = [&](int64_t t, int64_t i) -> double {
      if (t < rows.begin) return get(rows.from, DType::f32, (t - rows.begin + n_before) * d + i);
      if (!gates) return *c.in.at<const float>(t, 0, i);
      // in f32, as the state has it: the result does not depend on where a sequence is cut
      return *c.in.at<const float>(t, 0, i) * *c.in.at<const float>(t, 2, i);
    };
    for (int64_t t = rows.begin; t < rows.end; ++t) {
      for (int64_t i = 0; i < d; ++i) {
        double sum = c.bias ? *c.bias.at<const float>(i) : 0.0;
        for (int64_t j = 0; j <= n_before; ++j) {
          sum += *c.weight.at<const float>(i, j) * y(t - n_before + j, i);
        }
        const double gate = gates ? *c.in.at<const float>(t, 1, i) : sigmoid(sum);
        put(c.out.at<void>(t), c.out.dtype, i, gate * sum);
      }
    }
    for (int64_t j = 0; j < n_before; ++j) {
      for (int64_t i = 0; i < d; ++i) {
        put(rows.to, DType::f32, j * d + i, y(rows.end - n_before + j, i));
      }
    }
  }
}

namespace {

/// x / sqrt(|x|^2 + eps)
std::vector<double> unit(std::vector<double> x, double eps) {
  const double length = std::sqrt(dot(x, x) + eps);
  for (double& value : x) value /= length;
  return x;
}

/// Row t of head h; s [d_k, d_v] is the head's state.
void apply_delta_rule(const DeltaRule& r, int64_t h, int64_t t, std::vector<double>& s) {
  const int64_t d_k = r.d_k, d_v = r.d_v();
  const float* const row = r.qkv.at<const float>(t);
  const float* const keys = row + r.n_head_k * d_k;
  const float* const v = keys + r.n_head_k * d_k + h * d_v;
  const int64_t at = r.key_head(h) * d_k;
  const std::vector<double> q = unit({row + at, row + at + d_k}, r.eps);
  const std::vector<double> k = unit({keys + at, keys + at + d_k}, r.eps);
  const double beta = sigmoid(*r.beta.at<const float>(t, h));
  std::vector<double> decay;  // of each row of S
  for (int64_t i = 0; i < d_k; ++i) {
    const int64_t channel = h * r.n_decay() + (r.n_decay() > 1 ? i : 0);
    const double x = *r.decay.at<const float>(t, channel) +
                     static_cast<double>(*r.decay_bias.at<const float>(channel));
    const double rate = *r.rate.at<const float>(h);
    decay.push_back(
        std::exp(r.log_floor < 0.0f ? r.log_floor * sigmoid(rate * x) : rate * softplus(x)));
  }
  for (int64_t j = 0; j < d_v; ++j) {
    double held = 0.0, out = 0.0;
    for (int64_t i = 0; i < d_k; ++i) held += decay[i] * s[i * d_v + j] * k[i];
    for (int64_t i = 0; i < d_k; ++i) {
      double& value = s[i * d_v + j];
      value = decay[i] * value + k[i] * beta * (v[j] - held);
      out += value * q[i];
    }
    *r.out.at<float>(t, h, j) = static_cast<float>(out / std::sqrt(static_cast<double>(d_k)));
  }
}

}  // namespace

void delta_rule(const DeltaRule& r) {
  const int64_t n = r.d_k * r.d_v();
  for (const SequenceRows& rows : r.sequences) {
    for (int64_t h = 0; h < r.n_head(); ++h) {
      const float* const from = static_cast<const float*>(rows.from) + h * n;
      std::vector<double> s(from, from + n);
      for (int64_t t = rows.begin; t < rows.end; ++t) apply_delta_rule(r, h, t, s);
      for (int64_t i = 0; i < n; ++i) put(rows.to, DType::f32, h * n + i, s[i]);
    }
  }
}

namespace {

/// Row t of head h; state [d_state, d_head] is the head's.
void apply_scan(const SelectiveScan& s, int64_t h, int64_t t, std::vector<double>& state) {
  const int64_t d_head = s.d_head();
  const float* const row = s.xbc.at<const float>(t);
  const float* const x = row + h * d_head;
  const float* const b = row + s.n_head() * d_head + s.group(h) * s.d_state;
  const float* const c = b + s.n_group * s.d_state;
  const double step = softplus(*s.step.at<const float>(t, h) +
                               static_cast<double>(*s.step_bias.at<const float>(h)));
  const double decay = std::exp(*s.rate.at<const float>(h) * step);
  for (int64_t j = 0; j < d_head; ++j) {
    double out = static_cast<double>(*s.skip.at<const float>(h)) * x[j];
    for (int64_t i = 0; i < s.d_state; ++i) {
      double& value = state[i * d_head + j];
      value = decay * value + b[i] * step * x[j];
      out += value * c[i];
    }
    *s.out.at<float>(t, h, j) = static_cast<float>(out);
  }
}

}  // namespace

void selective_scan(const SelectiveScan& s) {
  const int64_t n = s.d_state * s.d_head();
  for (const SequenceRows& rows : s.sequences) {
    for (int64_t h = 0; h < s.n_head(); ++h) {
      const float* const from = static_cast<const float*>(rows.from) + h * n;
      std::vector<double> state(from, from + n);
      for (int64_t t = rows.begin; t < rows.end; ++t) apply_scan(s, h, t, state);
      for (int64_t i = 0; i < n; ++i) put(rows.to, DType::f32, h * n + i, state[i]);
    }
  }
}

void channel_scan(const ChannelScan& s) {
  const int64_t d = s.n_channel();
  for (const SequenceRows& rows : s.sequences) {
    for (int64_t channel = 0; channel < d; ++channel) {
      std::vector<double> state;
      for (int64_t i = 0; i < s.d_state(); ++i) {
        state.push_back(get(rows.from, DType::f32, i * d + channel));
      }
      for (int64_t t = rows.begin; t < rows.end; ++t) {
        const double step = softplus(*s.step.at<const float>(t, channel));
        const double x = *s.x.at<const float>(t, channel);
        double out = *s.skip.at<const float>(channel) * x;
        for (int64_t i = 0; i < s.d_state(); ++i) {
          const double decay = std::exp(*s.rate.at<const float>(i, channel) * step);
          state[i] = decay * state[i] + *s.b.at<const float>(t, i) * step * x;
          out += state[i] * *s.c.at<const float>(t, i);
        }
        *s.out.at<float>(t, channel) = static_cast<float>(out);
      }
      for (int64_t i = 0; i < s.d_state(); ++i) {
        put(rows.to, DType::f32, i * d + channel, state[i]);
      }
    }
  }
}

// outs[i][t] = x[t] + (x[t - 1] - x[t]) * (mix[i] + added[i][t])
void token_shift(const TokenShift& s) {
  const int64_t d = s.x.shape[1];
  for (const SequenceRows& rows : s.sequences) {
    const auto x = [&](int64_t t, int64_t c) {
      return t < rows.begin ? get(rows.from, DType::f32, c) : get(s.x.at<void>(t), s.x.dtype, c);
    };
    for (int64_t t = rows.begin; t < rows.end; ++t) {
      for (int64_t i = 0; i < std::ssize(s.outs); ++i) {
        for (int64_t c = 0; c < d; ++c) {
          const double added = s.added.empty() ? 0.0 : *s.added[i].at<const float>(t, c);
          const double m = *s.mix.at<const float>(i, c) + added;
          put(s.outs[i].at<void>(t), s.outs[i].dtype, c, x(t, c) + (x(t - 1, c) - x(t, c)) * m);
        }
      }
    }
    for (int64_t c = 0; c < d; ++c) put(rows.to, DType::f32, c, x(rows.end - 1, c));
  }
}

void blend(const Tensor& x, const Tensor& y, const Tensor& gates) {
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    for (int64_t i = 0; i < x.shape[1]; ++i) {
      float& value = *x.at<float>(t, i);
      const double between = static_cast<double>(*y.at<const float>(t, i)) - value;
      value = static_cast<float>(value + between * sigmoid(*gates.at<const float>(t, i)));
    }
  }
}

namespace {

/// Values of a head in a row [n_head * d], or in a weight.
std::vector<double> head_values(const Tensor& t, int64_t row, int64_t h, int64_t d) {
  const float* const from = (t.rank == 2 ? t.at<const float>(row) : t.at<const float>(0)) + h * d;
  return {from, from + d};
}

/// S^T x of S [d, d].
std::vector<double> read_state(const std::vector<double>& s, const std::vector<double>& x) {
  const auto d = std::ssize(x);
  std::vector<double> out(d);
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t j = 0; j < d; ++j) out[j] += s[i * d + j] * x[i];
  }
  return out;
}

/// s += x y^T
void add_outer(const std::vector<double>& x, const std::vector<double>& y, std::vector<double>& s) {
  const auto d = std::ssize(x);
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t j = 0; j < d; ++j) s[i * d + j] += x[i] * y[j];
  }
}

/// Row t of head h: what comes out; s is the head's state.
std::vector<double> apply_wkv(const Wkv& w, int64_t h, int64_t t, std::vector<double>& s) {
  const int64_t d = w.d();
  const std::vector<double> r = head_values(w.r, t, h, d),
                            v = head_values(w.v, t, w.key_head(h), d);
  std::vector<double> k = head_values(w.k, t, w.key_head(h), d),
                      decay = head_values(w.decay, t, h, d);
  for (double& x : decay) {
    x = std::exp(w.rule == WkvRule::rwkv7 ? -std::exp(-0.5) * sigmoid(x) : -std::exp(x));
  }
  const auto forget = [&] {
    for (int64_t i = 0; i < d * d; ++i) s[i] *= decay[i / d];
  };
  if (w.rule == WkvRule::rwkv6) {
    const std::vector<double> bonus = head_values(w.bonus, 0, h, d);
    std::vector<double> shown = s, now = k;
    for (int64_t i = 0; i < d; ++i) now[i] *= bonus[i];
    add_outer(now, v, shown);
    forget();
    add_outer(k, v, s);
    return read_state(shown, r);
  }
  if (w.rule == WkvRule::gated) {
    for (int64_t i = 0; i < d; ++i) k[i] *= 1.0 - decay[i];
    forget();
    add_outer(k, v, s);
    std::vector<double> out = read_state(s, r);
    for (double& x : out) x /= std::sqrt(static_cast<double>(d));
    return out;
  }
  const std::vector<double> rate = head_values(w.rate, t, h, d),
                            bonus = head_values(w.bonus, 0, h, d);
  const std::vector<double> replacement = head_values(w.replacement, 0, h, d);
  std::vector<double> z = head_values(w.removal, 0, h, d), removed = z;
  for (int64_t i = 0; i < d; ++i) z[i] *= k[i];
  const double length = std::max<double>(std::sqrt(dot(z, z)), kLeastKeyLength);
  double share = 0.0;
  for (int64_t i = 0; i < d; ++i) {
    const double a = sigmoid(rate[i]);
    z[i] /= length;
    removed[i] = -a * z[i];
    k[i] *= 1.0 + (a - 1.0) * replacement[i];
    share += bonus[i] * k[i] * r[i];
  }
  const std::vector<double> held = read_state(s, z);
  forget();
  add_outer(removed, held, s);
  add_outer(k, v, s);
  *w.shares.at<float>(t, h) = static_cast<float>(share);
  return read_state(s, r);
}

}  // namespace

void wkv(const Wkv& w) {
  const int64_t d = w.d(), n = d * d;
  for (const SequenceRows& rows : w.sequences) {
    for (int64_t h = 0; h < w.n_head(); ++h) {
      const float* const from = static_cast<const float*>(rows.from) + h * n;
      std::vector<double> s(from, from + n);
      for (int64_t t = rows.begin; t < rows.end; ++t) {
        const std::vector<double> out = apply_wkv(w, h, t, s);
        for (int64_t j = 0; j < d; ++j) *w.out.at<float>(t, h, j) = static_cast<float>(out[j]);
      }
      for (int64_t i = 0; i < n; ++i) put(rows.to, DType::f32, h * n + i, s[i]);
    }
  }
}

}  // namespace snapkv::ref
