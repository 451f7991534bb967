// SPDX-License-Identifier: MIT
#include "engine/prefill/prefill_attention.h"

#include <algorithm>

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

void PrefillAttentionStep::attend(const Tensor& q, const Tensor& k, const Tensor& v,
                                  const Tensor& out) {
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
    const LayerSpec& layer = architecture_.layer_spec(il_);
    for (int32_t& past : n_past) past += static_cast<int32_t>(n - n_out);
    PrefillAttention a;
    a.q = q.slice(q.shape[0] - n_out, q.shape[0]);
    const RowState::Views views = scratch.views();
    a.k = views.k;
    a.v = views.v;
    a.n_past = n_past;
    a.scale = layer.scale;
    a.out = out;
    a.variant = architecture_.variant(il_);
    const int32_t most_rows = *std::max_element(n_rows.begin(), n_rows.end());
    if (most_rows >= kLeastSparse && a.variant.window == 0) {
      a.sparse = {.share = share_, .n_dense = chunk_.n_dense};
    }
    ops::attention_prefill(backend_, a);
  }
  intervals_.emplace_back(begin, backend_.mark());
  const Timer timer;
  show(q, n_rows);
  times_.observe += timer.seconds();
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
                         .reader = reader_};
  for (const auto& target : targets_) {
    if (target->observes()) target->observe(chunk);
  }
  if (probe_ != nullptr) probe_->observe(backend_, chunk);
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
