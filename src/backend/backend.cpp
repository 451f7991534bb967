// SPDX-License-Identifier: MIT
#include "backend/backend.h"

#include <cstring>

#include "backend/cpu/cpu_kernels.h"
#include "backend/kernels.h"
#include "backend/ref/ref_kernels.h"

namespace snapkv {

std::unique_ptr<Backend> Backend::make(const BackendOptions& options) {
  switch (options.kind) {
    case BackendKind::ref:
      return std::make_unique<Backend>(options.kind, ref::make_kernels());
    case BackendKind::cpu:
      return std::make_unique<Backend>(options.kind,
                                       cpu::make_kernels(options.n_threads, options.compute));
  }
  SNAPKV_CHECK(false);
}

Backend::Backend(BackendKind kind, std::unique_ptr<Kernels> kernels)
    : kind_(kind), kernels_(std::move(kernels)) {}
Backend::~Backend() = default;

std::string Backend::description() const { return kernels_->description(); }
DType Backend::compute_dtype() const { return kernels_->compute_dtype(); }
int Backend::n_threads() const { return kernels_->n_threads(); }

// Both backends work on host memory.
Buffer Backend::allocate(size_t bytes, const char* what) { return Buffer::host(bytes, what); }
void Backend::upload(void* device, const void* host, size_t bytes) {
  if (bytes > 0) std::memcpy(device, host, bytes);
}
void Backend::download(void* host, const void* device, size_t bytes) {
  if (bytes > 0) std::memcpy(host, device, bytes);
}
void Backend::copy(void* dst, const void* src, size_t bytes) { upload(dst, src, bytes); }
void Backend::synchronize() {}

}  // namespace snapkv
