// SPDX-License-Identifier: MIT
// The roofline model (Williams, Waterman and Patterson, 2009) of a test: the least time that its
// work can take within the machine's limits, and the percentage of that limit that it reached.
// bench/cost.h counts the work; bench/machine_limits.h measures the limits just before the test.
//
//   least time        = max(compute time, memory time)
//   compute time      = linear / rate of its products + attention / rate of its products
//   memory time       = bytes / read rate
//   percent of limit  = 100 * least time / mean time
//   intensity         = (linear + attention) / bytes
//
// The products of each kind of work (`rate of its products` is the product library's for the type):
//   linear, packed    the compute type, bf16 or f32: prompts long enough for packed weights
//   linear, direct    int8 for weights of a block type, bf16 for bf16 weights where the processor
//                     multiplies them; f32 for others and with --compute f32: short prompts,
//                     decode, and every prompt where Model::rounds_prompts()
//   attention         the compute type for prompts, f32 for decode
//
// Packing, norms, rotation and selection are overhead: they take time but are not counted as work.
#pragma once

#include <string_view>

#include "bench/machine_limits.h"
#include "snapkv/dtype.h"

namespace snapkv::cli {

enum class Products { f32, bf16, int8 };
/// "f32", "bf16", "int8"
const char* name(Products products);

/// The work of one repetition of a test.
struct BenchWork {
  double linear = 0;     // operations of matrix products
  double attention = 0;  // operations of attention
  double bytes = 0;      // read from memory, or written to it
  Products linear_products = Products::f32;
  Products attention_products = Products::f32;
  double operations() const { return linear + attention; }
};

/// Products in the compute type; f32 for bf16 on a processor that lacks bf16 products.
Products compute_products(DType compute, const MachineLimits& limits);
/// Products of weights that are read in their own type. `file_type`: ModelInfo::file_type.
Products direct_products(std::string_view file_type, bool rounds_activations,
                         const MachineLimits& limits);

/// The least time of some work, in seconds.
struct LeastTime {
  double compute = 0, memory = 0;
  bool by_memory() const { return memory > compute; }
  double seconds() const { return by_memory() ? memory : compute; }
};
LeastTime least_time(const BenchWork& work, const MachineLimits& limits);

}  // namespace snapkv::cli
