// SPDX-License-Identifier: MIT
// The CUDA backend: cuBLASLt for large products, own kernels for the rest. Hides CUDA's headers.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "snapkv/compute.h"

namespace snapkv::cuda {

/// `stream`: a cudaStream_t to run in, or nullptr. Throws Error{kRuntime} when there is no device
/// that can run it.
std::unique_ptr<Backend> make_backend(Compute compute, void* stream);

}  // namespace snapkv::cuda
