// SPDX-License-Identifier: MIT
// Context: everything an op of the CUDA backend needs: the stream, the device's sizes, small
// arguments, scratch memory, copies of weights and the library for matrix products. There is one
// device and one stream: each launch sees the results of earlier ones.
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
  /// `compute`: bf16 or f32, for matrix products. `stream`: the caller's, on the current device;
  /// nullptr: a new one, on the first device. Throws Error{kRuntime} if there is no device or no
  /// driver for it.
  Context(DType compute, cudaStream_t stream);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  cudaStream_t stream() const { return stream_; }
  DType compute() const { return compute_; }
  const char* device_name() const { return properties_.name; }
  int n_multiprocessors() const { return properties_.multiProcessorCount; }
  size_t total_memory() const { return properties_.totalGlobalMem; }
  /// Whether a kernel can start while the one before it still runs.
  bool overlaps_kernels() const { return properties_.major >= 9; }
  /// The most shared memory that one block can have.
  size_t max_shared_bytes() const { return properties_.sharedMemPerBlockOptin; }

  /// Copies a small host array to the device; the copy is valid for the launches of the current op.
  template <typename T>
  const T* put(std::span<const T> values) {
    return static_cast<const T*>(put_bytes(values.data(), values.size_bytes()));
  }

  /// At least `bytes` of device memory for one op's intermediate results; the next op reuses it.
  void* scratch(size_t bytes);

  /// Uninitialized device memory. Throws Error{kDoesNotFit} naming `what`, the requested and the
  /// free bytes.
  Buffer allocate(size_t bytes, const char* what);
  /// Bytes that allocate() can still return.
  size_t free_memory() const;
  /// The most bytes that were allocated at one time.
  size_t peak_memory() const { return peak_memory_; }
  void reset_peak_memory() { peak_memory_ = memory_; }
  /// Waits until the device has finished everything that was launched.
  void synchronize();

  WeightStore& weights() { return *weights_; }
  Gemm& gemm() { return *gemm_; }

  /// Page-locked host memory, which is copied to and from the device at full speed.
  static Buffer allocate_pinned(size_t bytes, const char* what);

  /// Between these two calls, put() writes to `host` instead and returns the corresponding place in
  /// `device`; the caller copies one to the other. For graphs (step_graph.h).
  void begin_arguments(const Buffer& device, const Buffer& host);
  /// Returns how many bytes were put.
  size_t end_arguments();

  /// All bytes passed to put() so far.
  size_t bytes_put() const { return bytes_put_; }

  /// Whether launch() does nothing, because a recorded graph will be launched.
  bool skips_launches() const { return skips_launches_; }
  void skip_launches(bool skip) { skips_launches_ = skip; }
  /// A number that changes when scratch memory moves.
  uint64_t memory_generation() const { return memory_generation_; }

 private:
  const void* put_bytes(const void* values, size_t bytes);

  DType compute_;
  cudaDeviceProp properties_{};
  static void release(void* data, size_t bytes, void* context);

  size_t memory_ = 0, peak_memory_ = 0;  // before the buffers, which subtract from it when freed
  cudaMemPool_t pool_ = nullptr;         // keeps freed memory: cudaMalloc would stall the device
  cudaStream_t stream_ = nullptr;
  bool owns_stream_ = false;
  Buffer ring_host_, ring_device_;  // of put()
  size_t ring_at_ = 0, bytes_put_ = 0;
  char* step_host_ = nullptr;  // for a step's arguments, instead of the ring
  char* step_device_ = nullptr;
  size_t step_at_ = 0, step_bytes_ = 0;
  bool skips_launches_ = false;
  Buffer scratch_;
  uint64_t memory_generation_ = 0;
  std::unique_ptr<WeightStore> weights_;  // these two are made last and destroyed first
  std::unique_ptr<Gemm> gemm_;
};

}  // namespace snapkv::cuda
