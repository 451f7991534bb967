// SPDX-License-Identifier: MIT
#include "engine/prefill_target.h"

#include <algorithm>
#include <limits>

#include "base/timer.h"
#include "engine/layer_budget.h"
#include "engine/select_rows.h"

namespace snapkv {

PrefillTarget::PrefillTarget(Session::Impl& session, int64_t n_tokens, bool selects)
    : session_(session),
      n_tokens_(n_tokens),
      selects_(selects),
      n_window_(selects || session.has_decode_limit()
                    ? std::min<int64_t>(n_tokens, session.policy->window_size())
                    : 0) {
  const size_t n_layer = session.info().n_layer;
  fresh_.resize(n_layer);
  old_n_kv_.resize(n_layer);
  layer_stats_.resize(n_layer);
  if (session.has_decode_limit()) {
    queries_ = QueryRing(session.backend(), session.architecture().config(),
                         session.policy->window_size());
  }
}

PrefillTarget::~PrefillTarget() {
  if (committed_) return;
  for (size_t il = 0; il < old_n_kv_.size(); ++il) {
    if (old_n_kv_[il].empty()) continue;
    fresh_[il].truncate(old_n_kv_[il]);
    session_.layers[il] = std::move(fresh_[il]);
  }
}

const KvLayer* PrefillTarget::old_layer(int il) const {
  return session_.layers.empty() ? nullptr : &session_.layers[il];
}

int64_t PrefillTarget::budget(int il) const {
  const ModelSpec& spec = session_.architecture().spec();
  if (!selects_ && spec.layers[il].compressed) return std::numeric_limits<int64_t>::max();
  return layer_budget(spec, *session_.policy, session_.n_past + n_tokens_, il);
}

void PrefillTarget::begin_layer(int il) {
  const ModelSpec& spec = session_.architecture().spec();
  observer_ = selects_ && spec.layers[il].compressed
                  ? session_.policy->make_observer(policy_layer(spec, il).il)
                  : nullptr;
}

void PrefillTarget::observe(const QueryChunk& chunk) {
  if (!observer_) return;
  const Timer timer;
  observer_->observe(session_.backend(), chunk);
  score_seconds_ += timer.seconds();
}

void PrefillTarget::keep_rows(int il, KvLayer& scratch, const Tensor& q_window, bool may_take) {
  Timer timer;
  Backend& backend = session_.backend();
  const Selection selection =
      select_rows(session_, il, scratch, q_window, observer_.get(), budget(il));
  if (queries_) queries_.fill(backend, il, q_window);
  backend.synchronize();  // before its time is taken
  score_seconds_ += timer.lap();
  KvLayer& fresh = fresh_[il];
  const DType kv_type = session_.options.kv_type;
  // not where an earlier layer needed more room: what is kept must fit its plan
  const std::vector<int32_t> n_rows = scratch.n_kv();
  const int64_t room =
      *std::max_element(n_rows.begin(), n_rows.end()) + session_.options.decode_reserve;
  if (selection.keep_all && may_take && scratch.dtype() == kv_type && scratch.capacity(0) <= room) {
    take_scratch(il, scratch);
  } else {
    fresh = scratch.gather(backend, session_.meter, selection,
                           static_cast<int32_t>(session_.options.decode_reserve), kv_type);
  }
  backend.synchronize();
  gather_seconds_ += timer.lap();
  SessionStats::Layer& layer = layer_stats_[il];
  layer.n_total = session_.n_past + n_tokens_;
  for (int h = 0; h < fresh.n_head_kv(); ++h) layer.n_kept.push_back(fresh.n_kv(h));
}

/// The scratch layer becomes the cache. Its first rows are the old cache's, so the old one is freed
/// at once: the destructor can cut the new one back.
void PrefillTarget::take_scratch(int il, KvLayer& scratch) {
  const size_t i = il;
  fresh_[i] = std::move(scratch);
  scratch = KvLayer();
  if (!session_.layers.empty()) {
    old_n_kv_[i] = session_.layers[i].n_kv();
    session_.layers[i] = KvLayer();
  }
}

void PrefillTarget::commit(std::vector<float> logits, const PrefillTimes& times,
                           size_t scratch_bytes) {
  session_.layers = std::move(fresh_);
  session_.queries = std::move(queries_);
  session_.logits = std::move(logits);
  session_.n_past += n_tokens_;
  SessionStats& stats = session_.stats;
  stats.n_prompt += n_tokens_;
  stats.layers = std::move(layer_stats_);
  times.add_to(stats);
  stats.score_seconds += score_seconds_;
  stats.gather_seconds += gather_seconds_;
  stats.prefill_seconds += times.total() + score_seconds_ + gather_seconds_;
  // with several targets the scratch layer is on the first one's meter; each would have needed it
  session_.meter.peak = std::max(session_.meter.peak, session_.meter.now + scratch_bytes);
  session_.update_memory_stats();
  committed_ = true;
}

}  // namespace snapkv
