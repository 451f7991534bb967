// SPDX-License-Identifier: MIT
#include "backend/partial/weight_copies.h"

#include <iterator>

#include "base/check.h"

namespace snapkv {

void WeightCopies::place(std::span<const Tensor> weights) {
  for (const Tensor& w : weights) {
    if (!w) continue;
    SNAPKV_CHECK(w.is_contiguous());
    const char* begin = w.at<const char>(0);
    placed_[begin].end = begin + w.numel() / block_size(w.dtype) * block_bytes(w.dtype);
  }
}

WeightCopies::Map::const_iterator WeightCopies::find(const Tensor& t) const {
  const auto* address = static_cast<const char*>(t.data);
  const auto next = placed_.upper_bound(address);
  if (next == placed_.begin()) return placed_.end();
  const auto at = std::prev(next);
  return address < at->second.end ? at : placed_.end();
}

Tensor WeightCopies::on_device(const Tensor& weight) {
  const auto at = find(weight);
  if (at == placed_.end()) return weight;
  const char* begin = at->first;
  Placed& placed = placed_.at(begin);
  if (!placed.copy) {
    const size_t bytes = placed.end - begin;
    placed.copy = memory_.allocate(bytes, "weights");
    memory_.upload(placed.copy.data(), begin, bytes);
  }
  Tensor copy = weight;
  copy.data = static_cast<char*>(placed.copy.data()) + (weight.at<const char>(0) - begin);
  return copy;
}

}  // namespace snapkv
