// SPDX-License-Identifier: MIT
// Context: what every op of the CUDA backend needs: the stream, the device's sizes, small
// arguments, scratch memory, the copies of weights and the library of products. One device, one
// stream: what is launched later sees what was launched before.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "base/buffer.h"
#include "snapkv/dtype.h"

namespace snapkv::cuda {

class Gemm;
class WeightStore;

/// Throws Error{kRuntime} naming the call, unless `status` is cudaSuccess.
void check(cudaError_t status, const char* call);

class Context {
 public:
  /// `compute`: of matrix products, bf16 or f32. `stream`: of the caller, on the current device;
  /// nullptr: one of its own, on the first device. Throws Error{kRuntime} when there is no device
  /// or no driver for it.
  Context(DType compute, cudaStream_t stream);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  cudaStream_t stream() const { return stream_; }
  DType compute() const { return compute_; }
  const char* device_name() const { return properties_.name; }
  int n_multiprocessors() const { return properties_.multiProcessorCount; }
  size_t total_memory() const { return properties_.totalGlobalMem; }
  /// Shared memory that one block may ask for.
  size_t max_shared_bytes() const { return properties_.sharedMemPerBlockOptin; }

  /// Copies a small host array to the device; valid for the launches of the op that calls it.
  template <typename T>
  const T* put(std::span<const T> values) {
    return static_cast<const T*>(put_bytes(values.data(), values.size_bytes()));
  }

  /// Device memory for one op's intermediate results, at least `bytes`; the next op reuses it.
  void* scratch(size_t bytes);

  /// Device memory, uninitialized. Throws Error{kDoesNotFit} naming `what`, what was asked and what
  /// is free.
  Buffer allocate(size_t bytes, const char* what);
  /// How many bytes allocate() can still give.
  size_t free_memory() const;
  /// The most bytes that were allocated at a time.
  size_t peak_memory() const { return peak_memory_; }
  void reset_peak_memory() { peak_memory_ = memory_; }
  /// Waits until the device has done all that was launched.
  void synchronize();

  WeightStore& weights() { return *weights_; }
  Gemm& gemm() { return *gemm_; }

  /// Page-locked host memory, which copies to the device and back at full speed.
  static Buffer allocate_pinned(size_t bytes, const char* what);

  /// Between these two, put() writes to `host` instead, and returns the place in `device` that
  /// belongs to it; who calls them sends one to the other. For graphs (step_graph.h).
  void begin_arguments(const Buffer& device, const Buffer& host);
  /// How many bytes were put.
  size_t end_arguments();

  /// All bytes that put() has taken so far.
  size_t bytes_put() const { return bytes_put_; }

  /// Whether launch() does nothing: what it would launch was recorded.
  bool skips_launches() const { return skips_launches_; }
  void skip_launches(bool skip) { skips_launches_ = skip; }
  /// A number that changes when scratch memory moves.
  uint64_t memory_generation() const { return memory_generation_; }

 private:
  const void* put_bytes(const void* values, size_t bytes);

  DType compute_;
  cudaDeviceProp properties_{};
  static void release(void* data, size_t bytes, void* context);

  size_t memory_ = 0, peak_memory_ = 0;  // before the buffers, which are counted out when they go
  cudaMemPool_t pool_ = nullptr;         // keeps what was freed: cudaMalloc would stop the device
  cudaStream_t stream_ = nullptr;
  bool owns_stream_ = false;
  Buffer ring_host_, ring_device_;  // of put()
  size_t ring_at_ = 0, bytes_put_ = 0;
  char* step_host_ = nullptr;  // of a step's arguments, instead of the ring
  char* step_device_ = nullptr;
  size_t step_at_ = 0, step_bytes_ = 0;
  bool skips_launches_ = false;
  Buffer scratch_;
  uint64_t memory_generation_ = 0;
  std::unique_ptr<WeightStore> weights_;  // these two are made last and go first
  std::unique_ptr<Gemm> gemm_;
};

}  // namespace snapkv::cuda
