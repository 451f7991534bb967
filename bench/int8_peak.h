// SPDX-License-Identifier: MIT
// How fast the product library multiplies matrices of 8-bit integers: the limit of products that
// read quantized weights and round activations to 8 bits. Used by machine_limits.cpp.
#pragma once

namespace snapkv {

/// Operations per second (a multiplication and an addition are two) of `n_threads` threads, each of
/// which multiplies matrices of its own that stay in the caches; the best of `repetitions`. The
/// first product of each thread is checked. Throws Error{kRuntime} when it is wrong or the library
/// fails.
double measure_int8_products(int n_threads, int repetitions);

}  // namespace snapkv
