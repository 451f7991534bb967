// SPDX-License-Identifier: MIT
// Memory that a prompt will take.
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "engine/prefill/hidden_states.h"
#include "snapkv/engine.h"

namespace snapkv {

/// A prompt that one or several sessions read together.
struct PlannedPrompt {
  const ModelInfo& info;
  std::span<const SessionOptions> sessions;
  int64_t n_tokens = 0;
  int64_t n_logits = 1;
  HiddenStates::Place hidden_place = HiddenStates::Place::memory;  // without spill_dir
  bool guesses = false;  // whether its sessions then read guesses, which they forget again
};
/// As plan_memory(), of which this is the general form. `device.asked` is the model's.
MemoryPlan plan_prompt(const PlannedPrompt& prompt, const DeviceTraits& device);

}  // namespace snapkv
