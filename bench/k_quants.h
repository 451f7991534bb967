// SPDX-License-Identifier: MIT
// Rows in GGUF's superblock types, for random models and tests: each part's levels spread evenly
// from its least to its greatest value. (ggml's own quantizer searches for better scales; any
// choice makes a valid file.) The same bytes on every machine.
#pragma once

#include <cstdint>

namespace snapkv {

/// n values, a multiple of 256.
void quantize_q4_k(const float* x, int64_t n, void* out);  // out: BlockQ4_K[n / 256]
void quantize_q5_k(const float* x, int64_t n, void* out);  // out: BlockQ5_K[n / 256]
void quantize_q6_k(const float* x, int64_t n, void* out);  // out: BlockQ6_K[n / 256]

}  // namespace snapkv
