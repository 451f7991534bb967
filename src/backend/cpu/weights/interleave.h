// SPDX-License-Identifier: MIT
// Interleaved weights: 16 output rows side by side, in as many bytes as they take in the file.
//
// Products of a few rows of activations then have one output in each lane of a vector: lanes are
// never added together, and the scales of 16 rows take one instruction, or with 256-bit vectors
// two. A unit is kGemvUnit values of 16 rows, or what is left of them at the rows' ends:
//   [field of a block][blocks][words of the field][16 rows]
// where the fields are those of the file's blocks, in the file's order, and words have 32 bits, or
// are as small as the field. Units of 16 rows follow one another, so row 16 i begins where it does
// in the file. All processors have the same units.
#pragma once

#include <cstdint>

#include "snapkv/dtype.h"

namespace snapkv::cpu {

inline constexpr int64_t kInterleavedRows = 16;

/// Interleaves n_values of 16 rows, `stride` bytes apart, to `unit`: at most kGemvUnit, and whole
/// blocks. The two must not overlap.
using InterleaveFn = void (*)(const char* rows, int64_t stride, int64_t n_values, char* unit);

#if defined(__x86_64__)
// Null if there are no products with interleaved weights of this type. Both make the same units.
InterleaveFn interleave_avx2(DType weight);    // only where has(CpuTarget::avx2)
InterleaveFn interleave_avx512(DType weight);  // only where has(CpuTarget::avx512_vnni)
#endif

}  // namespace snapkv::cpu
