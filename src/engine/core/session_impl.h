// SPDX-License-Identifier: MIT
// Session::Impl: the state of one sequence. Private to the engine.
#pragma once

#include <memory>
#include <vector>

#include "cache/layer_state.h"
#include "cache/recurrent_state.h"
#include "engine/core/answer_trace.h"
#include "engine/core/chosen_attention.h"
#include "engine/core/draft_reader.h"
#include "engine/core/logit_rows.h"
#include "engine/core/model_impl.h"
#include "engine/core/query_ring.h"
#include "policy/policy.h"
#include "snapkv/engine.h"

namespace snapkv {

/// What a session must know of its model.
struct ModelAccess {
  const ModelInfo* info = nullptr;
  Backend* backend = nullptr;
  const Architecture* architecture = nullptr;
  const GgufFile* file = nullptr;       // null in a dry run
  WeightPages* weight_pages = nullptr;  // as file
};

struct Session::Impl {
  std::shared_ptr<const Model> model;  // null in a dry run (rehearsal.h)
  ModelAccess parts;                   // the model's, or those of a dry run
  SessionOptions options;
  std::unique_ptr<Policy> policy;
  bool in_use = false;  // SessionsInUse
  int64_t n_ctx = 0;
  int64_t n_past = 0;  // tokens seen, which is also the position of the next one

  KvMeter meter;  // before the layers, which report to it until they are destroyed
  std::vector<std::unique_ptr<LayerState>> layers;  // [n_layer]; empty before the first prefill

  // With keeps_all(): all rows of the conversation, over which every turn reads its tokens and from
  // which it selects again, and how many rows of each head of `layers` are among them. Rows that
  // decoding has appended since are not, unless it reads all rows (reads_all()).
  KvMeter history_meter;
  std::vector<std::unique_ptr<RowState>> history;  // [n_layer]; null where no policy chooses
  std::vector<std::vector<int32_t>> in_history;    // [n_layer][n_head_kv]

  QueryRing queries;  // of the last tokens, with kv_decode_limit
  AnswerTrace trace;  // after trace_answer()

  LogitRows logits;  // [n_logits, n_vocab]; the last row is the last token's
  SessionStats stats;

  // Of recurrent layers: a copy of the state, in which guess_tokens() goes on. Empty before the
  // first guess, or if there are no such layers.
  std::vector<std::unique_ptr<RecurrentState>> draft_states;  // [n_layer]

  // With Draft::model: the tokens read, except those of a loaded file, and the model that reads
  // along; null before the first guess.
  std::vector<int32_t> text;
  std::unique_ptr<DraftReader> draft_reader;

  int64_t n_run = 0;     // tokens of the last decode step, which keep_decoded() can still forget
  LogitRows run_logits;  // [1 + n_run, n_vocab] if n_run > 1: before the step and after each token

  // memory of decode(), reused from step to step
  ActivationBuffer decode_buffers;
  Buffer decode_x;          // [n_seq, n_hidden] f32
  Buffer decode_logits;     // [n_seq, n_vocab] f32
  LogitRows step_logits;    // decode_logits on the host, until checked to be finite
  int64_t decode_rows = 0;  // sequences that the three have room for
  std::vector<HeadRows> decode_heads;
  ChosenAttention decode_chosen;

  const ModelInfo& info() const { return *parts.info; }
  Backend& backend() const { return *parts.backend; }
  const Architecture& architecture() const { return *parts.architecture; }
  /// The most tokens of a decode step for which memory is planned.
  int64_t most_step_tokens() const {
    return options.draft == Draft::off ? 1 : 1 + options.draft_max;
  }
  /// An empty ring for the queries of the policy's window and, with drafts, of a step's tokens.
  QueryRing make_query_ring() const;
  /// Whether decoding may compress the cache again.
  bool has_decode_limit() const { return options.kv_decode_limit > 0 && policy->info().has_budget; }
  /// Whether all rows are kept beside those that the policy chooses.
  bool keeps_all() const {
    return (options.kv_refresh || options.draft == Draft::self) && policy->info().has_budget;
  }
  /// Names the option that says so.
  const char* keeps_all_option() const { return options.kv_refresh ? "kv_refresh" : "draft"; }
  bool has_history(int il) const { return il < std::ssize(history) && history[il] != nullptr; }
  /// Whether decode steps read all rows of layer il, and the kept ones only make guesses.
  bool reads_all(int il) const { return options.draft == Draft::self && has_history(il); }
  /// Adds each head's rows of `source` from slot first[h] on to the history of layer il. What it
  /// throws leaves the history as it was.
  void add_to_history(int il, const RowState& source, std::span<const int32_t> first);
  /// Adds the rows of layer il that decoding appended, if the layer has a history.
  void remember(int il);
  /// Notes that tokens were read, for whoever reads along; note_room() before it may run out of
  /// memory.
  void note_room(int64_t n);
  void note(std::span<const int32_t> tokens);
  /// Updates the byte counts in stats.
  void update_memory_stats();
};

/// Throws kUsage unless session `i` of a batch, `s`, has the same rotation as the first one.
void check_rotation(const Session::Impl& s, const Session::Impl& first, size_t i);

}  // namespace snapkv
