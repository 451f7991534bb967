// SPDX-License-Identifier: MIT
// cpu_kernel_bytes(): the largest scratch memory that any kernel of a prompt asks for, plus what
// the product library needs.
#include "backend/cpu/scratch_bytes.h"

#include <algorithm>
#include <utility>

#include "backend/cpu/cpu_target.h"
#include "backend/cpu/gemv.h"
#include "backend/cpu/pack.h"
#include "backend/cpu/panel_product.h"
#include "backend/cpu/product_tiling.h"
#include "backend/cpu/tiled_product.h"
#include "backend/cpu_scratch.h"
#include "snapkv/compute.h"

namespace snapkv {
namespace cpu {
namespace {

/// The code that oneDNN generates for a prompt's products, its objects and heap: measured from 0.2
/// to 0.9 MiB alone, and once 1.54 MiB beside other tests.
constexpr size_t kLibraryBytes = 7 << 18;
/// The same for each expert: oneDNN generates code for every number of tokens that a product has,
/// and experts get different ones.
constexpr size_t kExpertLibraryBytes = 128 << 10;
/// More experts divide the same tokens among them: with 64 of them no more was measured.
constexpr int64_t kMostExpertKernels = 16;
/// oneDNN's own scratch memory for a tile, per thread.
constexpr size_t kTileLibraryBytes = 64 << 10;

CpuContext context_of(const KernelShape& s) {
  CpuContext ctx;
  ctx.n_threads = s.n_threads > 0 ? s.n_threads : cpu_threads();
  ctx.compute = s.compute;
  ctx.native_bf16 = has(CpuTarget::avx512_bf16);
  ctx.byte_products = s.byte_products;
  return ctx;
}

Tensor shape_only(DType type, int64_t a, int64_t b, int64_t c) {
  return {nullptr, type, {a, b, c}};
}

size_t attention_bytes(const CpuContext& ctx, const KernelShape& s) {
  PrefillAttention a;
  a.q = shape_only(DType::f32, s.n_chunk, s.n_head, s.head_dim);
  a.k = a.v = shape_only(s.kv_type, s.n_head_kv, s.n_tokens, s.head_dim);
  return attention_prefill_scratch(ctx, a);
}

size_t vote_bytes(const CpuContext& ctx, const KernelShape& s, int64_t n_window) {
  WindowVotes v;
  v.q = shape_only(DType::f32, std::min(n_window, s.n_tokens), s.n_head, s.head_dim);
  v.k = shape_only(s.kv_type, s.n_head_kv, s.n_tokens, s.head_dim);
  const auto n = static_cast<int32_t>(s.n_tokens);
  v.n_rows = {&n, 1};
  return window_votes_scratch(ctx, v);
}

/// top_k() needs 8-byte keys for every row that a thread ranks.
size_t ranking_bytes(const CpuContext& ctx, const KernelShape& s) {
  const int64_t n_lists =
      s.shares_budget ? s.n_head_kv : std::min<int64_t>(ctx.n_threads, s.n_head_kv);
  return n_lists * s.n_tokens * sizeof(uint64_t);
}

/// Bytes of a unit of prepared activations, for the kernel with the largest units.
size_t largest_unit() {
  size_t bytes = gemv_bf16() != nullptr ? gemv_bf16()->unit_bytes : 0;
  for (const DType type : {DType::q8_0, DType::q4_0, DType::q4_k}) {
    if (const GemvKernel* kernel = gemv_int8(type)) bytes = std::max(bytes, kernel->unit_bytes);
  }
  return bytes;
}

size_t product_bytes(const CpuContext& ctx, const KernelShape& s) {
  const int64_t widest = std::max(s.n_embd, s.n_head * s.head_dim);
  if (!s.packed) {  // activations of project(), as kernels want them
    return std::max(s.n_chunk * (widest / kGemvUnit + 1), s.n_ff_rows * (s.n_ff / kGemvUnit + 1)) *
           largest_unit();
  }
  const size_t tile = kTileRows * kTileCols * sizeof(float);
  const size_t library =
      ctx.n_threads * (tile + kTileLibraryBytes + pack_panel_scratch(ctx.compute));
  if (ctx.byte_products == ByteProducts::other || ctx.byte_products == ByteProducts::none) {
    return library;
  }
  return std::max({library, panel_product_scratch(ctx, s.n_chunk, widest),
                   panel_product_scratch(ctx, s.n_ff_rows, s.n_ff)});
}

size_t rotation_bytes(const KernelShape& s) { return s.n_chunk * s.head_dim * sizeof(float); }

}  // namespace
}  // namespace cpu

size_t cpu_pack_workspace_bytes(const KernelShape& s) {
  const cpu::CpuContext ctx = cpu::context_of(s);
  const int64_t n_q = s.n_head * s.head_dim, n_kv = s.n_head_kv * s.head_dim;
  const std::pair<int64_t, int64_t> matrices[] = {
      {n_q, s.n_embd}, {n_kv, s.n_embd}, {s.n_embd, n_q}, {s.n_ff, s.n_embd}, {s.n_embd, s.n_ff}};
  size_t most = 0;
  for (const auto& [n_out, n_in] : matrices) {
    for (const bool blocked : {false, true}) {  // the library decides which layout
      const cpu::PackedShape w{ctx.compute, n_out, n_in, blocked};
      most = std::max(most, cpu::pack_workspace_bytes(w, s.n_chunk, ctx.n_threads));
    }
  }
  return most;
}

size_t cpu_kernel_bytes(const KernelShape& s, int64_t n_window) {
  const cpu::CpuContext ctx = cpu::context_of(s);
  size_t most =
      std::max({cpu::attention_bytes(ctx, s), cpu::product_bytes(ctx, s), cpu::rotation_bytes(s)});
  if (s.selects) {
    // h2o votes with 128 queries at a time
    most = std::max(
        {most, cpu::vote_bytes(ctx, s, s.observes ? 128 : n_window), cpu::ranking_bytes(ctx, s)});
  }
  if (s.observes) most = std::max(most, cpu::moments_scratch(ctx, s.n_head, s.head_dim));
  const int64_t n_expert = s.packed ? std::min(s.n_expert, cpu::kMostExpertKernels) : 0;
  return most + cpu::kLibraryBytes + n_expert * cpu::kExpertLibraryBytes;
}

}  // namespace snapkv
