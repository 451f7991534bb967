// SPDX-License-Identifier: MIT
// The ops of backend/ops.def on a CUDA device. Tensors and pointers are in device memory, except
// weights and biases, which are where their model has them: ops ask Context::weights() for the
// device's copy. All other arguments are on the host. The functions return before the device is
// done.
#pragma once

#include "backend/cuda/context.h"
#include "backend/ops.h"

namespace snapkv::cuda {

#define SNAPKV_OP(name, parameters, names) void name(Context& ctx, SNAPKV_UNPACK parameters);
#include "backend/ops.def"

/// x[t, :] += bias, x f32 or bf16. In rowwise.cu.
void add_bias(Context& ctx, const Tensor& x, const Tensor& bias);
/// out [n_out, n_in] f32 or bf16 = weight, of any weight type, on the device. In weights.cu.
void expand(Context& ctx, const Tensor& weight, const Tensor& out);

}  // namespace snapkv::cuda
