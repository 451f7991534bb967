// SPDX-License-Identifier: MIT
// Kernels: the methods that a backend implements, one per op, with the name, parameters and meaning
// given in ops.def. ops.cpp validates their arguments.
#pragma once

#include "backend/ops.h"

namespace snapkv {

/// What an op takes whose kernel needs no memory beside its arguments.
template <typename... Arguments>
constexpr size_t no_workspace(const Arguments&...) {
  return 0;
}

class Kernels {
 public:
  virtual ~Kernels() = default;

  // Each op's kernel, and beside it the bytes of memory that the kernel takes for itself while it
  // computes. The second method does not read tensors' data, and the first one takes no more.
#define SNAPKV_OP(name, parameters, names) \
  virtual void name parameters = 0;        \
  virtual size_t name##_workspace parameters { return no_workspace names; }
#include "backend/ops.def"

  /// Decides how pack() lays out `weight`: sets everything in `packed` but its memory, and returns
  /// the bytes of memory that pack() fills; 0 if products read the weight itself. Here: plain rows
  /// in the compute dtype.
  virtual size_t lay_out(const Tensor& weight, DType compute, PackedWeight& packed) {
    packed.n_out = weight.shape[0];
    packed.n_in = weight.shape[1];
    return packed.n_out * row_bytes(compute, packed.n_in);
  }
  /// The bytes of PackWorkspace::memory that project_packed() fills in a product of n rows.
  virtual size_t pack_memory(int64_t /*n*/, const PackedWeight& /*weight*/) { return 0; }
};

}  // namespace snapkv
