// SPDX-License-Identifier: MIT
#include "engine/core/chosen_attention.h"

#include <algorithm>

#include "base/check.h"

namespace snapkv {
namespace {

/// Bytes of scores of the queries that choose together, and of rows of those that attend together.
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
  const int64_t n = call.q.shape[0];
  int64_t n_most = 0;
  for (const HeadRows& rows : call.rows) n_most = std::max<int64_t>(n_most, rows.n_kv);
  const int64_t n_columns = (n_most + kColumns - 1) / kColumns * kColumns;
  const int64_t scores = n_columns * static_cast<int64_t>(sizeof(float));
  const int64_t read = call.choice.top_k * row_bytes(call.kv_dtype, call.q.shape[2]);
  const int64_t n_choose = std::max<int64_t>(1, kMostTogether / scores);
  const int64_t n_attend = std::max<int64_t>(1, kMostTogether / read);
  for (int64_t begin = 0; begin < n;) {  // queries of the same rows go together
    int64_t end = begin + 1;
    while (end < n && end - begin < n_choose && call.rows[end].k == call.rows[begin].k) ++end;
    const Tensor chosen = choose(backend, call, begin, end, n_columns);
    for (int64_t first = begin; first < end; first += n_attend) {
      const int64_t last = std::min(end, first + n_attend);
      attend(backend, call, first, last, chosen.slice(first - begin, last - begin));
    }
    begin = end;
  }
}

Tensor ChosenAttention::choose(Backend& backend, const Call& call, int64_t begin, int64_t end,
                               int64_t n_columns) {
  const int64_t n = end - begin, k = call.choice.top_k;
  const RowChoice choice = call.choice.slice(begin, end);
  std::vector<int32_t> n_seen;
  for (int64_t i = begin; i < end; ++i) n_seen.push_back(call.rows[i].n_kv);
  const int64_t n_rows = *std::max_element(n_seen.begin(), n_seen.end());
  Tensor keys(const_cast<void*>(call.rows[begin].k), call.kv_dtype, {n_rows, call.q.shape[2]});
  keys.data = static_cast<char*>(keys.data) + row_bytes(call.kv_dtype, choice.offset);
  keys.shape[1] = choice.q.shape[2];
  // columns that a query does not see have any values; top_k skips them
  const Tensor scores = room(backend, scores_, DType::f32, {n, n_columns});
  const Tensor chosen = room(backend, chosen_, DType::i32, {n, k});
  ops::index_scores(
      backend,
      {.q = choice.q, .weights = choice.weights, .keys = keys, .n_seen = n_seen, .out = scores});
  ops::top_k(backend, scores, n_seen, std::vector<int32_t>(n, static_cast<int32_t>(k)), 0, chosen);
  return chosen;
}

void ChosenAttention::attend(Backend& backend, const Call& call, int64_t begin, int64_t end,
                             const Tensor& chosen) {
  const bool copies = !backend.attends_to_chosen();
  const int64_t value = row_bytes(call.kv_dtype, call.q.shape[2] - call.out.shape[2]);
  heads_.clear();
  if (copies) {
    copy_rows(backend, call, begin, end, chosen);
  } else {
    for (int64_t i = begin; i < end; ++i) heads_.push_back(call.rows[i]);
  }
  for (HeadRows& head : heads_) head.v = static_cast<const char*>(head.k) + value;
  ops::attention_decode(backend, {.q = call.q.slice(begin, end),
                                  .heads = heads_,
                                  .kv_dtype = call.kv_dtype,
                                  .scale = call.scale,
                                  .out = call.out.slice(begin, end),
                                  .variant = call.variant,
                                  .v_in_k = true,
                                  .chosen = copies ? Tensor() : chosen});
}

void ChosenAttention::copy_rows(Backend& backend, const Call& call, int64_t begin, int64_t end,
                                const Tensor& chosen) {
  const int64_t n = end - begin, d = call.q.shape[2], k = call.choice.top_k;
  int64_t n_rows = 0;
  for (int64_t i = begin; i < end; ++i) n_rows = std::max<int64_t>(n_rows, call.rows[i].n_kv);
  const Tensor rows(const_cast<void*>(call.rows[begin].k), call.kv_dtype, {1, n_rows, d});
  const Tensor copies = room(backend, copies_, call.kv_dtype, {n, k, d});
  std::vector<void*> to;
  for (int64_t i = 0; i < n; ++i) {
    to.push_back(copies.at<void>(i));
    heads_.push_back({.k = to.back(), .v = nullptr, .n_kv = static_cast<int32_t>(k)});
  }
  const std::vector<int32_t> n_chosen(n, static_cast<int32_t>(k));
  ops::gather_rows(backend, for_heads(rows, n), chosen, n_chosen, to);
}

}  // namespace snapkv
