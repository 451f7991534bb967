// SPDX-License-Identifier: MIT
// TiledProduct: one project_packed() call by oneDNN.
//
// The output is divided into tiles (product_tiling.h), each computed by one thread, so that results
// do not depend on the number of threads. Weights are packed already, or are packed here just
// before they are multiplied: then they come from the caches, and the packed matrix is never
// written to memory. Both give the same values.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>

#include "backend/cpu/cpu_context.h"
#include "backend/cpu/products/many_rows/product_tiling.h"
#include "backend/cpu/products/many_rows/tile_product.h"
#include "backend/cpu/weights/pack.h"
#include "backend/ops.h"

namespace snapkv::cpu {

/// Bytes of PackWorkspace::memory that a product of n rows takes.
size_t pack_memory(const CpuContext& ctx, const PackedShape& w, int64_t n);
/// Bytes of scratch memory that a product takes. `packs`: it packs the weight itself.
size_t tiled_product_workspace(const CpuContext& ctx, const TileShape& whole, bool packs);

class TiledProduct {
 public:
  /// `whole`: the shape of the whole product. `weight`: null if at.w is packed; otherwise the
  /// matrix to pack into `workspace`. Call this and run() with OmpThreads(1). Throws dnnl::error.
  TiledProduct(const TileShape& whole, const TileOperands& at, const Tensor* weight,
               PackWorkspace* workspace);
  void run(const CpuContext& ctx);

 private:
  /// What one thread needs to compute its tiles.
  struct Thread {
    char *library = nullptr, *staging = nullptr, *pack = nullptr;  // pieces of its scratch memory
    double pack_seconds = 0;
    std::array<std::array<std::optional<TileRun>, 2>, 2> runs{};  // as products_, on first use
  };

  void pack_panels_to(char* packed, int64_t first, int64_t n, PackTo to, Thread& thread) const;
  void run_tile(int64_t r, int64_t c, char* w, Thread& thread);
  void store_staged(const char* staging, int64_t n, int64_t n_cols, char* out) const;

  const TileShape& whole_;
  const TileOperands& at_;
  const Tensor* const weight_;
  PackWorkspace* const workspace_;
  const PackedShape packed_shape_;
  const Tiling tiling_;
  const bool staged_;  // tiles are computed in scratch memory, then stored
  std::array<std::array<std::shared_ptr<const TileProduct>, 2>, 2> products_;  // [last rows][cols]
  int64_t library_bytes_ = 0;               // of the product that takes the most
  std::atomic<int> status_ = dnnl_success;  // nothing may be thrown inside a parallel region
};

}  // namespace snapkv::cpu
