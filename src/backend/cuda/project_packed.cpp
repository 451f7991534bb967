// SPDX-License-Identifier: MIT
// pack() and project_packed(): products of many rows, by the library. A packed weight is the matrix
// in the compute type: the model's own copy on the device if it has this type, otherwise an
// expanded one.
#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/gemm.h"
#include "backend/cuda/weight_store.h"

namespace snapkv::cuda {

void pack(Context& ctx, const Tensor& weight, PackedWeight& packed) {
  packed.n_out = weight.shape[0];
  packed.n_in = weight.shape[1];
  const Tensor w = ctx.weights().on_device(weight);
  const size_t bytes = static_cast<size_t>(w.numel() * block_bytes(ctx.compute()));
  if (w.dtype == ctx.compute() && ctx.weights().is_resident(weight)) {
    packed.storage = Buffer(w.data, bytes, nullptr);  // not owned, so never freed here
    return;
  }
  if (!packed.storage.owns() || packed.storage.bytes() < bytes) {
    packed.storage = Buffer();
    packed.storage = ctx.allocate(bytes, "packed weights");
  }
  expand(ctx, w, packed.storage.view(ctx.compute(), {packed.n_out, packed.n_in}));
}

void project_packed(Context& ctx, const Tensor& x, const PackedWeight& weight, const Tensor& bias,
                    const Tensor& out, bool accumulate) {
  ctx.gemm().run(x, weight.storage.view(ctx.compute(), {weight.n_out, weight.n_in}), out,
                 accumulate);
  if (bias) add_bias(ctx, out, ctx.weights().on_device(bias));
}

}  // namespace snapkv::cuda
