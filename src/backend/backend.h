// SPDX-License-Identifier: MIT
// Backend: a device's memory and the kernels that run on it. The model, the caches and the policies
// use only this interface and ops.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend/byte_products.h"
#include "backend/device_memory.h"
#include "snapkv/compute.h"

namespace snapkv {

class Kernels;

/// Granularity at which n_kv is part of the shape of a decode step.
constexpr int32_t kStepRows = 256;

struct BackendOptions {
  Device device = Device::cpu;  // automatic: a GPU if this build and the machine have one
  int n_threads = 0;            // 0: cpu_threads()
  Compute compute = Compute::automatic;
  void* stream = nullptr;  // cuda: the caller's cudaStream_t; nullptr: a new one
};

/// What plans must know of a device, which need not be there.
struct DeviceTraits {
  Device device = Device::cpu;
  DType compute = DType::f32;
  ByteProducts byte_products = ByteProducts::other;
  int n_threads = 0;  // 0: cpu_threads()
};

class Backend : public DeviceMemory {
 public:
  /// Throws Error{kUsage} if the compute type is not available, Error{kRuntime} if the device is
  /// missing. On a CPU without bf16 the library emulates it, with a warning.
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
  /// Memory that the library for products of many rows takes for code and objects of its own while
  /// a prompt is read. `n_networks`: as many parts of the model get different numbers of tokens.
  virtual size_t library_bytes(int64_t /*n_networks*/) const { return 0; }

  /// Bracket the ops of a decode step. Steps of the same `shape` make the same calls with tensors
  /// at the same addresses. Only host data differs (ids, positions, HeadRows), with unchanged
  /// counts; n_kv may differ within a multiple of kStepRows. A device may then replay what it
  /// recorded. Only ops may come between the two calls, no copies. `completed`: false after an
  /// error.
  virtual void begin_step(uint64_t shape) = 0;
  virtual void end_step(bool completed = true) = 0;

  /// The kernels, which trust their arguments: call them through ops.h, which validates.
  virtual Kernels& kernels() = 0;
};

/// A backend whose kernels say what memory they take, but must not be run; nullptr where kernels do
/// not say so.
std::unique_ptr<Backend> make_to_measure(const DeviceTraits& traits);

/// Registers the backend for Device::cuda. Tests of a build without CUDA register one that runs its
/// kernels on the host.
using MakeCudaBackend = std::unique_ptr<Backend> (*)(Compute compute, void* stream);
void register_cuda(MakeCudaBackend make);

}  // namespace snapkv
