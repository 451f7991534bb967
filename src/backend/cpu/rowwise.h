// SPDX-License-Identifier: MIT
// Ops that work row by row: embedding, norm, rotation, activation.
// Called by cpu_kernels.cpp; meanings in backend/ops.h.
#pragma once

#include <span>

#include "backend/cpu/cpu_context.h"
#include "backend/ops.h"

namespace snapkv::cpu {

void embed(const CpuContext& ctx, const Tensor& weight, std::span<const int32_t> ids,
           const Tensor& out);
void rms_norm(const CpuContext& ctx, const Tensor& x, const Tensor& weight, float eps,
              const Tensor& out);
void rope(const CpuContext& ctx, const Tensor& x, std::span<const int32_t> pos,
          const RopeFrequencies& rope);
void swiglu(const CpuContext& ctx, const Tensor& gate, const Tensor& up, const Tensor& out);

}  // namespace snapkv::cpu
