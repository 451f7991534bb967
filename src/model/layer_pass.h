// SPDX-License-Identifier: MIT
// LayerPass: what one layer works on, and the memory and the attention that it works with. The
// engine fills it in; layers and their blocks (blocks/block.h) read it.
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "backend/ops.h"
#include "base/check.h"
#include "base/tensor.h"
#include "model/activations.h"
#include "model/linear_runner.h"

namespace snapkv {

/// By what the rows are chosen that queries attend to (arXiv 2512.02556, eq. 1): of those that a
/// query sees, the `top_k` with the highest
///   sum over h of weights[h] * max(0, q[h] . i)
/// where i are values of the row's key from `offset` on.
struct RowChoice {
  Tensor q;        // [n_q, n_index_head, d] f32
  Tensor weights;  // [n_q, n_index_head] f32
  int64_t offset = 0;
  int64_t top_k = 0;

  explicit operator bool() const { return top_k > 0; }
  /// That of queries [begin, end).
  RowChoice slice(int64_t begin, int64_t end) const {
    if (!*this) return *this;
    return {q.slice(begin, end), weights.slice(begin, end), offset, top_k};
  }
};

/// Stores the new keys and values of a layer and attends to all that are visible, or to those that
/// are chosen.
class AttentionStep {
 public:
  virtual ~AttentionStep() = default;
  /// q [n_q, n_head, head_dim], k and v [n, n_head_kv, head_dim], f32, after RoPE; q belongs to the
  /// last n_q of the n tokens. out [n_out, n_head, head_dim]: attention of the last n_out of them.
  /// k and v are empty in a layer that reads another one's rows, which those of the n tokens are
  /// among.
  virtual void attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out) = 0;
  /// The same in a layer that chooses. `choice`: for each row of q.
  virtual void attend_to_chosen(const RowChoice& /*choice*/, const Tensor& /*q*/,
                                const Tensor& /*k*/, const Tensor& /*v*/, const Tensor& /*out*/) {
    SNAPKV_CHECK(false);
  }
};

/// What one layer works on: n tokens of one prompt, or those that a decode step appends to each of
/// its sequences. The last layer of a prompt needs queries and outputs of its last tokens only.
struct LayerPass {
  Backend* backend = nullptr;
  /// [n, n_hidden] f32, residual stream, or several (blocks/altup.h); the last n_out rows are
  /// updated. Blocks get [n, n_embd].
  Tensor x;
  /// [n, n_embd] f32: the first layer's values, which it writes, or the embeddings, in models with
  /// ModelConfig::first_values.
  Tensor first_values;
  std::span<const int32_t> tokens;  // [n]
  std::span<const int32_t> pos;     // [n] true positions
  int64_t n_ctx = 0;                // context of the sessions: some models rotate by it
  int64_t n_q = 0;                  // rows that need a query; n_out <= n_q <= n
  int64_t n_out = 0;                // rows that need the layer's output
  /// All rows, in order: one entry for each sequence or, where a recurrent state is set aside, for
  /// each piece of one. Only layers that have such a state have states here.
  std::span<const SequenceRows> sequences;
  AttentionStep* attention = nullptr;  // of layers with rows
  LinearRunner* linear = nullptr;
  ActivationBuffer* buffers = nullptr;
};

}  // namespace snapkv
