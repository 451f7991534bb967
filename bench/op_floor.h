// SPDX-License-Identifier: MIT
// The least time that an operation can take on this machine, printed next to the measured time.
#pragma once

#include <benchmark/benchmark.h>

#include "backend/backend.h"

namespace snapkv {

/// The work that one call of an operation cannot avoid.
struct OpWork {
  double flop = 0;   // additions and multiplications
  double bytes = 0;  // read from or written to memory that no cache holds
};

/// Adds the counters of a benchmark whose calls do `work`: GFLOP/s and GB/s if they apply;
/// `floor_us`, the longer of the times for flop (at the rate of the backend's own large products)
/// and for bytes (at the rate of a plain read loop), with both rates measured at most a few seconds
/// before; and `of_floor`, the share of that rate that was reached (8-bit products may exceed 1,
/// since they are compared with bf16 or f32 products).
void report_work(benchmark::State& state, Backend& backend, const OpWork& work);

}  // namespace snapkv
