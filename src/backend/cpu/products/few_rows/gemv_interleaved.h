// SPDX-License-Identifier: MIT
// Products of a few rows of activations with interleaved weights (interleave.h): of the file's
// rows, which are interleaved unit by unit as they are read, or of a matrix that has been
// interleaved before. Both give the same results to the last bit, for any number of activation
// rows, and the same as byte_panels.h gives for many.
#pragma once

#include "backend/cpu/products/byte_products.h"
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

/// With AVX2, for the kernels of 256 bits.
void prepare_interleaved_unit(const float* x, int64_t n, void* unit);

/// The kernel for the file's rows with these products; null if there is none.
const GemvKernel* gemv_interleaved(ByteProducts products);
/// The same for an interleaved matrix: w_stride is as in the file, and n_rows a multiple of
/// kInterleavedRows.
GemvFn gemv_interleaved_before(ByteProducts products, DType weight);

/// A call for the file's rows that also keeps them, interleaved, for further calls.
struct KeepingCall : GemvCall {
  char* copy = nullptr;  // [n_rows, w_stride], n_rows a multiple of kInterleavedRows
};
using KeepingGemvFn = void (*)(const KeepingCall& call);
KeepingGemvFn gemv_interleaved_keeping_vnni(DType weight);  // AVX-512

// For each CpuTarget, only where has() it.
const GemvKernel& gemv_interleaved_avx2();
const GemvKernel& gemv_interleaved_avx_vnni();
const GemvKernel& gemv_interleaved_vnni();  // AVX-512
GemvFn gemv_interleaved_before_avx2(DType weight);
GemvFn gemv_interleaved_before_avx_vnni(DType weight);
GemvFn gemv_interleaved_before_vnni(DType weight);

}  // namespace snapkv::cpu

#endif  // x86-64
