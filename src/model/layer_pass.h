// SPDX-License-Identifier: MIT
// LayerPass: what one layer works on, and the memory and the attention that it works with. The
// engine fills it in; layers and their blocks (blocks/block.h) read it.
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "base/tensor.h"
#include "model/blocks/expert_routes.h"
#include "model/linear_runner.h"
#include "model/model_spec.h"

namespace snapkv {

/// Stores the new keys and values of a layer and attends to all that are visible.
class AttentionStep {
 public:
  virtual ~AttentionStep() = default;
  /// q [n_q, n_head, head_dim], k and v [n, n_head_kv, head_dim], f32, after RoPE; q belongs to the
  /// last n_q of the n tokens. out [n_out, n_head, head_dim]: attention of the last n_out of them.
  virtual void attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out) = 0;
};

/// Memory for the activations of up to n_rows tokens, reused from layer to layer.
class ActivationBuffer {
 public:
  /// Grows when needed. `dtype`: LinearRunner::input_dtype().
  void ensure(Backend& backend, const ModelSpec& spec, int64_t n_rows, DType dtype);
  static constexpr const char* kLabel = "activations";

  /// Where they are: the same as long as nothing has grown.
  const void* data() const { return storage_.data(); }

  Tensor normed(int64_t n) const { return normed_.slice(0, n); }  // [n, n_embd] dtype
  /// What is added to the residual stream, [n, n_embd] f32; where ModelSpec::has_branches().
  Tensor branch(int64_t n) const { return branch_.slice(0, n); }
  Tensor q(int64_t n) const { return q_.slice(0, n); }  // [n, n_head, head_dim] f32
  Tensor k(int64_t n) const { return k_.slice(0, n); }  // [n, n_head_kv, head_dim] f32
  Tensor v(int64_t n) const { return v_.slice(0, n); }
  Tensor attn(int64_t n) const { return attn_.slice(0, n); }  // [n, n_head, head_dim] dtype
  /// [n, n_ff] f32, where the feed-forward network has a gate; n <= ModelSpec::ffn_rows().
  Tensor gate(int64_t n) const { return gate_.slice(0, n); }
  Tensor up(int64_t n) const { return up_.slice(0, n); }
  Tensor act(int64_t n) const { return act_.slice(0, n); }  // [n, n_ff] dtype

  // where there are experts
  Tensor gathered(int64_t n) const { return gathered_.slice(0, n); }  // [n, n_embd] dtype
  Tensor router(int64_t n) const { return router_.slice(0, n); }      // [n, n_expert] f32
  /// ExpertRoutes::tokens() in the device's memory: [n] i32.
  Tensor routed(int64_t n) const { return routed_.slice(0, n); }
  ExpertRoutes& routes() { return routes_; }

 private:
  Buffer storage_;
  int64_t n_rows_ = 0;
  DType dtype_ = DType::f32;
  Tensor normed_, branch_, q_, k_, v_, attn_, gate_, up_, act_, gathered_, router_, routed_;
  ExpertRoutes routes_;
};

/// What one layer works on: n tokens of one prompt, or one token of each of n sequences. The last
/// layer of a prompt needs queries and outputs of its last tokens only.
struct LayerPass {
  Backend* backend = nullptr;
  Tensor x;  // [n, n_embd] f32, residual stream; the last n_out rows are updated
  std::span<const int32_t> pos;  // [n] true positions
  int64_t n_ctx = 0;             // context of the sessions: some models rotate by it
  int64_t n_q = 0;               // rows that need a query; n_out <= n_q <= n
  int64_t n_out = 0;             // rows that need the layer's output
  AttentionStep* attention = nullptr;
  LinearRunner* linear = nullptr;
  ActivationBuffer* buffers = nullptr;
};

}  // namespace snapkv
