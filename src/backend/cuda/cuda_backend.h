// SPDX-License-Identifier: MIT
// The CUDA backend: cuBLASLt for large products, own kernels for the rest. This header keeps CUDA's
// headers out of its users.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace snapkv::cuda {

inline constexpr const char* kName = "cuda";

/// `options.stream`: the cudaStream_t to run in, or nullptr. Throws Error{kRuntime} if no device
/// can run it.
std::unique_ptr<Backend> make_backend(const BackendOptions& options);

/// The same for all types of weights.
ProductTraits product_traits();

}  // namespace snapkv::cuda
