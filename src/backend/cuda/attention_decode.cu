// SPDX-License-Identifier: MIT
#include "backend/cuda/cuda_ops.h"
#include "base/check.h"

namespace snapkv::cuda {
void attention_decode(Context&, const DecodeAttention&) { SNAPKV_CHECK(false); }
}  // namespace snapkv::cuda
