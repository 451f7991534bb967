// SPDX-License-Identifier: MIT
// Policy "expected-attention" (Devoto et al., arXiv 2510.00636): the attention that a row can
// expect from future tokens. Queries before RoPE are modelled as normally distributed, with the
// mean and covariance of the prompt's queries (without its sinks); R, the mean rotation of the next
// n_future positions, rotates future queries. With mu = R mean, cov = R covariance R^T, and scale =
// 1 / sqrt(head_dim):
//   z[j] = scale * k[j] . mu + scale^2 / 2 * k[j]^T cov k[j]       (log E exp of a normal variable)
//   score[j] = mean over the group's query heads of softmax_j(z) * ||v[j]||
// as kvpress computes it. The sinks (4 rows) are always kept.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "policy/critical.h"
#include "policy/policy_registry.h"

namespace snapkv {
namespace {

/// Keys that are converted to f32 at once, so that a long prompt's keys are never copied whole.
constexpr int64_t kKeys = 1024;

struct ExpectedAttentionParams : RowParams, CriticalParams {
  ExpectedAttentionParams() { sinks = 4; }
  int n_future = 512;
};

/// Mean and covariance of one query head.
struct QueryNormal {
  std::span<double> mean;        // [head_dim]
  std::span<double> covariance;  // [head_dim, head_dim]
};

/// Of all query heads of a layer.
struct QueryNormals {
  Buffer storage;                  // on the host
  std::vector<QueryNormal> heads;  // views of it
};

/// The mean rotation over n positions from `first` on.
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
  void apply(const QueryNormal& q) const {
    const size_t n = q.mean.size();
    apply(q.mean.data(), 1);
    for (size_t i = 0; i < n; ++i) apply(q.covariance.data() + i, n);      // R C
    for (size_t i = 0; i < n; ++i) apply(q.covariance.data() + i * n, 1);  // (R C) R^T
  }

 private:
  RopeLayout layout_;
  std::vector<double> cos_, sin_;  // [n_rot / 2]
};

/// Mean and covariance of a layer's queries before RoPE, collected chunk by chunk on the device.
class QueryStatistics {
 public:
  explicit QueryStatistics(int n_sink) : n_sink_(n_sink) {}

  void observe(Backend& backend, const QueryChunk& chunk) {
    const auto first = std::lower_bound(chunk.pos.begin(), chunk.pos.end(), n_sink_);
    const int64_t begin = first - chunk.pos.begin(), n = chunk.q.shape[0] - begin;
    next_pos_ = chunk.pos.back() + 1;
    if (n <= 0) return;
    const Floats q = before_rope(backend, chunk, begin);
    if (!shift_.view) start(backend, q.view);
    add(backend, q, sums_);
    count_ += static_cast<double>(n);
  }

  int32_t next_pos() const { return next_pos_; }

  /// One distribution per query head.
  QueryNormals normals(Backend& backend) const {
    SNAPKV_CHECK(count_ > 0);
    const int64_t n_head = shift_.view.shape[0], d = shift_.view.shape[1];
    const size_t n_shift = n_head * d, n_sums = n_head * (d + 1) * d;
    const Buffer read = backend.allocate_host((n_shift + n_sums) * sizeof(float), "moments");
    QueryNormals out;
    out.storage = backend.allocate_host(n_sums * sizeof(double), "means and covariances");
    auto* values = static_cast<double*>(out.storage.data());
    for (int64_t h = 0; h < n_head; ++h, values += (d + 1) * d) {
      out.heads.push_back({std::span(values, d), std::span(values + d, d * d)});
    }
    if (!backend.computes()) return out;
    auto* shift = static_cast<float*>(read.data());
    float* sums = shift + n_shift;
    backend.download(shift, shift_.view.data, n_shift * sizeof(float));
    backend.download(sums, sums_.view.data, n_sums * sizeof(float));
    for (int64_t h = 0; h < n_head; ++h) {
      const float* products = sums + h * (d + 1) * d;
      const float* sum = products + d * d;
      for (int64_t i = 0; i < d; ++i) {
        out.heads[h].mean[i] = shift[h * d + i] + sum[i] / count_;
        for (int64_t j = 0; j < d; ++j) {
          out.heads[h].covariance[i * d + j] =
              products[i * d + j] / count_ - sum[i] / count_ * (sum[j] / count_);
        }
      }
    }
    return out;
  }

 private:
  static Floats before_rope(Backend& backend, const QueryChunk& chunk, int64_t begin) {
    const Tensor from = chunk.q.slice(begin, chunk.q.shape[0]);
    Floats q(backend, {from.shape[0], from.shape[1], from.shape[2]}, "queries before RoPE");
    backend.copy(q.view.data, from.data, from.numel() * sizeof(float));
    std::vector<int32_t> back;
    for (int32_t p : chunk.pos.subspan(begin)) back.push_back(-p);
    ops::rope(backend, q, back, chunk.rope);
    return q;
  }

  // The shift, the first chunk's mean, avoids cancellation in the f32 products.
  void start(Backend& backend, const Tensor& q) {
    const int64_t n_head = q.shape[1], d = q.shape[2];
    shift_ = Floats(backend, {n_head, d}, "mean of queries");
    sums_ = Floats(backend, {2, n_head, (d + 1) * d}, "moments of queries");
    shift_.set_zero(backend);
    sums_.set_zero(backend);
    add(backend, q, sums_);
    std::vector<float> mean(n_head * d);
    for (int64_t h = 0; h < n_head; ++h) {
      backend.download(mean.data() + h * d, sums_.view.at<float>(0, h) + d * d, d * sizeof(float));
    }
    for (float& m : mean) m /= static_cast<float>(q.shape[0]);
    backend.upload(shift_.view.data, mean.data(), mean.size() * sizeof(float));
    sums_.set_zero(backend);
  }

