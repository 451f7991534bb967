// SPDX-License-Identifier: MIT
// Rwkv6Mixer: the time mixing of RWKV 6 (arXiv 2404.05892). Each head has a matrix of
// what values its keys had, whose rows decay as the token says. How a token is mixed with the one
// before it depends on both. QRWKV 6 has gated linear attention in the same place.
#pragma once

#include <vector>

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"
#include "model/blocks/low_rank.h"

namespace snapkv {

class Rwkv6Mixer final : public TokenMixer {
 public:
  Rwkv6Mixer(const BlockContext& context, LayerLoader& loader);

  void run(const Tensor& normed, const LayerPass& pass) const override;
  const Weight& output() const override { return out_.w; }
  std::vector<const Weight*> matrices() const override;
  std::vector<const Norm*> norms() const override { return present({&head_norm_}); }
  std::vector<Tensor> vectors() const override;

 private:
  void load_mixes(LayerLoader& loader);
  void plan_activations(ActivationPlan& plan);
  std::vector<Tensor> mix(const Tensor& normed, const LayerPass& pass) const;

  const BlockContext& context_;
  const LayerSpec& layer_;
  Tensor first_mix_;            // [1, n_embd]: of what the other mixes are made of
  Weight mix_low_;              // [5 * mix_rank, n_embd]
  std::vector<Weight> mix_up_;  // [5] of [n_embd, mix_rank]
  Tensor mix_;                  // [5, n_embd]: w, k, v, r, g
  Weight receptance_, gate_;    // [width, n_embd]
  Weight key_, value_;          // [n_head_kv * head_dim, n_embd]
  LowRank decay_;
  Tensor bonus_;        // [width], or empty
  Norm head_norm_;      // [n_head, head_dim], or empty
  ResidualOutput out_;  // of `width` values

  ActivationTensor first_mixed_;                 // [n, n_embd], for products
  ActivationTensor low_, low_read_;              // [n, 5 * mix_rank]; the second is for products
  std::vector<ActivationTensor> low_parts_;      // [n, mix_rank] each, for products
  std::vector<ActivationTensor> added_, mixed_;  // [n, n_embd] each; the second are for products
  ActivationTensor r_out_, k_out_, v_out_, decay_out_, gate_out_;
  ActivationTensor heads_, gated_;  // [n, width]; the second is for products
};

}  // namespace snapkv
