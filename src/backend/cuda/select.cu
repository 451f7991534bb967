// SPDX-License-Identifier: MIT
#include "backend/cuda/cuda_ops.h"
#include "base/check.h"

namespace snapkv::cuda {
void pool(Context&, const Tensor&, std::span<const int32_t>, int, Pooling, const Tensor&) {
  SNAPKV_CHECK(false);
}
void top_k(Context&, const Tensor&, std::span<const int32_t>, std::span<const int32_t>, int,
           const Tensor&) {
  SNAPKV_CHECK(false);
}
}  // namespace snapkv::cuda
