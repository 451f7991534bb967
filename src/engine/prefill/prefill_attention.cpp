// SPDX-License-Identifier: MIT
#include "engine/prefill/prefill_attention.h"

#include <algorithm>
#include <vector>

#include "base/timer.h"

namespace snapkv {
namespace {

/// Of fewer rows most blocks matter.
constexpr int32_t kLeastSparse = 2048;

}  // namespace

void PrefillAttentionStep::begin(int il, const Chunk& chunk) {
  il_ = il;
  const std::vector<int> readers = architecture_.spec().readers(architecture_.spec().rows_of(il));
  reader_ = std::find(readers.begin(), readers.end(), il) - readers.begin();
  chunk_ = chunk;
}

void PrefillAttentionStep::attend_to_chosen(const RowChoice& choice, const Tensor& q,
                                            const Tensor& k, const Tensor& v, const Tensor& out) {
  const Backend::Mark begin = backend_.mark();
  RowState& scratch = *chunk_.rows;
  std::vector<int32_t> n_rows = scratch.n_rows();
  for (int32_t& n : n_rows) n -= static_cast<int32_t>(chunk_.n_ahead);
  if (k) scratch.append(backend_, k, v, chunk_.pos);
  const int64_t n = std::ssize(chunk_.pos), n_out = out.shape[0];
  keep_window(q, n);
  std::vector<int32_t> n_past = n_rows;
  for (int32_t& rows : n_rows) rows += static_cast<int32_t>(n);
  if (n_out > 0) {
    for (int32_t& past : n_past) past += static_cast<int32_t>(n - n_out);
    const Tensor queries = q.slice(q.shape[0] - n_out, q.shape[0]);
    const bool chunked = architecture_.layer_spec(il_).attention == AttentionKind::chunked;
    if (choice) {
      run_chosen(choice.slice(q.shape[0] - n_out, q.shape[0]), queries, n_past[0], out);
    } else {
      chunked ? run_in_chunks(queries, n_past, out) : run_attention(queries, n_past, out);
    }
  }
  intervals_.emplace_back(begin, backend_.mark());
  const Timer timer;
  show(q, n_rows);
  times_.observe += timer.seconds();
}

/// n_past: the rows of each head before that of the first query.
void PrefillAttentionStep::run_attention(const Tensor& q, std::span<const int32_t> n_past,
                                         const Tensor& out) {
  const RowState::Views views = chunk_.rows->views();
  PrefillAttention a = {.q = q,
                        .k = views.k,
                        .v = views.v,
                        .n_past = n_past,
                        .scale = architecture_.layer_spec(il_).scale,
                        .out = out,
                        .variant = architecture_.variant(il_)};
  const int64_t most_rows = *std::max_element(n_past.begin(), n_past.end()) + q.shape[0];
  if (most_rows >= kLeastSparse && a.variant.window == 0) {
    a.sparse = {.share = share_, .n_dense = chunk_.n_dense};
  }
  ops::attention_prefill(backend_, a);
}

/// The same where an indexer chooses the rows, of one head of keys: for queries that see more than
/// it chooses.
void PrefillAttentionStep::run_chosen(const RowChoice& choice, const Tensor& q, int64_t n_past,
                                      const Tensor& out) {
  const int64_t n = q.shape[0];
  const int64_t n_all = std::clamp<int64_t>(choice.top_k - n_past, 0, n);  // that see them all
  if (n_all > 0) {
    const std::vector<int32_t> past = {static_cast<int32_t>(n_past)};
    run_attention(q.slice(0, n_all), past, out.slice(0, n_all));
  }
  if (n_all == n) return;
  if (n_all == 0 && !backend_.computes()) {
    // a dry run reads only the last chunk; queries of an earlier one see as many rows as are chosen
    const int64_t n_first = std::min(n, choice.top_k);
    const std::vector<int32_t> past = {static_cast<int32_t>(choice.top_k - n_first)};
    run_attention(q.slice(0, n_first), past, out.slice(0, n_first));
  }
  const RowState::Views views = chunk_.rows->views();
  std::vector<HeadRows> rows;
  for (int64_t i = n_all; i < n; ++i) {
    rows.push_back({views.k.data, views.v.data, static_cast<int32_t>(n_past + i + 1)});
  }
  Tensor to = out.slice(n_all, n);
  if (out.dtype != DType::f32) {
    const size_t bytes = out.numel() * sizeof(float);
    if (chosen_out_.bytes() < bytes) {
      chosen_out_ = Buffer();
      chosen_out_ = backend_.allocate(bytes, ChosenAttention::kLabel);
    }
    to = chosen_out_.view(DType::f32, {n - n_all, out.shape[1], out.shape[2]});
  }
  chosen_.run(backend_, {.choice = choice.slice(n_all, n),
                         .q = q.slice(n_all, n),
                         .rows = rows,
                         .kv_dtype = views.k.dtype,
                         .scale = architecture_.layer_spec(il_).scale,
                         .variant = architecture_.variant(il_),
                         .out = to});
  if (out.dtype == DType::f32) return;
  const void* const from = to.data;
  void* const end = out.at<void>(n_all);
  const auto n_values = static_cast<int32_t>((n - n_all) * out.shape[1]);
  ops::convert_rows(
      backend_,
      {{&from, 1}, DType::f32, out.shape[2], Tensor(), {&n_values, 1}, out.dtype, {&end, 1}});
}

/// The same where tokens see those of their own chunk of the text: the queries of each chunk attend
/// to the rows from its first token on.
void PrefillAttentionStep::run_in_chunks(const Tensor& q, std::span<const int32_t> n_past,
                                         const Tensor& out) {
  const LayerSpec& layer = architecture_.layer_spec(il_);
  const RowState::Views views = chunk_.rows->views();
  const int64_t n = q.shape[0];
  const int64_t first_pos = chunk_.pos[std::size(chunk_.pos) - n];
  for (int64_t begin = 0; begin < n;) {
    const int64_t in_chunk = (first_pos + begin) % layer.window;
    const int64_t end = std::min(n, begin + layer.window - in_chunk);
    // the same in all heads: no policy chooses among the rows of such a layer
    const int64_t past = n_past[0] + begin, first = past - std::min(past, in_chunk);
    const std::vector<int32_t> seen(n_past.size(), static_cast<int32_t>(past - first));
    ops::attention_prefill(backend_, {.q = q.slice(begin, end),
                                      .k = rows_from(views.k, first),
                                      .v = rows_from(views.v, first),
                                      .n_past = seen,
                                      .scale = layer.scale,
                                      .out = out.slice(begin, end),
                                      .variant = architecture_.variant(il_)});
    begin = end;
  }
}

/// n_rows: of each head, up to the chunk's last one.
void PrefillAttentionStep::show(const Tensor& q, std::span<const int32_t> n_rows) {
  const LayerSpec& layer = architecture_.layer_spec(il_);
  const RowState::Views views = chunk_.rows->views();
  const QueryChunk chunk{.q = q,
                         .pos = chunk_.pos.last(q.shape[0]),
                         .k = views.k,
                         .n_rows = n_rows,
                         .scale = layer.scale,
                         .rope = architecture_.rotation(il_, n_ctx_),
                         .variant = architecture_.variant(il_),
                         .chunk = layer.attention == AttentionKind::chunked ? layer.window : 0,
                         .reader = reader_,
                         .replay = chunk_.replay};
  const bool is_replay = chunk_.replay.n_own > 0;
  for (const auto& target : targets_) {
    if (is_replay ? target->replays() : target->observes()) target->observe(chunk);
  }
  if (probe_ != nullptr && !is_replay) probe_->observe(backend_, chunk);
}

void PrefillAttentionStep::end_layer() {
  for (const auto& [begin, end] : intervals_) {
    times_.attention += backend_.seconds_between(begin, end);
  }
  intervals_.clear();
}

void PrefillAttentionStep::keep_window(const Tensor& q, int64_t n) {
  if (!chunk_.q_window) return;
  const int64_t n_q = q.shape[0];
  const int64_t first = chunk_.window_row + n - n_q;  // row in q_window of q's first query
  const int64_t skip = std::max<int64_t>(0, -first);
  if (skip >= n_q) return;
  backend_.copy(chunk_.q_window.at<float>(first + skip), q.at<float>(skip),
                q.stride[0] * (n_q - skip));
}

}  // namespace snapkv
