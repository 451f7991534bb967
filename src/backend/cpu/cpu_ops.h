// SPDX-License-Identifier: MIT
// The ops of backend/ops.def on the CPU: large products by oneDNN, SIMD kernels with runtime
// dispatch, OpenMP threads.
#pragma once

#include "backend/cpu/cpu_context.h"
#include "backend/ops.h"

namespace snapkv::cpu {

#define SNAPKV_OP(name, parameters, names) \
  void name(const CpuContext& ctx, SNAPKV_UNPACK parameters);
#include "backend/ops.def"

/// Whether oneDNN can multiply bf16 on this processor, natively or emulated.
bool multiplies_bf16();

}  // namespace snapkv::cpu
