// SPDX-License-Identifier: MIT
#include "engine/prefill/prefill_target.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/timer.h"
#include "engine/core/layer_budget.h"
#include "engine/core/select_rows.h"

namespace snapkv {
namespace {

/// Whether the policy chooses among the rows of a prompt that the session is about to read.
bool chooses(const Session::Impl& session, bool selects) {
  return selects && !(session.policy->info().shares_layers && session.n_past > 0);
}

/// The first of the targets whose policy differs from the session's in the budget alone, if it sees
/// replays.
PrefillTarget* find_observer(const Session::Impl& session, const PrefillTargets& others) {
  if (!session.policy->info().replays) return nullptr;
  const auto without_budget = [](PolicyConfig config) {
    config.budget = 0;
    config.ratio = 0;
    return config;
  };
  const PolicyConfig config = without_budget(session.policy->config());
  const auto found = std::ranges::find_if(others, [&](const auto& other) {
    return without_budget(other->session().policy->config()) == config;
  });
  return found != others.end() ? found->get() : nullptr;
}

}  // namespace

PrefillTarget::PrefillTarget(Session::Impl& session, int64_t n_tokens, bool selects,
                             const PrefillTargets& others)
    : session_(session),
      n_tokens_(n_tokens),
      selects_(chooses(session, selects)),
      observer_(find_observer(session, others)),
      n_window_(selects_ || session.has_decode_limit()
                    ? std::min<int64_t>(n_tokens, session.policy->window_size())
                    : 0) {
  const size_t n_layer = session.architecture().config().n_layer;
  fresh_.resize(n_layer);
  layer_stats_.resize(n_layer);
  if (session.has_decode_limit()) {
    queries_ = session.make_query_ring();
  }
  if (selects_ && session.policy->info().shares_layers) {
    ranking_.emplace(session.backend(), session.architecture().spec(), *session.policy, n_tokens);
  }
  if (!session.keeps_all()) return;
  const ModelSpec& spec = session.architecture().spec();
  if (session.layers.empty()) {
    session.history.clear();
    for (const LayerSpec& layer : spec.layers) {
      session.history.push_back(
          layer.compressed ? make_full_state(layer.state, session.history_meter,
                                             session.options.kv_type, session.options.spill_dir)
                           : nullptr);
    }
    session.in_history.resize(n_layer);
  }
  old_history_.resize(n_layer);
  for (int il = 0; il < std::ssize(spec.layers); ++il) {
    if (!session.has_history(il)) continue;
    session.remember(il);
    session.history[il]->snapshot();
    old_history_[il] = session.history[il]->n_rows();
  }
}

PrefillTarget::~PrefillTarget() {
  if (committed_) return;
  for (int il = 0; il < std::ssize(old_history_); ++il) {
    if (session_.has_history(il)) session_.history[il]->roll_back();
  }
  for (const int il : emptied_) {  // the scratch layer's first rows are those of the old layer
    RowState& fresh = fresh_[il]->rows();
    fresh.roll_back();
    SNAPKV_CHECK(session_.layers[il]->rows().take(fresh, kMostRows));
  }
}

const RowState* PrefillTarget::old_layer(int il) const {
  if (session_.layers.empty()) return nullptr;
  if (!session_.has_history(il)) return &session_.layers[il]->rows();
  if (session_.has_history(il + 1)) session_.history[il + 1]->prefetch();
  return session_.history[il].get();
}

int64_t PrefillTarget::budget(int il) const {
  const ModelSpec& spec = session_.architecture().spec();
  if (!selects_ && spec.layers[il].compressed) return std::numeric_limits<int64_t>::max();
  return layer_budget(spec, *session_.policy, session_.n_past + n_tokens_, il);
}

void PrefillTarget::begin_layer(int il) {
  rows_of_ = session_.architecture().spec().rows_of(il);
  std::shared_ptr<LayerSelector>& selector = selectors_[rows_of_];
  if (observer_ != nullptr) selector = observer_->selectors_.at(rows_of_);
  if (selector == nullptr) selector = session_.policy->make_selector(session_.backend());
}

bool PrefillTarget::observes() const {
  return selects_ && observer_ == nullptr && session_.policy->info().observes &&
         session_.architecture().layer_spec(rows_of_).compressed;
}

void PrefillTarget::observe(const QueryChunk& chunk) {
  const Timer timer;
  selectors_.at(rows_of_)->observe(chunk);
  score_seconds_ += timer.seconds();
}

void PrefillTarget::keep_queries(int il, const Tensor& q_window) {
  if (!queries_) return;
  const Timer timer;
  queries_.fill(session_.backend(), il, q_window);
  score_seconds_ += timer.seconds();
}

void PrefillTarget::keep_rows(int il, RowState& scratch, std::span<const Tensor> q_windows,
                              bool may_take) {
  Timer timer;
  Backend& backend = session_.backend();
  const int32_t most_rows = scratch.most_rows();
  const bool ranks = ranking_ && session_.architecture().layer_spec(il).compressed;
  const Selection selection =
      ranks ? rank(il, scratch, q_windows) : choose(il, scratch, q_windows, most_rows);
  selectors_.erase(il);
  backend.synchronize();  // before the time is taken
  score_seconds_ += timer.lap();
  if (session_.has_history(il)) {
    session_.add_to_history(il, scratch, old_history_[il]);
    session_.history[il]->leave();
  }
  RowState& fresh = make_fresh(il).rows();
  const int32_t reserve = static_cast<int32_t>(session_.options.decode_reserve);
  // The scratch layer is not taken if an earlier layer made it larger than this one may be,
  const int32_t room = most_rows + reserve;
  // nor if its first rows may differ from those of the old cache, which the destructor relies on.
  const bool is_whole = session_.n_past == 0 || !session_.has_history(il);
  if (selection.keep_all && may_take && is_whole && fresh.take(scratch, room)) {
    if (!session_.layers.empty()) {  // the destructor can restore the rows
      emptied_.reserve(fresh_.size());
      session_.layers[il]->rows().clear();
      emptied_.push_back(il);
    }
  } else {
    fresh.keep(backend, scratch, selection, reserve);
  }
  backend.synchronize();
  gather_seconds_ += timer.lap();
  SessionStats::Layer& layer = layer_stats_[il];
  for (const int32_t n : fresh.n_rows()) layer.n_kept.push_back(n);
}

LayerState& PrefillTarget::make_fresh(int il) {
  fresh_[il] = make_state(session_.architecture().layer_spec(il).state, session_.meter,
                          session_.options.kv_type);
  layer_stats_[il].n_total = session_.n_past + n_tokens_;
  return *fresh_[il];
}

void PrefillTarget::keep_nothing(int il) { make_fresh(il); }

void PrefillTarget::keep_recurrent(int il, RecurrentState& computed, bool may_take) {
  RecurrentState& fresh = *(fresh_[il] != nullptr ? *fresh_[il] : make_fresh(il)).as_recurrent();
  if (may_take) return fresh.take(computed);
  fresh.restore(session_.backend(), computed, computed.n_tokens());
}

/// Ranks the rows with those of all layers before, which may have to give up some of theirs.
Selection PrefillTarget::rank(int il, const RowState& scratch, std::span<const Tensor> q_windows) {
  Selection selection;
  selection.keep_all = true;
  if (session_.policy->budget_for(n_tokens_) >= n_tokens_) return selection;
  RowScores scores = score_rows(session_, il, scratch, q_windows, *selectors_.at(il));
  for (LayerRanking::Change& change : ranking_->add(il, std::move(scores))) {
    if (change.il == il) {
      selection = std::move(change.selection);
    } else {
      drop_rows(change.il, change.selection);
    }
  }
  return selection;
}

void PrefillTarget::drop_rows(int il, const Selection& selection) {
  const std::unique_ptr<LayerState> old = std::move(fresh_[il]);
  LayerState& fresh = make_fresh(il);
  const auto reserve = static_cast<int32_t>(session_.options.decode_reserve);
  fresh.rows().keep(session_.backend(), old->rows(), selection, reserve);
  if (RecurrentState* const recurrent = old->as_recurrent()) {
    fresh.as_recurrent()->take(*recurrent);
  }
  layer_stats_[il].n_kept.clear();
  for (const int32_t n : fresh.rows().n_rows()) layer_stats_[il].n_kept.push_back(n);
}

size_t PrefillTarget::ranking_bytes() const {
  if (!ranking_) return 0;
  size_t most = 0;
  const ModelSpec& spec = session_.architecture().spec();
  for (int il = 0; il < std::ssize(spec.layers); ++il) {
    const LayerSpec& layer = spec.layers[il];
    if (!layer.compressed || !layer.state.has_rows()) continue;
    const int64_t rows = (ranking_->most_rows(il) + layer.state.n_head - 1) / layer.state.n_head;
    most = std::max(
        most, layer.state.bytes(session_.options.kv_type, rows + session_.options.decode_reserve));
  }
  return most;
}

Selection PrefillTarget::choose(int il, const RowState& scratch, std::span<const Tensor> q_windows,
                                int32_t most_rows) const {
  Selection all;
  all.keep_all = true;
  if (!session_.architecture().layer_spec(il).compressed) {
    return most_rows <= budget(il) ? std::move(all) : Selection();
  }
  // a later turn is appended uncompressed if decoding would not compress it either
  const bool appends =
      selects_ && session_.n_past > 0 && session_.has_decode_limit() && !session_.has_history(il);
  if (appends) {
    const int64_t n_past = session_.n_past + n_tokens_;
    const int64_t tail = session_.options.kv_decode_limit - session_.policy->budget_for(n_past);
    if (most_rows <= budget(il) + tail) return all;
  }
  return select_rows(session_, il, scratch, q_windows, *selectors_.at(il), budget(il));
}

void PrefillTarget::commit(LogitRows logits, const PrefillTimes& times, const PrefillPlan& plan,
                           size_t scratch_bytes) {
  std::vector<std::vector<int32_t>> in_history;  // first, since it may run out of memory
  for (size_t il = 0; il < old_history_.size(); ++il) {
    const RowState* const rows = fresh_[il]->as_rows();
    in_history.push_back(rows != nullptr ? rows->n_rows() : std::vector<int32_t>());
  }
  session_.layers = std::move(fresh_);
  if (!in_history.empty()) session_.in_history = std::move(in_history);
  session_.queries = std::move(queries_);
  session_.trace = {};
  session_.logits = std::move(logits);
  session_.n_past += n_tokens_;
  session_.n_run = 0;
  SessionStats& stats = session_.stats;
  stats.n_prompt += n_tokens_;
  stats.planned_bytes = plan.planned_bytes;
  stats.layers = std::move(layer_stats_);
  times.add_to(stats);
  stats.score_seconds += score_seconds_;
  stats.gather_seconds += gather_seconds_;
  stats.prefill_seconds += times.total() + score_seconds_ + gather_seconds_;
  // with several targets the first one's meter has the scratch layer; each would have needed it
  session_.meter.peak = std::max(session_.meter.peak, session_.meter.now + scratch_bytes);
  session_.update_memory_stats();
  committed_ = true;
}

}  // namespace snapkv
