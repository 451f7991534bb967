// SPDX-License-Identifier: MIT
#include "policy/critical.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/error.h"
#include "base/half.h"
#include "policy/finite_scores.h"
#include "policy/host_rows.h"

namespace snapkv {
namespace {

constexpr double kEpsilon = 1e-4;  // beside the mean attention of a query, as kvpress has it

/// W_o's columns of query head h, as f32: [n_embd, head_dim].
std::vector<float> output_columns(Backend& backend, const Tensor& wo, int64_t h, int64_t head_dim) {
  const int64_t n_embd = wo.shape[0], n_cols = wo.shape[1];
  const Buffer storage = backend.allocate(static_cast<size_t>(kHostRows * n_cols) * sizeof(float),
                                          "rows of the output projection");
  std::vector<float> out, rows(static_cast<size_t>(kHostRows * n_cols));
  for (int64_t begin = 0; begin < n_embd; begin += kHostRows) {
    const int64_t n = std::min<int64_t>(kHostRows, n_embd - begin);
    std::vector<int32_t> ids(static_cast<size_t>(n));
    std::iota(ids.begin(), ids.end(), static_cast<int32_t>(begin));
    ops::embed(backend, wo, ids, storage.view(DType::f32, {n, n_cols}));  // rows of any type as f32
    backend.download(rows.data(), storage.data(), static_cast<size_t>(n * n_cols) * sizeof(float));
    for (int64_t r = 0; r < n; ++r) {
      const auto first = rows.begin() + r * n_cols + h * head_dim;
      out.insert(out.end(), first, first + head_dim);
    }
  }
  return out;
}

void upload_activations(Backend& backend, const Tensor& x, const std::vector<float>& values) {
  if (x.dtype == DType::f32) {
    backend.upload(x.data, values.data(), values.size() * sizeof(float));
    return;
  }
  std::vector<bf16_t> rounded;
  for (float v : values) rounded.push_back(to_bf16(v));
  backend.upload(x.data, rounded.data(), rounded.size() * sizeof(bf16_t));
}

/// norms[j] += ||W_o v[j]||_1 of query head h, for the first norms.size() rows of KV head g.
void add_norms(Backend& backend, const PolicyInput& input, int64_t h, int64_t g,
               std::vector<double>& norms) {
  const int64_t head_dim = input.v.shape[2], n_embd = input.wo.shape[0];
  const std::vector<float> columns = output_columns(backend, input.wo, h, head_dim);
  const Buffer w_storage =
      backend.allocate(columns.size() * sizeof(float), "output projection of a head");
  const Tensor w = w_storage.view(DType::f32, {n_embd, head_dim});
  backend.upload(w.data, columns.data(), columns.size() * sizeof(float));
  PackedWeight packed;
  ops::pack(backend, w, packed);
  const DType compute = backend.compute_dtype();
  const Buffer x_storage = backend.allocate(
      static_cast<size_t>(kHostRows * head_dim) * sizeof(float), "values of a head");
  const Buffer out_storage =
      backend.allocate(static_cast<size_t>(kHostRows * n_embd) * sizeof(float), "projected values");
  std::vector<float> out(static_cast<size_t>(kHostRows * n_embd));
  const int64_t n = static_cast<int64_t>(norms.size());
  for (int64_t begin = 0; begin < n; begin += kHostRows) {
    const int64_t rows = std::min<int64_t>(kHostRows, n - begin);
    const Tensor x = x_storage.view(compute, {rows, head_dim});
    upload_activations(backend, x, read_rows(backend, input.v, g, begin, begin + rows));
    const Tensor projected = out_storage.view(DType::f32, {rows, n_embd});
    ops::project_packed(backend, x, packed, {}, projected, false);
    backend.download(out.data(), projected.data,
                     static_cast<size_t>(rows * n_embd) * sizeof(float));
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0.0;
      for (int64_t i = 0; i < n_embd; ++i)
        sum += std::abs(out[static_cast<size_t>(r * n_embd + i)]);
      norms[static_cast<size_t>(begin + r)] += sum;
    }
  }
  require_finite_norms(input.il, h, norms);
}

/// The half of k[h] rows that attention alone keeps, per head.
std::vector<std::vector<int32_t>> first_stage(Backend& backend, std::span<const int32_t> n_prefix,
                                              std::span<const int32_t> k, const Tensor& scores) {
  std::vector<int32_t> half;
  for (int32_t n : k) half.push_back(n / 2);
  const int64_t n_head_kv = scores.shape[0];
  const int64_t most = std::max<int32_t>(1, *std::max_element(half.begin(), half.end()));
  const Buffer storage =
      backend.allocate(static_cast<size_t>(n_head_kv * most) * sizeof(int32_t), "rows");
  const Tensor rows = storage.view(DType::i32, {n_head_kv, most});
  ops::top_k(backend, scores, n_prefix, half, 0, rows);
  std::vector<std::vector<int32_t>> out;
  for (size_t h = 0; h < half.size(); ++h) {
    out.emplace_back(static_cast<size_t>(half[h]));
    backend.download(out[h].data(), rows.at<const void>(static_cast<int64_t>(h)),
                     out[h].size() * sizeof(int32_t));
  }
  return out;
}

}  // namespace

Fields<CriticalParams> critical_fields() {
  return {field(&CriticalParams::critical,
                {.name = "critical",
                 .help = "Choose half of the rows by attention times the size of what they add",
                 .paper = "2502.03805"})};
}

void weigh_by_output(Backend& backend, const ScoreInput& input, std::span<const int32_t> k,
                     double n_queries, const Tensor& scores) {
  const std::span<const int32_t> n_prefix = input.n_prefix;
  if (!input.wo || !input.v) {
    fail(ErrorCode::kUsage, "critical needs the layer's {}, which is not known here",
         !input.wo ? "output projection" : "values");
  }
  const int64_t n_head = input.q_window.shape[1], n_head_kv = scores.shape[0];
  const int64_t n_group = n_head / n_head_kv;
  SNAPKV_CHECK(input.wo.shape[1] == n_head * input.v.shape[2]);
  const std::vector<std::vector<int32_t>> kept = first_stage(backend, n_prefix, k, scores);
  for (int64_t g = 0; g < n_head_kv; ++g) {
    const size_t i = static_cast<size_t>(g);
    if (k[i] == n_prefix[i]) continue;  // all are kept
    std::vector<double> norms(static_cast<size_t>(n_prefix[i]), 0.0);
    for (int64_t h = g * n_group; h < (g + 1) * n_group; ++h)
      add_norms(backend, input, h, g, norms);
    std::vector<float> row = read_scores(backend, scores, g, n_prefix[i]);
    for (size_t j = 0; j < row.size(); ++j) {
      if (std::isinf(row[j])) continue;  // a sink
      row[j] = static_cast<float>((row[j] / n_queries + kEpsilon) * norms[j]);
    }
    for (int32_t j : kept[i]) {
      row[static_cast<size_t>(j)] = std::numeric_limits<float>::infinity();
    }
    write_scores(backend, scores, g, row);
  }
}

}  // namespace snapkv
