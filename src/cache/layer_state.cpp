// SPDX-License-Identifier: MIT
#include "cache/layer_state.h"

#include <utility>

#include "cache/window_layer.h"

namespace snapkv {

size_t StateShape::bytes(DType dtype, int64_t n_rows) const {
  return KvLayer::row_bytes(dtype, head_dim) * n_head * n_rows;
}

std::unique_ptr<LayerState> make_state(const StateShape& shape, KvMeter& meter, DType dtype) {
  if (shape.window > 0) return std::make_unique<WindowLayer>(meter, shape, dtype);
  return std::make_unique<KvLayer>(meter, shape, dtype);
}

std::unique_ptr<LayerState> make_full_state(const StateShape& shape, KvMeter& meter, DType dtype,
                                            std::string spill_dir) {
  return std::make_unique<KvLayer>(meter, shape, dtype, std::move(spill_dir));
}

}  // namespace snapkv
