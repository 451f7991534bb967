// SPDX-License-Identifier: MIT
// Policy: decides, layer by layer at the end of prefill, which rows of the KV cache are kept.
// The engine and compress.h call it. A policy computes scores and indices with ops; it moves no
// data.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backend/backend.h"
#include "backend/ops.h"
#include "cache/selection.h"
#include "snapkv/policy.h"

namespace snapkv {

/// A chunk of a layer's queries during prefill, for policies that look at all of them.
struct QueryChunk {
  Tensor q;                         // [n, n_head, head_dim] f32, after RoPE
  std::span<const int32_t> pos;     // [n] true positions
  Tensor k;                         // [n_head_kv, capacity, head_dim] KV dtype, after RoPE
  std::span<const int32_t> n_rows;  // [n_head_kv], the chunk's own n rows are the last ones
  float scale = 1.0f;
  RopeFrequencies rope;           // that q and k were rotated with
  AttentionVariant variant = {};  // of the layer's attention
};

/// Gathers what a policy wants to know of a layer's queries; made per layer, chunks in order.
class QueryObserver {
 public:
  virtual ~QueryObserver() = default;
  virtual void observe(Backend& backend, const QueryChunk& chunk) = 0;
};

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
  RopeFrequencies rope;             // that q and k were rotated with
  AttentionVariant variant = {};    // of the layer's attention: scores vote after its cap
  Tensor wo;  // [n_embd, n_head * head_dim] the layer's output projection, any
              // weight type; empty outside of a model
  QueryObserver* observer = nullptr;  // what make_observer() gave for this layer, if anything
};

class Policy {
 public:
  /// Throws as validate(config).
  static std::unique_ptr<Policy> make(const PolicyConfig& config);
  virtual ~Policy() = default;

  virtual const PolicyConfig& config() const = 0;
  /// Rows kept of a prompt of n_tokens per layer and head, on average (n_tokens if fewer).
  virtual int64_t budget_for(int64_t n_tokens) const = 0;
  /// The same for layer il, where a policy treats layers differently: on average over its heads.
  virtual int64_t layer_budget(int64_t n_tokens, int il, int n_layer) const {
    static_cast<void>(il), static_cast<void>(n_layer);
    return budget_for(n_tokens);
  }
  /// True where heads of a layer take rows from each other: one may then keep more than the budget.
  virtual bool shares_budget() const { return false; }
  /// False where every row is kept, whatever the budget.
  virtual bool has_budget() const { return true; }
  /// The smallest budget that can work.
  virtual int64_t least_budget() const = 0;
  /// Queries of the prompt's end that select() wants in q_window; 0 if none.
  virtual int window_size() const = 0;
  /// An observer of layer `il`'s queries, if the policy needs more of them than the window's.
  virtual std::unique_ptr<QueryObserver> make_observer(int il) const {
    static_cast<void>(il);
    return nullptr;
  }
  /// `budget`: of layer_budget(); rows to keep per head; a head with n_rows <= budget keeps all of
  /// them.
  virtual Selection select(Backend& backend, const PolicyInput& input, int64_t budget) const = 0;
};

}  // namespace snapkv
