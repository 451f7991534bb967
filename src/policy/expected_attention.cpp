// SPDX-License-Identifier: MIT
// Policy "expected-attention" (Devoto et al., arXiv 2510.00636): how much attention a row can
// expect of the tokens to come. Queries before RoPE are taken as normal, with the mean and
// covariance of the prompt's (without its sinks); the coming ones are turned by R, the mean
// rotation of the next n_future positions. With mu = R mean, cov = R covariance R^T, and scale = 1
// / sqrt(head_dim):
//   z[j] = scale * k[j] . mu + scale^2 / 2 * k[j]^T cov k[j]       (log E exp of a normal variable)
//   score[j] = mean over the group's query heads of softmax_j(z) * ||v[j]||
// as kvpress computes it. The sinks (4 rows) are always kept.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "policy/critical.h"
#include "policy/host_rows.h"
#include "policy/policy_registry.h"

namespace snapkv {
namespace {

/// Mean and covariance of one query head.
struct QueryNormal {
  std::vector<double> mean;        // [head_dim]
  std::vector<double> covariance;  // [head_dim, head_dim]
};

/// The mean rotation of n positions from `first` on, applied to vectors.
class MeanRotation {
 public:
  MeanRotation(const RopeFrequencies& rope, int32_t first, int n) : layout_(rope.layout) {
    for (double frequency : rope.inv_freq) {
      double c = 0.0, s = 0.0;
      for (int i = 0; i < n; ++i) {
        const double angle = (static_cast<double>(first) + i) * frequency;
        c += std::cos(angle), s += std::sin(angle);
      }
      cos_.push_back(c / n), sin_.push_back(s / n);
    }
  }
  /// Rotates the vector x[0], x[step], x[2 * step], ...
  void apply(double* x, size_t step) const {
    for (size_t i = 0; i < cos_.size(); ++i) {
      double& a = x[step * (layout_ == RopeLayout::norm ? 2 * i : i)];
      double& b = x[step * (layout_ == RopeLayout::norm ? 2 * i + 1 : i + cos_.size())];
      const double first = a;
      a = first * cos_[i] - b * sin_[i];
      b = first * sin_[i] + b * cos_[i];
    }
  }
  void apply(QueryNormal& q) const {
    const size_t n = q.mean.size();
    apply(q.mean.data(), 1);
    for (size_t i = 0; i < n; ++i) apply(q.covariance.data() + i, n);      // R C
    for (size_t i = 0; i < n; ++i) apply(q.covariance.data() + i * n, 1);  // (R C) R^T
  }

 private:
  RopeLayout layout_;
  std::vector<double> cos_, sin_;  // [n_rot / 2]
};

struct ExpectedAttentionParams : RowParams, CriticalParams {
  ExpectedAttentionParams() { sinks = 4; }
  int n_future = 512;
};

/// Mean and covariance of a layer's queries, gathered chunk by chunk.
class QueryStatistics {
 public:
  explicit QueryStatistics(int n_sink) : n_sink_(n_sink) {}

  void observe(Backend& backend, const QueryChunk& chunk) {
    const auto first = std::lower_bound(chunk.pos.begin(), chunk.pos.end(), n_sink_);
    const int64_t begin = first - chunk.pos.begin(), n = chunk.q.shape[0] - begin;
    next_pos_ = chunk.pos.back() + 1;
    if (n <= 0) return;
    const std::vector<float> q = before_rope(backend, chunk, begin);
    const int64_t n_head = chunk.q.shape[1];
    head_dim_ = static_cast<size_t>(chunk.q.shape[2]);
    if (heads_.empty()) start(q, static_cast<size_t>(n_head), n);
    for (size_t h = 0; h < heads_.size(); ++h) add(backend, q, h, n);
    count_ += static_cast<double>(n);
  }

  int32_t next_pos() const { return next_pos_; }
  QueryNormal normal(size_t h) const {
    SNAPKV_CHECK(h < heads_.size());
    const Head& head = heads_[h];
    QueryNormal out{std::vector<double>(head_dim_), std::vector<double>(head.products)};
    for (size_t i = 0; i < head_dim_; ++i) {
      out.mean[i] = head.shift[i] + head.sum[i] / count_;
      for (size_t j = 0; j < head_dim_; ++j) {
        double& c = out.covariance[i * head_dim_ + j];
        c = c / count_ - head.sum[i] / count_ * (head.sum[j] / count_);
      }
    }
    return out;
  }

 private:
  /// Sums of q - shift. The shift, the first chunk's mean, keeps f32 products from cancelling.
  struct Head {
    std::vector<float> shift;      // [head_dim]
    std::vector<double> sum;       // [head_dim]
    std::vector<double> products;  // [head_dim, head_dim]
  };

