// SPDX-License-Identifier: MIT
// SnapKV's selection as plain loops: voting, pooling, ranking, gathering (arXiv 2404.14469,
// sections 4.1 and 4.2); ops.def defines them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "backend/ref/ref_access.h"
#include "backend/ref/ref_ops.h"

namespace snapkv::ref {
namespace {

// The votes of one query head for the rows before the window, or with `whole` for all rows:
//   S[i, j] = q[i] . k[j] * scale for the rows j that query i sees: up to n - W + i (causal inside
//             the window), or only the last of them if attention has a window itself
//   P[i]    = softmax_j(S[i]) over every visible row, the window's included
//   v[j]    = sum_i P[i, j] for j < n - W, or the largest P[i, j]; for j < n over the i that see j
std::vector<double> head_votes(const WindowVotes& w, int64_t h, int64_t g, int64_t n) {
  const int64_t n_window = w.q.shape[0], head_dim = w.q.shape[2], n_prefix = n - n_window;
  std::vector<std::vector<double>> k;  // [n, head_dim]
  for (int64_t j = 0; j < n; ++j) {
    k.push_back(get_row(w.k.at<const void>(g, j), w.k.dtype, head_dim));
  }
  std::vector<double> votes(w.whole ? n : n_prefix, 0.0);
  for (int64_t i = 0; i < n_window; ++i) {
    const std::vector<double> q = get_row(w.q.at<const void>(i, h), w.q.dtype, head_dim);
    const int64_t own = n_prefix + i, first = first_visible(w.variant, own);
    std::vector<double> row;  // [own + 1 - first]
    for (int64_t j = first; j <= own; ++j) row.push_back(w.scale * dot(q, k[j]));
    softmax(row, w.variant, h);
    for (int64_t j = first; j < std::min(std::ssize(votes), own + 1); ++j) {
      const double p = row[j - first];
      const bool other = votes[j] < p || std::isnan(p);  // keeps a NaN
      const double larger = other ? p : votes[j];
      votes[j] = w.reduce == VoteReduce::max ? larger : votes[j] + p;
    }
  }
  return votes;
}

}  // namespace

// votes[g, j] = mean or max over the group's query heads of head_votes
void window_votes(const WindowVotes& w) {
  const int64_t n_head_kv = w.k.shape[0], n_group = w.q.shape[1] / n_head_kv;
  for (int64_t g = 0; g < n_head_kv; ++g) {
    const int64_t n = w.n_rows[g];
    std::vector<double> group = head_votes(w, g * n_group, g, n);
    for (int64_t h = g * n_group + 1; h < (g + 1) * n_group; ++h) {
      const std::vector<double> votes = head_votes(w, h, g, n);
      for (int64_t j = 0; j < std::ssize(group); ++j) {
        const bool other = group[j] < votes[j] || std::isnan(votes[j]);  // keeps a NaN
        const double larger = other ? votes[j] : group[j];
        group[j] = w.group == GroupReduce::max ? larger : group[j] + votes[j];
      }
    }
    const double divisor = w.group == GroupReduce::mean ? static_cast<double>(n_group) : 1.0;
    for (int64_t j = 0; j < std::ssize(group); ++j) {
      put(w.votes.at<void>(g), w.votes.dtype, j, group[j] / divisor);
    }
  }
}

// out[h, j] = max (padded with -inf) or sum / kernel_size (padded with 0) of
//   scores[h, j - kernel_size / 2 ... j + kernel_size / 2]
void pool(const Tensor& scores, std::span<const int32_t> n, int kernel_size, Pooling pooling,
          const Tensor& out) {
  const int64_t half = kernel_size / 2;
  for (int64_t h = 0; h < scores.shape[0]; ++h) {
    const int64_t n_cols = n[h];
    const float* s = scores.at<const float>(h);
    for (int64_t j = 0; j < n_cols; ++j) {
      double max = -std::numeric_limits<double>::infinity(), sum = 0.0;
      for (int64_t i = std::max<int64_t>(0, j - half); i <= std::min(n_cols - 1, j + half); ++i) {
        max = std::max(max, static_cast<double>(s[i]));
        sum += s[i];
      }
      put(out.at<void>(h), out.dtype, j, pooling == Pooling::max ? max : sum / kernel_size);
    }
  }
}

void top_k(const Tensor& scores, std::span<const int32_t> n, std::span<const int32_t> k, int n_tail,
           const Tensor& rows) {
  for (int64_t h = 0; h < std::ssize(n); ++h) {
    const float* s = scores.at<const float>(h);
    std::vector<int32_t> order(n[h]);
    std::iota(order.begin(), order.end(), 0);
    // stable: ties stay in ascending order, so the lower index comes first
    std::stable_sort(order.begin(), order.end(), [s](int32_t a, int32_t b) {
      if (std::isnan(s[a]) || std::isnan(s[b])) return !std::isnan(s[a]) && std::isnan(s[b]);
      return s[a] > s[b];
    });
    std::sort(order.begin(), order.begin() + k[h]);
    int32_t* out = rows.at<int32_t>(h);
    for (int32_t i = 0; i < k[h]; ++i) out[i] = order[i];
    for (int32_t i = 0; i < n_tail; ++i) out[k[h] + i] = n[h] + i;
  }
}

// dst[h][i, :] = src[h, rows[h, i], :]
void gather_rows(const Tensor& src, const Tensor& rows, std::span<const int32_t> n,
                 std::span<void* const> dst) {
  const int64_t bytes = row_bytes(src.dtype, src.shape[2]);
  for (int64_t h = 0; h < std::ssize(n); ++h) {
    const int32_t* row = rows.at<const int32_t>(h);
    char* out = static_cast<char*>(dst[h]);
    for (int32_t i = 0; i < n[h]; ++i) {
      std::memcpy(out + i * bytes, src.at<const void>(h, row[i]), bytes);
    }
  }
}

// dst[h][i, :] = src[h][rows[h, i], :], rounded to dst_dtype
void convert_rows(const RowConversion& c) {
  const int64_t src_bytes = row_bytes(c.src_dtype, c.head_dim);
  const int64_t dst_bytes = row_bytes(c.dst_dtype, c.head_dim);
  for (int64_t h = 0; h < std::ssize(c.n); ++h) {
    const char* in = static_cast<const char*>(c.src[h]);
    char* out = static_cast<char*>(c.dst[h]);
    for (int32_t i = 0; i < c.n[h]; ++i) {
      const int64_t row = c.rows ? c.rows.at<const int32_t>(h)[i] : i;
      put_row(out + i * dst_bytes, c.dst_dtype,
              get_row(in + row * src_bytes, c.src_dtype, c.head_dim));
    }
  }
}

}  // namespace snapkv::ref
