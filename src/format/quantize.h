// SPDX-License-Identifier: MIT
// Converts rows of weights from one type to another.
#pragma once

#include <cstddef>
#include <cstdint>

#include "snapkv/dtype.h"

namespace snapkv {

/// Converts n values of any type of weights, a multiple of the block size, to f32. `from` need not be
/// aligned if the type is plain (f32, f16, bf16).
void widen(const std::byte* from, DType dtype, int64_t n, float* to);

/// Whether narrow() can write this type.
bool can_narrow_to(DType dtype);
/// Converts n values, a multiple of the block size, to `dtype`: f32, f16, bf16 (rounded to nearest
/// even) or q8_0 (rounded like ggml's reference).
void narrow(const float* from, int64_t n, DType dtype, std::byte* to);

}  // namespace snapkv
