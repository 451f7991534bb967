// SPDX-License-Identifier: MIT
// Architecture: one family of decoders. The engine drives it layer by layer (prefill: one layer
// over the whole prompt, chunk by chunk; decode: all layers over one token per sequence); how keys
// and values are stored and attended is behind AttentionStep.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/tensor.h"
#include "model/linear_runner.h"
#include "model/model_spec.h"
#include "model/weights.h"

namespace snapkv {

struct GgufTensor;

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
  static size_t bytes(const ModelSpec& spec, int64_t n_rows, DType dtype);

  /// Where they are: the same as long as nothing has grown.
  const void* data() const { return storage_.data(); }

  Tensor normed(int64_t n) const { return normed_.slice(0, n); }  // [n, n_embd] dtype
  /// What is added to the residual stream, [n, n_embd] f32; where ModelSpec::has_branches().
  Tensor branch(int64_t n) const { return branch_.slice(0, n); }
  Tensor q(int64_t n) const { return q_.slice(0, n); }  // [n, n_head, head_dim] f32
  Tensor k(int64_t n) const { return k_.slice(0, n); }  // [n, n_head_kv, head_dim] f32
  Tensor v(int64_t n) const { return v_.slice(0, n); }
  Tensor attn(int64_t n) const { return attn_.slice(0, n); }  // [n, n_head, head_dim] dtype
  /// [n, n_ff] f32, where the feed-forward network has a gate.
  Tensor gate(int64_t n) const { return gate_.slice(0, n); }
  Tensor up(int64_t n) const { return up_.slice(0, n); }
  Tensor act(int64_t n) const { return act_.slice(0, n); }  // [n, n_ff] dtype

 private:
  Buffer storage_;
  int64_t n_rows_ = 0;
  DType dtype_ = DType::f32;
  Tensor normed_, branch_, q_, k_, v_, attn_, gate_, up_, act_;
};

/// What one layer works on: n tokens of one prompt, or one token of each of n sequences. The last
/// layer of a prompt needs queries and outputs of its last tokens only.
struct LayerPass {
  Tensor x;  // [n, n_embd] f32, residual stream; the last n_out rows are updated
  std::span<const int32_t> pos;  // [n] true positions
  int64_t n_ctx = 0;             // context of the sessions: some models rotate by it
  int64_t n_q = 0;               // rows that need a query; n_out <= n_q <= n
  int64_t n_out = 0;             // rows that need the layer's output
  AttentionStep* attention = nullptr;
  LinearRunner* linear = nullptr;
  ActivationBuffer* buffers = nullptr;
};

class Architecture {
 public:
  /// By `general.architecture`. Throws Error{kBadModel} naming what is missing or not supported.
  static std::unique_ptr<Architecture> make(const GgufFile& file, Backend& backend);
  virtual ~Architecture() = default;

  /// Sizes, and what each layer is like.
  virtual const ModelSpec& spec() const = 0;
  const ModelConfig& config() const { return spec().config; }
  const LayerSpec& layer_spec(int il) const { return spec().layers[il]; }

  /// pass.x = embeddings of the tokens, which are at pass.pos.
  virtual void embed(std::span<const int32_t> tokens, const LayerPass& pass) = 0;
  virtual void layer(int il, const LayerPass& pass) = 0;
  /// logits [n, n_vocab] f32 of x [n, n_embd] f32, the last layer's output.
  virtual void output(const Tensor& x, ActivationBuffer& buffers, const Tensor& logits) = 0;
  /// The rotation of layer il's queries and keys in sessions with a context of n_ctx tokens; no
  /// frequencies where it has none.
  virtual RopeFrequencies rotation(int il, int64_t n_ctx) const = 0;
  /// Output projection of layer il's attention, [n_embd, n_head * head_dim].
  virtual const Weight& attention_output(int il) const = 0;
  /// Matrices of layer il, for LinearRunner::pack.
  virtual std::vector<const Weight*> layer_weights(int il) const = 0;
  /// What layer il is made of, as it lies in the file.
  virtual std::span<const GgufTensor* const> layer_tensors(int il) const = 0;
  /// Everything that ops are given as a weight, norms and biases too, in the order of their use.
  virtual std::vector<Tensor> weights() const = 0;
};

}  // namespace snapkv
