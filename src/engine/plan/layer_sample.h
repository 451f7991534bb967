// SPDX-License-Identifier: MIT
// LayerSample: a model of one layer of each kind, for dry runs. All layers of a kind allocate the
// same, so the whole model needs no more at a time than the sample, and keeps as many times what
// one of them keeps.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "model/architecture.h"

namespace snapkv {

class LayerSample final : public Architecture {
 public:
  /// `whole` must outlive this object. `kept`: how many rows each session keeps of layer il; layers
  /// of one kind also have this in common. The last layer is a kind of its own, since a prompt
  /// computes it only for the tokens whose output is wanted, and so are layers that share rows.
  LayerSample(const Architecture& whole, const std::function<std::vector<int64_t>(int il)>& kept);

  /// Layers of the whole model that are like layer il of the sample, itself included.
  int64_t count(int il) const { return layers_[il].count; }

  const ModelSpec& spec() const override { return spec_; }
  const ActivationPlan& activations() const override { return whole_.activations(); }
  void embed(std::span<const int32_t> tokens, const LayerPass& pass) const override;
  void layer(int il, const LayerPass& pass) const override { whole_.layer(at(il), pass); }
  void output(Backend& backend, const Tensor& x, ActivationBuffer& buffers,
              const Tensor& logits) const override {
    whole_.output(backend, x, buffers, logits);
  }
  AttentionVariant variant(int il) const override { return whole_.variant(at(il)); }
  RopeFrequencies rotation(int il, int64_t n_ctx) const override {
    return whole_.rotation(at(il), n_ctx);
  }
  const Weight& attention_output(int il) const override { return whole_.attention_output(at(il)); }
  std::span<const Tensor> value_heads(int il) const override { return whole_.value_heads(at(il)); }
  LayerMatrices layer_matrices(int il) const override { return whole_.layer_matrices(at(il)); }
  int layer_kind(int il) const override { return whole_.layer_kind(at(il)); }
  std::span<const GgufTensor* const> layer_tensors(int il) const override {
    return whole_.layer_tensors(at(il));
  }
  std::vector<Tensor> weights() const override { return whole_.weights(); }

 private:
  struct Layer {
    int il = 0;  // of the whole model
    std::vector<int64_t> kept;
    int64_t count = 1;
  };
  int at(int il) const { return layers_[il].il; }

  const Architecture& whole_;
  std::vector<Layer> layers_;
  ModelSpec spec_;
};

}  // namespace snapkv
