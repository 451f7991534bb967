// SPDX-License-Identifier: MIT
#include "model/linear_runner.h"

#include <array>

namespace snapkv {

void LinearRunner::pack(const LayerMatrices& matrices, bool at_use) {
  keys_ = matrices.all_tokens;
  has_others_ = matrices.has_others;
  n_packed_ = std::ssize(keys_);
  if (std::ssize(packed_) < n_packed_) packed_.resize(n_packed_);
  for (int64_t i = 0; i < n_packed_; ++i) {
    packed_[i].workspace = at_use ? &workspace_ : nullptr;
    ops::pack(backend_, keys_[i]->w, packed_[i]);
  }
}

bool LinearRunner::reads_weights() const {
  for (int64_t i = 0; i < n_packed_; ++i) {
    if (!packed_[i].storage) return true;
  }
  return !packed() || has_others_;
}

const PackedWeight& LinearRunner::packed(const Weight& weight) {
  for (int64_t i = 0; i < n_packed_; ++i) {
    if (keys_[i] == &weight) return packed_[i];
  }
  SNAPKV_CHECK(false);  // not one of the layer's
}

void LinearRunner::apply(const Tensor& x, std::span<const LinearCall> calls) {
  multiply(x, calls);
  for (const LinearCall& call : calls) {
    if (call.weight->scale == 1.0f) continue;
    SNAPKV_CHECK(!call.accumulate);  // ResidualOutput scales what it adds
    ops::scale(backend_, call.out, {&call.weight->scale, 1});
  }
}

void LinearRunner::multiply(const Tensor& x, std::span<const LinearCall> calls) {
  if (packed()) {
    for (const LinearCall& call : calls) {
      ops::project_packed(backend_, x, packed(*call.weight), call.weight->bias, call.out,
                          call.accumulate);
    }
    return;
  }
  SNAPKV_CHECK(calls.size() <= kMaxCalls);
  std::array<Projection, kMaxCalls> projections;
  for (size_t i = 0; i < calls.size(); ++i) {
    projections[i] = {calls[i].weight->w, calls[i].weight->bias, calls[i].out, calls[i].accumulate};
  }
  ops::project(backend_, x, std::span(projections).first(calls.size()));
}

}  // namespace snapkv
