// SPDX-License-Identifier: MIT
// CudaKernels: device memory, where weights are, and one forwarding line per op.
#include "backend/cuda/cuda_kernels.h"

#include <fmt/core.h>

#include <vector>

#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/gemm.h"
#include "backend/cuda/step_graph.h"
#include "backend/cuda/weight_store.h"
#include "base/check.h"
#include "base/log.h"

namespace snapkv::cuda {
namespace {

/// Left free when weights are placed: a share of the device's memory, for caches and activations.
constexpr double kReservedShare = 0.15;

/// The last marks, each an event.
class Events {
 public:
  ~Events() {
    for (cudaEvent_t e : events_) cudaEventDestroy(e);
  }
  int64_t record(cudaStream_t stream) {
    const size_t i = static_cast<size_t>(n_++) % kMost;
    if (i == events_.size()) {
      events_.push_back(nullptr);
      check(cudaEventCreateWithFlags(&events_[i], cudaEventDefault), "cudaEventCreate");
    }
    check(cudaEventRecord(events_[i], stream), "cudaEventRecord");
    return n_ - 1;
  }
  double seconds_between(int64_t begin, int64_t end) const {
    SNAPKV_CHECK(begin <= end && end < n_ && begin >= n_ - static_cast<int64_t>(kMost));
    float ms = 0;
    check(cudaEventElapsedTime(&ms, events_[static_cast<size_t>(begin) % kMost],
                               events_[static_cast<size_t>(end) % kMost]),
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
  CudaKernels(DType compute, cudaStream_t stream)
      : context_(compute, stream), weights_(context_), gemm_(context_), steps_(context_) {}

  std::string description() const override {
    return fmt::format("cuda ({}, {})", context_.device_name(), name(context_.compute()));
  }
  DType compute_dtype() const override { return context_.compute(); }
  int n_threads() const override { return 1; }

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
    context_.synchronize();  // the host memory may go
  }
  void download(void* host, const void* device, size_t bytes) override {
    transfer(host, device, bytes, cudaMemcpyDeviceToHost);
    context_.synchronize();
  }
  void copy(void* dst, const void* src, size_t bytes) override {
    transfer(dst, src, bytes, cudaMemcpyDeviceToDevice);
  }
  void synchronize() override { context_.synchronize(); }
  int64_t mark() override { return events_.record(context_.stream()); }
  double seconds_between(int64_t begin, int64_t end) const override {
    return events_.seconds_between(begin, end);
  }

  void place_weights(std::span<const Tensor> weights) override {
    const auto total = static_cast<double>(context_.total_memory());
    weights_.place(weights, static_cast<size_t>(kReservedShare * total));
    if (weights_.streamed_bytes() > 0) {
      log_warn(
          "{:.1f} MiB of the weights don't fit into the memory of {}: they are sent whenever "
          "they are used",
          static_cast<double>(weights_.streamed_bytes()) / (1 << 20), context_.device_name());
    }
  }
  void begin_step(uint64_t shape) override {
    if (weights_.streamed_bytes() > 0) return;  // every step sends them
    in_step_ = true;
    steps_.begin(shape);
  }
  void end_step(bool completed) override {
    if (!in_step_) return;
    in_step_ = false;
    completed ? steps_.end() : steps_.cancel();
  }

  void embed(const Tensor& weight, std::span<const int32_t> ids, const Tensor& out) override {
    cuda::embed(context_, weights_.on_device(weight), ids, out);
  }
  void rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out) override {
    cuda::rms_norm(context_, x, weights_.on_device(weight), eps, out);
  }
  void project(const Tensor& x, std::span<const Projection> projections) override {
    std::vector<Projection> resolved(projections.begin(), projections.end());
    for (Projection& p : resolved) {
      p.w = weights_.on_device(p.w);
      p.bias = weights_.on_device(p.bias);
    }
    cuda::project(context_, x, resolved);
  }
  void pack(const Tensor& weight, PackedWeight& packed) override {
    packed.n_out = weight.shape[0];
    packed.n_in = weight.shape[1];
    const Tensor w = weights_.on_device(weight);
    if (w.dtype == context_.compute() && weights_.is_resident(weight)) {
      packed.state.reset();
      packed.storage = Buffer(w.data, static_cast<size_t>(w.numel() * block_bytes(w.dtype)),
                              nullptr);  // not ours
      return;
    }
    const size_t bytes = static_cast<size_t>(w.numel() * block_bytes(context_.compute()));
    if (packed.state == nullptr || packed.storage.bytes() < bytes) {
      packed.storage = Buffer();
      packed.storage = context_.allocate(bytes, "packed weights");
      packed.state = std::make_shared<int>(0);  // says that the memory is its own
    }
    expand(context_, w, packed.storage.view(context_.compute(), {packed.n_out, packed.n_in}));
  }
  void project_packed(const Tensor& x, const PackedWeight& weight, const Tensor& bias,
                      const Tensor& out, bool accumulate) override {
    gemm_.run(x, weight.storage.view(context_.compute(), {weight.n_out, weight.n_in}), out,
              accumulate);
    if (bias) add_bias(context_, out, weights_.on_device(bias));
  }
  void rope(const Tensor& x, std::span<const int32_t> pos,
            const RopeFrequencies& frequencies) override {
    cuda::rope(context_, x, pos, frequencies);
  }
  void swiglu(const Tensor& gate, const Tensor& up, const Tensor& out) override {
    cuda::swiglu(context_, gate, up, out);
  }
  void store_rows(const Tensor& src, DType dtype, std::span<void* const> dst) override {
    cuda::store_rows(context_, src, dtype, dst);
  }
  void store_positions(std::span<const int32_t> pos, std::span<int32_t* const> dst) override {
    cuda::store_positions(context_, pos, dst);
  }
  void attention_prefill(const PrefillAttention& a) override {
    cuda::attention_prefill(context_, a);
  }
  void attention_decode(const DecodeAttention& a) override { cuda::attention_decode(context_, a); }
  void window_votes(const WindowVotes& w) override { cuda::window_votes(context_, w); }
  void pool(const Tensor& scores, std::span<const int32_t> n, int kernel_size, Pooling pooling,
            const Tensor& out) override {
    cuda::pool(context_, scores, n, kernel_size, pooling, out);
  }
  void top_k(const Tensor& scores, std::span<const int32_t> n, std::span<const int32_t> k,
             int n_tail, const Tensor& rows) override {
    cuda::top_k(context_, scores, n, k, n_tail, rows);
  }
  void gather_rows(const Tensor& src, const Tensor& rows, std::span<const int32_t> n,
                   std::span<void* const> dst) override {
    cuda::gather_rows(context_, src, rows, n, dst);
  }
  void convert_rows(const RowConversion& c) override { cuda::convert_rows(context_, c); }

 private:
  void transfer(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    SNAPKV_CHECK(!in_step_);
    check(cudaMemcpyAsync(to, from, bytes, kind, context_.stream()), "cudaMemcpyAsync");
  }

  Context context_;
  WeightStore weights_;
  Gemm gemm_;
  StepGraphs steps_;
  Events events_;
  bool in_step_ = false;
};

}  // namespace

std::unique_ptr<Kernels> make_kernels(Compute compute, void* stream) {
  return std::make_unique<CudaKernels>(compute == Compute::f32 ? DType::f32 : DType::bf16,
                                       static_cast<cudaStream_t>(stream));
}

}  // namespace snapkv::cuda
