// SPDX-License-Identifier: MIT
// One value of any type as f64 and back: what the plain loops of ref/ are written with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "backend/ops.h"
#include "base/check.h"
#include "base/half.h"
#include "format/block_types.h"
#include "snapkv/dtype.h"

namespace snapkv::ref {

/// Value i of a q4_k or q5_k row.
template <class Block>
double get_with_min(const void* row, int64_t i) {
  const Block& b = static_cast<const Block*>(row)[i / kSuperblockSize];
  const int j = static_cast<int>(i % kSuperblockSize), part = j / kBlockSize;
  return static_cast<double>(to_f32(b.scales.d)) * b.scales.scale(part) * b.level(j) -
         static_cast<double>(to_f32(b.scales.dmin)) * b.scales.min(part);
}

/// Value i of a row of any type.
inline double get(const void* row, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::f32:
      return static_cast<const float*>(row)[i];
    case DType::f16:
      return to_f32(static_cast<const f16_t*>(row)[i]);
    case DType::bf16:
      return to_f32(static_cast<const bf16_t*>(row)[i]);
    case DType::i32:
      return static_cast<const int32_t*>(row)[i];
    case DType::q8_0: {
      const BlockQ8_0& b = static_cast<const BlockQ8_0*>(row)[i / kBlockSize];
      return static_cast<double>(to_f32(b.d)) * b.qs[i % kBlockSize];
    }
    case DType::q4_0: {
      const BlockQ4_0& b = static_cast<const BlockQ4_0*>(row)[i / kBlockSize];
      const int64_t j = i % kBlockSize;
      const int level = j < kBlockSize / 2 ? b.qs[j] & 15 : b.qs[j - kBlockSize / 2] >> 4;
      return static_cast<double>(to_f32(b.d)) * (level - 8);
    }
    case DType::q4_k:
      return get_with_min<BlockQ4_K>(row, i);
    case DType::q5_k:
      return get_with_min<BlockQ5_K>(row, i);
    case DType::q6_k: {
      const BlockQ6_K& b = static_cast<const BlockQ6_K*>(row)[i / kSuperblockSize];
      const int j = static_cast<int>(i % kSuperblockSize);
      return static_cast<double>(to_f32(b.d)) * b.scales[j / 16] * b.level(j);
    }
  }
  SNAPKV_CHECK(false);
}

/// Rounds to f32, then to f16 or bf16 if the row is of that type.
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

/// A block of 32 values as store_rows defines it, in f32.
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

/// A whole row of a type that caches have.
inline void put_row(void* row, DType dtype, const std::vector<double>& values) {
  const int64_t n = static_cast<int64_t>(values.size());
  for (int64_t i = 0; i < n; i += block_size(dtype)) {
    if (dtype == DType::q8_0) {
      put_q8_0(static_cast<BlockQ8_0*>(row)[i / kBlockSize], &values[static_cast<size_t>(i)]);
    } else {
      put(row, dtype, i, values[static_cast<size_t>(i)]);
    }
  }
}

/// The first n values of a row.
inline std::vector<double> get_row(const void* row, DType dtype, int64_t n) {
  std::vector<double> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i)] = get(row, dtype, i);
  return values;
}

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// The scores s of one row of query head h to probabilities, in place: capped, then
/// exp(s_j - max) / sum, the head's sink counting in max and sum.
void softmax(std::vector<double>& s, const AttentionVariant& variant, int64_t h);

/// The first row that a query sees whose own row is `own`.
inline int64_t first_visible(const AttentionVariant& variant, int64_t own) {
  return variant.window > 0 ? std::max<int64_t>(0, own + 1 - variant.window) : 0;
}

}  // namespace snapkv::ref
