// SPDX-License-Identifier: MIT
// What tests may ask of the processor that they run on: none may depend on which one it is.
#pragma once

#include "backend/cpu/cpu_ops.h"
#include "snapkv/compute.h"

namespace snapkv::test {

/// Can the CPU backend compute in this type, natively or emulated?
inline bool runs(Compute compute) { return compute != Compute::bf16 || cpu::multiplies_bf16(); }

}  // namespace snapkv::test
