// SPDX-License-Identifier: MIT
// Questions that tests may ask about the processor; no test may depend on a particular one.
#pragma once

#include "backend/cpu/cpu_ops.h"
#include "snapkv/compute.h"

namespace snapkv::test {

/// Whether the CPU backend can compute in this type, natively or emulated.
inline bool runs(Compute compute) { return compute != Compute::bf16 || cpu::multiplies_bf16(); }

}  // namespace snapkv::test
