// SPDX-License-Identifier: MIT
// How fast the library multiplies matrices of prefill's sizes: the limit for the linear part of
// prefill.
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
  double max_error = 0;         // largest |difference| from f64 sums among the checked entries
};

/// Times ops::project_packed on `backend` in its compute type, with random values. Throws
/// Error{kRuntime} if the products are wrong.
GemmSpeed measure_gemm(Backend& backend, const GemmShape& shape, int repetitions);

}  // namespace snapkv
