// SPDX-License-Identifier: MIT
// Architecture: a decoder of one family. The engine runs it layer by layer: in prefill, one layer
// over the whole prompt, chunk by chunk; in decoding, all layers over one token of each sequence.
// AttentionStep hides how keys and values are stored and attended to.
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

/// Stores the new keys and values of a layer and attends to all that are visible to the queries.
class AttentionStep {
 public:
  virtual ~AttentionStep() = default;
  /// q [n_q, n_head, head_dim], k and v [n, n_head_kv, head_dim], f32, after RoPE. The queries
  /// belong to the last n_q of the n tokens. out [n_out, n_head, head_dim] receives the attention
  /// of the last n_out tokens.
  virtual void attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out) = 0;
};

/// Memory for the activations of up to n_rows tokens, reused from layer to layer.
class ActivationBuffer {
 public:
  /// Allocates again if the memory is too small or has another type. `dtype`:
  /// LinearRunner::input_dtype().
  void ensure(Backend& backend, const ModelSpec& spec, int64_t n_rows, DType dtype);
  static size_t bytes(const ModelSpec& spec, int64_t n_rows, DType dtype);

  /// The memory's address; it changes only when ensure() allocates again.
  const void* data() const { return storage_.data(); }

  Tensor normed(int64_t n) const { return normed_.slice(0, n); }  // [n, n_embd] dtype
  /// [n, n_embd] f32: a block's result before it is added to the residual stream. Present only if
  /// ModelSpec::has_branches().
  Tensor branch(int64_t n) const { return branch_.slice(0, n); }
  Tensor q(int64_t n) const { return q_.slice(0, n); }  // [n, n_head, head_dim] f32
  Tensor k(int64_t n) const { return k_.slice(0, n); }  // [n, n_head_kv, head_dim] f32
  Tensor v(int64_t n) const { return v_.slice(0, n); }
  Tensor attn(int64_t n) const { return attn_.slice(0, n); }  // [n, n_head, head_dim] dtype
  /// [n, n_ff] f32, present only if the feed-forward network has a gate.
  Tensor gate(int64_t n) const { return gate_.slice(0, n); }
  Tensor up(int64_t n) const { return up_.slice(0, n); }
  Tensor act(int64_t n) const { return act_.slice(0, n); }  // [n, n_ff] dtype

 private:
  Buffer storage_;
  int64_t n_rows_ = 0;
  DType dtype_ = DType::f32;
  Tensor normed_, branch_, q_, k_, v_, attn_, gate_, up_, act_;
};

/// The tokens that one layer computes: n of one prompt, or one of each of n sequences. A prompt's
/// last layer needs queries and outputs only for its last tokens.
struct LayerPass {
  Tensor x;  // [n, n_embd] f32, residual stream; the last n_out rows are updated
  std::span<const int32_t> pos;  // [n] true positions
  int64_t n_ctx = 0;             // context of the sessions; some models' rotation depends on it
  int64_t n_q = 0;               // rows that need a query; n_out <= n_q <= n
  int64_t n_out = 0;             // rows that need the layer's output
  AttentionStep* attention = nullptr;
  LinearRunner* linear = nullptr;
  ActivationBuffer* buffers = nullptr;
};

class Architecture {
 public:
  /// Builds the family that `general.architecture` names. Throws Error{kBadModel} naming what is
  /// missing or not supported.
  static std::unique_ptr<Architecture> make(const GgufFile& file, Backend& backend);
  virtual ~Architecture() = default;

  virtual const ModelSpec& spec() const = 0;
  const ModelConfig& config() const { return spec().config; }
  const LayerSpec& layer_spec(int il) const { return spec().layers[il]; }

  /// Sets pass.x to the embeddings of the tokens, whose positions are pass.pos.
  virtual void embed(std::span<const int32_t> tokens, const LayerPass& pass) = 0;
  virtual void layer(int il, const LayerPass& pass) = 0;
  /// Computes logits [n, n_vocab] f32 from x [n, n_embd] f32, the last layer's output.
  virtual void output(const Tensor& x, ActivationBuffer& buffers, const Tensor& logits) = 0;
  /// The rotation of layer il's queries and keys in sessions with a context of n_ctx tokens;
  /// without frequencies if the layer has no rotation.
  virtual RopeFrequencies rotation(int il, int64_t n_ctx) const = 0;
  /// The output projection of layer il's attention, [n_embd, n_head * head_dim].
  virtual const Weight& attention_output(int il) const = 0;
  /// The matrices of layer il, as LinearRunner::pack takes them.
  virtual std::vector<const Weight*> layer_weights(int il) const = 0;
  /// The tensors of layer il in the file.
  virtual std::span<const GgufTensor* const> layer_tensors(int il) const = 0;
  /// All tensors that are passed to ops as weights, norms and biases included, in the order in
  /// which a device places them.
  virtual std::vector<Tensor> weights() const = 0;
};

}  // namespace snapkv
