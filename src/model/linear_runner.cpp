// SPDX-License-Identifier: MIT
#include "model/linear_runner.h"

#include <array>

namespace snapkv {

void LinearRunner::pack(std::span<const Weight* const> weights, bool at_use) {
  if (packed_.size() < weights.size()) packed_.resize(weights.size());
  keys_.assign(weights.begin(), weights.end());
  n_packed_ = std::ssize(weights);
  for (int64_t i = 0; i < n_packed_; ++i) {
    packed_[i].workspace = at_use ? &workspace_ : nullptr;
    ops::pack(backend_, weights[i]->w, packed_[i]);
  }
}

bool LinearRunner::reads_weights() const {
  for (int64_t i = 0; i < n_packed_; ++i) {
    if (!packed_[i].storage) return true;
  }
  return !packed();
}

const PackedWeight* LinearRunner::find(const Weight* weight) const {
  for (int64_t i = 0; i < n_packed_; ++i) {
    if (keys_[i] == weight) return &packed_[i];
  }
  return nullptr;
}

void LinearRunner::apply(const Tensor& x, std::span<const LinearCall> calls) {
  if (packed()) {
    for (const LinearCall& call : calls) {
      const PackedWeight* packed = find(call.weight);
      SNAPKV_CHECK(packed != nullptr);
      ops::project_packed(backend_, x, *packed, call.weight->bias, call.out, call.accumulate);
    }
    return;
  }
  constexpr size_t kMaxCalls = 4;
  SNAPKV_CHECK(calls.size() <= kMaxCalls);
  std::array<Projection, kMaxCalls> projections;
  for (size_t i = 0; i < calls.size(); ++i) {
    projections[i] = {calls[i].weight->w, calls[i].weight->bias, calls[i].out, calls[i].accumulate};
  }
  ops::project(backend_, x, std::span(projections).first(calls.size()));
}

}  // namespace snapkv
