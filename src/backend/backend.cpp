// SPDX-License-Identifier: MIT
#include "backend/backend.h"

#include "backend/cpu/cpu_backend.h"
#ifdef SNAPKV_HAS_CUDA
#include "backend/cuda/cuda_backend.h"
#endif
#include "backend/ref/ref_backend.h"
#include "base/check.h"
#include "base/error.h"
#include "base/log.h"

namespace snapkv {
namespace {

MakeCudaBackend& make_cuda() {
#ifdef SNAPKV_HAS_CUDA
  static MakeCudaBackend make = &cuda::make_backend;
#else
  static MakeCudaBackend make = nullptr;
#endif
  return make;
}

}  // namespace

void register_cuda(MakeCudaBackend make) { make_cuda() = make; }

std::unique_ptr<Backend> Backend::make(const BackendOptions& options) {
  switch (options.device) {
    case Device::automatic:
      if (make_cuda() != nullptr) {
        try {
          return make_cuda()(options.compute, options.stream);
        } catch (const Error& e) {
          log_info("no GPU is used: {}", e.what());
        }
      }
      [[fallthrough]];
    case Device::cpu:
      return cpu::make_backend(options.n_threads, options.compute);
    case Device::reference:
      return ref::make_backend();
    case Device::cuda:
      if (make_cuda() == nullptr) {
        fail(ErrorCode::kUsage,
             "this snapkv was built without CUDA; configure it with -DSNAPKV_CUDA=ON");
      }
      return make_cuda()(options.compute, options.stream);
  }
  SNAPKV_CHECK(false);
}

std::unique_ptr<Backend> make_to_measure(const DeviceTraits& traits) {
  return traits.device == Device::cpu ? cpu::make_to_measure(traits) : nullptr;
}

}  // namespace snapkv
