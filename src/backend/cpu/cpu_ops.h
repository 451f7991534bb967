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

// Bytes of scratch memory (scratch.h) that a kernel takes for these arguments, whose data is not
// read; ops that are not here take none.
size_t rope_workspace(const CpuContext& ctx, const Tensor& x, std::span<const int32_t> pos,
                      const RopeFrequencies& frequencies);
size_t delta_rule_workspace(const CpuContext& ctx, const DeltaRule& r);
size_t selective_scan_workspace(const CpuContext& ctx, const SelectiveScan& s);
size_t channel_scan_workspace(const CpuContext& ctx, const ChannelScan& s);
size_t wkv_workspace(const CpuContext& ctx, const Wkv& w);
size_t project_workspace(const CpuContext& ctx, const Tensor& x,
                         std::span<const Projection> projections);
size_t project_each_workspace(const CpuContext& ctx, const Tensor& x,
                              std::span<const Projection> projections);
size_t pack_workspace(const CpuContext& ctx, const Tensor& weight, const PackedWeight& packed);
size_t project_packed_workspace(const CpuContext& ctx, const Tensor& x, const PackedWeight& weight,
                                const Tensor& bias, const Tensor& out, bool accumulate);
size_t project_experts_workspace(const CpuContext& ctx, const ExpertProducts& p);
size_t convert_rows_workspace(const CpuContext& ctx, const RowConversion& c);
size_t attention_prefill_workspace(const CpuContext& ctx, const PrefillAttention& a);
size_t index_scores_workspace(const CpuContext& ctx, const IndexScores& s);
size_t attention_decode_workspace(const CpuContext& ctx, const DecodeAttention& a);
size_t window_votes_workspace(const CpuContext& ctx, const WindowVotes& v);
size_t top_k_workspace(const CpuContext& ctx, const Tensor& scores, std::span<const int32_t> n,
                       std::span<const int32_t> k, int n_tail, const Tensor& rows);
size_t row_norms_workspace(const CpuContext& ctx, const RowNorms& r);
size_t row_dots_workspace(const CpuContext& ctx, const Tensor& x, const Tensor& y,
                          std::span<const int32_t> n, const Tensor& out);
size_t sum_rows_workspace(const CpuContext& ctx, const Tensor& x, const Tensor& weights,
                          std::span<const int32_t> n, const Tensor& out);
size_t chunk_scores_workspace(const CpuContext& ctx, const ChunkScores& c);
size_t lag_deviations_workspace(const CpuContext& ctx, const Tensor& x, std::span<const int32_t> n,
                                int64_t begin, int64_t lag, const Tensor& out);
size_t moments_workspace(const CpuContext& ctx, const Tensor& x, const Tensor& shift,
                         const Tensor& out);

/// As Kernels::lay_out() and pack_memory().
size_t lay_out(const CpuContext& ctx, const Tensor& weight, PackedWeight& packed);
size_t pack_memory(const CpuContext& ctx, int64_t n, const PackedWeight& weight);

/// As PlannedDevice::products().
ProductTraits product_traits(const CpuContext& ctx, DType weight);

/// Whether oneDNN can multiply bf16 on this processor, natively or emulated.
bool multiplies_bf16();

}  // namespace snapkv::cpu
