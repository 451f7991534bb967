// SPDX-License-Identifier: MIT
// plan_prefill(): checks a request to prefill_many() and decides how it will be computed, before
// anything is allocated.
#pragma once

#include <cstdint>
#include <span>

#include "engine/core/session_impl.h"
#include "engine/prefill/prefill_plan.h"

namespace snapkv {

/// Whether a prompt of n_tokens is computed with packed weights. Their products round differently
/// from those that read the weights directly.
bool packs_weights(const Session::Impl& session, int64_t n_tokens);

/// Throws kUsage, kContextExceeded or kDoesNotFit before anything has changed. `makes_prefix`:
/// PrefillPrompt::makes_prefix.
PrefillPlan plan_prefill(std::span<Session::Impl* const> sessions, std::span<const int32_t> tokens,
                         const PrefillOptions& options, bool makes_prefix);

}  // namespace snapkv
