// SPDX-License-Identifier: MIT
// The types that rows are kept in, and how rows grow.
#pragma once

#include <cstdint>

#include "snapkv/engine.h"

namespace snapkv {

/// Type of prefill's scratch layer. For a q8_0 cache it is f16: the prompt is read and rows are
/// chosen as with an f16 cache, and the kept rows are then quantized.
constexpr DType scratch_dtype(DType kv_type) {
  return kv_type == DType::q8_0 ? DType::f16 : kv_type;
}

/// The fewest rows that a layer's history (kv_refresh) grows by, so that short turns do not copy it
/// each time.
inline constexpr int32_t kHistoryGrowth = 256;

/// Throws kUsage unless the rows of the model's layers can have this type.
void validate_kv_type(DType kv_type, const ModelInfo& info);

}  // namespace snapkv
