// SPDX-License-Identifier: MIT
#include "backend/cuda/cuda_ops.h"
#include "base/check.h"

namespace snapkv::cuda {
void embed(Context&, const Tensor&, std::span<const int32_t>, const Tensor&) {
  SNAPKV_CHECK(false);
}
void expand(Context&, const Tensor&, const Tensor&) { SNAPKV_CHECK(false); }
}  // namespace snapkv::cuda
