// SPDX-License-Identifier: MIT
// Attention of prefill and of decoding as plain loops; ops.def defines them.
#include <algorithm>
#include <cmath>

#include "backend/ref/ref_access.h"
#include "backend/ref/ref_ops.h"

namespace snapkv::ref {

void softmax(std::vector<double>& s, const AttentionVariant& variant, int64_t h) {
  if (variant.softcap > 0.0f) {
    const double cap = variant.softcap;
    for (double& v : s) v = cap * std::tanh(v / cap);
  }
  double max = *std::max_element(s.begin(), s.end()), sum = 0.0;
  if (variant.sinks) {
    const double sink = *variant.sinks.at<const float>(h);
    max = std::max(max, sink);
    sum = std::exp(sink - max);
  }
  for (double& v : s) {
    v = std::exp(v - max);
    sum += v;
  }
  for (double& v : s) v /= sum;
}

namespace {

// Attention of one query head over rows [first, end) of one KV head.
struct Attention {
  std::vector<double> q;
  int64_t head;  // query head
  Tensor k, v;   // [rows, head_dim], [rows, value_dim]
  int64_t first, end;
  float scale;
  AttentionVariant variant;
};

// out[i] = sum_j softmax_j(scale * q . k[j]) * v[j, i]
void attend(const Attention& a, void* out, DType out_dtype) {
  const int64_t head_dim = a.k.shape[1], value_dim = a.v.shape[1];
  std::vector<double> p;
  for (int64_t j = a.first; j < a.end; ++j) {
    p.push_back(a.scale * dot(a.q, get_row(a.k.at<const void>(j), a.k.dtype, head_dim)));
  }
  softmax(p, a.variant, a.head);
  std::vector<double> sum(value_dim, 0.0);
  for (int64_t j = a.first; j < a.end; ++j) {
    const std::vector<double> row = get_row(a.v.at<const void>(j), a.v.dtype, value_dim);
    for (int64_t i = 0; i < value_dim; ++i) sum[i] += p[j - a.first] * row[i];
  }
  for (int64_t i = 0; i < value_dim; ++i) put(out, out_dtype, i, sum[i]);
}

// Rows of KV head h: [capacity, head_dim].
Tensor head_rows(const Tensor& kv, int64_t h) {
  Tensor rows(kv.at<void>(h), kv.dtype, {kv.shape[1], kv.shape[2]});
  rows.stride[0] = kv.stride[1];
  return rows;
}

}  // namespace

void attention_prefill(const PrefillAttention& a) {
  const int64_t n = a.q.shape[0], n_head = a.q.shape[1], head_dim = a.q.shape[2];
  const int64_t n_group = n_head / a.k.shape[0];
  for (int64_t t = 0; t < n; ++t) {
    for (int64_t h = 0; h < n_head; ++h) {
      const int64_t g = h / n_group;
      const int64_t own = a.n_past[g] + t;  // the last row that is seen (causal)
      attend({.q = get_row(a.q.at<const void>(t, h), a.q.dtype, head_dim),
              .head = h,
              .k = head_rows(a.k, g),
              .v = head_rows(a.v, g),
              .first = first_visible(a.variant, own),
              .end = own + 1,
              .scale = a.scale,
              .variant = a.variant},
             a.out.at<void>(t, h), a.out.dtype);
    }
  }
}

void attention_decode(const DecodeAttention& a) {
  const int64_t n_seq = a.q.shape[0], n_head = a.q.shape[1], head_dim = a.q.shape[2];
  const int64_t n_head_kv = std::ssize(a.heads) / n_seq;
  const int64_t n_group = n_head / n_head_kv;
  for (int64_t s = 0; s < n_seq; ++s) {
    for (int64_t h = 0; h < n_head; ++h) {
      const HeadRows& head = a.heads[s * n_head_kv + h / n_group];
      Tensor v(const_cast<void*>(head.v), a.kv_dtype, {head.n_kv, a.value_dim()});
      v.stride[0] = a.v_step();
      attend({.q = get_row(a.q.at<const void>(s, h), a.q.dtype, head_dim),
              .head = h,
              .k = Tensor(const_cast<void*>(head.k), a.kv_dtype, {head.n_kv, head_dim}),
              .v = v,
              .first = 0,
              .end = head.n_kv,
              .scale = a.scale,
              .variant = a.variant},
             a.out.at<void>(s, h), a.out.dtype);
    }
  }
}

}  // namespace snapkv::ref
