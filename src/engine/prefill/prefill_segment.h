// SPDX-License-Identifier: MIT
// PrefillSegment: one prompt of a PrefillRun, with its sessions, its scratch layer and the queries
// of its window. A run computes several short prompts together.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cache/recurrent_state.h"
#include "engine/prefill/attention_probe.h"
#include "engine/prefill/kv_prefix.h"
#include "engine/prefill/prefill_attention.h"
#include "engine/prefill/prefill_plan.h"
#include "snapkv/prefill.h"

namespace snapkv {

class PrefillSegment {
 public:
  /// `prompt` must outlive this object; `sessions` belong to it alone. `times`: the run's.
  PrefillSegment(const PrefillPrompt& prompt, const PrefillPlan& plan,
                 std::span<Session::Impl* const> sessions, PrefillTimes& times);

  const PrefillPlan& plan() const { return plan_; }
  const PrefillOptions& options() const { return prompt_.options; }
  Session::Impl& first() const { return targets_[0]->session(); }
  /// Positions of the current chunk's tokens.
  std::span<const int32_t> pos() const { return pos_; }
  /// Memory of scratch layers, without those that have become a session's.
  size_t scratch_bytes() const;

  void allocate();
  /// Fills the scratch layer with the rows that are already there.
  void begin_layer(int il);
  /// The first token whose query the layer needs.
  int64_t first_query(int il) const;
  /// The attention step for tokens [begin, end) of this layer, which are all of the prompt or all
  /// of one replay. `sequences` gets what the run's chunk holds of this prompt, from row
  /// `first_row` on.
  AttentionStep& begin_chunk(int il, int64_t begin, int64_t end, int64_t first_row,
                             std::vector<SequenceRows>& sequences);
  /// Call it when the chunk's ops have been given to the backend.
  void end_chunk(int64_t end);
  void end_layer(int il);

  /// [n_logits, n_vocab], to be filled.
  LogitRows& logits() { return logits_; }
  /// Does the part of commit() that can fail: once a session has changed, nothing may fail.
  void prepare_commit();
  /// Hands the result to the sessions.
  void commit(const PrefillTimes& times);
  std::shared_ptr<const KvPrefix> take_prefix() { return std::move(prefix_); }

 private:
  void fill_scratch(int il);
  AttentionStep& begin_replay(int il, int64_t begin, int64_t end, int64_t first_row,
                              std::vector<SequenceRows>& sequences);
  void begin_replay_states(int il, const Replay& replay);
  void forget_replay(int il);
  void begin_recurrent(int il);
  void add_pieces(int64_t begin, int64_t end, int64_t first_row,
                  std::vector<SequenceRows>& sequences);
  void end_attention(int il);
  void keep_recurrent(int il);
  RowState& rows_of(int il) const;
  void hold_rows(int il);
  void keep_rows(int il);
  void skip_rows();

  const PrefillPrompt& prompt_;
  PrefillPlan plan_;
  PrefillTargets targets_;
  std::unique_ptr<ProbeObserver> probe_;  // if one is set
  PrefillAttentionStep attention_;
  int64_t n_window_ = 0;  // the largest of all targets
  Buffer window_buffer_;
  Tensor q_window_;                    // [n_window, n_head, head_dim] f32, of the current layer
  std::vector<int32_t> pos_;           // of the current chunk
  std::unique_ptr<RowState> scratch_;  // of the current layer, if it has rows of its own
  /// Rows that later layers see too, and the windows of the layers that have: what policies choose
  /// by when the last of these is done.
  struct HeldRows {
    std::unique_ptr<RowState> rows;
    std::vector<Buffer> storage;
    std::vector<Tensor> windows;  // as q_window_
  };
  std::map<int, HeldRows> held_;  // by layer
  /// The rows of replays that later layers see too, by layer and the piece's first token.
  std::map<std::pair<int, int64_t>, std::unique_ptr<RowState>> replays_;
  std::unique_ptr<RecurrentState> recurrent_;  // of the current layer, if it has one
  std::unique_ptr<RecurrentState> replayed_;   // the same, gone on with a replay
  std::vector<int64_t> marks_;  // the numbers of tokens after which the prefix has such states
  size_t scratch_bytes_ = 0;
  LogitRows logits_;
  std::vector<LogitRows> target_logits_;     // [targets], set when the prompt is done
  std::optional<PrefixMaker> prefix_maker_;  // with PrefillPrompt::makes_prefix
  std::shared_ptr<const KvPrefix> prefix_;
};

}  // namespace snapkv
