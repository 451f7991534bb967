// SPDX-License-Identifier: MIT
// Rows in every type that weights may have, for random models, benchmarks and tests. The same bytes
// on every machine. q8_0 and q4_0 are rounded exactly as ggml's reference does, the others plainly:
// where ggml searches for better scales, any choice makes a valid file.
#pragma once

#include <cstdint>

#include "snapkv/dtype.h"

namespace snapkv {

/// Rounds n values, a multiple of block_size(dtype), to nearest.
void quantize(DType dtype, const float* x, int64_t n, void* out);

}  // namespace snapkv
