// SPDX-License-Identifier: MIT
// CudaBackend: device memory, decode steps, and the kernels of this folder.
#include "backend/cuda/cuda_backend.h"

#include <fmt/core.h>

#include <vector>

#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/step_graph.h"
#include "backend/cuda/weight_store.h"
#include "backend/kernels.h"
#include "base/check.h"
#include "base/log.h"

namespace snapkv::cuda {
namespace {

/// The share of device memory that placed weights leave free for caches and activations.
constexpr double kReservedShare = 0.15;

/// The last kMost marks, each an event.
class Events {
 public:
  ~Events() {
    for (cudaEvent_t e : events_) cudaEventDestroy(e);
  }
  int64_t record(cudaStream_t stream) {
    const size_t i = n_++ % kMost;
    if (i == events_.size()) {
      events_.push_back(nullptr);
      check(cudaEventCreateWithFlags(&events_[i], cudaEventDefault), "cudaEventCreate");
    }
    check(cudaEventRecord(events_[i], stream), "cudaEventRecord");
    return n_ - 1;
  }
  double seconds_between(int64_t begin, int64_t end) const {
    SNAPKV_CHECK(begin <= end && end < n_ && begin >= n_ - int64_t{kMost});
    float ms = 0;
    check(cudaEventElapsedTime(&ms, events_[begin % kMost], events_[end % kMost]),
          "cudaEventElapsedTime");
    return ms * 1e-3;
  }

 private:
  static constexpr size_t kMost = 1 << 16;
  std::vector<cudaEvent_t> events_;
  int64_t n_ = 0;
};

class CudaKernels final : public Kernels {
 public:
  explicit CudaKernels(Context& context) : context_(context) {}

#define SNAPKV_OP(name, parameters, names) \
  void name parameters override { cuda::name(context_, SNAPKV_UNPACK names); }
#include "backend/ops.def"

 private:
  Context& context_;
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(DType compute, cudaStream_t stream) : context_(compute, stream) {}

  std::string_view device() const override { return kName; }
  bool is_device() const override { return true; }
  std::string description() const override {
    return fmt::format("cuda ({}, {})", context_.device_name(), name(context_.compute()));
  }
  DType compute_dtype() const override { return context_.compute(); }
  int n_threads() const override { return 1; }
  ProductTraits products(DType) const override { return product_traits(); }
  Kernels& kernels() override { return kernels_; }

  Buffer allocate(size_t bytes, const char* what) override {
    return context_.allocate(bytes, what);
  }
  Buffer allocate_pinned(size_t bytes, const char* what) override {
    return Context::allocate_pinned(bytes, what);
  }
  size_t free_memory() const override { return context_.free_memory(); }
  size_t peak_memory() const override { return context_.peak_memory(); }
  void reset_peak_memory() override { context_.reset_peak_memory(); }

  void upload(void* device, const void* host, size_t bytes) override {
    transfer(device, host, bytes, cudaMemcpyHostToDevice);
    context_.synchronize();  // the caller may free the host memory
  }
  void download(void* host, const void* device, size_t bytes) override {
    transfer(host, device, bytes, cudaMemcpyDeviceToHost);
    context_.synchronize();
  }
  void copy(void* dst, const void* src, size_t bytes) override {
    transfer(dst, src, bytes, cudaMemcpyDeviceToDevice);
  }
  void synchronize() override { context_.synchronize(); }
  Mark mark() override { return events_.record(context_.stream()); }
  double seconds_between(Mark begin, Mark end) const override {
    return events_.seconds_between(begin, end);
  }

  void place_weights(std::span<const Tensor> weights) override {
    const auto total = static_cast<double>(context_.total_memory());
    WeightStore& store = context_.weights();
    store.place(weights, static_cast<size_t>(kReservedShare * total));
    if (store.streamed_bytes() > 0) {
      log_warn(
          "{:.1f} MiB of the weights don't fit into the memory of {}: they are sent whenever "
          "they are used",
          static_cast<double>(store.streamed_bytes()) / (1 << 20), context_.device_name());
    }
  }
  void begin_step(uint64_t shape) override {
    if (context_.weights().streamed_bytes() > 0) return;  // transfers: no graph
    in_step_ = true;
    steps_.begin(shape);
  }
  void end_step(bool completed) override {
    if (!in_step_) return;
    in_step_ = false;
    completed ? steps_.end() : steps_.cancel();
  }

 private:
  void transfer(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    if (bytes == 0) return;
    SNAPKV_CHECK(!in_step_);
    check(cudaMemcpyAsync(to, from, bytes, kind, context_.stream()), "cudaMemcpyAsync");
  }

  Context context_;
  CudaKernels kernels_{context_};
  StepGraphs steps_{context_};
  Events events_;
  bool in_step_ = false;
};

}  // namespace

std::unique_ptr<Backend> make_backend(const BackendOptions& options) {
  return std::make_unique<CudaBackend>(options.compute == Compute::f32 ? DType::f32 : DType::bf16,
                                       static_cast<cudaStream_t>(options.stream));
}

}  // namespace snapkv::cuda
