// SPDX-License-Identifier: MIT
// PrefillPlan: a checked request to prefill_many() and how it will be computed: chunks, packed or
// direct weights, where hidden states lie, what the last layer needs. It is complete before
// anything is allocated.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "engine/hidden_states.h"
#include "engine/session_impl.h"

namespace snapkv {

struct PrefillPlan {
  std::span<const int32_t> tokens;  // tokens to read, without those of a prefix
  int64_t n_tokens = 0;
  int64_t n_past = 0;             // tokens before them, seen by the sessions or from a prefix
  int64_t chunk = 0;              // tokens computed at a time
  int64_t n_skipped = 0;          // dry runs: first tokens that are not computed, nor in `tokens`
  int64_t n_logits = 0;           // logits wanted, for the last tokens
  bool packed = false;            // weights are packed
  bool packed_at_use = false;     // packed within each product; otherwise once per layer
  bool releases_weights = false;  // a layer's mapped weights leave the memory after use
  size_t planned_bytes = 0;       // for all sessions, weights not included
  HiddenStates::Place hidden_place = HiddenStates::Place::memory;
};

/// Whether a prompt of n_tokens is computed with packed weights. Their products round differently
/// from those that read the weights directly.
bool packs_weights(const Session::Impl& session, int64_t n_tokens);

/// Throws kUsage, kContextExceeded or kDoesNotFit before anything has changed. `makes_prefix`:
/// PrefillPrompt::makes_prefix.
PrefillPlan plan_prefill(std::span<Session::Impl* const> sessions, std::span<const int32_t> tokens,
                         const PrefillOptions& options, bool makes_prefix);

}  // namespace snapkv
