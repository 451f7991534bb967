// SPDX-License-Identifier: MIT
// LogitRows: logits on the host, [n, n_vocab] f32.
#pragma once

#include <algorithm>
#include <span>

#include "backend/device_memory.h"

namespace snapkv {

class LogitRows {
 public:
  static constexpr const char* kLabel = "logits";

  LogitRows() = default;
  /// n uninitialized values.
  LogitRows(DeviceMemory& memory, size_t n) {
    reserve(memory, n);
    n_ = n;
  }

  bool empty() const { return n_ == 0; }
  std::span<float> values() const { return {static_cast<float*>(storage_.data()), n_}; }
  /// Makes room for n values, which may lose those that are there.
  void reserve(DeviceMemory& memory, size_t n) {
    if (storage_.bytes() >= n * sizeof(float)) return;
    *this = {};
    storage_ = memory.allocate_host(n * sizeof(float), kLabel);
  }
  /// Copies values and, after them, those of `more`; there must be room for all. In a dry run only
  /// their number counts.
  void assign(const DeviceMemory& memory, std::span<const float> values,
              std::span<const float> more = {}) {
    SNAPKV_CHECK(values.size_bytes() + more.size_bytes() <= storage_.bytes());
    n_ = values.size() + more.size();
    if (!memory.computes()) return;
    const auto end = std::copy(values.begin(), values.end(), this->values().begin());
    std::copy(more.begin(), more.end(), end);
  }
  void clear() { *this = {}; }

 private:
  Buffer storage_;
  size_t n_ = 0;
};

}  // namespace snapkv
