// SPDX-License-Identifier: MIT
// Rwkv7Mixer: the time mixing of RWKV 7 (arXiv 2503.14456). Each head has a matrix of
// what values its keys had. What a token lets it forget, at which rate it replaces what the matrix
// holds for its key, and how much of the first layer's value it takes are made of the token and the
// one before it.
#pragma once

#include <vector>

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"
#include "model/blocks/low_rank.h"

namespace snapkv {

class Rwkv7Mixer final : public TokenMixer {
 public:
  Rwkv7Mixer(const BlockContext& context, LayerLoader& loader);

  void run(const Tensor& normed, const LayerPass& pass) const override;
  const Weight& output() const override { return out_.w; }
  std::vector<const Weight*> matrices() const override {
    return present({&receptance_, &key_, &value_, &decay_.down(), &decay_.up(), &rate_.down(),
                    &rate_.up(), &first_.down(), &first_.up(), &gate_.down(), &gate_.up(),
                    &out_.w});
  }
  std::vector<const Norm*> norms() const override { return present({&head_norm_}); }
  std::vector<Tensor> vectors() const override { return {mix_, bonus_, removal_, replacement_}; }

 private:
  void load_low_ranks(LayerLoader& loader);
  void plan_activations(ActivationPlan& plan);
  Tensor make_values(const Tensor& x, const LayerPass& pass) const;
  void finish(const Tensor& heads, const Tensor& v, const Tensor& shares, const Tensor& gate_input,
              const LayerPass& pass) const;

  const BlockContext& context_;
  const LayerSpec& layer_;
  const bool is_first_;              // the layer whose values the others take
  Tensor mix_;                       // [5 or 6, n_embd]: r, w, k, v, a, g
  Weight receptance_, key_, value_;  // [width, n_embd]
  LowRank decay_, rate_;
  LowRank first_;                         // but in the first layer
  LowRank gate_;                          // or empty
  Tensor bonus_, removal_, replacement_;  // [width]
  Norm head_norm_;                        // [n_head, head_dim], or empty
  ResidualOutput out_;                    // of `width` values

  std::vector<ActivationTensor> mixed_;               // [n, n_embd] each, for products
  ActivationTensor r_out_, k_out_, v_out_;            // [n, width]
  ActivationTensor decay_out_, rate_out_, gate_out_;  // [n, width]
  ActivationTensor heads_, shares_, gated_;  // [n, width], [n, n_head], [n, width] for products
};

}  // namespace snapkv
