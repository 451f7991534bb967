// SPDX-License-Identifier: MIT
#include "policy/critical.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "policy/finite_scores.h"

namespace snapkv {
namespace {

constexpr float kEpsilon = 1e-4f;  // added to a query's mean attention, as in kvpress

// Rows of W_o that are expanded at once, and values that are multiplied with them at once. They
// bound the memory of the temporary matrices.
constexpr int64_t kOutputs = 1024;
constexpr int64_t kValues = 1024;

/// Width of the value that a query head makes of a row of v.
int64_t value_width(const PolicyInput& input) {
  return input.value_heads.empty() ? input.v.shape[2] : input.value_heads[0].shape[0];
}

/// Rows [begin, end) of the output projection as f32: [end - begin, n_head * head_dim].
Floats expand_outputs(Backend& backend, const Tensor& wo, int64_t begin, int64_t end) {
  Floats rows(backend, {end - begin, wo.shape[1]}, "rows of the output projection");
  std::vector<int32_t> ids(end - begin);
  std::iota(ids.begin(), ids.end(), static_cast<int32_t>(begin));
  ops::embed(backend, wo, ids, rows);
  return rows;
}

/// Packs the columns of query head h of such rows for products: [n_outputs, head_dim].
void pack_head(Backend& backend, const Tensor& outputs, int64_t h, int64_t head_dim,
               PackedWeight& packed) {
  const int64_t n_outputs = outputs.shape[0];
  const Floats columns(backend, {n_outputs, head_dim}, "output projection of a head");
  std::vector<int32_t> all(n_outputs);
  std::iota(all.begin(), all.end(), 0);
  const Buffer rows = backend.allocate(all.size() * sizeof(int32_t), "rows");
  backend.upload(rows.data(), all.data(), all.size() * sizeof(int32_t));
  Tensor head(outputs.at<float>(0, h * head_dim), DType::f32, {1, n_outputs, head_dim});
  head.stride[1] = outputs.stride[0];
  const int32_t n = static_cast<int32_t>(n_outputs);
  void* to = columns.view.data;
  ops::gather_rows(backend, head, rows.view(DType::i32, {1, n_outputs}), {&n, 1}, {&to, 1});
  ops::pack(backend, columns, packed);
}

/// Rows [begin, end) of KV head g, one after the other.
Buffer gather_values(Backend& backend, const Tensor& v, int64_t g, int64_t begin, int64_t end) {
  const int64_t n = end - begin;
  Buffer values = backend.allocate(n * row_bytes(v.dtype, v.shape[2]), "values of a head");
  const Buffer rows = backend.allocate(n * sizeof(int32_t), "rows");
  std::vector<int32_t> all(n);
  std::iota(all.begin(), all.end(), static_cast<int32_t>(begin));
  backend.upload(rows.data(), all.data(), n * sizeof(int32_t));
  const int32_t count = static_cast<int32_t>(n);
  void* to = values.data();
  ops::gather_rows(backend, v.slice(g, g + 1), rows.view(DType::i32, {1, n}), {&count, 1},
                   {&to, 1});
  return values;
}

/// Values [begin, end) of KV head g in the type that products take.
Buffer read_values(Backend& backend, const Tensor& v, int64_t g, int64_t begin, int64_t end) {
  const int64_t head_dim = v.shape[2];
  const bool apart = v.stride[1] == row_bytes(v.dtype, head_dim);  // not in the rows of the keys
  const Buffer gathered = apart ? Buffer() : gather_values(backend, v, g, begin, end);
  Buffer x = backend.allocate((end - begin) * row_bytes(backend.compute_dtype(), head_dim),
                              "values of a head");
  const void* from = apart ? v.at<const void>(g, begin) : gathered.data();
  void* to = x.data();
  const int32_t n = static_cast<int32_t>(end - begin);
  ops::convert_rows(backend, {.src = {&from, 1},
                              .src_dtype = v.dtype,
                              .head_dim = head_dim,
                              .rows = {},
                              .n = {&n, 1},
                              .dst_dtype = backend.compute_dtype(),
                              .dst = {&to, 1}});
  return x;
}

/// The matrices that make of a row of v what a query head adds to the output.
struct HeadOutput {
  PackedWeight value;   // [n, value_dim], of PolicyInput::value_heads
  PackedWeight output;  // [n_outputs, n]
};

/// norms[0, j] += ||W v[j]||_1 for the first n values of KV head g.
void add_norms(Backend& backend, const PolicyInput& input, const HeadOutput& head, int64_t g,
               int32_t n, const Tensor& norms, bool accumulate) {
  const DType compute = backend.compute_dtype();
  const PackedWeight& packed = head.output;
  for_pieces(backend, n, kValues, [&](int64_t begin, int64_t end) {
    const int64_t rows = end - begin;
    Buffer x = read_values(backend, input.v, g, begin, end);
    if (!input.value_heads.empty()) {
      Buffer of_head = backend.allocate(rows * row_bytes(compute, packed.n_in), "values of a head");
      ops::project_packed(backend, x.view(compute, {rows, head.value.n_in}), head.value, {},
                          of_head.view(compute, {rows, packed.n_in}), false);
      x = std::move(of_head);
    }
    const Floats projected(backend, {rows, packed.n_out}, "projected values");
    ops::project_packed(backend, x.view(compute, {rows, packed.n_in}), packed, {}, projected,
                        false);
    const int32_t count = static_cast<int32_t>(rows);
    ops::row_norms(backend, {.x = projected.view.reshaped({1, rows, packed.n_out}),
                             .n = {&count, 1},
                             .out = Tensor(norms.at<float>(0, begin), DType::f32, {1, rows}),
                             .l1 = true,
                             .accumulate = accumulate});
  });
}

/// [n_head_kv, max(n_prefix)]: the sum over the group's query heads of ||W_o v||_1, for heads that
/// do not keep all their rows.
Floats output_norms(Backend& backend, const ScoreInput& input, std::span<const int32_t> k) {
  const int64_t n_head_kv = input.v.shape[0], n_embd = input.wo[0].shape[0];
  const int64_t n_head = input.q_window.shape[1] / std::ssize(input.wo);  // of each layer
  const int64_t n_group = n_head / n_head_kv;
  const int64_t most = *std::max_element(input.n_prefix.begin(), input.n_prefix.end());
  Floats norms(backend, {n_head_kv, most}, "norms of outputs");
  HeadOutput head;
  for_pieces(backend, n_embd, kOutputs, [&](int64_t begin, int64_t end) {
    for (size_t layer = 0; layer < input.wo.size(); ++layer) {
      const Floats outputs = expand_outputs(backend, input.wo[layer], begin, end);
      for (int64_t h = 0; h < n_head; ++h) {
        const int64_t g = h / n_group;
        if (k[g] == input.n_prefix[g]) continue;  // the head keeps all rows
        pack_head(backend, outputs, h, value_width(input), head.output);
        if (!input.value_heads.empty()) ops::pack(backend, input.value_heads[h], head.value);
        add_norms(backend, input, head, g, input.n_prefix[g], norms.view.slice(g, g + 1),
                  begin > 0 || layer > 0 || h % n_group > 0);
      }
    }
  });
  require_finite_norms(backend, input.il, input.n_prefix, k, norms);
  return norms;
}

/// The first half of the k[h] rows, chosen by attention alone.
struct Kept {
  std::vector<int32_t> n;  // [n_head_kv]
  Buffer storage;
  Tensor rows;  // [n_head_kv, >= max(n)] i32
};

Kept keep_half(Backend& backend, const ScoreInput& input, std::span<const int32_t> k,
               const Tensor& scores) {
  Kept kept;
  for (int32_t n : k) kept.n.push_back(n / 2);
  const int64_t most = std::max<int32_t>(1, *std::max_element(kept.n.begin(), kept.n.end()));
  kept.storage = backend.allocate(std::ssize(k) * most * sizeof(int32_t), "rows");
  kept.rows = kept.storage.view(DType::i32, {std::ssize(k), most});
  ops::top_k(backend, scores, input.n_prefix, kept.n, 0, kept.rows);
  return kept;
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
  if (input.wo.empty() || !input.v) {
    fail(ErrorCode::kUsage, "critical needs the layer's {}, which is not known here",
         input.wo.empty() ? "output projection" : "values");
  }
  SNAPKV_CHECK(input.wo[0].shape[1] * std::ssize(input.wo) ==
               input.q_window.shape[1] * value_width(input));
  SNAPKV_CHECK(input.value_heads.empty() || input.wo.size() == 1);
  const Kept kept = keep_half(backend, input, k, scores);
  const Floats norms = output_norms(backend, input, k);
  ops::weigh_scores(backend, scores, input.n_prefix, static_cast<float>(1.0 / n_queries), kEpsilon,
                    norms);
  ops::set_scores(backend, scores, kept.rows, kept.n, std::numeric_limits<float>::infinity());
}

}  // namespace snapkv
