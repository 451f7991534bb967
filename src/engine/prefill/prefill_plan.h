// SPDX-License-Identifier: MIT
// PrefillPlan: how a prompt will be computed: chunks, packed or direct weights, where hidden states
// lie, what the last layer needs. plan_prefill() makes it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/prefill/hidden_states.h"
#include "engine/prefill/replay.h"

namespace snapkv {

/// PrefillPlan::share of a session's options.
inline float attention_share(const SessionOptions& options) {
  const bool is_sparse = options.prefill_attention == PromptAttention::sparse;
  return is_sparse ? static_cast<float>(options.attention_share) : 0.0f;
}

struct PrefillPlan {
  std::span<const int32_t> tokens;  // tokens to read, without those of a prefix
  int64_t n_tokens = 0;
  float share = 0;                // SparseAttention::share; 0: attention is dense
  int64_t n_past = 0;             // tokens before them, seen by the sessions or from a prefix
  int64_t chunk = 0;              // tokens computed at a time
  int64_t n_skipped = 0;          // dry runs: first tokens that are not computed, nor in `tokens`
  int64_t n_logits = 0;           // logits wanted, for the last tokens
  bool packed = false;            // weights are packed
  bool packed_at_use = false;     // packed within each product; otherwise once per layer
  bool releases_weights = false;  // a layer's mapped weights leave the memory after use
  size_t planned_bytes = 0;       // for all sessions, weights not included
  HiddenStates::Place hidden_place = HiddenStates::Place::memory;
  std::vector<Replay> replays;  // computed after the prompt, in order; dry runs: the longest one
  int64_t n_replayed = 0;       // tokens of all replays

  /// The replay that a token of the run belongs to; nullptr: it is one of the prompt.
  const Replay* replay_at(int64_t token) const {
    if (token < n_tokens || replays.empty()) return nullptr;
    const auto next = std::ranges::upper_bound(replays, token, {}, &Replay::first);
    return &*std::prev(next);
  }
  /// Tokens of the run.
  int64_t n_computed() const {
    return replays.empty() ? n_tokens : replays.back().first + std::ssize(replays.back().tokens);
  }
  /// Rows that the scratch layer needs beside the prompt's.
  int64_t n_replay_rows() const {
    int64_t n = 0;
    for (const Replay& replay : replays) n = std::max(n, std::ssize(replay.tokens));
    return n;
  }
};

/// Rows of logits that are computed at once after the last layer.
inline constexpr int64_t kOutputRows = 16;

}  // namespace snapkv
