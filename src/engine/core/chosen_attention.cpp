// SPDX-License-Identifier: MIT
#include "engine/core/chosen_attention.h"

#include <algorithm>

#include "base/check.h"

namespace snapkv {
namespace {

/// Bytes of products, or of copies, of queries that are computed together.
constexpr int64_t kMostTogether = int64_t{32} << 20;
/// Columns of scores are a multiple of this, so that memory does not grow with every token.
constexpr int64_t kColumns = 4096;

/// The same rows, or vectors, for each of n heads: [n, rows, d].
Tensor for_heads(Tensor t, int64_t n) {
  t.shape[0] = n;
  t.stride[0] = 0;
  return t;
}

}  // namespace

Tensor ChosenAttention::room(Backend& backend, Buffer& buffer, DType dtype,
                             std::initializer_list<int64_t> shape) {
  const auto bytes = static_cast<size_t>(row_bytes(dtype, Tensor(nullptr, dtype, shape).numel()));
  if (buffer.bytes() < bytes) {
    buffer = Buffer();
    buffer = backend.allocate(bytes, kLabel);
  }
  return buffer.view(dtype, shape);
}

void ChosenAttention::run(Backend& backend, const Call& call) {
  const int64_t n = call.q.shape[0], n_index = call.choice.q.shape[1];
  int64_t n_most = 0;
  for (const HeadRows& rows : call.rows) n_most = std::max<int64_t>(n_most, rows.n_kv);
  const int64_t n_columns = (n_most + kColumns - 1) / kColumns * kColumns;
  const int64_t copied = call.choice.top_k * row_bytes(call.kv_dtype, call.q.shape[2]);
  const int64_t products = n_index * n_columns * static_cast<int64_t>(sizeof(float));
  const int64_t n_together = std::max<int64_t>(1, kMostTogether / std::max(copied, products));
  for (int64_t begin = 0; begin < n;) {  // queries of the same rows go together
    int64_t end = begin + 1;
    while (end < n && end - begin < n_together && call.rows[end].k == call.rows[begin].k) ++end;
    run_part(backend, call, begin, end, n_columns);
    begin = end;
  }
}

void ChosenAttention::run_part(Backend& backend, const Call& call, int64_t begin, int64_t end,
                               int64_t n_columns) {
  const int64_t n = end - begin, d = call.q.shape[2], k = call.choice.top_k;
  std::vector<int32_t> n_seen;
  for (int64_t i = begin; i < end; ++i) n_seen.push_back(call.rows[i].n_kv);
  const int64_t n_rows = *std::max_element(n_seen.begin(), n_seen.end());
  const Tensor rows(const_cast<void*>(call.rows[begin].k), call.kv_dtype, {1, n_rows, d});
  const Tensor chosen = room(backend, chosen_, DType::i32, {n, k});
  room(backend, scores_, DType::f32, {n, n_columns});
  room(backend, products_, DType::f32, {n, call.choice.q.shape[1], n_columns});
  choose(backend, call.choice.slice(begin, end), rows, n_seen, chosen);

  const Tensor copies = room(backend, copies_, call.kv_dtype, {n, k, d});
  const int64_t value = row_bytes(call.kv_dtype, d - call.out.shape[2]);
  std::vector<void*> to;
  heads_.clear();
  for (int64_t i = 0; i < n; ++i) {
    auto* const head = copies.at<char>(i);
    to.push_back(head);
    heads_.push_back({.k = head, .v = head + value, .n_kv = static_cast<int32_t>(k)});
  }
  const std::vector<int32_t> n_chosen(n, static_cast<int32_t>(k));
  ops::gather_rows(backend, for_heads(rows, n), chosen, n_chosen, to);
  ops::attention_decode(backend, {.q = call.q.slice(begin, end),
                                  .heads = heads_,
                                  .kv_dtype = call.kv_dtype,
                                  .scale = call.scale,
                                  .out = call.out.slice(begin, end),
                                  .variant = call.variant,
                                  .v_in_k = true});
}

/// rows [1, n_rows, head_dim]; n_seen: the first ones of these that each query sees.
void ChosenAttention::choose(Backend& backend, const RowChoice& choice, const Tensor& rows,
                             std::span<const int32_t> n_seen, const Tensor& chosen) {
  const int64_t n = choice.q.shape[0], n_index = choice.q.shape[1], d = choice.q.shape[2];
  const int64_t n_columns = rows.shape[1];
  const Tensor products = products_.view(DType::f32, {n, n_index, n_columns});
  const Tensor scores = scores_.view(DType::f32, {n, n_columns});
  Tensor keys = for_heads(rows, n * n_index);
  keys.data = static_cast<char*>(rows.data) + row_bytes(rows.dtype, choice.offset);
  keys.shape[2] = d;
  Tensor queries = choice.q.reshaped({n * n_index, 1, d});
  queries.shape[1] = n_columns;
  queries.stride[1] = 0;
  std::vector<int32_t> of_heads;
  for (const int32_t seen : n_seen) of_heads.insert(of_heads.end(), n_index, seen);
  ops::row_dots(backend, keys, queries, of_heads, products.reshaped({n * n_index, n_columns}));
  // columns that a query does not see have any values, here and in the sums; top_k skips them
  const Tensor flat = products.reshaped({n * n_index, n_columns});
  ops::activate(backend, Activation::relu, flat, {}, flat);
  const std::vector<int32_t> all_heads(n, static_cast<int32_t>(n_index));
  ops::sum_rows(backend, products, choice.weights, all_heads, scores);
  const std::vector<int32_t> k(n, static_cast<int32_t>(choice.top_k));
  ops::top_k(backend, scores, n_seen, k, 0, chosen);
}

}  // namespace snapkv
