// SPDX-License-Identifier: MIT
// PrefillPlan: what prefill_many() was asked for, checked, and how it will be computed: chunks,
// packed or direct weights, where hidden states lie, what the last layer needs. Made by prefill.cpp
// before anything is allocated, read by prefill_run.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "engine/hidden_states.h"
#include "engine/session_impl.h"

namespace snapkv {

struct PrefillPlan {
  std::span<const int32_t> tokens;  // those that are read: not those of a prefix
  int64_t n_tokens = 0;
  int64_t n_past = 0;             // tokens before them: seen by the sessions or of a prefix
  int64_t chunk = 0;              // tokens computed at a time
  int64_t n_logits = 0;           // logits wanted, of the last tokens
  bool packed = false;            // weights are packed
  bool packed_at_use = false;     // by each product; else once per layer
  bool releases_weights = false;  // a layer's mapped weights leave the memory once used up
  size_t planned_bytes = 0;       // of all sessions, beside the weights
  HiddenStates::Place hidden_place = HiddenStates::Place::memory;
};

/// Whether a prompt of n_tokens is computed with packed weights; their products round otherwise
/// than those that read weights as they are.
bool packs_weights(const Session::Impl& session, int64_t n_tokens);

/// Throws kUsage, kContextExceeded, kDoesNotFit; nothing has changed then. `makes_prefix`:
/// PrefillPrompt::makes_prefix.
PrefillPlan plan_prefill(std::span<Session::Impl* const> sessions, std::span<const int32_t> tokens,
                         const PrefillOptions& options, bool makes_prefix);

}  // namespace snapkv
