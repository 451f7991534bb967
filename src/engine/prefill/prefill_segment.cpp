// SPDX-License-Identifier: MIT
#include "engine/prefill/prefill_segment.h"

#include <algorithm>
#include <numeric>

#include "engine/core/kv_types.h"

namespace snapkv {
namespace {

PrefillTargets make_targets(const PrefillPrompt& prompt, const PrefillPlan& plan,
                            std::span<Session::Impl* const> sessions) {
  const int64_t n_tokens = plan.n_tokens + prompt.options.n_from_prefix;
  PrefillTargets targets;
  for (Session::Impl* s : sessions) {
    targets.push_back(
        std::make_unique<PrefillTarget>(*s, n_tokens, prompt.options.compress, targets));
  }
  return targets;
}

std::unique_ptr<ProbeObserver> make_probe(const PrefillPlan& plan, const PrefillOptions& options) {
  if (options.probe == nullptr) return nullptr;
  return std::make_unique<ProbeObserver>(*options.probe, plan.n_tokens, plan.n_past);
}

/// The last n of a window's queries.
Tensor last_queries(const Tensor& q_window, int64_t n) {
  return q_window ? q_window.slice(q_window.shape[0] - n, q_window.shape[0]) : Tensor();
}

}  // namespace

PrefillSegment::PrefillSegment(const PrefillPrompt& prompt, const PrefillPlan& plan,
                               std::span<Session::Impl* const> sessions, PrefillTimes& times)
    : prompt_(prompt),
      plan_(plan),
      targets_(make_targets(prompt, plan, sessions)),
      probe_(make_probe(plan_, prompt.options)),
      attention_(first().backend(), first().architecture(), targets_, probe_.get(), first().n_ctx,
                 plan.share, times) {
  for (const auto& target : targets_) n_window_ = std::max(n_window_, target->n_window());
}

size_t PrefillSegment::scratch_bytes() const {
  size_t bytes = scratch_ != nullptr ? scratch_->bytes() : 0;
  if (recurrent_ != nullptr) bytes += recurrent_->bytes();
  for (const auto& [il, held] : held_) bytes += held.rows->bytes();
  for (const auto& [piece, rows] : replays_) bytes += rows->bytes();
  for (const auto& target : targets_) bytes += target->ranking_bytes();
  return bytes;
}

void PrefillSegment::allocate() {
  Session::Impl& session = first();
  const std::vector<int64_t> floats = query_floats(session.architecture().spec());
  const int64_t widest = *std::max_element(floats.begin(), floats.end());
  if (n_window_ > 0 && widest > 0) {
    window_buffer_ =
        session.backend().allocate(n_window_ * widest * sizeof(float), "queries of the window");
  }
  if (!prompt_.makes_prefix) return;
  const PrefillOptions& options = prompt_.options;
  prefix_maker_.emplace(session, prompt_.tokens, options.prefix.get(), options.n_from_prefix);
  if (session.architecture().spec().is_recurrent()) {
    marks_ = choose_marks(*session.model, session.options.kv_type, prompt_.tokens,
                          options.n_from_prefix);
  }
}

void PrefillSegment::begin_layer(int il) {
  for (const auto& target : targets_) target->begin_layer(il);
  if (probe_) probe_->begin_layer(il);
  const LayerSpec& layer = first().architecture().layer_spec(il);
  q_window_ = Tensor();
  if (window_buffer_) {
    q_window_ = window_buffer_.view(DType::f32, {n_window_, layer.n_head, layer.state.head_dim_k});
  }
  recurrent_.reset();
  replayed_.reset();
  if (layer.state.has_rows()) fill_scratch(il);
  if (layer.state.has_recurrent()) begin_recurrent(il);
}

/// Prepares a state that continues the session's or the prefix's.
void PrefillSegment::begin_recurrent(int il) {
  Session::Impl& session = first();
  const StateShape& shape = session.architecture().layer_spec(il).state;
  recurrent_ = std::make_unique<RecurrentState>(session.meter, shape);
  recurrent_->reserve(session.backend(), 1, 1);
  if (!session.layers.empty()) {
    const RecurrentState& old = *session.layers[il]->as_recurrent();
    recurrent_->restore(session.backend(), old, old.n_tokens());
  } else if (const KvPrefix* prefix = prompt_.options.prefix.get()) {
    prefix->impl().restore(*recurrent_, il, prompt_.options.n_from_prefix);
  }
  if (plan_.n_skipped > 0) recurrent_->advance(plan_.n_skipped);
}

/// Prepares a scratch layer that holds the old rows and has room for the prompt.
void PrefillSegment::fill_scratch(int il) {
  Session::Impl& session = first();
  Backend& backend = session.backend();
  int64_t n_rows = plan_.n_tokens + prompt_.options.n_from_prefix + plan_.n_replay_rows();
  const RowState* old = targets_[0]->old_layer(il);
  if (old != nullptr) n_rows += old->most_rows();
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
    scratch_bytes_ = scratch_bytes();
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
  const RowState::Views views = scratch_->views();
  const auto rows = [&](const Tensor& view) {
    return Tensor(view.data, DType::f32, {plan_.n_skipped, view.shape[0], view.shape[2]});
  };
  const std::span pos(static_cast<const int32_t*>(views.k.data), plan_.n_skipped);
  scratch_->append(first().backend(), rows(views.k), rows(views.v), pos);
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

/// Cuts tokens [begin, end) where the state is set aside: each piece goes on from the state that
/// the one before it leaves. end_chunk() sets aside the state at the chunk's end.
void PrefillSegment::add_pieces(int64_t begin, int64_t end, int64_t first_row,
                                std::vector<SequenceRows>& sequences) {
  const int64_t shift = first_row - begin;  // from tokens to rows
  const void* from = recurrent_->now();
  int64_t at = begin;
  for (const int64_t mark : marks_) {
    const int64_t token = mark - plan_.n_past;
    if (token <= at || token >= end) continue;
    void* const to = recurrent_->add_mark(first().backend(), mark);
    sequences.push_back({shift + at, shift + token, from, to});
    from = to;
    at = token;
  }
  sequences.push_back({shift + at, shift + end, from, recurrent_->next()});
  recurrent_->advance(end - begin);
}

/// The attention step for tokens [begin, end) of the run, which are a replay's. They go on from the
/// prompt's end, as if no other replay had been there.
AttentionStep& PrefillSegment::begin_replay(int il, int64_t begin, int64_t end, int64_t first_row,
                                            std::vector<SequenceRows>& sequences) {
  const Replay& replay = *plan_.replay_at(begin);
  const StateShape& shape = first().architecture().layer_spec(il).state;
  const int64_t n = std::ssize(replay.tokens), n_done = begin - replay.first;
  // Beyond the context there may be no positions: a replay that does not fit ends with it.
  const int64_t n_ctx = std::max(first().n_ctx, first().architecture().config().n_ctx_train);
  const int64_t first_pos = std::clamp<int64_t>(n_ctx - n, 0, plan_.n_tokens);
  pos_.resize(end - begin);
  std::iota(pos_.begin(), pos_.end(), static_cast<int32_t>(first_pos + n_done));
  if (n_done == 0) begin_replay_states(il, replay);
  SequenceRows rows{.begin = first_row, .end = first_row + end - begin};
  if (recurrent_) {
    rows.from = replayed_->now();
    rows.to = replayed_->next();
    replayed_->advance(end - begin);
  }
  sequences.push_back(rows);
  if (!shape.shared && !shape.has_rows()) return attention_;
  attention_.begin(il, {.rows = &rows_of(il),
                        .n_ahead = shape.shared ? n - n_done : 0,
                        .pos = pos_,
                        .replay = {.begin = static_cast<int32_t>(replay.begin),
                                   .end = static_cast<int32_t>(replay.end),
                                   .n_own = static_cast<int32_t>(end - replay.first)}});
  return attention_;
}

/// Lets the states of layer il be what they are after the prompt.
void PrefillSegment::begin_replay_states(int il, const Replay& replay) {
  Backend& backend = first().backend();
  const ModelSpec& spec = first().architecture().spec();
  const StateShape& shape = spec.layers[il].state;
  if (recurrent_) {
    replayed_ = std::make_unique<RecurrentState>(first().meter, shape);
    replayed_->reserve(backend, 1, 1);
    replayed_->copy_now(backend, *recurrent_);
  }
  if (!shape.shared && !shape.has_rows()) return;
  forget_replay(il);
  if (shape.shared) rows_of(il).append(backend, *replays_.at({spec.rows_of(il), replay.begin}));
}

/// Drops the rows that a replay has left in those that layer il sees. The first one to see them
/// sets them aside for later layers.
void PrefillSegment::forget_replay(int il) {
  RowState& rows = rows_of(il);
  const ModelSpec& spec = first().architecture().spec();
  const std::vector<int32_t> n_prompt(spec.layers[spec.rows_of(il)].state.n_head,
                                      static_cast<int32_t>(plan_.n_tokens));
  const int32_t n_own = rows.most_rows() - n_prompt[0];
  const bool is_read_later = spec.rows_of(il) == il && spec.readers(il).size() > 1;
  if (is_read_later && n_own > 0) {
    const auto at = std::ranges::find_if(plan_.replays, [&](const Replay& replay) {
      return !replays_.contains({il, replay.begin});
    });
    std::unique_ptr<RowState>& own = replays_[{il, at->begin}];
    own = make_full_state(spec.layers[il].state, first().meter,
                          scratch_dtype(first().options.kv_type));
    own->reserve(first().backend(), n_own, n_own);
    own->append(first().backend(), rows, n_prompt, n_own);
  }
  SNAPKV_CHECK(rows.keep_first(static_cast<int32_t>(plan_.n_tokens)));
}

AttentionStep& PrefillSegment::begin_chunk(int il, int64_t begin, int64_t end, int64_t first_row,
                                           std::vector<SequenceRows>& sequences) {
  if (plan_.replay_at(begin) != nullptr) return begin_replay(il, begin, end, first_row, sequences);
  pos_.resize(end - begin);
  std::iota(pos_.begin(), pos_.end(), static_cast<int32_t>(plan_.n_past + begin));
  if (recurrent_) {
    add_pieces(begin, end, first_row, sequences);
  } else {
    sequences.push_back({.begin = first_row, .end = first_row + end - begin});
  }
  const StateShape& shape = first().architecture().layer_spec(il).state;
  const bool shared = shape.shared;
  if (!shared && !shape.has_rows()) return attention_;
  const int64_t n_dense = std::max(n_window_, SparseAttention::kBlock);
  attention_.begin(il, {.rows = &rows_of(il),
                        .n_ahead = shared ? plan_.n_tokens - begin : 0,
                        .pos = pos_,
                        .q_window = q_window_,
                        .window_row = begin - (plan_.n_tokens - n_window_),
                        .n_dense = std::max<int64_t>(0, n_dense - (plan_.n_tokens - end))});
  return attention_;
}

void PrefillSegment::end_chunk(int64_t end) {
  if (!recurrent_ || std::count(marks_.begin(), marks_.end(), plan_.n_past + end) == 0) return;
  Backend& backend = first().backend();
  backend.copy(recurrent_->add_mark(backend, plan_.n_past + end), recurrent_->now(),
               recurrent_->mark_bytes());
}

void PrefillSegment::keep_recurrent(int il) {
  if (prefix_maker_) prefix_maker_->keep_state(il, *recurrent_);
  for (size_t i = targets_.size(); i-- > 0;) targets_[i]->keep_recurrent(il, *recurrent_, i == 0);
  recurrent_.reset();
}

void PrefillSegment::end_layer(int il) {
  const StateShape& shape = first().architecture().layer_spec(il).state;
  if (!plan_.replays.empty() && (shape.shared || shape.has_rows())) forget_replay(il);
  if (shape.shared || shape.has_rows()) end_attention(il);
  if (recurrent_) keep_recurrent(il);
}

void PrefillSegment::end_attention(int il) {
  attention_.end_layer();
  const ModelSpec& spec = first().architecture().spec();
  const bool shared = spec.layers[il].state.shared;
  if (prefix_maker_ && shared) prefix_maker_->skip_layer(il);
  if (prefix_maker_ && !shared) prefix_maker_->keep_layer(il, *scratch_);  // before policies select
  for (const auto& target : targets_) {
    target->keep_queries(il, last_queries(q_window_, target->n_window()));
    if (shared) target->keep_nothing(il);
  }
  spec.readers(spec.rows_of(il)).back() == il ? keep_rows(il) : hold_rows(il);
}

/// The rows that layer il sees.
RowState& PrefillSegment::rows_of(int il) const {
  const auto held = held_.find(first().architecture().spec().rows_of(il));
  return held != held_.end() ? *held->second.rows : *scratch_;
}

/// Leaves the rows that layer il sees to later layers.
void PrefillSegment::hold_rows(int il) {
  const ModelSpec& spec = first().architecture().spec();
  const int rows_of = spec.rows_of(il);
  HeldRows& held = held_[rows_of];
  if (rows_of == il) held.rows = std::move(scratch_);
  if (!q_window_ || !spec.layers[rows_of].compressed) return;
  Backend& backend = first().backend();
  const size_t bytes = q_window_.numel() * sizeof(float);
  held.storage.push_back(backend.allocate(bytes, "queries of the window"));
  backend.copy(held.storage.back().data(), q_window_.data, bytes);
  held.windows.push_back(held.storage.back().view(
      DType::f32, {q_window_.shape[0], q_window_.shape[1], q_window_.shape[2]}));
}

/// Lets the targets select rows that no layer after il sees.
void PrefillSegment::keep_rows(int il) {
  const ModelSpec& spec = first().architecture().spec();
  const int rows_of = spec.rows_of(il);
  RowState& rows = this->rows_of(il);
  std::vector<Tensor> all = held_[rows_of].windows;
  all.resize(spec.readers(rows_of).size() - 1);  // empty ones where nothing reads them
  all.push_back(q_window_);
  const bool may_take = targets_.size() == 1;
  for (const auto& target : targets_) {
    std::vector<Tensor> windows;
    for (const Tensor& q : all) windows.push_back(last_queries(q, target->n_window()));
    target->keep_rows(rows_of, rows, windows, may_take);
  }
  held_.erase(rows_of);
  std::erase_if(replays_, [&](const auto& replay) { return replay.first.first == rows_of; });
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
