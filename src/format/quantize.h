// SPDX-License-Identifier: MIT
// Rows of weights from one type to another. Used by the engine's convert.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "snapkv/dtype.h"

namespace snapkv {

/// n values of a plain type (f32, f16, bf16) at `from`, which need not be aligned, as f32.
void widen(const std::byte* from, DType dtype, int64_t n, float* to);

/// Whether narrow() makes this type.
bool can_narrow_to(DType dtype);
/// n values, a multiple of the block size, as `dtype`: f32, f16, bf16 (rounded to nearest even) or
/// q8_0 (rounded as ggml's reference does).
void narrow(const float* from, int64_t n, DType dtype, std::byte* to);

}  // namespace snapkv
