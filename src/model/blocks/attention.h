// SPDX-License-Identifier: MIT
// Attention: queries, keys and values of the tokens, their norms and rotation (arXiv 2104.09864),
// attention to the rows that a cache holds, and the projection of what comes out. How keys and
// values are stored and attended is AttentionStep's business.
#pragma once

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"
#include "model/blocks/position_bias.h"

namespace snapkv {

/// Multiplies queries by QueryTemperature's factor of their positions. q [n, n_head, head_dim].
void sharpen(const Tensor& q, std::span<const int32_t> pos, const BlockContext& context,
             const LayerPass& pass);

class Attention final : public TokenMixer {
 public:
  Attention(const BlockContext& context, LayerLoader& loader);

  void run(const Tensor& normed, const LayerPass& pass) const override;
  const Weight& output() const override { return out_.w; }
  std::vector<const Weight*> matrices() const override {
    return present({&wq_, &wk_, &wv_, &wgate_, &out_.w});
  }
  std::vector<const Norm*> norms() const override {
    return present({&q_norm_, &k_norm_, &v_norm_, &sub_norm_, &out_.post_norm});
  }
  std::vector<Tensor> vectors() const override {
    std::vector<Tensor> all = bias_.tables();
    all.push_back(sinks_);
    return all;
  }
  Tensor sinks() const override { return sinks_; }

 private:
  void load_qkv(LayerLoader& loader);
  void load_gate(LayerLoader& loader);
  void load_norms(LayerLoader& loader);
  void plan_activations(ActivationPlan& plan);
  bool has_gate() const { return layer_.output_gate || wgate_; }
  /// Whether something comes between attention and the matrix of its output.
  bool is_changed() const { return has_gate() || sub_norm_; }
  void project(const Tensor& normed, const Tensor& q, const Tensor& k, const Tensor& v,
               const Tensor& gate, const LayerPass& pass) const;
  void prepare(const Tensor& q, const Tensor& k, const LayerPass& pass) const;
  void normalize_heads(const Norm& norm, const Tensor& x, const LayerPass& pass) const;

  const BlockContext& context_;
  const LayerSpec& layer_;
  Weight wq_;                   // [n_q, n_embd], or [2 * n_q, n_embd] with LayerSpec::output_gate
  Weight wk_, wv_;              // [n_k, n_embd], [n_v, n_embd]; wv_ may be empty, or both
  Weight wgate_;                // [n_head * head_dim_v, n_embd], where Family::attention_gate
  bool gates_heads_ = false;    // whether it is [n_head, n_embd]
  Norm q_norm_, k_norm_;        // as Family::qk_norm says
  Norm sub_norm_;               // [n_head * head_dim_v], where Family::sub_norms
  Norm v_norm_;                 // [head_dim_v], where Family::value_norm
  Tensor sinks_;                // [n_head], or empty
  PositionBias bias_;           // empty where scores have none
  ResidualOutput out_;          // of n_head * head_dim_v values
  ActivationTensor q_, attn_;   // [n, n_head, head_dim]
  ActivationTensor k_, v_;      // [n, n_head_kv, head_dim]
  ActivationTensor q_gate_;     // [n, n_head, 2 * head_dim], with LayerSpec::output_gate
  ActivationTensor gate_;       // [n, n_head, head_dim] or [n, n_head, 1], where there are gates
  ActivationTensor unchanged_;  // [n, n_head, head_dim], where is_changed()
};

}  // namespace snapkv
