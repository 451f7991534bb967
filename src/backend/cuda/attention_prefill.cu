// SPDX-License-Identifier: MIT
#include "backend/cuda/cuda_ops.h"
#include "base/check.h"

namespace snapkv::cuda {
void attention_prefill(Context&, const PrefillAttention&) { SNAPKV_CHECK(false); }
}  // namespace snapkv::cuda
