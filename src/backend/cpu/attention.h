// SPDX-License-Identifier: MIT
// Attention of prefill (blocked, online softmax) and of decode (split over heads and rows).
// Called by cpu_kernels.cpp; meanings in backend/ops.h.
#pragma once

#include "backend/cpu/cpu_context.h"
#include "backend/ops.h"

namespace snapkv::cpu {

void attention_prefill(const CpuContext& ctx, const PrefillAttention& a);
void attention_decode(const CpuContext& ctx, const DecodeAttention& a);

}  // namespace snapkv::cpu
