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
  /// Copies values, for which there must be room. In a dry run only their number counts.
  void assign(const DeviceMemory& memory, std::span<const float> values) {
    SNAPKV_CHECK(values.size_bytes() <= storage_.bytes());
    n_ = values.size();
    if (memory.computes()) std::copy(values.begin(), values.end(), this->values().begin());
  }
  void clear() { *this = {}; }

 private:
  Buffer storage_;
  size_t n_ = 0;
};

}  // namespace snapkv
