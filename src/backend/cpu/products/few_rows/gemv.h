// SPDX-License-Identifier: MIT
// Kernels that multiply a few rows of activations with rows of a weight matrix in its file's type.
//
// Activations are first converted to the form that the kernel multiplies ("prepared"), in units of
// kGemvUnit values, so that threads can share that work.
#pragma once

#include <cstddef>
#include <cstdint>

#include "snapkv/dtype.h"

namespace snapkv::cpu {

/// Values in one unit of prepared activations; the last unit of a row is padded with zeros.
inline constexpr int64_t kGemvUnit = 256;
/// Most activation rows per call of a kernel; each weight is decoded once for all of them.
inline constexpr int kGemvMaxRows = 8;

/// sums[t * sums_stride + r] = dot(x row t, w row r), t < n, r < n_rows.
struct GemvCall {
  const char* w = nullptr;  // [n_rows, n_in] of the kernel's type
  int64_t w_stride = 0;     // bytes from row to row
  int64_t n_rows = 0;
  int64_t n_in = 0;
  const char* x = nullptr;  // [n, n_units] prepared
  int64_t x_stride = 0;     // bytes from row to row
  int n = 0;                // 1 ... kGemvMaxRows
  float* sums = nullptr;
  int64_t sums_stride = 0;
  /// What is fetched into the L2 cache meanwhile, as many bytes as the weights have, by kernels for
  /// interleaved matrices; null: the weights that follow these.
  const char* fetch = nullptr;
};
using GemvFn = void (*)(const GemvCall& call);

/// Weights are prefetched into the L2 cache this far ahead. The processor's own prefetcher stops at
/// the end of a 4 KB page, and most of the wait is for the next page's translation (measured: 8 KB
/// reads 26 GB/s with one core, 2 KB 20, none 11).
inline constexpr int64_t kPrefetchBytes = 8192;

/// A row's sums are added up in an order that depends on n_in alone, so the result is the same for
/// any number of threads and of activation rows.
struct GemvKernel {
  const char* name = nullptr;
  size_t unit_bytes = 0;  // of a prepared unit, a multiple of 64; 0: uses x itself (f32)
  /// Prepares n <= kGemvUnit values.
  void (*prepare)(const float* x, int64_t n, void* unit) = nullptr;
  GemvFn (*function)(DType weight) = nullptr;  // null if the kernel does not support the type
};

/// f32 activations, all weight types, f32 multiply-add; nothing is rounded. Highway.
const GemvKernel& gemv_f32();

/// Activations rounded to 8 bits with a scale per 32 values (d = max|x| / 127, nearest), weights of
/// block types, exact integer sums per block, f32 between blocks. For superblocks the kernels of
/// gemv_int8_k_256-inl.h use scales that are multiples of a common one (KUnit); their sums are
/// exact integers per superblock. A kernel need not support every type.
const GemvKernel* gemv_int8(DType weight);  // the processor's best for the type; null if none
const GemvKernel& gemv_int8_portable();
#if defined(__x86_64__)
// With 256-bit vectors, for blocks of 32 values, blocks of nibbles and superblocks.
const GemvKernel& gemv_int8_avx2();  // only where has(CpuTarget::avx2)
const GemvKernel& gemv_int8_avx2_nibbles();
const GemvKernel& gemv_int8_avx2_k();
const GemvKernel& gemv_int8_avx_vnni();  // only where has(CpuTarget::avx_vnni)
const GemvKernel& gemv_int8_avx_vnni_nibbles();
const GemvKernel& gemv_int8_avx_vnni_k();
const GemvKernel& gemv_int8_vnni();  // only where has(CpuTarget::avx512_vnni)
#endif

/// Activations rounded to bf16, bf16 weights, f32 sums. Null if the processor has no such product;
/// gemv_f32 then serves.
const GemvKernel* gemv_bf16();

}  // namespace snapkv::cpu
