// SPDX-License-Identifier: MIT
// PrefillTarget: a session that a prompt is read for: what its policy wants to see, and the layers
// that will become its cache. One prompt may have several targets.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/layer_state.h"
#include "cache/recurrent_state.h"
#include "engine/core/session_impl.h"
#include "engine/prefill/layer_ranking.h"
#include "engine/prefill/prefill_plan.h"
#include "engine/prefill/prefill_times.h"

namespace snapkv {

class PrefillTarget;
using PrefillTargets = std::vector<std::unique_ptr<PrefillTarget>>;

class PrefillTarget {
 public:
  /// `selects`: whether policies choose among the rows (PrefillOptions::compress). `others`: the
  /// prompt's targets so far, which live as long; what one of them observes of replays counts for
  /// this one too if only their budgets differ.
  PrefillTarget(Session::Impl& session, int64_t n_tokens, bool selects,
                const PrefillTargets& others);
  /// Gives the session back what was taken from it, unless commit() was called.
  ~PrefillTarget();
  PrefillTarget(const PrefillTarget&) = delete;
  PrefillTarget& operator=(const PrefillTarget&) = delete;

  Session::Impl& session() { return session_; }
  /// The number of queries from the end of the prompt that the policy wants.
  int64_t n_window() const { return n_window_; }
  /// The rows of earlier turns that this prompt's tokens see in layer il: the kept ones or, with
  /// Session::Impl::keeps_all(), all of them. nullptr if there are none.
  const RowState* old_layer(int il) const;
  /// The most rows that any head of layer il may have if all of them are kept.
  int64_t budget(int il) const;

  /// Makes a selector, unless the layer reads rows that an earlier layer has one for.
  void begin_layer(int il);
  /// Whether observe() must be called with every query of the current layer.
  bool observes() const;
  /// Whether it must be called with those of replays too.
  bool replays() const { return observes() && session_.policy->info().replays; }
  void observe(const QueryChunk& chunk);
  /// Keeps the last n_window() queries of layer il, for selections during decoding.
  void keep_queries(int il, const Tensor& q_window);
  /// Selects rows of the scratch layer, which holds the whole prompt and has had a snapshot of what
  /// old_layer() gave, and keeps them. `q_windows`: the last n_window() queries of each layer that
  /// sees the rows; of a layer that no policy chooses from, any. `may_take`: the scratch layer may
  /// become the cache if all rows are kept and it has the cache's type.
  void keep_rows(int il, RowState& scratch, std::span<const Tensor> q_windows, bool may_take);

  /// Keeps what a layer remembers beside its rows or without any: what `computed` is. `may_take`:
  /// by taking over its memory, else as a copy. In a layer with rows, call keep_rows() before.
  void keep_recurrent(int il, RecurrentState& computed, bool may_take);
  /// Keeps nothing, for a layer that reads the rows of another one.
  void keep_nothing(int il);

  /// Memory that is needed for a while as rows are dropped that earlier layers kept.
  size_t ranking_bytes() const;
  /// Hands the result to the session. `times`: the times that all targets share.
  void commit(LogitRows logits, const PrefillTimes& times, const PrefillPlan& plan,
              size_t scratch_bytes);

 private:
  /// Makes an empty state of this session for layer il.
  LayerState& make_fresh(int il);
  Selection choose(int il, const RowState& scratch, std::span<const Tensor> q_windows,
                   int32_t most_rows) const;

  Selection rank(int il, const RowState& scratch, std::span<const Tensor> q_windows);
  void drop_rows(int il, const Selection& selection);

  Session::Impl& session_;
  const int64_t n_tokens_;
  const bool selects_;
  PrefillTarget* const observer_;  // the target that observes for this one, or null
  int rows_of_ = 0;                // the layer whose rows the current one sees
  const int64_t n_window_;
  /// Of the layers whose rows the current and later layers see.
  std::map<int, std::shared_ptr<LayerSelector>> selectors_;
  std::optional<LayerRanking> ranking_;             // if layers share the budget
  std::vector<std::unique_ptr<LayerState>> fresh_;  // [n_layer]
  std::vector<int> emptied_;  // layers whose old rows are among those that fresh_ has taken
  std::vector<std::vector<int32_t>> old_history_;  // [n_layer], history's rows before this prompt
  std::vector<SessionStats::Layer> layer_stats_;   // [n_layer]
  QueryRing queries_;                              // with kv_decode_limit
  double score_seconds_ = 0, gather_seconds_ = 0;
  bool committed_ = false;
};

}  // namespace snapkv
