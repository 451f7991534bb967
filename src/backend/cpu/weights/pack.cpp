// SPDX-License-Identifier: MIT
#include "backend/cpu/weights/pack.h"

#include <omp.h>

#include <algorithm>
#include <cstring>

#include "backend/cpu/target/cpu_target.h"
#include "backend/cpu/target/highway_targets.h"
#include "backend/cpu/target/scratch.h"
#include "backend/cpu/weights/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/weights/pack.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backend/cpu/target/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {  // other files have functions of the same names

/// dst[k * 64 + r] = src[r * src_stride + k] for 4 rows r and 4 words k.
HWY_INLINE void transpose_4x4(const uint32_t* HWY_RESTRICT src, int64_t src_stride,
                              uint32_t* HWY_RESTRICT dst) {
#if HWY_TARGET == HWY_SCALAR
  for (int r = 0; r < 4; ++r) {
    for (int k = 0; k < 4; ++k) dst[k * kPanelRows + r] = src[r * src_stride + k];
  }
#else
  const hn::CappedTag<uint32_t, 4> d;
  store_transposed_4x4(d, hn::LoadU(d, src), hn::LoadU(d, src + src_stride),
                       hn::LoadU(d, src + 2 * src_stride), hn::LoadU(d, src + 3 * src_stride), dst,
                       kPanelRows);
#endif
}

/// dst [n_blocks, 16, 64] words from 64 rows of n_blocks * 16 words.
void transpose_panel(const uint32_t* src, int64_t src_stride, int64_t n_blocks, uint32_t* dst) {
  for (int64_t b = 0; b < n_blocks; ++b) {
    for (int64_t r = 0; r < kPanelRows; r += 4) {
      for (int64_t k = 0; k < 16; k += 4) {
        transpose_4x4(src + r * src_stride + b * 16 + k, src_stride,
                      dst + (b * 16 + k) * kPanelRows + r);
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {

HWY_EXPORT(transpose_panel);

namespace {

/// Values of k that are converted at a time, for 64 rows; they stay in the L1 or L2 cache.
constexpr int64_t kDepth = 256;

/// Converts values [begin, begin + n) of a row to the compute type.
void convert_part(const Tensor& weight, int64_t row, int64_t begin, int64_t n, DType compute,
                  void* dst) {
  const char* src = weight.at<const char>(row) + row_bytes(weight.dtype, begin);
  if (compute == DType::bf16) {
    convert_row(src, weight.dtype, n, static_cast<bf16_t*>(dst));
  } else {
    convert_row(src, weight.dtype, n, static_cast<float*>(dst));
  }
}

/// Bytes of a row in a thread's tile. A spare cache line after each row keeps the 64 rows from
/// sharing cache sets.
int64_t tile_stride(DType compute) { return kDepth * block_bytes(compute) + 64; }

/// Converts a panel in the plain layout.
void convert_rows(const PackedShape& s, const Tensor& weight, int64_t panel, void* dst) {
  const int64_t begin = panel * kPanelRows, end = std::min(begin + kPanelRows, s.n_out);
  const int64_t bytes = row_bytes(s.compute, s.n_in);
  for (int64_t r = begin; r < end; ++r) {
    convert_part(weight, r, 0, s.n_in, s.compute, static_cast<char*>(dst) + (r - begin) * bytes);
  }
}

}  // namespace

size_t pack_panel_scratch(DType compute) { return kPanelRows * tile_stride(compute); }

void pack_panel(const PackedShape& s, const Tensor& weight, int64_t panel,
                [[maybe_unused]] PackTo to, char* scratch, void* dst) {
  if (!s.blocked) return convert_rows(s, weight, panel, dst);
#if defined(__x86_64__)
  if (packs_avx512(weight.dtype) && s.n_in % 32 == 0) {
    return pack_panel_avx512(s.compute, weight, panel, to, dst);
  }
#endif
  pack_panel_portable(s.compute, weight, panel, scratch, dst);
}

size_t pack_panels_workspace(const CpuContext& ctx) {
  return ctx.n_threads * pack_panel_scratch(ctx.compute);
}

void pack_panels(const CpuContext& ctx, const PackedShape& s, const Tensor& weight, void* dst) {
  const size_t scratch_bytes = pack_panel_scratch(s.compute);
  char* tiles = scratch(pack_panels_workspace(ctx));
#pragma omp parallel for schedule(dynamic, 1) num_threads(ctx.n_threads)
  for (int64_t panel = 0; panel < s.n_panels(); ++panel) {
    pack_panel(s, weight, panel, PackTo::memory, tiles + omp_get_thread_num() * scratch_bytes,
               static_cast<char*>(dst) + panel * s.panel_bytes());
  }
}

void pack_panel_portable(DType compute, const Tensor& weight, int64_t panel, char* scratch,
                         void* dst) {
  const int64_t n_out = weight.shape[0], n_in = weight.shape[1];
  const int64_t depth = panel_depth(compute), element = block_bytes(compute);
  const int64_t n_parts = (n_in + kDepth - 1) / kDepth;
  const int64_t row_stride = tile_stride(compute);
  const auto transpose = HWY_DYNAMIC_DISPATCH(transpose_panel);
  for (int64_t part = 0; part < n_parts; ++part) {
    const int64_t begin = part * kDepth, n = std::min(kDepth, n_in - begin);
    const int64_t n_blocks = (n + depth - 1) / depth;
    for (int64_t r = 0; r < kPanelRows; ++r) {
      char* row = scratch + r * row_stride;
      const bool exists = panel * kPanelRows + r < n_out;
      const int64_t used = exists ? n * element : 0;
      if (exists) convert_part(weight, panel * kPanelRows + r, begin, n, compute, row);
      std::memset(row + used, 0, n_blocks * depth * element - used);
    }
    char* out = static_cast<char*>(dst) + begin / depth * 16 * kPanelRows * 4;
    transpose(reinterpret_cast<const uint32_t*>(scratch), row_stride / 4, n_blocks,
              reinterpret_cast<uint32_t*>(out));
  }
}

}  // namespace snapkv::cpu
#endif  // HWY_ONCE
