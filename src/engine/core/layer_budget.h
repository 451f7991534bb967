// SPDX-License-Identifier: MIT
// How many rows each layer of a model keeps: the policy's budget, or the window if the layer has a
// sliding window.
#pragma once

#include <cstdint>

#include "model/model_spec.h"
#include "policy/policy.h"

namespace snapkv {

/// The most rows per KV head, averaged over the heads, that layer il keeps of n_tokens.
int64_t layer_budget(const ModelSpec& spec, const Policy& policy, int64_t n_tokens, int il);

}  // namespace snapkv
