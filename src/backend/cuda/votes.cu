// SPDX-License-Identifier: MIT
#include "backend/cuda/cuda_ops.h"
#include "base/check.h"

namespace snapkv::cuda {
void window_votes(Context&, const WindowVotes&) { SNAPKV_CHECK(false); }
}  // namespace snapkv::cuda
