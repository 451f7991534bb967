// SPDX-License-Identifier: MIT
#include "model/activations.h"

#include <algorithm>
#include <utility>

namespace snapkv {
namespace {

DType dtype_of(ActivationType type, DType input) {
  switch (type) {
    case ActivationType::f32:
      return DType::f32;
    case ActivationType::i32:
      return DType::i32;
    case ActivationType::input:
      return input;
  }
  SNAPKV_CHECK(false);
}

}  // namespace

ActivationTensor ActivationPlan::add(std::string_view name, int64_t n_cols, ActivationType type,
                                     Rows rows) {
  auto at = std::find_if(memories_.begin(), memories_.end(),
                         [&](const Memory& memory) { return memory.name == name; });
  if (at == memories_.end()) {
    at = memories_.insert(at, {std::string(name), type, 0, std::move(rows)});
  }
  SNAPKV_CHECK(at->type == type);
  at->n_cols = std::max(at->n_cols, n_cols);
  return {static_cast<int>(at - memories_.begin()), 0, n_cols};
}

ActivationTensor ActivationPlan::add_heads(std::string_view name, int64_t n_head, int64_t head_dim,
                                           ActivationType type) {
  return {add(name, n_head * head_dim, type).memory, n_head, head_dim};
}

void ActivationBuffer::ensure(Backend& backend, const ActivationPlan& plan, int64_t n_tokens,
                              DType input) {
  if (n_tokens <= n_tokens_ && input == input_) return;
  *this = ActivationBuffer();
  size_t bytes = 0;
  for (const ActivationPlan::Memory& memory : plan.memories_) {
    const int64_t n_rows = memory.rows ? memory.rows(n_tokens) : n_tokens;
    places_.push_back({bytes, n_rows, dtype_of(memory.type, input)});
    const size_t used = row_bytes(places_.back().dtype, n_rows * memory.n_cols);
    bytes += (used + Buffer::kAlignment - 1) / Buffer::kAlignment * Buffer::kAlignment;
  }
  storage_ = backend.allocate(bytes, kLabel);
  n_tokens_ = n_tokens;
  input_ = input;
}

Tensor ActivationBuffer::get(const ActivationTensor& tensor, int64_t n) const {
  SNAPKV_CHECK(0 <= tensor.memory && tensor.memory < std::ssize(places_));
  const Place& place = places_[tensor.memory];
  SNAPKV_CHECK(n <= place.n_rows);
  if (tensor.n_head == 0) return storage_.view(place.dtype, {n, tensor.n_cols}, place.offset);
  return storage_.view(place.dtype, {n, tensor.n_head, tensor.n_cols}, place.offset);
}

}  // namespace snapkv