  static std::vector<float> before_rope(Backend& backend, const QueryChunk& chunk, int64_t begin) {
    const Tensor from = chunk.q.slice(begin, chunk.q.shape[0]);
    const size_t bytes = static_cast<size_t>(from.numel()) * sizeof(float);
    const Buffer storage = backend.allocate(bytes, "queries before RoPE");
    const Tensor q = storage.view(DType::f32, {from.shape[0], from.shape[1], from.shape[2]});
    backend.copy(q.data, from.data, bytes);
    std::vector<int32_t> back;
    for (int32_t p : chunk.pos.subspan(static_cast<size_t>(begin))) back.push_back(-p);
    ops::rope(backend, q, back, chunk.rope);
    std::vector<float> host(static_cast<size_t>(q.numel()));
    backend.download(host.data(), q.data, bytes);
    return host;
  }

  void start(const std::vector<float>& q, size_t n_head, int64_t n) {
    for (size_t h = 0; h < n_head; ++h) {
      std::vector<double> mean(head_dim_, 0.0);
      for (size_t t = 0; t < static_cast<size_t>(n); ++t) {
        for (size_t d = 0; d < head_dim_; ++d) mean[d] += q[(t * n_head + h) * head_dim_ + d];
      }
      Head head;
      for (double m : mean) head.shift.push_back(static_cast<float>(m / static_cast<double>(n)));
      head.sum.assign(head_dim_, 0.0);
      head.products.assign(head_dim_ * head_dim_, 0.0);
      heads_.push_back(std::move(head));
    }
  }

  // products += X X^T with X = (q - shift)^T, [head_dim, n]
  void add(Backend& backend, const std::vector<float>& q, size_t h, int64_t n) {
    Head& head = heads_[h];
    const size_t rows = static_cast<size_t>(n);
    const int64_t d_signed = static_cast<int64_t>(head_dim_);
    std::vector<float> x(head_dim_ * rows);
    for (size_t t = 0; t < rows; ++t) {
      for (size_t d = 0; d < head_dim_; ++d) {
        const float v = q[(t * heads_.size() + h) * head_dim_ + d] - head.shift[d];
        x[d * rows + t] = v;
        head.sum[d] += v;
      }
    }
    const Buffer x_storage = backend.allocate(x.size() * sizeof(float), "queries by column");
    const Tensor columns = x_storage.view(DType::f32, {d_signed, n});
    backend.upload(columns.data, x.data(), x.size() * sizeof(float));
    std::vector<float> products(head.products.size());
    const Buffer out_storage = backend.allocate(products.size() * sizeof(float), "products");
    const Tensor out = out_storage.view(DType::f32, {d_signed, d_signed});
    const Projection projection{.w = columns, .bias = {}, .out = out};
    ops::project(backend, columns, {&projection, 1});
    backend.download(products.data(), out.data, products.size() * sizeof(float));
    for (size_t i = 0; i < products.size(); ++i) head.products[i] += products[i];
  }

  int n_sink_;
  int32_t next_pos_ = 0;
  size_t head_dim_ = 0;
  double count_ = 0;
  std::vector<Head> heads_;  // [n_head]
};

class ExpectedAttentionSelector final : public AttentionSelector<ExpectedAttentionParams> {
 public:
  ExpectedAttentionSelector(Backend& backend, const PolicyInfo& info, const Params& params)
      : AttentionSelector(backend, info, params), statistics_(params.sinks) {}

 private:
  double n_queries(const ScoreInput&) const override { return 1; }  // a softmax

  void gather(const QueryChunk& chunk) override { statistics_.observe(backend(), chunk); }

  void score(const ScoreInput& input, const Tensor& scores) override {
    if (!input.v) fail(ErrorCode::kUsage, "policy \"{}\" needs the values, v", info().name);
    const MeanRotation rotation(input.rope, statistics_.next_pos(), params().n_future);
    const std::span<const int32_t> n_prefix = input.n_prefix;
    const size_t n_group = input.q_window.shape[1] / n_prefix.size();
    for (size_t g = 0; g < n_prefix.size(); ++g) {
      std::vector<QueryNormal> queries;
      for (size_t h = g * n_group; h < (g + 1) * n_group; ++h) {
        queries.push_back(statistics_.normal(h));
        rotation.apply(queries.back());
      }
      const std::vector<double> expected = expect(backend(), input, g, queries);
      write_scores(backend(), scores, static_cast<int64_t>(g),
                   times_value_norms(backend(), input, g, expected, n_prefix[g]));
    }
  }

