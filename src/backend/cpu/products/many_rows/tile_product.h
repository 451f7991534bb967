// SPDX-License-Identifier: MIT
// TileProduct: one tile of a large product, computed by oneDNN on the calling thread.
//
// When a product is made, oneDNN decides how many threads will compute it; with more than one it
// may split sums among them, in pieces that depend on their number. So products are made and run
// while the calling thread's OpenMP setting is one thread (OmpThreads). Calling from inside a
// parallel region would not be enough: there the library uses the setting, not the actual number.
#pragma once

#include <dnnl.hpp>
#include <memory>
#include <optional>
#include <unordered_map>

#include "snapkv/dtype.h"

namespace snapkv::cpu {

/// The properties of a tile's product, apart from addresses:
/// out [n, n_out] (+)= x [n, n_in] w^T (+ bias [n_out]), x dense and of type `compute`.
struct TileShape {
  int64_t n = 0;
  int64_t n_in = 0;
  int64_t n_out = 0;
  int64_t out_stride = 0;  // elements; n_out with panels, or the library is slow
  DType compute = DType::f32;
  DType out = DType::f32;
  bool panels = false;  // w is laid out as in pack.h; otherwise rows [n_out, n_in]
  bool bias = false;
  bool accumulate = false;
};

class TileProduct {
 public:
  /// Makes a product or returns one made before. Call with OmpThreads(1). Throws dnnl::error.
  static std::shared_ptr<const TileProduct> get(const TileShape& shape);
  explicit TileProduct(const TileShape& shape);

  /// Bytes of memory that each run needs.
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

/// The memory that oneDNN takes besides: Backend::library_bytes().
size_t library_bytes(int64_t n_networks);

/// Whether oneDNN, when free to choose, wants the weights of a [n_out, n_in] matrix as panels
/// (pack.h). Call with OmpThreads(1). Throws dnnl::error if it has no product of the type.
bool prefers_panels(DType compute, int64_t n_out, int64_t n_in);

}  // namespace snapkv::cpu
