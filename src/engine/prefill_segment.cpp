// SPDX-License-Identifier: MIT
#include "engine/prefill_segment.h"

#include <algorithm>
#include <numeric>

#include "engine/memory_plan.h"

namespace snapkv {
namespace {

PrefillTargets make_targets(const PrefillPrompt& prompt, const PrefillPlan& plan,
                            std::span<Session::Impl* const> sessions) {
  const int64_t n_tokens = plan.n_tokens + prompt.options.n_from_prefix;
  PrefillTargets targets;
  for (Session::Impl* s : sessions) {
    targets.push_back(std::make_unique<PrefillTarget>(*s, n_tokens, prompt.options.compress));
  }
  return targets;
}

std::unique_ptr<ProbeObserver> make_probe(const PrefillPlan& plan, const PrefillOptions& options) {
  if (options.probe == nullptr) return nullptr;
  return std::make_unique<ProbeObserver>(*options.probe, plan.n_tokens, plan.n_past);
}

}  // namespace

PrefillSegment::PrefillSegment(const PrefillPrompt& prompt, const PrefillPlan& plan,
                               std::span<Session::Impl* const> sessions, PrefillTimes& times)
    : prompt_(prompt),
      plan_(plan),
      targets_(make_targets(prompt, plan, sessions)),
      probe_(make_probe(plan_, prompt.options)),
      attention_(first().backend(), first().architecture(), targets_, probe_.get(), first().n_ctx,
                 times) {
  for (const auto& target : targets_) n_window_ = std::max(n_window_, target->n_window());
}

void PrefillSegment::allocate() {
  Session::Impl& session = first();
  const ModelConfig& c = session.architecture().config();
  if (n_window_ > 0) {
    window_buffer_ =
        session.backend().allocate(n_window_ * c.n_q() * sizeof(float), "queries of the window");
    q_window_ = window_buffer_.view(DType::f32, {n_window_, c.n_head, c.head_dim});
  }
  if (!prompt_.makes_prefix) return;
  const PrefillOptions& options = prompt_.options;
  prefix_maker_.emplace(session, prompt_.tokens, options.prefix.get(), options.n_from_prefix);
}

void PrefillSegment::begin_layer(int il) {
  for (const auto& target : targets_) target->begin_layer(il);
  if (probe_) probe_->begin_layer(il);
  fill_scratch(il);
}

/// Prepares a scratch layer that holds the old rows and has room for the prompt.
void PrefillSegment::fill_scratch(int il) {
  Session::Impl& session = first();
  Backend& backend = session.backend();
  int64_t n_rows = plan_.n_tokens + prompt_.options.n_from_prefix;
  const LayerState* old = targets_[0]->old_layer(il);
  if (old != nullptr) {
    const std::vector<int32_t> n_old = old->n_rows();
    n_rows += *std::max_element(n_old.begin(), n_old.end());
  }
  // a scratch layer that will become the cache needs room for generated tokens
  const DType dtype = scratch_dtype(session.options.kv_type);
  const bool taken =
      targets_.size() == 1 && dtype == session.options.kv_type && n_rows <= targets_[0]->budget(il);
  const auto room = static_cast<int32_t>(n_rows + (taken ? session.options.decode_reserve : 0));
  const StateShape& shape = session.architecture().layer_spec(il).state;
  if (scratch_ == nullptr || !scratch_->reuse(shape, room)) {
    scratch_.reset();  // frees the old one before the new one is allocated
    scratch_ = make_full_state(shape, session.meter, dtype);
    scratch_->reserve(backend, room, room);
    scratch_bytes_ = scratch_->bytes();
  }
  if (old != nullptr) scratch_->append(backend, *old);
  scratch_->snapshot();  // for PrefillTarget, which may have to restore the old layer
  if (const KvPrefix* prefix = prompt_.options.prefix.get()) {
    prefix->impl().append_to(*scratch_, il, 0, prompt_.options.n_from_prefix);
  }
  if (plan_.n_skipped > 0) skip_rows();
}

/// Appends the rows of the tokens that a dry run skips. Nothing reads the tensors.
void PrefillSegment::skip_rows() {
  const LayerState::Views views = scratch_->views();
  const Tensor rows(views.k.data, DType::f32,
                    {plan_.n_skipped, views.k.shape[0], views.k.shape[2]});
  const std::span pos(static_cast<const int32_t*>(views.k.data), plan_.n_skipped);
  scratch_->append(first().backend(), rows, rows, pos);
}

int64_t PrefillSegment::first_query(int il) const {
  // the last layer's queries and outputs are needed only if something reads them
  const bool last = il + 1 == first().architecture().config().n_layer;
  const bool observed = std::any_of(targets_.begin(), targets_.end(),
                                    [](const auto& target) { return target->observes(); });
  int64_t token = last && !observed ? plan_.n_tokens - std::max(n_window_, plan_.n_logits) : 0;
  if (probe_) token = std::min(token, probe_->first_token());
  return token;
}

AttentionStep& PrefillSegment::begin_chunk(int il, int64_t begin, int64_t end) {
  pos_.resize(end - begin);
  std::iota(pos_.begin(), pos_.end(), static_cast<int32_t>(plan_.n_past + begin));
  attention_.begin(il, *scratch_, pos_, q_window_, begin - (plan_.n_tokens - n_window_));
  return attention_;
}

void PrefillSegment::end_layer(int il) {
  attention_.end_layer();
  if (prefix_maker_) prefix_maker_->keep_layer(il, *scratch_);  // before a policy selects
  const bool may_take = targets_.size() == 1;
  for (const auto& target : targets_) {
    Tensor window;
    if (q_window_) window = q_window_.slice(n_window_ - target->n_window(), n_window_);
    target->keep_rows(il, *scratch_, window, may_take);
  }
}

void PrefillSegment::prepare_commit() {
  scratch_.reset();  // before the sessions count what they hold
  Backend& backend = first().backend();
  for (size_t i = 1; i < targets_.size(); ++i) {
    LogitRows copy;
    copy.reserve(backend, logits_.values().size());
    copy.assign(backend, logits_.values());
    target_logits_.push_back(std::move(copy));
  }
  target_logits_.push_back(std::move(logits_));
  if (prefix_maker_) prefix_ = prefix_maker_->finish();
}

void PrefillSegment::commit(const PrefillTimes& times) {
  for (size_t i = 0; i < targets_.size(); ++i) {
    targets_[i]->commit(std::move(target_logits_[i]), times, plan_,
                        targets_.size() > 1 ? scratch_bytes_ : 0);
  }
}

}  // namespace snapkv
