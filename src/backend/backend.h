// SPDX-License-Identifier: MIT
// Backend: memory of a device and the kernels that run on it. The model, the caches and the
// policies see only this and ops.h.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/buffer.h"
#include "base/tensor.h"
#include "snapkv/compute.h"

namespace snapkv {

class Kernels;

enum class BackendKind { ref, cpu };

struct BackendOptions {
  BackendKind kind = BackendKind::cpu;
  int n_threads = 0;  // 0: as many as the process may run on
  Compute compute = Compute::automatic;
};

class Backend {
 public:
  /// Throws Error{kUsage} when the compute type can't be had (bf16 asked of a CPU without it runs,
  /// emulated by the library, with a warning), Error{kRuntime} when the device is missing.
  static std::unique_ptr<Backend> make(const BackendOptions& options);

  Backend(BackendKind kind, std::unique_ptr<Kernels> kernels);
  ~Backend();

  BackendKind kind() const { return kind_; }
  /// For people: "cpu (AVX3_ZEN4, 2 threads, bf16)".
  std::string description() const;
  /// bf16 or f32: the type of activations that project_packed() takes.
  DType compute_dtype() const;
  int n_threads() const;

  /// Device memory, uninitialized; Error{kDoesNotFit} naming `what` when there is none.
  Buffer allocate(size_t bytes, const char* what);
  void upload(void* device, const void* host, size_t bytes);
  void download(void* host, const void* device, size_t bytes);
  /// Device to device.
  void copy(void* dst, const void* src, size_t bytes);
  void synchronize();

  Kernels& kernels() { return *kernels_; }

 private:
  BackendKind kind_;
  std::unique_ptr<Kernels> kernels_;
};

}  // namespace snapkv
