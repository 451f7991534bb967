// SPDX-License-Identifier: MIT
// What a prompt will take.
#pragma once

#include <cstddef>

#include "model/model_spec.h"
#include "snapkv/engine.h"

namespace snapkv {

/// Type of prefill's scratch layer. With q8_0 it stays f16, so that the prompt is read and the rows
/// are chosen as with f16; what is kept is quantized.
constexpr DType scratch_dtype(DType kv_type) {
  return kv_type == DType::q8_0 ? DType::f16 : kv_type;
}

/// How many rows of logits are computed at once after the last layer.
inline constexpr int64_t kOutputRows = 16;

/// Bytes of the logits of a prompt's last tokens, while they are computed.
size_t logits_bytes(const ModelSpec& spec, int64_t n_logits);

/// Whether a prompt of n_tokens is computed with packed weights; their products round otherwise
/// than those that read weights as they are.
bool packs_weights(const ModelInfo& info, int64_t n_tokens, DType compute, Device device);

/// Fails with kUsage unless a cache of rows of head_dim values can have this type.
void validate_kv_type(DType kv_type, int64_t head_dim);

}  // namespace snapkv
