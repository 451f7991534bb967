// SPDX-License-Identifier: MIT
// Facts about the processor for tests. The result of a test must not depend on them.
#pragma once

#include "backend/cpu/cpu_ops.h"
#include "snapkv/compute.h"

namespace snapkv::test {

/// Whether the CPU backend computes in this type, natively or emulated.
inline bool runs(Compute compute) { return compute != Compute::bf16 || cpu::multiplies_bf16(); }

}  // namespace snapkv::test
