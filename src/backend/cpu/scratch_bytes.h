// SPDX-License-Identifier: MIT
// Bytes of scratch() that kernels take for given arguments, whose data is not read.
#pragma once

#include "backend/cpu/cpu_context.h"
#include "backend/ops.h"

namespace snapkv::cpu {

size_t attention_prefill_scratch(const CpuContext& ctx, const PrefillAttention& a);
size_t window_votes_scratch(const CpuContext& ctx, const WindowVotes& v);
size_t moments_scratch(const CpuContext& ctx, int64_t n_head, int64_t head_dim);

}  // namespace snapkv::cpu
