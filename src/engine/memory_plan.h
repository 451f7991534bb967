// SPDX-License-Identifier: MIT
// What a prompt will take, and what the machine has.
#pragma once

#include <cstddef>

#include "model/config.h"
#include "snapkv/engine.h"

namespace snapkv {

/// Prompts (and turns) of at least this many tokens are computed with packed weights; shorter ones
/// read the weights directly. Packing costs about as much as reading the weights twice.
inline constexpr int64_t kPackedMinTokens = 32;

/// Bytes that this process may still take: what the system calls available, or what the control
/// group leaves if that is less.
size_t available_memory();

}  // namespace snapkv
