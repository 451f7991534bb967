// SPDX-License-Identifier: MIT
// LayerSpec: what the engine must know about a layer to compute its attention, keep its cache and
// plan its memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/ops.h"
#include "cache/layer_state.h"
#include "model/rotation.h"
#include "snapkv/model_info.h"

namespace snapkv {

/// A layer's index and their number, counting only the layers that policies choose rows of. This is
/// what a policy knows as il and n_layer.
struct PolicyLayer {
  int il = 0;
  int n_layer = 0;
};

struct LayerSpec {
  AttentionKind attention = AttentionKind::full;
  int64_t window = 0;      // tokens that a query sees through a sliding window, its own included
  float scale = 1.0f;      // of the scores
  float softcap = 0.0f;    // of the scores; 0: none
  RotationSpec rotation;   // of queries and keys
  bool compressed = true;  // whether a policy chooses among the rows of its state
  PolicyLayer place;       // among the layers where it does
  StateShape state;        // what it remembers of a sequence

  /// Number of rows that a query at position n_tokens - 1 sees.
  int64_t visible_rows(int64_t n_tokens) const {
    return attention == AttentionKind::sliding_window ? std::min(n_tokens, window) : n_tokens;
  }
  /// Without sinks, which are weights: Architecture::variant() has them.
  AttentionVariant variant() const {
    return {.window = attention == AttentionKind::sliding_window ? window : 0, .softcap = softcap};
  }
};

}  // namespace snapkv
