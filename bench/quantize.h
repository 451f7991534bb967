// SPDX-License-Identifier: MIT
// Rounding of rows to every weight type, for random models, benchmarks and tests, with the same
// bytes on every machine. q8_0 and q4_0 are rounded exactly as in ggml's reference, the others
// simply: where ggml searches for better scales, any choice makes a valid file.
#pragma once

#include <cstdint>

#include "snapkv/dtype.h"

namespace snapkv {

/// Rounds n values to nearest; n must be a multiple of block_size(dtype).
void quantize(DType dtype, const float* x, int64_t n, void* out);

}  // namespace snapkv
