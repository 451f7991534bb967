// SPDX-License-Identifier: MIT
// LayerSpec: what the engine must know of one layer to compute its attention, to keep its cache and
// to plan its memory. Made by model_spec.cpp; the engine asks Architecture::spec() for it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/ops.h"
#include "model/rotation.h"
#include "snapkv/model_info.h"

namespace snapkv {

struct LayerSpec {
  AttentionKind attention = AttentionKind::full;
  int64_t window = 0;      // of a sliding window: tokens that a query sees, its own included
  float scale = 1.0f;      // of the scores
  float softcap = 0.0f;    // of the scores; 0: none
  RotationSpec rotation;   // of queries and keys
  bool compressed = true;  // whether a policy chooses among the rows of its cache

  /// Rows that a query at position n_tokens - 1 sees.
  int64_t visible_rows(int64_t n_tokens) const {
    return attention == AttentionKind::sliding_window ? std::min(n_tokens, window) : n_tokens;
  }
  /// None of the families has sinks, which are weights.
  AttentionVariant variant() const {
    return {.window = attention == AttentionKind::sliding_window ? window : 0, .softcap = softcap};
  }
};

}  // namespace snapkv
