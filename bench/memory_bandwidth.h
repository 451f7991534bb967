// SPDX-License-Identifier: MIT
// How fast this machine reads memory: the limit for decoding, which reads every weight once per
// step.
#pragma once

#include <cstddef>

namespace snapkv {

/// Bytes per second at which `n_threads` threads together read `bytes` of memory once, each its own
/// contiguous part; the best of `repetitions`. `bytes` should be several times the last-level
/// cache. Throws Error{kDoesNotFit}.
double measure_read_bandwidth(size_t bytes, int n_threads, int repetitions);

}  // namespace snapkv
