// SPDX-License-Identifier: MIT
// How fast the library multiplies matrices of the size that prefill multiplies: the limit of its
// linear part. Used by snapkv-bench-machine, machine_limits.cpp and op_floor.cpp.
#pragma once

#include <cstdint>

#include "backend/backend.h"

namespace snapkv {

struct GemmShape {
  int64_t n_tokens = 512;  // rows of one chunk
  int64_t n_in = 2048;
  int64_t n_out = 8192;
};

struct GemmSpeed {
  double flops_per_second = 0;  // the best repetition
  double max_error = 0;         // largest |difference| from f64 sums, of the entries checked
};

/// ops::project_packed on `backend` in its compute type, random values. Throws Error{kRuntime} when
/// the products are wrong.
GemmSpeed measure_gemm(Backend& backend, const GemmShape& shape, int repetitions);

}  // namespace snapkv
