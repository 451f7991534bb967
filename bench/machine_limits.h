// SPDX-License-Identifier: MIT
// MachineLimits: what this machine can read and multiply at most, measured by short loops just
// before something else is timed, since a shared machine's rates change by the minute. Used by
// `snapkv bench` (app/cli/bench/roofline.h) and snapkv-bench-machine.
#pragma once

#include <cstddef>

namespace snapkv {

/// Rates of a number of threads together, under the CPU target. An operation is a multiplication or
/// an addition.
struct MachineLimits {
  double read = 0;  ///< bytes per second, from memory in huge pages where there are any
  double f32 = 0;   ///< operations per second of the product library
  double bf16 = 0;  ///< likewise; 0: the processor has no such products
  double int8 = 0;  ///< likewise, 8-bit integers
};

/// Bytes to read so that no cache holds them: twice the last-level cache, but from 256 MiB to 1 GiB,
/// and at most a quarter of the machine's memory.
size_t bytes_beyond_caches();

/// Takes half a second and bytes_beyond_caches() of memory. Throws Error{kDoesNotFit},
/// Error{kRuntime} when products are wrong.
MachineLimits measure_machine_limits(int n_threads);

}  // namespace snapkv
