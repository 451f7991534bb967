// SPDX-License-Identifier: MIT
// Gemm: products of many rows by cuBLASLt, the device's library.
#pragma once

#include <memory>

#include "backend/cuda/context.h"
#include "base/tensor.h"

namespace snapkv::cuda {

class Gemm {
 public:
  explicit Gemm(Context& context);
  ~Gemm();

  /// out (+)= x w^T, accumulated in f32. x [n, n_in] and w [n_out, n_in] of the context's compute
  /// type, out [n, n_out] f32 or that type; all contiguous device memory.
  void run(const Tensor& x, const Tensor& w, const Tensor& out, bool accumulate);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace snapkv::cuda
