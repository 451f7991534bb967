// SPDX-License-Identifier: MIT
// Policy: decides, layer by layer at the end of prefill, which rows of the KV cache are kept.
// The engine and compress.h call it. A policy computes scores and indices with ops; it moves no data.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backend/backend.h"
#include "cache/selection.h"
#include "snapkv/policy.h"

namespace snapkv {

/// What a policy sees of one layer when its prompt has been read. The rows of a head are those of
/// the cache so far, oldest first; the last q_window.shape[0] rows are the window's own.
struct PolicyInput {
  int il = 0;
  int n_layer = 1;
  Tensor q_window;                  // [n_window, n_head, head_dim] f32, after RoPE
  Tensor k;                         // [n_head_kv, capacity, head_dim] KV dtype, after RoPE
  Tensor v;                         // as k
  std::span<const int32_t> n_rows;  // [n_head_kv]
  float scale = 1.0f;               // of the attention scores
};

class Policy {
 public:
  /// Throws as validate(config).
  static std::unique_ptr<Policy> make(const PolicyConfig& config);
  virtual ~Policy() = default;

  virtual const PolicyConfig& config() const = 0;
  /// Rows kept of a prompt of n_tokens: at most this many per layer and head (n_tokens if fewer).
  virtual int64_t budget_for(int64_t n_tokens) const = 0;
  /// Queries of the prompt's end that select() wants in q_window; 0 if none.
  virtual int window_size() const = 0;
  /// `budget`: rows to keep per head; a head with n_rows <= budget keeps all of them.
  virtual Selection select(Backend& backend, const PolicyInput& input, int64_t budget) const = 0;
};

}  // namespace snapkv
