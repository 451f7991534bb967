// SPDX-License-Identifier: MIT
// KimiDeltaMixer: Kimi Delta Attention (arXiv 2510.26692, section 4), linear attention by the delta
// rule in which each channel of a head's keys decays at its own pace. Queries, keys and values pass
// a short convolution; decays, and gates of what comes out, are made of a few values each (low
// rank).
#pragma once

#include <vector>

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"

namespace snapkv {

class KimiDeltaMixer final : public TokenMixer {
 public:
  KimiDeltaMixer(const BlockContext& context, LayerLoader& loader);

  void run(const Tensor& normed, const LayerPass& pass) const override;
  const Weight& output() const override { return out_.w; }
  std::vector<const Weight*> matrices() const override {
    return present({&q_, &k_, &v_, &beta_, &decay_low_, &decay_, &gate_low_, &gate_, &out_.w});
  }
  std::vector<const Weight*> other_matrices() const override { return {&conv_}; }
  std::vector<const Norm*> norms() const override { return {&norm_}; }
  std::vector<Tensor> vectors() const override { return {rate_, decay_bias_}; }

 private:
  void load_qkv(LayerLoader& loader);
  void plan_activations(ActivationPlan& plan);
  struct Projected;
  Projected project(const Tensor& normed, const LayerPass& pass) const;

  int64_t n_values() const { return layer_.delta_net.n_head * layer_.delta_net.d_v; }
  int64_t n_keys() const { return layer_.delta_net.n_head * layer_.delta_net.d_k; }

  const BlockContext& context_;
  const LayerSpec& layer_;
  Weight q_, k_, v_;          // [n_keys, n_embd] twice, [n_values, n_embd]
  Weight beta_;               // [n_head, n_embd]
  Weight decay_low_, decay_;  // [d_k, n_embd], [n_keys, d_k]; or [n_keys, n_embd] alone
  Weight gate_low_, gate_;    // [d_v, n_embd], [n_values, d_v]; or [n_values, n_embd]
  Weight conv_;               // [n_qkv, kernel_size] f32
  Tensor rate_, decay_bias_;  // [n_head], [n_keys]
  Norm norm_;                 // [d_v], of each head's output
  ResidualOutput out_;        // of n_values values

  ActivationTensor q_out_, k_out_, v_out_;      // [n, n_keys] twice, [n, n_values]
  ActivationTensor qkv_, convolved_;            // [n, n_qkv]
  ActivationTensor beta_out_;                   // [n, n_head]
  ActivationTensor decay_low_out_, decay_out_;  // [n, d_k], [n, n_keys]
  ActivationTensor gate_low_out_, gate_out_;    // [n, d_v], [n, n_values]
  ActivationTensor heads_, gated_;              // [n, n_values]
};

}  // namespace snapkv
