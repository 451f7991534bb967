// SPDX-License-Identifier: MIT
// HostBackend: memory and order of work for the backends on host memory (ref and cpu).
#pragma once

#include <chrono>
#include <cstring>

#include "backend/backend.h"
#include "base/check.h"

namespace snapkv {

class HostBackend : public Backend {
 public:
  bool is_device() const final { return false; }
  Buffer allocate(size_t bytes, const char* what) final { return Buffer::host(bytes, what); }
  Buffer allocate_pinned(size_t bytes, const char* what) final { return Buffer::host(bytes, what); }
  size_t free_memory() const final { SNAPKV_CHECK(false); }
  size_t peak_memory() const final { return 0; }
  void reset_peak_memory() final {}

  void upload(void* device, const void* host, size_t bytes) final { copy(device, host, bytes); }
  void download(void* host, const void* device, size_t bytes) final { copy(host, device, bytes); }
  void copy(void* dst, const void* src, size_t bytes) final {
    if (bytes > 0) std::memcpy(dst, src, bytes);
  }
  void synchronize() final {}

  Mark mark() final {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  }
  double seconds_between(Mark begin, Mark end) const final {
    return static_cast<double>(end - begin) * 1e-9;
  }

  void place_weights(std::span<const Tensor>) final {}
};

}  // namespace snapkv
