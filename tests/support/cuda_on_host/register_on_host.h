// SPDX-License-Identifier: MIT
// register_on_host(): gives "cuda" to the kernels that run on the host, in a build without CUDA.
#pragma once

#include "backend/cuda/cuda_backend.h"
#include "backend/registry.h"

namespace snapkv::test {

inline void register_on_host() {
  BackendDefinition definition = find_backend(cuda::kName);
  definition.info.missing.clear();
  definition.make = cuda::make_backend;
  register_backend(definition);
}

}  // namespace snapkv::test
