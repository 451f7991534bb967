// SPDX-License-Identifier: MIT
// Policy: decides, layer by layer at the end of prefill, which rows of the KV cache are kept. A
// policy computes scores and indices with ops; it moves no data. Memory plans run it on a backend
// that computes nothing (DeviceMemory::computes), so it allocates all that grows with a prompt
// through the backend, and looks at values only where the backend computes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/ops.h"
#include "base/check.h"
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
  RopeFrequencies rope;           // applied to q and k
  AttentionVariant variant = {};  // the layer's attention
  int64_t chunk = 0;  // > 0: a query sees the rows from the last multiple of this position on
  /// Which of the layers that see these rows the queries are of, PolicyInput::wo's index. Chunks of
  /// one layer follow all those of the layer before it.
  size_t reader = 0;
  /// Of a chunk of a replay (engine/prefill/replay.h): the prompt's tokens that it repeats, and how
  /// many of the rows, the last ones, are the replay's own. The others are the prompt's.
  struct Replay {
    int32_t begin = 0, end = 0;
    int32_t n_own = 0;  // 0: these queries are of the prompt itself
  };
  Replay replay = {};
};

/// Scores of all rows of a layer.
struct RowScores {
  Buffer storage;  // owns `view`
  Tensor view;     // [n_head_kv, max(n_rows)] f32, on the host; infinity: the row stays
  std::vector<int32_t> n_rows;  // [n_head_kv]
};

/// A policy's view of one layer once the prompt has been read. Where several layers see its rows,
/// the query heads of all of them count as heads of one group for each KV head: those of the first
/// layer, then those of the next one. n_head is the number of all. The rows of a head are those of
/// the cache so far, oldest first; the last q_window.shape[0] rows are those of the window's
/// tokens.
struct PolicyInput {
  int il = 0;
  int n_layer = 1;
  Tensor q_window;                  // [n_window, n_head, head_dim] f32, after RoPE
  Tensor k;                         // [n_head_kv, capacity, head_dim] KV dtype, after RoPE
  Tensor v;                         // [n_head_kv, capacity, value_dim], as k; may lie in k's rows
  std::span<const int32_t> n_rows;  // [n_head_kv]
  float scale = 1.0f;               // of the attention scores
  RopeFrequencies rope;             // applied to q and k
  AttentionVariant variant = {};    // the layer's attention: votes use capped scores
  /// The output projections of these layers, each [n_embd, n_head_of_layer * n], any weight type;
  /// none outside a model. n is value_dim, unless there are value_heads.
  std::span<const Tensor> wo;
  /// [n_head] of [n, value_dim], any weight type: the matrix by which each query head makes its
  /// value of a row of v (latent attention). Empty: rows of v are the values.
  std::span<const Tensor> value_heads;
};

/// Selects the rows of one layer. It must not outlive its policy.
class LayerSelector {
 public:
  virtual ~LayerSelector() = default;
  /// The layer's queries, chunk by chunk in order. Needed if the policy observes.
  virtual void observe(const QueryChunk& /*chunk*/) { SNAPKV_CHECK(false); }
  /// Call once, when the prompt has been read. `budget`: rows to keep per head, from
  /// Policy::layer_budget(); a head with n_rows <= budget keeps all of them.
  virtual Selection select(const PolicyInput& input, int64_t budget) = 0;
  /// In place of select() where layers share the budget (PolicyInfo::shares_layers).
  virtual RowScores score_rows(const PolicyInput& /*input*/) {
    SNAPKV_CHECK(false);
    return {};
  }
};

class Policy {
 public:
  /// Throws as validate() does.
  static std::unique_ptr<Policy> make(const PolicyConfig& config);
  virtual ~Policy() = default;

  /// The policy's description, and whether it has a budget, observes, and shares its budget.
  const PolicyInfo& info() const { return info_; }
  const PolicyConfig& config() const { return config_; }
  /// Rows kept per layer and head, on average, of a prompt of n_tokens (n_tokens if fewer).
  virtual int64_t budget_for(int64_t n_tokens) const = 0;
  /// Same for layer il, averaged over its heads, for policies that treat layers differently.
  virtual int64_t layer_budget(int64_t n_tokens, int /*il*/, int /*n_layer*/) const {
    return budget_for(n_tokens);
  }
  /// The smallest budget that can work.
  virtual int64_t least_budget() const = 0;
  /// Number of queries from the end of the prompt that select() wants in q_window; may be 0.
  virtual int window_size() const = 0;
  virtual std::unique_ptr<LayerSelector> make_selector(Backend& backend) const = 0;

 protected:
  /// `info` must outlive the policy.
  Policy(const PolicyInfo& info, const PolicyConfig& config) : info_(info), config_(config) {}

 private:
  const PolicyInfo& info_;
  PolicyConfig config_;
};

}  // namespace snapkv
