// SPDX-License-Identifier: MIT
// Reads one value of any type as f64 and writes it back; the plain loops of ref/ are written with
// this.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "backend/ops.h"
#include "base/check.h"
#include "base/half.h"
#include "format/block_types.h"
#include "snapkv/dtype.h"

namespace snapkv::ref {

/// Value i of a row of any weight type.
inline double get(const void* row, DType dtype, int64_t i) {
  return visit_weight_type(dtype,
                           [=](auto type) -> double { return value_at<type.dtype>(row, i); });
}

/// Rounds to f32, and then to f16 or bf16 if the row has that type.
inline void put(void* row, DType dtype, int64_t i, double value) {
  const float v = static_cast<float>(value);
  switch (dtype) {
    case DType::f32:
      static_cast<float*>(row)[i] = v;
      return;
    case DType::f16:
      static_cast<f16_t*>(row)[i] = to_f16(v);
      return;
    case DType::bf16:
      static_cast<bf16_t*>(row)[i] = to_bf16(v);
      return;
    default:
      SNAPKV_CHECK(false);
  }
}

/// Writes a block of 32 values as store_rows defines it, in f32.
inline void put_q8_0(BlockQ8_0& block, const double* x) {
  float max = 0.0f;
  bool finite = true;
  for (int i = 0; i < kBlockSize; ++i) {
    finite = finite && std::isfinite(x[i]);
    max = std::max(max, std::abs(static_cast<float>(x[i])));
  }
  const float d = max / 127.0f;
  block.d = to_f16(finite ? d : std::numeric_limits<float>::quiet_NaN());
  const float inverse = finite && to_f32(block.d) > 0.0f ? 1.0f / d : 0.0f;
  for (int i = 0; i < kBlockSize; ++i) {
    const float level = inverse > 0.0f ? static_cast<float>(x[i]) * inverse : 0.0f;
    block.qs[i] = static_cast<int8_t>(std::nearbyint(level));
  }
}

/// Writes a whole row of any cache type.
inline void put_row(void* row, DType dtype, const std::vector<double>& values) {
  for (int64_t i = 0; i < std::ssize(values); i += block_size(dtype)) {
    if (dtype == DType::q8_0) {
      put_q8_0(static_cast<BlockQ8_0*>(row)[i / kBlockSize], &values[i]);
    } else {
      put(row, dtype, i, values[i]);
    }
  }
}

/// The first n values of a row.
inline std::vector<double> get_row(const void* row, DType dtype, int64_t n) {
  std::vector<double> values(n);
  visit_weight_type(dtype, [&](auto type) {
    for (int64_t i = 0; i < n; ++i) values[i] = value_at<type.dtype>(row, i);
  });
  return values;
}

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  // in no particular order, so that one sum need not wait for the other
  return std::transform_reduce(a.begin(), a.end(), b.begin(), 0.0);
}

/// Turns the scores s of one row of query head h into probabilities, in place: capped, then exp(s_j
/// - max) / sum; the head's sink takes part in max and sum.
void softmax(std::vector<double>& s, const AttentionVariant& variant, int64_t h);

/// The first row that a query sees; `own` is the query's own row.
inline int64_t first_visible(const AttentionVariant& variant, int64_t own) {
  return variant.window > 0 ? std::max<int64_t>(0, own + 1 - variant.window) : 0;
}

}  // namespace snapkv::ref
