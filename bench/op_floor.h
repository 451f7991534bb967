// SPDX-License-Identifier: MIT
// The least time that an operation can take on this machine, printed beside what it took. Used by
// the micro-benchmarks op_linear_bench and op_attention_bench.
#pragma once

#include <benchmark/benchmark.h>

#include "backend/backend.h"

namespace snapkv {

/// What one call of an operation must do at least.
struct OpWork {
  double flop = 0;   // additions and multiplications
  double bytes = 0;  // read from or written to memory that no cache holds
};

/// Adds the counters of a benchmark whose calls do `work`: GFLOP/s and GB/s where there are any,
/// `floor_us`, the longer of flop at the rate of the backend's own large products and bytes at the
/// rate of a plain read loop, both measured at most a few seconds before, and `of_floor`, the share
/// of that rate that was reached (8-bit products may exceed 1: the yardstick multiplies bf16 or
/// f32).
void report_work(benchmark::State& state, Backend& backend, const OpWork& work);

}  // namespace snapkv
