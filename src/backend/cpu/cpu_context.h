// SPDX-License-Identifier: MIT
// What every CPU kernel must know about its backend.
#pragma once

#include "backend/cpu/products/byte_products.h"
#include "snapkv/dtype.h"

namespace snapkv::cpu {

class InterleavedWeights;

struct CpuContext {
  int n_threads = 1;                // in every parallel region
  DType compute = DType::f32;       // f32 or bf16: the type of prefill's products
  bool native_bf16 = false;         // kernels may use AVX512_BF16
  bool rounds_activations = false;  // project() may round them to 8 bits or bf16
  /// The instructions with which project_packed() may multiply 8-bit activations.
  ByteProducts byte_products = ByteProducts::other;
  /// Copies of weights that products read, if there are any; null: none.
  const InterleavedWeights* interleaved = nullptr;
  /// Nothing will be computed: the product library is not asked what it prefers, and sizes hold for
  /// whatever it may answer.
  bool only_measures = false;
};

}  // namespace snapkv::cpu
