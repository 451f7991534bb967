// SPDX-License-Identifier: MIT
// Rows of any weight type, converted to f32 or bf16.
#pragma once

#include <cstdint>

#include "base/half.h"
#include "snapkv/dtype.h"

namespace snapkv::cpu {

/// dst[i] = src[i] for n values of `type`, n a multiple of its block size; bf16 rounds to nearest
/// even. `src` need not be aligned. Runs on the calling thread.
void convert_row(const void* src, DType type, int64_t n, float* dst);
void convert_row(const void* src, DType type, int64_t n, bf16_t* dst);

}  // namespace snapkv::cpu
