// SPDX-License-Identifier: MIT
// What a prompt will take, and what the machine has.
#pragma once

#include <cstddef>

#include "model/config.h"
#include "snapkv/engine.h"

namespace snapkv {

/// Prompts (and turns) of at least this many tokens are computed with packed weights; shorter ones
/// read the weights directly. Packing costs about as much as reading the weights twice, and pays
/// where the product library is faster than the kernels that read the file's type: measured,
/// docs/performance.md.
int64_t packed_min_tokens(const ModelInfo& info, DType compute, Device device);

/// Type of prefill's scratch layer. With q8_0 it stays f16, so that the prompt is read and the rows
/// are chosen as with f16; what is kept is quantized.
constexpr DType scratch_dtype(DType kv_type) {
  return kv_type == DType::q8_0 ? DType::f16 : kv_type;
}

/// Fails with kUsage unless a cache of rows of head_dim values can have this type.
void validate_kv_type(DType kv_type, int64_t head_dim);

/// Bytes that this process may still take: what the system calls available, or what the control
/// group leaves if that is less.
size_t available_memory();

}  // namespace snapkv
