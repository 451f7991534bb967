// SPDX-License-Identifier: MIT
// What the registry knows of the CUDA backend. Every build has this file, for plans and messages.
#include "backend/cuda/cuda_backend.h"
#include "backend/registry.h"

namespace snapkv::cuda {
namespace {

/// Not measured: project.cu multiplies 16 rows at a time and reads all weights for each 16.
constexpr int64_t kPackedMinTokens = 33;

class PlannedCuda final : public PlannedDevice {
 public:
  ProductTraits products(DType) const override { return product_traits(); }
};

}  // namespace

ProductTraits product_traits() { return {.packed_min_tokens = kPackedMinTokens}; }

BackendDefinition definition() {
  BackendDefinition cuda;
  cuda.info = {
      .name = kName, .help = "an NVIDIA GPU, in builds with SNAPKV_CUDA", .own_memory = true};
  cuda.auto_rank = 2;
  cuda.plan = [](const DeviceTraits&) -> std::unique_ptr<PlannedDevice> {
    return std::make_unique<PlannedCuda>();
  };
#ifdef SNAPKV_HAS_CUDA
  cuda.make = make_backend;
#else
  cuda.info.missing = "this snapkv was built without CUDA; configure it with -DSNAPKV_CUDA=ON";
#endif
  return cuda;
}

}  // namespace snapkv::cuda
