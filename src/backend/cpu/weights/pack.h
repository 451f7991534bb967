// SPDX-License-Identifier: MIT
// Converts a weight matrix to the layout that oneDNN's products read, 64 output rows (a panel) at a
// time.
//
// Where the library prefers it, the layout is blocked:
//   [panels of 64 output rows][blocks of k][16][64 output rows] 32-bit words
// where a word is one f32 or two bf16 of adjacent k, so a block has 16 or 32 values of k. The last
// panel and the last block are padded with zeros. Otherwise it is [n_out, n_in], plain rows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/cpu/cpu_context.h"
#include "base/tensor.h"

namespace snapkv::cpu {

inline constexpr int64_t kPanelRows = 64;

/// Values of k in a block.
constexpr int64_t panel_depth(DType compute) { return compute == DType::bf16 ? 32 : 16; }
/// Bytes of the whole matrix in the blocked layout.
constexpr int64_t packed_bytes(DType compute, int64_t n_out, int64_t n_in) {
  const int64_t depth = panel_depth(compute);
  const int64_t n_panels = (n_out + kPanelRows - 1) / kPanelRows;
  const int64_t n_blocks = (n_in + depth - 1) / depth;
  return n_panels * n_blocks * 16 * kPanelRows * 4;
}

/// A matrix as products read it.
struct PackedShape {
  DType compute = DType::f32;
  int64_t n_out = 0;
  int64_t n_in = 0;
  bool blocked = false;  // otherwise plain rows

  int64_t n_panels() const { return (n_out + kPanelRows - 1) / kPanelRows; }
  /// Bytes of the first n output rows; n is a multiple of kPanelRows or n_out.
  int64_t bytes_of(int64_t n) const {
    return blocked ? packed_bytes(compute, n, n_in) : n * row_bytes(compute, n_in);
  }
  int64_t bytes() const { return bytes_of(n_out); }
  int64_t panel_bytes() const { return bytes_of(kPanelRows); }
};

/// Where packed weights are written: past the caches, for a matrix that is packed whole and larger
/// than they are, or into them, for the product that comes next.
enum class PackTo { memory, caches };

/// Packs panel `panel` of `weight`, which has the shape of s, to dst on the calling thread. dst is
/// aligned to a cache line; `scratch` has pack_panel_scratch() bytes.
void pack_panel(const PackedShape& s, const Tensor& weight, int64_t panel, PackTo to, char* scratch,
                void* dst);
size_t pack_panel_scratch(DType compute);

/// Packs all panels, on all threads. dst: s.bytes(). pack_panels_workspace(): its scratch memory.
size_t pack_panels_workspace(const CpuContext& ctx);
void pack_panels(const CpuContext& ctx, const PackedShape& s, const Tensor& weight, void* dst);

/// The variants of pack_panel() for the blocked layout; tests run both.
void pack_panel_portable(DType compute, const Tensor& weight, int64_t panel, char* scratch,
                         void* dst);
#if defined(__x86_64__)
/// n_in must be a multiple of 32; call only if packs_avx512().
bool packs_avx512(DType weight);
void pack_panel_avx512(DType compute, const Tensor& weight, int64_t panel, PackTo to, void* dst);
#endif

}  // namespace snapkv::cpu
