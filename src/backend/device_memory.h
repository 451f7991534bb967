// SPDX-License-Identifier: MIT
// DeviceMemory: a device's memory and the order of the work on it. Backend derives from it; code
// that allocates and copies but computes nothing needs only this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/buffer.h"
#include "base/file_buffer.h"
#include "base/tensor.h"

namespace snapkv {

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  /// Whether the memory is separate from the host's: then only ops and copies may touch tensors.
  virtual bool is_device() const = 0;

  /// Uninitialized device memory; throws Error{kDoesNotFit} naming `what` if there is none.
  virtual Buffer allocate(size_t bytes, const char* what) = 0;
  /// Host memory from which a device copies at full speed.
  virtual Buffer allocate_pinned(size_t bytes, const char* what) = 0;
  /// Host memory for what only the host reads.
  virtual Buffer allocate_host(size_t bytes, const char* what) { return Buffer::host(bytes, what); }
  /// Zeroed host memory in an unnamed file in the folder `dir` (make_file_buffer). `resident`: the
  /// most bytes of it that the caller keeps in memory at a time, with release_pages().
  virtual Buffer allocate_in_file(const std::string& dir, size_t bytes, size_t /*resident*/,
                                  const char* what) {
    return make_file_buffer(dir, bytes, what);
  }
  /// False: this is a dry run (measure/measuring_backend.h). Buffers have sizes but no memory, and
  /// nothing may be read from them or written to them.
  virtual bool computes() const { return true; }
  /// Bytes that can still be allocated. Only devices with memory of their own know this.
  virtual size_t free_memory() const = 0;
  /// The most bytes that were allocated at one time; 0 if the memory is the host's.
  virtual size_t peak_memory() const = 0;
  virtual void reset_peak_memory() = 0;

  virtual void upload(void* device, const void* host, size_t bytes) = 0;
  virtual void download(void* host, const void* device, size_t bytes) = 0;
  /// Device to device.
  virtual void copy(void* dst, const void* src, size_t bytes) = 0;
  virtual void synchronize() = 0;

  /// A point in the order of the work, and the time between two of them; on a device both points
  /// must have been reached (synchronize()).
  using Mark = int64_t;
  virtual Mark mark() = 0;
  virtual double seconds_between(Mark begin, Mark end) const = 0;

  /// Tells a device which tensors in host memory are weights, in the order of their use. Ops take
  /// them by their host addresses; the device keeps as many copies as it has room for and transfers
  /// the other weights whenever they are used. They must not change or move afterwards. Backends on
  /// host memory ignore this.
  virtual void place_weights(std::span<const Tensor> weights) = 0;
};

}  // namespace snapkv
