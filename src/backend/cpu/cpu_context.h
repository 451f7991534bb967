// SPDX-License-Identifier: MIT
// What every CPU kernel needs to know of its backend.
#pragma once

#include "backend/byte_products.h"
#include "snapkv/dtype.h"

namespace snapkv::cpu {

struct CpuContext {
  int n_threads = 1;                // of every parallel region
  DType compute = DType::f32;       // f32 or bf16: the type of prefill's products
  bool native_bf16 = false;         // kernels may use AVX512_BF16
  bool rounds_activations = false;  // project() may round them to 8 bits, or bf16
  /// What project_packed() may multiply activations of 8 bits with.
  ByteProducts byte_products = ByteProducts::other;
};

}  // namespace snapkv::cpu
