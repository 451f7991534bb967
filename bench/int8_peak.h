// SPDX-License-Identifier: MIT
// How fast the product library multiplies matrices of 8-bit integers: the limit for products that
// read quantized weights and round activations to 8 bits.
#pragma once

namespace snapkv {

/// Operations per second (a multiplication and an addition count as two) of `n_threads` threads,
/// each multiplying its own matrices, which stay in the caches; the best of `repetitions`. Checks
/// the first product of each thread. Throws Error{kRuntime} if it is wrong or the library fails.
double measure_int8_products(int n_threads, int repetitions);

}  // namespace snapkv
