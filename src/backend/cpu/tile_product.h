// SPDX-License-Identifier: MIT
// TileProduct: one tile of a large product, computed by oneDNN on the thread that asks for it.
// Used by matmul.cpp, which shares the tiles out to threads.
//
// oneDNN decides when a product is made how many threads will compute it, and with more than one it
// may split sums among them, in pieces that depend on their number. So products are made, and run,
// while the calling thread's OpenMP setting is one thread (OmpThreads); asking inside a parallel
// region would not be enough, as there the library takes the setting and not the truth.
#pragma once

#include <dnnl.hpp>
#include <memory>
#include <optional>
#include <unordered_map>

#include "snapkv/dtype.h"

namespace snapkv::cpu {

/// What a tile's product depends on, apart from addresses:
/// out [n, n_out] (+)= x [n, n_in] w^T (+ bias [n_out]), x dense and of type `compute`.
struct TileShape {
  int64_t n = 0;
  int64_t n_in = 0;
  int64_t n_out = 0;
  int64_t out_stride = 0;  // elements; with panels n_out, as the library has no fast product else
  DType compute = DType::f32;
  DType out = DType::f32;
  bool panels = false;  // w is laid out as in pack.h; else its rows [n_out, n_in] are
  bool bias = false;
  bool accumulate = false;
};

class TileProduct {
 public:
  /// Makes a product or takes one that was made before. Call with OmpThreads(1). Throws
  /// dnnl::error.
  static std::shared_ptr<const TileProduct> get(const TileShape& shape);
  explicit TileProduct(const TileShape& shape);

  /// Memory that each run needs.
  size_t scratch_bytes() const { return scratch_.get_size(); }

 private:
  friend class TileRun;
  bool bias_;
  dnnl::memory::desc x_, w_, bias_desc_, out_, scratch_;
  dnnl::matmul product_;
};

/// The addresses of one tile.
struct TileOperands {
  char* x = nullptr;
  char* w = nullptr;
  char* bias = nullptr;
  char* out = nullptr;
};

/// Runs a product, tile after tile, on one thread.
class TileRun {
 public:
  /// `scratch`: TileProduct::scratch_bytes(), aligned to a cache line.
  TileRun(const TileProduct& product, char* scratch);
  void operator()(const TileOperands& at);

 private:
  const TileProduct& product_;
  dnnl::memory x_, w_, bias_, out_;
  std::unordered_map<int, dnnl::memory> arguments_;
  dnnl::stream stream_;
};

/// Does oneDNN, when free to choose, want the weights of a [n_out, n_in] matrix as panels (pack.h)?
/// Call with OmpThreads(1). Throws dnnl::error where it has no product of the type.
bool prefers_panels(DType compute, int64_t n_out, int64_t n_in);

}  // namespace snapkv::cpu
