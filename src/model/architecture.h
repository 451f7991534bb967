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
#include "model/layer_pass.h"
#include "model/model_spec.h"
#include "model/weights.h"

namespace snapkv {

struct GgufTensor;

class Architecture {
 public:
  /// Builds the family that `general.architecture` names. Throws Error{kBadModel} naming what is
  /// missing or not supported.
  static std::unique_ptr<Architecture> make(const GgufFile& file);
  virtual ~Architecture() = default;

  virtual const ModelSpec& spec() const = 0;
  const ModelConfig& config() const { return spec().config; }
  const LayerSpec& layer_spec(int il) const { return spec().layers[il]; }

  /// What the other methods compute in: the memory for it is LayerPass::buffers.
  virtual const ActivationPlan& activations() const = 0;

  /// Sets pass.x to the embeddings of the tokens, whose positions are pass.pos.
  virtual void embed(std::span<const int32_t> tokens, const LayerPass& pass) const = 0;
  virtual void layer(int il, const LayerPass& pass) const = 0;
  /// Computes logits [n, n_vocab] f32 from x [n, n_hidden] f32, the last layer's output.
  virtual void output(Backend& backend, const Tensor& x, ActivationBuffer& buffers,
                      const Tensor& logits) const = 0;
  /// How layer il's attention differs from a plain softmax, sinks included.
  virtual AttentionVariant variant(int il) const = 0;
  /// The rotation of layer il's queries and keys in sessions with a context of n_ctx tokens;
  /// without frequencies if the layer has no rotation.
  virtual RopeFrequencies rotation(int il, int64_t n_ctx) const = 0;
  /// The output projection of layer il's attention, [n_embd, n_head * n]; n is head_dim_v, unless
  /// there are value_heads.
  virtual const Weight& attention_output(int il) const = 0;
  /// [n_head] of [n, head_dim_v]: what makes of a cached value that of each query head (latent
  /// attention). Empty: cached values are what attention adds up.
  virtual std::span<const Tensor> value_heads(int il) const = 0;
  /// Of layer il, for LinearRunner::pack.
  virtual LayerMatrices layer_matrices(int il) const = 0;
  /// A number that two layers have in common if they compute alike: with matrices of the same
  /// shapes and types, the same attention and the same kind of state.
  virtual int layer_kind(int il) const = 0;
  /// What layer il is made of, as it lies in the file.
  virtual std::span<const GgufTensor* const> layer_tensors(int il) const = 0;
  /// All tensors that are passed to ops as weights, norms and biases included, in the order in
  /// which a device places them.
  virtual std::vector<Tensor> weights() const = 0;
};

}  // namespace snapkv
