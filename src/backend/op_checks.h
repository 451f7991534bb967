// SPDX-License-Identifier: MIT
// Checks of ops: what ops.cpp and sequence_checks.cpp both say of tensors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "backend/backend.h"
#include "backend/ops.h"

namespace snapkv::op_checks {

inline constexpr int64_t kAny = -1;

inline bool has_shape(const Tensor& t, std::initializer_list<int64_t> shape) {
  if (t.rank != static_cast<int>(shape.size())) return false;
  int i = 0;
  for (int64_t n : shape) {
    const int64_t actual = t.shape[i++];
    if (actual < 0 || (n != kAny && actual != n)) return false;
  }
  return true;
}

/// Whether t is dense and has this shape; its memory may be null only if it is empty.
inline bool is_dense(const Tensor& t, std::initializer_list<int64_t> shape) {
  return has_shape(t, shape) && t.is_contiguous() && (t.data != nullptr || t.numel() == 0);
}

inline bool is_f32(const Tensor& t, std::initializer_list<int64_t> shape) {
  return t.dtype == DType::f32 && is_dense(t, shape);
}

inline bool is_activation(const Backend& backend, const Tensor& t,
                          std::initializer_list<int64_t> shape) {
  return (t.dtype == DType::f32 || t.dtype == backend.compute_dtype()) && is_dense(t, shape);
}

inline bool is_bias(const Tensor& t, int64_t n_out) { return !t || is_f32(t, {n_out}); }

inline bool all_within(std::span<const int32_t> values, int64_t low, int64_t high) {
  return std::all_of(values.begin(), values.end(),
                     [=](int32_t v) { return low <= v && v <= high; });
}

/// As the checks in ops.cpp, of ops with sequences (sequence_checks.cpp).
bool short_conv(const Backend& backend, const ShortConv& c);
bool delta_rule(const Backend&, const DeltaRule& r);
bool selective_scan(const Backend&, const SelectiveScan& s);
bool channel_scan(const Backend&, const ChannelScan& s);
bool token_shift(const Backend& backend, const TokenShift& s);
bool wkv(const Backend&, const Wkv& w);

}  // namespace snapkv::op_checks
