// SPDX-License-Identifier: MIT
// pack() and project_packed(): products of many rows, by oneDNN. x [n, n_in] times w^T, where the
// library sees w^T as its [n_in, n_out] "weights".
//
// Weights of block types may stay unpacked: panel_product.cpp multiplies them in 8 bits. Others are
// packed in one of the two layouts of pack.h, the one that the library's best product for this
// processor reads: blocked (AVX-512 and AMX) or plain rows. tiled_product.cpp computes the
// products.
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/omp_threads.h"
#include "backend/cpu/pack.h"
#include "backend/cpu/panel_product.h"
#include "backend/cpu/tile_product.h"
#include "backend/cpu/tiled_product.h"
#include "base/error.h"

namespace snapkv::cpu {
namespace {

/// Calls f and turns the library's exceptions into Error.
template <typename F>
auto checked(const char* what, F&& f) {
  try {
    return f();
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_out_of_memory) fail(ErrorCode::kDoesNotFit, "{}: out of memory", what);
    fail(ErrorCode::kRuntime, "{}: oneDNN: {}", what, e.what());
  }
}

struct CpuPackedLayout : PackedLayout {
  bool blocked = false;
  bool as_it_is = false;  // `weight` is multiplied in 8 bits, unpacked
  Tensor weight;          // itself, or to be packed by each product with a workspace
};

}  // namespace

bool multiplies_bf16() {
  static const bool result = [] {
    const OmpThreads one(1);
    try {
      prefers_panels(DType::bf16, kPanelRows, kPanelRows);
      return true;
    } catch (const dnnl::error&) {  // no implementation
      return false;
    }
  }();
  return result;
}

void pack(const CpuContext& ctx, const Tensor& weight, PackedWeight& packed) {
  const int64_t n_out = weight.shape[0], n_in = weight.shape[1];
  checked("packing weights", [&] {
    const OmpThreads one(1);
    auto layout = std::make_unique<CpuPackedLayout>();
    layout->as_it_is = packed_products_in_bytes(ctx.byte_products, weight.dtype);
    layout->blocked = !layout->as_it_is && prefers_panels(ctx.compute, n_out, n_in);
    if (layout->as_it_is || packed.workspace != nullptr) {
      packed.storage = Buffer();
      layout->weight = weight;
    } else {
      const PackedShape shape{ctx.compute, n_out, n_in, layout->blocked};
      if (packed.storage.bytes() < static_cast<size_t>(shape.bytes())) {
        packed.storage = Buffer();  // free first, since the contents are not needed
        packed.storage = Buffer::host(shape.bytes(), "packed weights");
      }
      pack_panels(ctx, shape, weight, packed.storage.data());
    }
    packed.n_out = n_out;
    packed.n_in = n_in;
    packed.layout = std::move(layout);
  });
}

void project_packed(const CpuContext& ctx, const Tensor& x, const PackedWeight& weight,
                    const Tensor& bias, const Tensor& out, bool accumulate) {
  if (x.shape[0] == 0) return;
  const auto& layout = static_cast<const CpuPackedLayout&>(*weight.layout);
  if (layout.as_it_is) {
    return PanelProduct(ctx, {x, layout.weight, bias, out, accumulate}).run();
  }
  const TileShape whole{.n = x.shape[0],
                        .n_in = weight.n_in,
                        .n_out = weight.n_out,
                        .out_stride = weight.n_out,
                        .compute = ctx.compute,
                        .out = out.dtype,
                        .panels = layout.blocked,
                        .bias = static_cast<bool>(bias),
                        .accumulate = accumulate};
  const TileOperands at{.x = static_cast<char*>(x.data),
                        .w = static_cast<char*>(weight.storage.data()),
                        .bias = static_cast<char*>(bias.data),
                        .out = static_cast<char*>(out.data)};
  checked("matrix product", [&] {
    const OmpThreads one(1);
    TiledProduct(whole, at, layout.weight ? &layout.weight : nullptr, weight.workspace).run(ctx);
  });
}

}  // namespace snapkv::cpu
