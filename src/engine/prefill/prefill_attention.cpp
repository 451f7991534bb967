// SPDX-License-Identifier: MIT
#include "engine/prefill/prefill_attention.h"

#include <algorithm>

#include "base/timer.h"

namespace snapkv {

void PrefillAttentionStep::begin(int il, RowState& scratch, std::span<const int32_t> pos,
                                 const Tensor& q_window, int64_t window_row) {
  il_ = il;
  scratch_ = &scratch;
  pos_ = pos;
  q_window_ = q_window;
  window_row_ = window_row;
}

void PrefillAttentionStep::attend(const Tensor& q, const Tensor& k, const Tensor& v,
                                  const Tensor& out) {
  const Backend::Mark begin = backend_.mark();
  std::vector<int32_t> n_past = scratch_->n_rows();
  scratch_->append(backend_, k, v, pos_);
  keep_window(q, k.shape[0]);
  const int64_t n_out = out.shape[0];
  if (n_out > 0) {
    const LayerSpec& layer = architecture_.layer_spec(il_);
    for (int32_t& n : n_past) n += static_cast<int32_t>(k.shape[0] - n_out);
    PrefillAttention a;
    a.q = q.slice(q.shape[0] - n_out, q.shape[0]);
    const RowState::Views views = scratch_->views();
    a.k = views.k;
    a.v = views.v;
    a.n_past = n_past;
    a.scale = layer.scale;
    a.out = out;
    a.variant = architecture_.variant(il_);
    ops::attention_prefill(backend_, a);
  }
  intervals_.emplace_back(begin, backend_.mark());
  const Timer timer;
  show(q);
  times_.observe += timer.seconds();
}

void PrefillAttentionStep::show(const Tensor& q) {
  const LayerSpec& layer = architecture_.layer_spec(il_);
  const std::vector<int32_t> n_rows = scratch_->n_rows();
  const RowState::Views views = scratch_->views();
  const QueryChunk chunk{.q = q,
                         .pos = pos_.last(q.shape[0]),
                         .k = views.k,
                         .n_rows = n_rows,
                         .scale = layer.scale,
                         .rope = architecture_.rotation(il_, n_ctx_),
                         .variant = architecture_.variant(il_)};
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
  if (!q_window_) return;
  const int64_t n_q = q.shape[0];
  const int64_t first = window_row_ + n - n_q;  // row in q_window of q's first query
  const int64_t skip = std::max<int64_t>(0, -first);
  if (skip >= n_q) return;
  backend_.copy(q_window_.at<float>(first + skip), q.at<float>(skip), q.stride[0] * (n_q - skip));
}

}  // namespace snapkv
