// SPDX-License-Identifier: MIT
// How many rows each layer of a model keeps: what the policy says where it chooses, the window
// where the layer's attention has one. Used by prefill, recompression and memory plans.
#pragma once

#include <cstdint>

#include "model/model_spec.h"
#include "policy/policy.h"

namespace snapkv {

/// A layer's place among those that policies choose rows of: what a policy knows as il of n_layer.
struct PolicyLayer {
  int il = 0;
  int n_layer = 0;
};
PolicyLayer policy_layer(const ModelSpec& spec, int il);

/// Most rows per KV head, on average, that layer il keeps of n_tokens.
int64_t layer_budget(const ModelSpec& spec, const Policy& policy, int64_t n_tokens, int il);

}  // namespace snapkv
