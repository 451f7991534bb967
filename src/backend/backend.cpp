// SPDX-License-Identifier: MIT
#include "backend/backend.h"

#include "backend/cpu/cpu_kernels.h"
#ifdef SNAPKV_HAS_CUDA
#include "backend/cuda/cuda_kernels.h"
#endif
#include "backend/kernels.h"
#include "backend/ref/ref_kernels.h"
#include "base/error.h"

namespace snapkv {
namespace {

MakeCudaKernels& cuda_factory() {
#ifdef SNAPKV_HAS_CUDA
  static MakeCudaKernels factory = &cuda::make_kernels;
#else
  static MakeCudaKernels factory = nullptr;
#endif
  return factory;
}

}  // namespace

void register_cuda(MakeCudaKernels make) { cuda_factory() = make; }
bool has_cuda() { return cuda_factory() != nullptr; }

std::unique_ptr<Backend> Backend::make(const BackendOptions& options) {
  switch (options.kind) {
    case BackendKind::ref:
      return std::make_unique<Backend>(options.kind, ref::make_kernels());
    case BackendKind::cpu:
      return std::make_unique<Backend>(options.kind,
                                       cpu::make_kernels(options.n_threads, options.compute));
    case BackendKind::cuda:
      if (!has_cuda()) {
        fail(ErrorCode::kUsage,
             "this snapkv was built without CUDA; configure it with -DSNAPKV_CUDA=ON");
      }
      return std::make_unique<Backend>(options.kind,
                                       cuda_factory()(options.compute, options.stream));
  }
  SNAPKV_CHECK(false);
}

Backend::Backend(BackendKind kind, std::unique_ptr<Kernels> kernels)
    : kind_(kind), kernels_(std::move(kernels)) {}
Backend::~Backend() = default;

std::string Backend::description() const { return kernels_->description(); }
DType Backend::compute_dtype() const { return kernels_->compute_dtype(); }
int Backend::n_threads() const { return kernels_->n_threads(); }

Buffer Backend::allocate(size_t bytes, const char* what) { return kernels_->allocate(bytes, what); }
Buffer Backend::allocate_pinned(size_t bytes, const char* what) {
  return kernels_->allocate_pinned(bytes, what);
}
size_t Backend::free_memory() const {
  SNAPKV_CHECK(is_device());
  return kernels_->free_memory();
}
size_t Backend::peak_memory() const { return kernels_->peak_memory(); }
void Backend::reset_peak_memory() { kernels_->reset_peak_memory(); }
void Backend::upload(void* device, const void* host, size_t bytes) {
  if (bytes > 0) kernels_->upload(device, host, bytes);
}
void Backend::download(void* host, const void* device, size_t bytes) {
  if (bytes > 0) kernels_->download(host, device, bytes);
}
void Backend::copy(void* dst, const void* src, size_t bytes) {
  if (bytes > 0) kernels_->copy(dst, src, bytes);
}
void Backend::synchronize() { kernels_->synchronize(); }
Backend::Mark Backend::mark() { return kernels_->mark(); }
double Backend::seconds_between(Mark begin, Mark end) const {
  return kernels_->seconds_between(begin, end);
}
void Backend::place_weights(std::span<const Tensor> weights) { kernels_->place_weights(weights); }
void Backend::begin_step(uint64_t shape) { kernels_->begin_step(shape); }
void Backend::end_step(bool completed) { kernels_->end_step(completed); }

}  // namespace snapkv
