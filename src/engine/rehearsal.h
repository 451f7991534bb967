// SPDX-License-Identifier: MIT
// A dry run of a prompt: the engine's own code reads it and decodes a token on a device that counts
// allocations and computes nothing.
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "engine/hidden_states.h"
#include "engine/prefill_plan.h"
#include "snapkv/engine.h"

namespace snapkv {

/// What is read.
struct RehearsedPrompt {
  const ModelInfo& info;
  /// Of the sessions that read it together, as resolve_options() returns them. They differ in kv
  /// alone.
  std::span<const SessionOptions> sessions;
  int64_t n_tokens = 0;
  int64_t n_logits = 1;
  bool packed = false;  // PrefillPlan::packed
  HiddenStates::Place hidden_place = HiddenStates::Place::memory;
};

/// What the prompt's tokens and a decode step allocate: the parts of a plan that are allocated
/// while a prompt is read, weights excepted.
MemoryPlan rehearse(const RehearsedPrompt& prompt, const DeviceTraits& device);

}  // namespace snapkv
