// SPDX-License-Identifier: MIT
// Products of a few rows of activations with interleaved weights (interleave.h): of the file's
// rows, which are interleaved unit by unit as they are read, or of a matrix that has been
// interleaved before. Both give the same results to the last bit, for any number of activation
// rows, and the same as byte_panels.h gives for many.
#pragma once

#include "backend/cpu/products/few_rows/gemv.h"
#include "backend/cpu/weights/interleave.h"

#if defined(__x86_64__)

namespace snapkv::cpu {

/// Activations, rounded as in gemv.h.
struct alignas(64) InterleavedUnit {
  int8_t q[kGemvUnit];
  float d[8];                      // of 32 values each
  float negative_sum[8];           // d times negative_sums
  int32_t negative_sums[8];        // negated sums of q over 32 values
  int32_t negative_half_sums[16];  // over 16 values
};
static_assert(sizeof(InterleavedUnit) == 448);

/// The kernel for the file's rows. Only where has(CpuTarget::avx512_vnni).
const GemvKernel& gemv_interleaved_vnni();
/// The same for an interleaved matrix: w_stride is as in the file, and n_rows a multiple of
/// kInterleavedRows.
GemvFn gemv_interleaved_before_vnni(DType weight);

}  // namespace snapkv::cpu

#endif  // x86-64
