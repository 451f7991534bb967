// SPDX-License-Identifier: MIT
// KV rows: storing, voting, pooling, ranking, gathering.
// Called by cpu_kernels.cpp; meanings in backend/ops.h.
#pragma once

#include <span>

#include "backend/cpu/cpu_context.h"
#include "backend/ops.h"

namespace snapkv::cpu {

void store_rows(const CpuContext& ctx, const Tensor& src, DType dtype, std::span<void* const> dst);
void window_votes(const CpuContext& ctx, const WindowVotes& w);
void pool(const CpuContext& ctx, const Tensor& scores, std::span<const int32_t> n, int kernel_size,
          Pooling pooling, const Tensor& out);
void top_k(const CpuContext& ctx, const Tensor& scores, std::span<const int32_t> n,
           std::span<const int32_t> k, int n_tail, const Tensor& rows);
void gather_rows(const CpuContext& ctx, const Tensor& src, const Tensor& rows,
                 std::span<const int32_t> n, std::span<void* const> dst);
void convert_rows(const CpuContext& ctx, const RowConversion& c);

}  // namespace snapkv::cpu
