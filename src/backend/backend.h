// SPDX-License-Identifier: MIT
// Backend: memory of a device and the kernels that run on it. The model, the caches and the
// policies see only this and ops.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/buffer.h"
#include "base/tensor.h"
#include "snapkv/compute.h"

namespace snapkv {

class Kernels;

/// Granularity of n_kv in the shape of a decode step.
constexpr int32_t kStepRows = 256;

enum class BackendKind { ref, cpu, cuda };

struct BackendOptions {
  BackendKind kind = BackendKind::cpu;
  int n_threads = 0;  // 0: as many as the process may run on
  Compute compute = Compute::automatic;
  void* stream = nullptr;  // cuda: the caller's cudaStream_t; nullptr: one of its own
};

/// Whether this build has backend/cuda (not whether there is a device).
bool has_cuda();
/// Gives builds without CUDA a backend of that kind: tests run its kernels on the host.
using MakeCudaKernels = std::unique_ptr<Kernels> (*)(Compute compute, void* stream);
void register_cuda(MakeCudaKernels make);

class Backend {
 public:
  /// Throws Error{kUsage} when the compute type can't be had (bf16 asked of a CPU without it runs,
  /// emulated by the library, with a warning), Error{kRuntime} when the device is missing.
  static std::unique_ptr<Backend> make(const BackendOptions& options);

  Backend(BackendKind kind, std::unique_ptr<Kernels> kernels);
  ~Backend();

  BackendKind kind() const { return kind_; }
  /// For people: "cpu (avx512-bf16, 2 threads, bf16)".
  std::string description() const;
  /// bf16 or f32: the type of activations that project_packed() takes.
  DType compute_dtype() const;
  int n_threads() const;

  /// Device memory, uninitialized; Error{kDoesNotFit} naming `what` when there is none.
  Buffer allocate(size_t bytes, const char* what);
  /// Host memory from which a device copies at full speed.
  Buffer allocate_pinned(size_t bytes, const char* what);
  /// Bytes of a device that can be allocated; not for others.
  size_t free_memory() const;
  /// Most bytes of a device that were allocated at a time; 0 for others.
  size_t peak_memory() const;
  void reset_peak_memory();
  void upload(void* device, const void* host, size_t bytes);
  void download(void* host, const void* device, size_t bytes);
  /// Device to device.
  void copy(void* dst, const void* src, size_t bytes);
  void synchronize();
  /// A point in the order of what the backend does, and the time between two; on a device both must
  /// have been reached (synchronize()).
  using Mark = int64_t;
  Mark mark();
  double seconds_between(Mark begin, Mark end) const;
  /// Whether memory is not the host's: tensors may then be touched by ops and copies only.
  bool is_device() const { return kind_ == BackendKind::cuda; }

  /// Tells a device which tensors of host memory are weights, in the order of their use: ops take
  /// them where they are, and the device keeps copies, as many as it has room for; the others are
  /// sent whenever they are used. They must not change or move afterwards. Nothing to do elsewhere.
  void place_weights(std::span<const Tensor> weights);

  /// Around the ops of a decode step. Steps of the same `shape` make the same calls with tensors at
  /// the same addresses; what differs is host data (ids, positions, HeadRows) whose counts are the
  /// same, but n_kv, which may differ within a multiple of kStepRows. A device may then replay what
  /// it recorded. Only ops may stand between them, no copies. `completed`: false after an error.
  void begin_step(uint64_t shape);
  void end_step(bool completed = true);

  Kernels& kernels() { return *kernels_; }

 private:
  BackendKind kind_;
  std::unique_ptr<Kernels> kernels_;
};

}  // namespace snapkv
