// SPDX-License-Identifier: MIT
// Conversion of a weight matrix into the blocked layout that oneDNN's products read. Called by
// matmul.cpp where the library prefers that layout:
//
//   [panels of 64 output rows][blocks of k][16][64 output rows] 32-bit words
// where a word is one f32, or two bf16 of neighbouring k: 16 or 32 values of k to a block. The last
// panel and the last block are padded with zeros.
#pragma once

#include <cstdint>

#include "backend/cpu/cpu_context.h"
#include "base/tensor.h"

namespace snapkv::cpu {

inline constexpr int64_t kPanelRows = 64;

/// Values of k in a block.
constexpr int64_t panel_depth(DType compute) { return compute == DType::bf16 ? 32 : 16; }
/// Bytes of the whole matrix in this layout.
constexpr int64_t packed_bytes(DType compute, int64_t n_out, int64_t n_in) {
  const int64_t depth = panel_depth(compute);
  const int64_t n_panels = (n_out + kPanelRows - 1) / kPanelRows;
  const int64_t n_blocks = (n_in + depth - 1) / depth;
  return n_panels * n_blocks * 16 * kPanelRows * 4;
}

/// dst: packed_bytes() bytes, aligned to a cache line.
void pack_panels(const CpuContext& ctx, const Tensor& weight, void* dst);

/// The variants that pack_panels() chooses from (tests run both).
void pack_panels_portable(const CpuContext& ctx, const Tensor& weight, void* dst);
#if defined(__x86_64__)
/// n_in a multiple of 32; only where packs_avx512().
bool packs_avx512(DType weight);
void pack_panels_avx512(const CpuContext& ctx, const Tensor& weight, void* dst);
#endif

}  // namespace snapkv::cpu
