// SPDX-License-Identifier: MIT
// A dry run of a prompt: the engine's own code reads it and decodes a token on a device that counts
// allocations and computes nothing.
#pragma once

#include "backend/backend.h"
#include "engine/plan/memory_plan.h"

namespace snapkv {

/// What the prompt's tokens and a decode step allocate: the parts of a plan that are allocated
/// while a prompt is read, weights excepted. `prompt.sessions`: as resolve_options() returns them;
/// they differ in kv alone. `prompt.hidden_place` holds also with spill_dir.
MemoryPlan rehearse(const PlannedPrompt& prompt, const DeviceTraits& device);

}  // namespace snapkv
