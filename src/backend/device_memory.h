// SPDX-License-Identifier: MIT
// DeviceMemory: the memory of a device, and the order of what is done with it. Every Backend is
// one; code that allocates and copies, but computes nothing, needs no more than this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/buffer.h"
#include "base/tensor.h"

namespace snapkv {

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  /// Whether the memory is not the host's: only ops and copies may then touch tensors.
  virtual bool is_device() const = 0;

  /// Device memory, uninitialized; Error{kDoesNotFit} naming `what` when there is none.
  virtual Buffer allocate(size_t bytes, const char* what) = 0;
  /// Host memory from which a device copies at full speed.
  virtual Buffer allocate_pinned(size_t bytes, const char* what) = 0;
  /// How many bytes can be allocated. Only devices with memory of their own know.
  virtual size_t free_memory() const = 0;
  /// The most bytes that were allocated at a time; 0 where the memory is the host's.
  virtual size_t peak_memory() const = 0;
  virtual void reset_peak_memory() = 0;

  virtual void upload(void* device, const void* host, size_t bytes) = 0;
  virtual void download(void* host, const void* device, size_t bytes) = 0;
  /// Device to device.
  virtual void copy(void* dst, const void* src, size_t bytes) = 0;
  virtual void synchronize() = 0;

  /// A point in the order of what is done, and the time between two of them; on a device both must
  /// have been reached (synchronize()).
  using Mark = int64_t;
  virtual Mark mark() = 0;
  virtual double seconds_between(Mark begin, Mark end) const = 0;

  /// Tells a device which tensors of host memory are weights, in the order of their use: ops take
  /// them where they are, and the device keeps copies, as many as it has room for; the others are
  /// sent whenever they are used. They must not change or move afterwards. Host memory needs none.
  virtual void place_weights(std::span<const Tensor> weights) = 0;
};

}  // namespace snapkv
