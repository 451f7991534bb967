// SPDX-License-Identifier: MIT
// Attention of prefill and of decoding as plain loops; ops.def defines them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

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

// The mean of rows [begin, end).
std::vector<double> mean_row(const Tensor& rows, int64_t begin, int64_t end) {
  std::vector<double> mean(rows.shape[1], 0.0);
  for (int64_t j = begin; j < end; ++j) {
    const std::vector<double> row = get_row(rows.at<const void>(j), rows.dtype, rows.shape[1]);
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += row[i] / static_cast<double>(end - begin);
  }
  return mean;
}

// The blocks that queries [begin, end) of KV head g see (SparseAttention).
std::vector<bool> choose_blocks(const PrefillAttention& a, int64_t g, const Tensor& k,
                                int64_t begin, int64_t end) {
  constexpr int64_t kBlock = SparseAttention::kBlock;
  const int64_t n_rows = a.n_past[g] + end, n_blocks = (n_rows + kBlock - 1) / kBlock;
  if (end > a.q.shape[0] - a.sparse.n_dense) return std::vector<bool>(n_blocks, true);
  std::vector<std::vector<double>> means;
  for (int64_t b = 0; b < n_blocks; ++b) {
    means.push_back(mean_row(k, b * kBlock, std::min(n_rows, (b + 1) * kBlock)));
  }
  const int64_t n_group = a.q.shape[1] / a.k.shape[0];
  AttentionVariant variant = a.variant;
  variant.sinks = {};
  std::vector<std::vector<double>> mass(n_group, std::vector<double>(n_blocks, 0.0));
  std::vector<double> score(n_blocks, 0.0);
  for (int64_t i = 0; i < n_group; ++i) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t h = g * n_group + i;
      const std::vector<double> q = get_row(a.q.at<const void>(t, h), a.q.dtype, a.q.shape[2]);
      std::vector<double> p;
      for (const std::vector<double>& mean : means) p.push_back(a.scale * dot(q, mean));
      softmax(p, variant, h);
      for (int64_t b = 0; b < n_blocks; ++b) mass[i][b] += p[b] / static_cast<double>(end - begin);
    }
    for (int64_t b = 0; b < n_blocks; ++b) score[b] = std::max(score[b], mass[i][b]);
  }
  const int64_t first_local = (a.n_past[g] + begin) / kBlock - SparseAttention::kLocalBlocks;
  std::vector<bool> chosen(n_blocks, false);
  std::vector<int64_t> others;
  for (int64_t b = 0; b < n_blocks; ++b) {
    chosen[b] = b == 0 || b >= first_local;
    if (!chosen[b]) others.push_back(b);
  }
  std::stable_sort(others.begin(), others.end(),
                   [&](int64_t x, int64_t y) { return score[x] > score[y]; });
  const auto is_enough = [&] {
    return std::all_of(mass.begin(), mass.end(), [&](const std::vector<double>& of_head) {
      double sum = 0.0;
      for (int64_t b = 0; b < n_blocks; ++b) sum += chosen[b] ? of_head[b] : 0.0;
      return sum >= a.sparse.share;
    });
  };
  for (size_t i = 0; i < others.size() && !is_enough(); ++i) chosen[others[i]] = true;
  return chosen;
}

// The rows of these blocks, of the first n of x.
Tensor rows_of_blocks(const Tensor& x, const std::vector<bool>& chosen, int64_t n,
                      std::vector<char>& memory) {
  const int64_t bytes = row_bytes(x.dtype, x.shape[1]);
  memory.clear();
  for (int64_t j = 0; j < n; ++j) {
    if (!chosen[j / SparseAttention::kBlock]) continue;
    const char* const row = x.at<const char>(j);
    memory.insert(memory.end(), row, row + bytes);
  }
  return {memory.data(), x.dtype, {std::ssize(memory) / bytes, x.shape[1]}};
}

// Rows of KV head h: [capacity, head_dim].
Tensor head_rows(const Tensor& kv, int64_t h) {
  Tensor rows(kv.at<void>(h), kv.dtype, {kv.shape[1], kv.shape[2]});
  rows.stride[0] = kv.stride[1];
  return rows;
}

}  // namespace

