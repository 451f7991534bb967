// SPDX-License-Identifier: MIT
// The parts of policies' scores as plain loops; ops.def defines them.
#include <cmath>

#include "backend/ref/ref_access.h"
#include "backend/ref/ref_ops.h"

namespace snapkv::ref {
namespace {

std::vector<double> row_of(const Tensor& x, int64_t h, int64_t j) {
  return get_row(x.at<const void>(h, j), x.dtype, x.shape[2]);
}

void put_score(const Tensor& out, int64_t h, int64_t j, double value, bool accumulate) {
  float& score = out.at<float>(h)[j];
  score = static_cast<float>(accumulate ? score + value : value);
}

}  // namespace

void row_norms(const RowNorms& r) {
  for (int64_t h = 0; h < r.x.shape[0]; ++h) {
    for (int64_t j = 0; j < r.n[h]; ++j) {
      const std::vector<double> row = row_of(r.x, h, j);
      double norm = std::sqrt(dot(row, row));
      if (r.l1) {
        norm = 0.0;
        for (double v : row) norm += std::abs(v);
      }
      put_score(r.out, h, j, r.inverse ? r.factor / std::max(norm, 1e-12) : r.factor * norm,
                r.accumulate);
    }
  }
}

void row_dots(const Tensor& x, const Tensor& y, std::span<const int32_t> n, const Tensor& out) {
  for (int64_t h = 0; h < x.shape[0]; ++h) {
    for (int64_t j = 0; j < n[h]; ++j) {
      put_score(out, h, j, dot(row_of(x, h, j), row_of(y, h, j)), false);
    }
  }
}

void sum_rows(const Tensor& x, const Tensor& weights, std::span<const int32_t> n,
              const Tensor& out) {
  for (int64_t h = 0; h < x.shape[0]; ++h) {
    std::vector<double> sum(x.shape[2], 0.0);
    for (int64_t j = 0; j < n[h]; ++j) {
      const std::vector<double> row = row_of(x, h, j);
      for (size_t c = 0; c < sum.size(); ++c) sum[c] += weights.at<const float>(h)[j] * row[c];
    }
    put_row(out.at<void>(h), out.dtype, sum);
  }
}

void weigh_scores(const Tensor& scores, std::span<const int32_t> n, float factor, float offset,
                  const Tensor& weights) {
  for (int64_t h = 0; h < scores.shape[0]; ++h) {
    for (int64_t j = 0; j < n[h]; ++j) {
      const double score = scores.at<const float>(h)[j];
      put_score(scores, h, j, (factor * score + offset) * weights.at<const float>(h)[j], false);
    }
  }
}

// sum + rest + x, stored as its value in f32 and the remainder
void add_scores(const Tensor& x, std::span<const int32_t> n, const Tensor& sums) {
  for (int64_t h = 0; h < x.shape[0]; ++h) {
    float* sum = sums.at<float>(0, h);
    float* rest = sums.at<float>(1, h);
    for (int64_t j = 0; j < n[h]; ++j) {
      const double total = static_cast<double>(sum[j]) + rest[j] + x.at<const float>(h)[j];
      sum[j] = static_cast<float>(total);
      rest[j] = static_cast<float>(total - sum[j]);
    }
  }
}

void set_scores(const Tensor& scores, const Tensor& rows, std::span<const int32_t> n, float value) {
  for (int64_t h = 0; h < scores.shape[0]; ++h) {
    for (int64_t i = 0; i < n[h]; ++i) {
      scores.at<float>(h)[rows.at<const int32_t>(h)[i]] = value;
    }
  }
}

namespace {

double rank_of(const std::vector<double>& s, size_t j) {
  if (std::isnan(s[j])) return s[j];
  double rank = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    const bool lower = std::isnan(s[i]) || s[i] < s[j];
    if (lower || (s[i] == s[j] && i > j)) ++rank;
  }
  return rank;
}

std::vector<double> chunk_values(ChunkScore kind, const std::vector<double>& s) {
  std::vector<double> values = s;
  switch (kind) {
    case ChunkScore::mean: {
      double sum = 0.0;
      for (double v : s) sum += v;
      values.assign(s.size(), sum / static_cast<double>(s.size()));
      break;
    }
    case ChunkScore::softmax:
      softmax(values, {}, 0);
      break;
    case ChunkScore::rank:
      for (size_t j = 0; j < s.size(); ++j) values[j] = rank_of(s, j);
      break;
  }
  return values;
}

}  // namespace

