// SPDX-License-Identifier: MIT
// The ops of backend/ops.def on the processor: fast products by oneDNN, SIMD kernels with runtime
// dispatch, OpenMP threads. Called by cpu_backend.cpp, and by tests of single instruction sets.
#pragma once

#include "backend/cpu/cpu_context.h"
#include "backend/ops.h"

namespace snapkv::cpu {

#define SNAPKV_OP(name, parameters, names) \
  void name(const CpuContext& ctx, SNAPKV_UNPACK parameters);
#include "backend/ops.def"

/// Can oneDNN multiply bf16 on this processor, natively or emulated?
bool multiplies_bf16();

}  // namespace snapkv::cpu
