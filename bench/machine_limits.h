// SPDX-License-Identifier: MIT
// MachineLimits: the highest rates at which this machine can read and multiply. Short loops measure
// them right before something else is timed, since the rates of a shared machine change by the
// minute.
#pragma once

#include <cstddef>

namespace snapkv {

/// The combined rates of a number of threads, under the CPU target. An operation is a
/// multiplication or an addition.
struct MachineLimits {
  double read = 0;  ///< bytes per second, from memory in huge pages if there are any
  double f32 = 0;   ///< operations per second of the product library
  double bf16 = 0;  ///< likewise; 0 if the processor has no such products
  double int8 = 0;  ///< likewise, for 8-bit integers
};

/// As many bytes as no cache can hold: twice the last-level cache, but from 256 MiB to 1 GiB, and
/// at most a quarter of the machine's memory.
size_t bytes_beyond_caches();

/// Takes half a second and bytes_beyond_caches() of memory. Throws Error{kDoesNotFit}, and
/// Error{kRuntime} if products are wrong.
MachineLimits measure_machine_limits(int n_threads);

}  // namespace snapkv
