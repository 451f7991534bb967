// SPDX-License-Identifier: MIT
// Block: a part of a layer, with its weights. A layer is two of them, one after the other or side
// by side: a token mixer, through which tokens see earlier ones, and a feed-forward network, which
// computes each token by itself. Both read a norm of the residual stream and add to the stream.
// Which blocks a layer has is its family's choice: compose.cpp.
#pragma once

#include <span>
#include <vector>

#include "backend/backend.h"
#include "model/blocks/norm.h"
#include "model/layer_pass.h"
#include "model/model_spec.h"
#include "model/rotation_table.h"
#include "model/weights.h"

namespace snapkv {

/// What all blocks of a model share; it outlives them.
struct BlockContext {
  const ModelSpec& spec;
  const RotationTable& rotations;
  ActivationPlan& activations;  // to which blocks add what they compute in, when they are made
};

class Block {
 public:
  virtual ~Block() = default;

  /// The matrices that every token is multiplied with.
  virtual std::vector<const Weight*> matrices() const = 0;
  /// Other matrices, such as those that only some tokens are multiplied with.
  virtual std::vector<const Weight*> other_matrices() const { return {}; }
  virtual std::vector<const Norm*> norms() const = 0;
  /// Other vectors that ops take as weights.
  virtual std::vector<Tensor> vectors() const { return {}; }
};

class TokenMixer : public Block {
 public:
  /// normed [n, n_embd], of all tokens. Adds to the last pass.n_out rows of pass.x.
  virtual void run(const Tensor& normed, const LayerPass& pass) const = 0;
  /// Projection to the residual stream, [n_embd, n_head * head_dim].
  virtual const Weight& output() const = 0;
  /// Architecture::value_heads
  virtual std::span<const Tensor> value_heads() const { return {}; }
  /// AttentionVariant::sinks
  virtual Tensor sinks() const { return {}; }
};

class FeedForward : public Block {
 public:
  /// What is computed before the layer's attention. x [n, n_embd]: the rows that run() will add to.
  virtual void begin(const Tensor& x, const LayerPass& pass) const {
    static_cast<void>(x);
    static_cast<void>(pass);
  }
  /// Whether tokens are mixed with those before them. run() then reads all rows of pass.x, whose
  /// last ones x is, and may be called without any of these.
  virtual bool shifts_tokens() const { return false; }
  /// normed [n, n_embd], x [n, n_embd] f32: the rows of pass.x that are added to.
  virtual void run(const Tensor& normed, const Tensor& x, const LayerPass& pass) const = 0;
};

/// The end of a block: x += residual_scale * factor * post_norm(W input), the norm where there is
/// one.
struct ResidualOutput {
  Weight w;                 // [n_embd, n_in]
  Norm post_norm;           // [n_embd]
  float factor = 1.0f;      // with begins_sum 1
  bool begins_sum = false;  // x = W input instead: what other parts of a block will be added to
  ActivationTensor branch;  // [n, n_embd], unless the product itself adds to x

  ResidualOutput() = default;
  ResidualOutput(const BlockContext& context, Weight weight, Norm norm, bool begins_sum = false,
                 float factor = 1.0f);
  void add_to(const Tensor& x, const Tensor& input, const BlockContext& context,
              const LayerPass& pass) const;
};

/// The same rows, with states that begin n_before values later, for the second op of a block that
/// has two of them.
std::vector<SequenceRows> with_states_from(std::span<const SequenceRows> sequences,
                                           int64_t n_before);

/// x in the type that products read: x itself, or `read`, which has it converted. [n, any]
Tensor as_input(Backend& backend, const Tensor& x, const Tensor& read);

/// The matrices that there are.
std::vector<const Weight*> present(std::initializer_list<const Weight*> weights);
/// The norms that there are.
std::vector<const Norm*> present(std::initializer_list<const Norm*> norms);

}  // namespace snapkv