namespace {

void attention_prefill_sparse(const PrefillAttention& a) {
  constexpr int64_t kBlock = SparseAttention::kBlock;
  const int64_t n = a.q.shape[0], n_group = a.q.shape[1] / a.k.shape[0];
  for (int64_t g = 0; g < a.k.shape[0]; ++g) {
    const Tensor k = head_rows(a.k, g), v = head_rows(a.v, g);
    for (int64_t begin = 0; begin < n; begin += kBlock) {
      const int64_t end = std::min(n, begin + kBlock);
      const std::vector<bool> chosen = choose_blocks(a, g, k, begin, end);
      for (int64_t t = begin; t < end; ++t) {
        std::vector<char> k_memory, v_memory;
        const Tensor seen = rows_of_blocks(k, chosen, a.n_past[g] + t + 1, k_memory);
        for (int64_t h = g * n_group; h < (g + 1) * n_group; ++h) {
          attend({.q = get_row(a.q.at<const void>(t, h), a.q.dtype, a.q.shape[2]),
                  .head = h,
                  .k = seen,
                  .v = rows_of_blocks(v, chosen, a.n_past[g] + t + 1, v_memory),
                  .first = 0,
                  .end = seen.shape[0],
                  .scale = a.scale,
                  .variant = a.variant},
                 a.out.at<void>(t, h), a.out.dtype);
        }
      }
    }
  }
}

}  // namespace

void attention_prefill(const PrefillAttention& a) {
  if (a.sparse.on()) return attention_prefill_sparse(a);
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

void index_scores(const IndexScores& s) {
  const int64_t n_head = s.q.shape[1], d = s.q.shape[2];
  for (int64_t t = 0; t < s.q.shape[0]; ++t) {
    for (int64_t j = 0; j < s.n_seen[t]; ++j) {
      const std::vector<double> key = get_row(s.keys.at<const void>(j), s.keys.dtype, d);
      double score = 0.0;
      for (int64_t h = 0; h < n_head; ++h) {
        double dot = 0.0;
        for (int64_t i = 0; i < d; ++i) dot += s.q.at<const float>(t, h)[i] * key[i];
        score += s.weights.at<const float>(t)[h] * (dot < 0.0 ? 0.0 : dot);
      }
      s.out.at<float>(t)[j] = static_cast<float>(score);
    }
  }
}

namespace {

/// The rows of t that are chosen for a head, or all; `memory` has the chosen ones.
Tensor rows_to_attend(const DecodeAttention& a, int64_t head, const Tensor& t,
                      std::vector<char>& memory) {
  if (!a.chosen) return t;
  const int64_t n = a.chosen.shape[1], d = t.shape[1], bytes = row_bytes(t.dtype, d);
  memory.resize(n * bytes);
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(memory.data() + i * bytes, t.at<const void>(a.chosen.at<const int32_t>(head)[i]),
                bytes);
  }
  return {memory.data(), t.dtype, {n, d}};
}

}  // namespace

void attention_decode(const DecodeAttention& a) {
  const int64_t n_seq = a.q.shape[0], n_head = a.q.shape[1], head_dim = a.q.shape[2];
  const int64_t n_head_kv = std::ssize(a.heads) / n_seq;
  const int64_t n_group = n_head / n_head_kv;
  for (int64_t s = 0; s < n_seq; ++s) {
    for (int64_t h = 0; h < n_head; ++h) {
      const int64_t kv_head = s * n_head_kv + h / n_group;
      const HeadRows& head = a.heads[kv_head];
      const Tensor k(const_cast<void*>(head.k), a.kv_dtype, {head.n_kv, head_dim});
      Tensor v(const_cast<void*>(head.v), a.kv_dtype, {head.n_kv, a.value_dim()});
      v.stride[0] = a.v_step();
      std::vector<char> k_memory, v_memory;
      attend({.q = get_row(a.q.at<const void>(s, h), a.q.dtype, head_dim),
              .head = h,
              .k = rows_to_attend(a, kv_head, k, k_memory),
              .v = rows_to_attend(a, kv_head, v, v_memory),
              .first = 0,
              .end = a.n_rows(kv_head),
              .scale = a.scale,
              .variant = a.variant},
             a.out.at<void>(s, h), a.out.dtype);
    }
  }
}

}  // namespace snapkv::ref