void chunk_scores(const ChunkScores& c) {
  for (int64_t h = 0; h < c.scores.shape[0]; ++h) {
    const float* s = c.scores.at<const float>(h);
    const int64_t n = c.n[h];
    for (int64_t j = 0; j < std::min(c.begin, n); ++j) put_score(c.out, h, j, 0.0, c.accumulate);
    for (int64_t begin = c.begin; begin < n; begin += std::min(c.length, n - begin)) {
      const int64_t end = begin + std::min(c.length, n - begin);
      const std::vector<double> values = chunk_values(c.kind, {s + begin, s + end});
      for (int64_t j = begin; j < end; ++j) {
        put_score(c.out, h, j, c.factor * values[j - begin], c.accumulate);
      }
    }
  }
}

namespace {

/// Standard deviation of one row, with each channel relative to its range in rows [begin, end).
double deviation(const Tensor& x, int64_t h, int64_t j, int64_t begin, int64_t end) {
  std::vector<double> row = row_of(x, h, j), low = row_of(x, h, begin), high = low;
  for (int64_t i = begin; i < end; ++i) {
    const std::vector<double> other = row_of(x, h, i);
    for (size_t c = 0; c < row.size(); ++c) {
      low[c] = std::min(low[c], other[c]);
      high[c] = std::max(high[c], other[c]);
    }
  }
  double mean = 0.0, squares = 0.0;
  for (size_t c = 0; c < row.size(); ++c) {
    const double width = high[c] - low[c], above = row[c] - low[c];
    row[c] = width > 0.0 ? above / width : 0.0 * above;
    mean += row[c] / static_cast<double>(row.size());
  }
  for (double v : row) squares += (v - mean) * (v - mean);
  return row.size() < 2 ? 0.0 : std::sqrt(squares / static_cast<double>(row.size() - 1));
}

}  // namespace

void lag_deviations(const Tensor& x, std::span<const int32_t> n, int64_t begin, int64_t lag,
                    const Tensor& out) {
  for (int64_t h = 0; h < x.shape[0]; ++h) {
    for (int64_t j = 0; j < n[h]; ++j) {
      const int64_t next = j < begin ? n[h] : begin + ((j - begin) / lag + 1) * lag;
      const bool has_next = lag <= n[h] - next;
      put_score(out, h, j, has_next ? deviation(x, h, j, next, next + lag) : 0.0, false);
    }
  }
}

void moments(const Tensor& x, const Tensor& shift, const Tensor& out) {
  const int64_t n = x.shape[0], n_head = x.shape[1], d = x.shape[2];
  for (int64_t h = 0; h < n_head; ++h) {
    std::vector<double> sums((d + 1) * d, 0.0);  // [d + 1, d]
    for (int64_t t = 0; t < n; ++t) {
      std::vector<double> y = get_row(x.at<const void>(t, h), x.dtype, d);
      for (int64_t i = 0; i < d; ++i) y[i] -= shift.at<const float>(h)[i];
      for (int64_t i = 0; i <= d; ++i) {
        for (int64_t j = 0; j < d; ++j) sums[i * d + j] += (i < d ? y[i] : 1.0) * y[j];
      }
    }
    put_row(out.at<void>(h), out.dtype, sums);
  }
}

}  // namespace snapkv::ref
