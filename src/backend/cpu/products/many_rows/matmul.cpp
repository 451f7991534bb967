// SPDX-License-Identifier: MIT
// pack() and project_packed(): products of many rows, by oneDNN. x [n, n_in] times w^T, where the
// library sees w^T as its [n_in, n_out] "weights".
//
// Weights of block types may stay unpacked: panel_product.cpp multiplies them in 8 bits. Where they
// are multiplied by several chunks they are interleaved before, which takes a fraction of what it
// saves, unless there is a copy already. Others are packed in one of the two layouts of pack.h, the one that the library's best product for this
// processor reads: blocked (AVX-512 and AMX) or plain rows. tiled_product.cpp computes the
// products.
#include <algorithm>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/products/many_rows/panel_product.h"
#include "backend/cpu/products/many_rows/tile_product.h"
#include "backend/cpu/products/many_rows/tiled_product.h"
#include "backend/cpu/target/omp_threads.h"
#include "backend/cpu/weights/interleave.h"
#include "backend/cpu/weights/interleaved_weights.h"
#include "backend/cpu/weights/pack.h"
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
  bool as_it_is = false;     // `weight` is multiplied in 8 bits, unpacked
  bool interleaved = false;  // so is its copy in PackedWeight::storage
  Tensor weight;             // itself, or to be packed by each product with a workspace

  PackedShape shape(const CpuContext& ctx, const PackedWeight& packed) const {
    return {ctx.compute, packed.n_out, packed.n_in, blocked};
  }
};

/// Whether an interleaved copy saves time, and there is none.
bool to_interleave(const CpuContext& ctx, const Tensor& weight) {
  return interleaves(ctx, weight.dtype) && weight.shape[0] % kInterleavedRows == 0 &&
         (ctx.interleaved == nullptr || ctx.interleaved->find(weight) == nullptr);
}

const CpuPackedLayout& layout_of(const PackedWeight& packed) {
  return static_cast<const CpuPackedLayout&>(*packed.layout);
}

/// f(shape) of a weight's layout or, where the library has not been asked for it, the most of both.
template <typename F>
size_t most_of_layouts(const CpuContext& ctx, const PackedWeight& packed, F f) {
  PackedShape shape = layout_of(packed).shape(ctx, packed);
  size_t most = f(shape);
  if (ctx.only_measures) {
    shape.blocked = !shape.blocked;
    most = std::max(most, f(shape));
  }
  return most;
}

TileShape tile_shape(const CpuContext& ctx, const Tensor& x, const PackedShape& w,
                     const Tensor& bias, const Tensor& out, bool accumulate) {
  return {.n = x.shape[0],
          .n_in = w.n_in,
          .n_out = w.n_out,
          .out_stride = w.n_out,
          .compute = ctx.compute,
          .out = out.dtype,
          .panels = w.blocked,
          .bias = static_cast<bool>(bias),
          .accumulate = accumulate};
}

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

size_t lay_out(const CpuContext& ctx, const Tensor& weight, PackedWeight& packed) {
  const int64_t n_out = weight.shape[0], n_in = weight.shape[1];
  auto layout = std::make_unique<CpuPackedLayout>();
  layout->as_it_is = packed_products_in_bytes(ctx.byte_products, weight.dtype);
  layout->blocked =
      !layout->as_it_is && (ctx.only_measures || prefers_panels(ctx.compute, n_out, n_in));
  const bool packs = !layout->as_it_is && packed.workspace == nullptr;
  const bool copies = layout->as_it_is && packed.workspace == nullptr && to_interleave(ctx, weight);
  if (!packs) layout->weight = weight;
  const bool blocked = layout->blocked;
  layout->interleaved = copies;
  packed.n_out = n_out;
  packed.n_in = n_in;
  packed.layout = std::move(layout);
  if (copies) return static_cast<size_t>(n_out * row_bytes(weight.dtype, n_in));
  return packs ? PackedShape{ctx.compute, n_out, n_in, blocked}.bytes() : 0;
}

size_t pack_workspace(const CpuContext& ctx, const Tensor& weight, const PackedWeight& packed) {
  const bool packs =
      packed.workspace == nullptr && !packed_products_in_bytes(ctx.byte_products, weight.dtype);
  return packs ? pack_panels_workspace(ctx) : 0;
}

void pack(const CpuContext& ctx, const Tensor& weight, PackedWeight& packed) {
  checked("packing weights", [&] {
    const OmpThreads one(1);
    const size_t bytes = lay_out(ctx, weight, packed);
    if (bytes == 0 || packed.storage.bytes() < bytes) {
      packed.storage = Buffer();  // free first, since the contents are not needed
      packed.storage = Buffer::host(bytes, "packed weights");
    }
    if (bytes == 0) return;
    if (layout_of(packed).interleaved) {
      auto* copy = static_cast<char*>(packed.storage.data());
      return interleave_rows(weight, 0, weight.shape[0], copy, ctx.n_threads);
    }
    pack_panels(ctx, layout_of(packed).shape(ctx, packed), weight, packed.storage.data());
  });
}

size_t pack_memory(const CpuContext& ctx, int64_t n, const PackedWeight& weight) {
  if (weight.workspace == nullptr || layout_of(weight).as_it_is) return 0;
  return most_of_layouts(ctx, weight, [&](const PackedShape& w) { return pack_memory(ctx, w, n); });
}

size_t project_packed_workspace(const CpuContext& ctx, const Tensor& x, const PackedWeight& weight,
                                const Tensor& bias, const Tensor& out, bool accumulate) {
  const CpuPackedLayout& layout = layout_of(weight);
  if (layout.as_it_is) return panel_product_workspace(ctx, x.shape[0], weight.n_in);
  return most_of_layouts(ctx, weight, [&](const PackedShape& w) {
    const TileShape whole = tile_shape(ctx, x, w, bias, out, accumulate);
    return tiled_product_workspace(ctx, whole, static_cast<bool>(layout.weight));
  });
}

void project_packed(const CpuContext& ctx, const Tensor& x, const PackedWeight& weight,
                    const Tensor& bias, const Tensor& out, bool accumulate) {
  if (x.shape[0] == 0) return;
  const CpuPackedLayout& layout = layout_of(weight);
  if (layout.as_it_is) {
    const auto* copy = static_cast<const char*>(weight.storage.data());
    return PanelProduct(ctx, {x, layout.weight, layout.interleaved ? copy : nullptr, bias, out,
                              accumulate})
        .run();
  }
  const TileShape whole = tile_shape(ctx, x, layout.shape(ctx, weight), bias, out, accumulate);
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
