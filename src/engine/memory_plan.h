// SPDX-License-Identifier: MIT
// Memory that a prompt will take.
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "engine/hidden_states.h"
#include "snapkv/engine.h"

namespace snapkv {

/// Type of prefill's scratch layer. For a q8_0 cache it is f16: the prompt is read and rows are
/// chosen as with an f16 cache, and the kept rows are then quantized.
constexpr DType scratch_dtype(DType kv_type) {
  return kv_type == DType::q8_0 ? DType::f16 : kv_type;
}

/// Rows of logits that are computed at once after the last layer.
inline constexpr int64_t kOutputRows = 16;

/// The fewest rows that a layer's history (kv_refresh) grows by, so that short turns do not copy it
/// each time.
inline constexpr int32_t kHistoryGrowth = 256;

/// A prompt that one or several sessions read together.
struct PlannedPrompt {
  const ModelInfo& info;
  std::span<const SessionOptions> sessions;
  int64_t n_tokens = 0;
  int64_t n_logits = 1;
  HiddenStates::Place hidden_place = HiddenStates::Place::memory;  // without spill_dir
};
/// As plan_memory(), of which this is the general form. `device.asked` is the model's.
MemoryPlan plan_prompt(const PlannedPrompt& prompt, const DeviceTraits& device);

/// Throws kUsage unless the rows of the model's layers can have this type.
void validate_kv_type(DType kv_type, const ModelInfo& info);

}  // namespace snapkv
