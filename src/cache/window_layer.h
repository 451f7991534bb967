// SPDX-License-Identifier: MIT
// WindowLayer: the state of a layer with a sliding window. It remembers the last tokens only; no
// policy chooses among them.
#pragma once

#include "cache/kv_layer.h"

namespace snapkv {

class WindowLayer final : public KvLayer {
 public:
  WindowLayer(KvMeter& meter, const StateShape& shape, DType dtype)
      : KvLayer(meter, shape, dtype), window_(static_cast<int32_t>(shape.window)) {}

  std::string_view kind() const override { return "window"; }
  using KvLayer::append;
  void append(Backend& backend, const Tensor& k, const Tensor& v,
              std::span<const int32_t> pos) override {
    KvLayer::append(backend, k, v, pos);
    keep_last(window_);
  }
  void keep(Backend& backend, const LayerState& all, const Selection& selection,
            int32_t reserve) override;

 private:
  int32_t window_;
};

}  // namespace snapkv
