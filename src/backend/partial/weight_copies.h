// SPDX-License-Identifier: MIT
// WeightCopies: the weights of models, which stay in host memory, and the copies of those that a
// device has asked for.
#pragma once

#include <map>
#include <span>

#include "backend/device_memory.h"
#include "base/buffer.h"
#include "base/tensor.h"

namespace snapkv {

class WeightCopies {
 public:
  explicit WeightCopies(DeviceMemory& memory) : memory_(memory) {}

  /// As DeviceMemory::place_weights(); copies nothing.
  void place(std::span<const Tensor> weights);
  /// Whether the tensor is a placed weight or a part of one. All others are in device memory.
  bool has(const Tensor& t) const { return find(t) != placed_.end(); }
  /// The tensor in device memory: for a placed weight a copy, which is made once and kept.
  Tensor on_device(const Tensor& weight);

 private:
  struct Placed {
    const char* end = nullptr;
    Buffer copy;  // empty until asked for
  };
  using Map = std::map<const char*, Placed>;  // by the first address

  Map::const_iterator find(const Tensor& t) const;

  DeviceMemory& memory_;
  Map placed_;
};

}  // namespace snapkv
