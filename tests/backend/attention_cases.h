// SPDX-License-Identifier: MIT
// Common parts of the cases for prefill, decode and votes: variants of attention, sizes of heads.
#pragma once

#include "tests/backend/op_cases.h"

namespace snapkv::test {

/// The parts of an AttentionVariant.
struct Variant {
  int64_t window = 0;
  float softcap = 0.0f;
  bool sinks = false;

  std::string name() const {
    return fmt::format("{}{}{}", window > 0 ? fmt::format(" window {}", window) : "",
                       softcap > 0 ? fmt::format(" softcap {}", softcap) : "",
                       sinks ? " sinks" : "");
  }
  /// The AttentionVariant; `memory` contains the sinks.
  AttentionVariant on(const DeviceTensor& memory) const {
    return {.window = window, .softcap = softcap, .sinks = sinks ? memory.view() : Tensor()};
  }
};
inline TestTensor sinks_of(int64_t n_head) { return random_tensor({n_head}, 77, DType::f32, 3.0f); }

/// The cpu's vectors have at least 8 values, and models with other head sizes do not load there.
inline OpCase& of_head_dim(int64_t head_dim, OpCase& c) {
  return head_dim % 8 == 0 ? c : c.not_on_cpu();
}

}  // namespace snapkv::test
