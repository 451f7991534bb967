// SPDX-License-Identifier: MIT
// The CUDA backend: cuBLASLt for large products, own kernels for the rest. This header keeps CUDA's
// headers out of its users.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "snapkv/compute.h"

namespace snapkv::cuda {

/// `stream`: the cudaStream_t to run in, or nullptr. Throws Error{kRuntime} if no device can run
/// it.
std::unique_ptr<Backend> make_backend(Compute compute, void* stream);

}  // namespace snapkv::cuda
