// SPDX-License-Identifier: MIT
// What DeltaNetMixer and KimiDeltaMixer compute alike, between the matrices that make queries,
// keys, values, decays and gates and the residual stream.
#pragma once

#include "backend/ops.h"
#include "model/blocks/block.h"

namespace snapkv {

/// What the delta rule reads beside queries, keys and values (DeltaRule).
struct Decays {
  Tensor decay, beta;
  Tensor rate, bias;  // weights
};

/// Computes heads [n, n_head * d_v] from their states: `qkv` [n, n_qkv] passes the short
/// convolution `conv` into `convolved`, then the delta rule.
void apply_delta_rule(const LayerSpec& layer, const Weight& conv, const Tensor& qkv,
                      const Tensor& convolved, const Decays& decays, const Tensor& heads,
                      const LayerPass& pass);

/// x += Wout (norm(heads) * f(gate)), of the last pass.n_out rows, which `heads` and `gate` are of.
/// Overwrites `heads`; `gated` is memory of their shape.
void add_gated_heads(const BlockContext& context, const LayerSpec& layer, const Norm& norm,
                     const ResidualOutput& out, const Tensor& heads, Activation f,
                     const Tensor& gate, const Tensor& gated, const LayerPass& pass);

}  // namespace snapkv
