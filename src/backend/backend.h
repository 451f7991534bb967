// SPDX-License-Identifier: MIT
// Backend: a device's memory and the kernels that run on it. The model, the caches and the policies
// see only this and ops.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend/byte_products.h"
#include "backend/device_memory.h"
#include "snapkv/compute.h"

namespace snapkv {

class Kernels;

/// Granularity of n_kv in the shape of a decode step.
constexpr int32_t kStepRows = 256;

struct BackendOptions {
  Device device = Device::cpu;  // automatic: a GPU if this build and the machine have one
  int n_threads = 0;            // 0: cpu_threads()
  Compute compute = Compute::automatic;
  void* stream = nullptr;  // cuda: the caller's cudaStream_t; nullptr: one of its own
};

class Backend : public DeviceMemory {
 public:
  /// Throws Error{kUsage} when the compute type can't be had (bf16 asked of a CPU without it runs,
  /// emulated by the library, with a warning), Error{kRuntime} when the device is missing.
  static std::unique_ptr<Backend> make(const BackendOptions& options);

  /// Never `automatic`.
  virtual Device device() const = 0;
  bool is_device() const final { return device() == Device::cuda; }
  /// For people: "cpu (avx512-bf16, 2 threads, bf16)".
  virtual std::string description() const = 0;
  /// bf16 or f32: the type of activations that project_packed() takes.
  virtual DType compute_dtype() const = 0;
  /// Whether project() may round activations, to 8 bits or bf16: not with Compute::f32.
  virtual bool rounds_activations() const { return compute_dtype() != DType::f32; }
  virtual ByteProducts byte_products() const { return ByteProducts::other; }
  virtual int n_threads() const = 0;

  /// Around the ops of a decode step. Steps of the same `shape` make the same calls with tensors at
  /// the same addresses; what differs is host data (ids, positions, HeadRows) whose counts are the
  /// same, but n_kv, which may differ within a multiple of kStepRows. A device may then replay what
  /// it recorded. Only ops may stand between them, no copies. `completed`: false after an error.
  virtual void begin_step(uint64_t shape) = 0;
  virtual void end_step(bool completed = true) = 0;

  /// For ops.cpp, which validates first.
  virtual Kernels& kernels() = 0;
};

/// Gives builds without CUDA a backend for Device::cuda: tests run its kernels on the host.
using MakeCudaBackend = std::unique_ptr<Backend> (*)(Compute compute, void* stream);
void register_cuda(MakeCudaBackend make);

}  // namespace snapkv
