// SPDX-License-Identifier: MIT
// WeightStore: device copies of a model's weights, found by a weight's address in host memory.
// Weights for which the device has no room are transferred when they are used.
#pragma once

#include <map>
#include <span>

#include "backend/cuda/context.h"
#include "base/buffer.h"
#include "base/tensor.h"

namespace snapkv::cuda {

class WeightStore {
 public:
  explicit WeightStore(Context& context) : context_(context) {}

  /// Copies weights to the device in this order, until less than `reserve` bytes would be left
  /// free; the others become `streamed`.
  void place(std::span<const Tensor> weights, size_t reserve);

  /// The tensor, a weight or a part of one, in device memory: its copy, or one made now that is
  /// valid for the current op. Tensors that were never placed are already in device memory.
  Tensor on_device(const Tensor& weight);
  /// Whether on_device() transfers nothing.
  bool is_resident(const Tensor& weight) const;
  size_t streamed_bytes() const { return streamed_bytes_; }

  /// How many streamed tensors are there at a time: on_device() of one more replaces the first.
  static constexpr size_t kStaged = 8;

 private:
  struct Placed {
    const char* end = nullptr;
    Buffer copy;  // empty: streamed
  };
  using Map = std::map<const char*, Placed>;  // by the first address

  Map::const_iterator find(const Tensor& weight) const;
  Tensor stage(const Tensor& weight);

  Context& context_;
  Map placed_;
  Buffer staged_[kStaged];
  size_t next_staged_ = 0;
  size_t streamed_bytes_ = 0;
};

}  // namespace snapkv::cuda
