// SPDX-License-Identifier: MIT
// Attention of prefill and of decode as plain loops. Called by ref_backend.cpp; meanings in
// ops.def.
#include <algorithm>
#include <cmath>

#include "backend/ref/ref_access.h"
#include "backend/ref/ref_ops.h"

namespace snapkv::ref {

void softmax(std::vector<double>& s) {
  const double max = *std::max_element(s.begin(), s.end());
  double sum = 0.0;
  for (double& v : s) {
    v = std::exp(v - max);
    sum += v;
  }
  for (double& v : s) v /= sum;
}

namespace {

// out[i] = sum_j softmax_j(scale * q . k[j]) * v[j, i] over the first n rows of one KV head.
void attend(const std::vector<double>& q, const Tensor& k, const Tensor& v, int64_t n, float scale,
            void* out, DType out_dtype) {
  const int64_t head_dim = k.shape[1];
  std::vector<double> p;  // [n]
  for (int64_t j = 0; j < n; ++j) {
    p.push_back(scale * dot(q, get_row(k.at<const void>(j), k.dtype, head_dim)));
  }
  softmax(p);
  std::vector<double> sum(static_cast<size_t>(head_dim), 0.0);
  for (int64_t j = 0; j < n; ++j) {
    const std::vector<double> row = get_row(v.at<const void>(j), v.dtype, head_dim);
    for (size_t i = 0; i < row.size(); ++i) sum[i] += p[static_cast<size_t>(j)] * row[i];
  }
  for (int64_t i = 0; i < head_dim; ++i) put(out, out_dtype, i, sum[static_cast<size_t>(i)]);
}

// The rows of KV head h: [capacity, head_dim].
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
      const int64_t n_visible = a.n_past[static_cast<size_t>(g)] + t + 1;  // causal
      attend(get_row(a.q.at<const void>(t, h), a.q.dtype, head_dim), head_rows(a.k, g),
             head_rows(a.v, g), n_visible, a.scale, a.out.at<void>(t, h), a.out.dtype);
    }
  }
}

void attention_decode(const DecodeAttention& a) {
  const int64_t n_seq = a.q.shape[0], n_head = a.q.shape[1], head_dim = a.q.shape[2];
  const int64_t n_head_kv = static_cast<int64_t>(a.heads.size()) / n_seq;
  const int64_t n_group = n_head / n_head_kv;
  for (int64_t s = 0; s < n_seq; ++s) {
    for (int64_t h = 0; h < n_head; ++h) {
      const HeadRows& head = a.heads[static_cast<size_t>(s * n_head_kv + h / n_group)];
      const Tensor k(const_cast<void*>(head.k), a.kv_dtype, {head.n_kv, head_dim});
      const Tensor v(const_cast<void*>(head.v), a.kv_dtype, {head.n_kv, head_dim});
      attend(get_row(a.q.at<const void>(s, h), a.q.dtype, head_dim), k, v, head.n_kv, a.scale,
             a.out.at<void>(s, h), a.out.dtype);
    }
  }
}

}  // namespace snapkv::ref