  /// Mean over the group of softmax(z), for every row of KV head g; 0 for the sinks.
  std::vector<double> expect(Backend& backend, const PolicyInput& input, size_t g,
                             const std::vector<QueryNormal>& queries) const {
    const size_t n = static_cast<size_t>(input.n_rows[g]);
    const size_t begin = std::min(n, static_cast<size_t>(params().sinks));
    std::vector<double> mean(n, 0.0);
    for (const QueryNormal& q : queries) {
      std::vector<double> z = logits(backend, input, static_cast<int64_t>(g), q);
      const auto first = z.begin() + static_cast<std::ptrdiff_t>(begin);
      const double max = first == z.end() ? 0.0 : *std::max_element(first, z.end());
      double sum = 0.0;
      for (size_t j = begin; j < n; ++j) sum += z[j] = std::exp(z[j] - max);
      for (size_t j = begin; j < n; ++j) {
        mean[j] += z[j] / sum / static_cast<double>(queries.size());
      }
    }
    return mean;
  }

  static std::vector<double> logits(Backend& backend, const PolicyInput& input, int64_t g,
                                    const QueryNormal& q) {
    const size_t d = q.mean.size();
    const int64_t d_signed = static_cast<int64_t>(d), n = input.n_rows[static_cast<size_t>(g)];
    const double scale = input.scale;
    const std::vector<float> covariance(q.covariance.begin(), q.covariance.end());
    const Buffer storage =
        backend.allocate((d + 2 * kHostRows) * d * sizeof(float), "expected attention");
    const Tensor w = storage.view(DType::f32, {d_signed, d_signed});
    backend.upload(w.data, covariance.data(), covariance.size() * sizeof(float));
    std::vector<double> z;
    for (int64_t begin = 0; begin < n; begin += kHostRows) {
      const int64_t rows = std::min<int64_t>(kHostRows, n - begin);
      const std::vector<float> k = read_rows(backend, input.k, g, begin, begin + rows);
      const size_t k_offset = d * d * sizeof(float);
      const Tensor x = storage.view(DType::f32, {rows, d_signed}, k_offset);
      const Tensor out =
          storage.view(DType::f32, {rows, d_signed}, k_offset + kHostRows * d * sizeof(float));
      backend.upload(x.data, k.data(), k.size() * sizeof(float));
      const Projection projection{.w = w, .bias = {}, .out = out};
      ops::project(backend, x, {&projection, 1});
      std::vector<float> product(k.size());
      backend.download(product.data(), out.data, product.size() * sizeof(float));
      for (size_t r = 0; r < k.size(); r += d) {
        double linear = 0.0, quadratic = 0.0;
        for (size_t i = 0; i < d; ++i) {
          linear += k[r + i] * q.mean[i];
          quadratic += static_cast<double>(k[r + i]) * product[r + i];
        }
        z.push_back(scale * linear + scale * scale / 2 * quadratic);
      }
    }
    return z;
  }

  static std::vector<float> times_value_norms(Backend& backend, const PolicyInput& input, size_t g,
                                              const std::vector<double>& expected, int32_t n) {
    const size_t d = static_cast<size_t>(input.v.shape[2]);
    std::vector<float> out;
    for (int64_t begin = 0; begin < n; begin += kHostRows) {
      const std::vector<float> v = read_rows(backend, input.v, static_cast<int64_t>(g), begin,
                                             std::min<int64_t>(begin + kHostRows, n));
      for (size_t r = 0; r < v.size(); r += d) {
        double squares = 0.0;
        for (size_t i = 0; i < d; ++i) squares += static_cast<double>(v[r + i]) * v[r + i];
        out.push_back(static_cast<float>(expected[out.size()] * std::sqrt(squares)));
      }
    }
    return out;
  }

  QueryStatistics statistics_;
};

}  // namespace

PolicyDefinition expected_attention_policy() {
  return define_policy<ScorePolicy<ExpectedAttentionSelector>>(
      {.name = "expected-attention",
       .score = "attention expected of the next queries, times the value's norm",
       .paper = "2510.00636",
       .reads = "all queries, keys, values",
       .observes = true},
      join<ExpectedAttentionParams>(
          row_fields(),
          Fields<ExpectedAttentionParams>{
              field(&ExpectedAttentionParams::n_future, {.name = "n_future",
                                                         .help = "Coming positions that count",
                                                         .least = 1,
                                                         .most = 65'536,
                                                         .flag = "--kv-future"})},
          critical_fields()));
}

}  // namespace snapkv
