// SPDX-License-Identifier: MIT
// How many rows each layer of a model keeps: the policy's budget, or the window if the layer has a
// sliding window.
#pragma once

#include <cstdint>

#include "model/model_spec.h"
#include "policy/policy.h"

namespace snapkv {

/// A layer's index and their number, counting only the layers that policies choose rows of. This is
/// what a policy knows as il and n_layer.
struct PolicyLayer {
  int il = 0;
  int n_layer = 0;
};
PolicyLayer policy_layer(const ModelSpec& spec, int il);

/// The most rows per KV head, averaged over the heads, that layer il keeps of n_tokens.
int64_t layer_budget(const ModelSpec& spec, const Policy& policy, int64_t n_tokens, int il);

}  // namespace snapkv
