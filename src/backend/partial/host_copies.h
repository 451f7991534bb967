// SPDX-License-Identifier: MIT
// HostCopies: an op's tensors in host memory, while the reference computes it for a device. Called
// with all arguments before download(), it notes which memory the op may touch; called again, it
// returns where that memory's copies are.
#pragma once

#include <cstddef>
#include <vector>

#include "backend/device_memory.h"
#include "backend/partial/weight_copies.h"
#include "base/buffer.h"
#include "base/tensor.h"

namespace snapkv {

class HostCopies {
 public:
  HostCopies(DeviceMemory& memory, const WeightCopies& weights)
      : memory_(memory), weights_(weights) {}

  /// The tensor; weights and empty ones need no copy.
  Tensor tensor(const Tensor& t);
  /// The `bytes` bytes at `data`, in device memory.
  template <typename T>
  T* rows(T* data, size_t bytes) {
    return static_cast<T*>(const_cast<void*>(at(data, bytes)));
  }
  /// A tensor's content now, in host memory, before or after download().
  Buffer content(const Tensor& t);

  void download();
  /// Sends back what the op has changed.
  void upload();

 private:
  struct Piece {
    char* begin = nullptr;
    char* end = nullptr;
    Buffer host = {}, before = {};  // the copy, and what it was like

    size_t bytes() const { return end - begin; }
  };
  const void* at(const void* data, size_t bytes);

  DeviceMemory& memory_;
  const WeightCopies& weights_;
  bool downloaded_ = false;
  std::vector<Piece> pieces_;  // from download() on in the order of addresses, without overlaps
};

}  // namespace snapkv
