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
#include "model/layer_pass.h"
#include "model/model_spec.h"
#include "model/weights.h"

namespace snapkv {

struct GgufTensor;

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
  /// Of layer il, for LinearRunner::pack.
  virtual LayerMatrices layer_matrices(int il) const = 0;
  /// What layer il is made of, as it lies in the file.
  virtual std::span<const GgufTensor* const> layer_tensors(int il) const = 0;
  /// Everything that ops are given as a weight, norms and biases too, in the order of their use.
  virtual std::vector<Tensor> weights() const = 0;
};

}  // namespace snapkv
