// SPDX-License-Identifier: MIT
// Matrix products: few rows straight from the file's type, many rows through oneDNN.
// Called by cpu_kernels.cpp; meanings in backend/ops.h.
#pragma once

#include <span>

#include "backend/cpu/cpu_context.h"
#include "backend/ops.h"

namespace snapkv::cpu {

/// Can oneDNN multiply bf16 on this processor, natively or emulated?
bool multiplies_bf16();

void project(const CpuContext& ctx, const Tensor& x, std::span<const Projection> projections);
void pack(const CpuContext& ctx, const Tensor& weight, PackedWeight& packed);
void project_packed(const CpuContext& ctx, const Tensor& x, const PackedWeight& weight,
                    const Tensor& bias, const Tensor& out, bool accumulate);

}  // namespace snapkv::cpu
