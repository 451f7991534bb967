// SPDX-License-Identifier: MIT
#include "backend/cuda/weight_store.h"

#include <iterator>

namespace snapkv::cuda {
namespace {

size_t bytes_of(const Tensor& t) {
  return static_cast<size_t>(t.numel() / block_size(t.dtype) * block_bytes(t.dtype));
}

void send(const Context& context, const Buffer& to, const Tensor& weight) {
  check(cudaMemcpyAsync(to.data(), weight.data, bytes_of(weight), cudaMemcpyHostToDevice,
                        context.stream()),
        "cudaMemcpyAsync");
}

}  // namespace

void WeightStore::place(std::span<const Tensor> weights, size_t reserve) {
  for (const Tensor& weight : weights) {
    const char* const begin = static_cast<const char*>(weight.data);
    if (!weight || placed_.contains(begin)) continue;  // a shared matrix is copied once
    const size_t bytes = bytes_of(weight);
    placed_[begin].end = begin + bytes;
    Buffer& copy = placed_[begin].copy;
    if (context_.free_memory() < bytes + reserve) {
      streamed_bytes_ += bytes;
      continue;
    }
    copy = context_.allocate(bytes, "weights");
    send(context_, copy, weight);
  }
  context_.synchronize();
}

WeightStore::Map::const_iterator WeightStore::find(const Tensor& weight) const {
  const char* const begin = static_cast<const char*>(weight.data);
  const auto next = placed_.upper_bound(begin);
  if (next == placed_.begin()) return placed_.end();
  const auto found = std::prev(next);
  return begin < found->second.end ? found : placed_.end();
}

bool WeightStore::is_resident(const Tensor& weight) const {
  const auto found = find(weight);
  return found == placed_.end() || found->second.copy;
}

Tensor WeightStore::on_device(const Tensor& weight) {
  if (!weight) return weight;
  const auto found = find(weight);
  if (found == placed_.end()) return weight;
  if (!found->second.copy) return stage(weight);
  Tensor t = weight;
  const int64_t offset = static_cast<const char*>(weight.data) - found->first;
  t.data = static_cast<char*>(found->second.copy.data()) + offset;
  return t;
}

Tensor WeightStore::stage(const Tensor& weight) {
  Buffer& buffer = staged_[next_staged_++ % kStaged];
  const size_t bytes = bytes_of(weight);
  if (buffer.bytes() < bytes) {
    context_.synchronize();
    buffer = Buffer();
    buffer = context_.allocate(bytes, "weights that are sent when they are used");
  }
  send(context_, buffer, weight);
  Tensor t = weight;
  t.data = buffer.data();
  return t;
}

}  // namespace snapkv::cuda
