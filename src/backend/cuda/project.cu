// SPDX-License-Identifier: MIT
#include "backend/cuda/cuda_ops.h"
#include "base/check.h"

namespace snapkv::cuda {
void project(Context&, const Tensor&, std::span<const Projection>) { SNAPKV_CHECK(false); }
}  // namespace snapkv::cuda