  /// Adds the moments about the shift to `sums`.
  void add(Backend& backend, const Tensor& q, const Tensor& sums) const {
    const int64_t n_head = q.shape[1], d = q.shape[2];
    const Floats moments(backend, {n_head, d + 1, d}, "moments of queries");
    ops::moments(backend, q, shift_, moments);
    const std::vector<int32_t> n(n_head, static_cast<int32_t>((d + 1) * d));
    ops::add_scores(backend, moments.view.reshaped({n_head, (d + 1) * d}), n, sums);
  }

  int n_sink_;
  int32_t next_pos_ = 0;
  double count_ = 0;
  Floats shift_;  // [n_head, d]
  Floats sums_;   // [2, n_head, (d + 1) * d]: ops::moments summed by ops::add_scores
};

class ExpectedAttentionSelector final : public AttentionSelector<ExpectedAttentionParams> {
 public:
  using AttentionSelector::AttentionSelector;

 private:
  double n_queries(const ScoreInput&) const override { return 1; }  // from one softmax

  void gather(const QueryChunk& chunk) override {
    while (statistics_.size() <= chunk.reader) statistics_.emplace_back(params().sinks);
    statistics_[chunk.reader].observe(backend(), chunk);
  }

  void score(const ScoreInput& input, const Tensor& scores) override {
    if (!input.v) fail(ErrorCode::kUsage, "policy \"{}\" needs the values, v", info().name);
    std::vector<QueryNormals> layers;
    for (const QueryStatistics& statistics : statistics_) {
      layers.push_back(statistics.normals(backend()));
      if (!backend().computes()) continue;
      const MeanRotation rotation(input.rope, statistics.next_pos(), params().n_future);
      for (const QueryNormal& q : layers.back().heads) rotation.apply(q);
    }
    const int64_t n_head_kv = input.k.shape[0];
    const int64_t n_of_layer = std::ssize(layers[0].heads) / n_head_kv;
    const int64_t n_group = std::ssize(layers) * n_of_layer;
    const int64_t most = *std::max_element(input.n_rows.begin(), input.n_rows.end());
    const Floats logits(backend(), {n_head_kv, most}, "logits");
    const Floats expected(backend(), {n_head_kv, most}, "expected attention");
    for (int64_t i = 0; i < n_group; ++i) {  // the i-th query head of every group
      for (int64_t g = 0; g < n_head_kv; ++g) {
        const std::vector<QueryNormal>& queries = layers[i / n_of_layer].heads;
        write_logits(input, g, queries[g * n_of_layer + i % n_of_layer],
                     logits.view.slice(g, g + 1));
      }
      ops::chunk_scores(backend(), {.kind = ChunkScore::softmax,
                                    .scores = logits,
                                    .n = input.n_rows,
                                    .begin = params().sinks,
                                    .length = most,
                                    .out = expected,
                                    .factor = 1.0f / static_cast<float>(n_group),
                                    .accumulate = i > 0});
    }
    ops::row_norms(backend(), {.x = input.v, .n = input.n_prefix, .out = scores});
    ops::weigh_scores(backend(), scores, input.n_prefix, 1, 0, expected);
  }

  // z[j] = k[j] . (scale^2 / 2 * cov k[j] + scale * mu); the bracket is a product with a bias
  void write_logits(const PolicyInput& input, int64_t g, const QueryNormal& q,
                    const Tensor& logits) const {
    const int64_t d = std::ssize(q.mean), n = input.n_rows[g];
    const Floats storage(backend(), {d + 1, d}, "covariance");
    if (backend().computes()) {
      std::vector<float> weights;
      for (double c : q.covariance) {
        weights.push_back(static_cast<float>(input.scale * input.scale / 2 * c));
      }
      for (double m : q.mean) weights.push_back(static_cast<float>(input.scale * m));
      backend().upload(storage.view.data, weights.data(), weights.size() * sizeof(float));
    }
    const Tensor mean(storage.view.at<float>(d), DType::f32, {d});
    SNAPKV_CHECK(input.k.stride[1] == row_bytes(input.k.dtype, d));  // as in the engine's caches
    const Floats keys(backend(), {1, std::min(n, kKeys), d}, "keys");
    const Floats products(backend(), {1, std::min(n, kKeys), d}, "products");
    for_pieces(backend(), n, kKeys, [&](int64_t begin, int64_t end) {
      const int32_t rows = static_cast<int32_t>(end - begin);
      const void* from = input.k.at<const void>(g, begin);
      void* to = keys.view.data;
      ops::convert_rows(backend(), {.src = {&from, 1},
                                    .src_dtype = input.k.dtype,
                                    .head_dim = d,
                                    .rows = {},
                                    .n = {&rows, 1},
                                    .dst_dtype = DType::f32,
                                    .dst = {&to, 1}});
      const Tensor x(to, DType::f32, {rows, d}), out(products.view.data, DType::f32, {rows, d});
      const Projection projection{.w = storage.view.slice(0, d), .bias = mean, .out = out};
      ops::project(backend(), x, {&projection, 1});
      ops::row_dots(backend(), x.reshaped({1, rows, d}), out.reshaped({1, rows, d}), {&rows, 1},
                    Tensor(logits.at<float>(0, begin), DType::f32, {1, rows}));
    });
  }

  std::vector<QueryStatistics> statistics_;  // of each layer that sees the rows
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
                                                         .label = "future"})},
          critical_fields()));
}

}  // namespace snapkv
