// SPDX-License-Identifier: MIT
// decode_step(): what decode_batch() does when it has checked its arguments.
#pragma once

#include <cstdint>
#include <span>

#include "engine/core/session_impl.h"

namespace snapkv {

/// Appends tokens[i] to session i.
void decode_step(std::span<Session::Impl* const> sessions, std::span<const int32_t> tokens);

}  // namespace snapkv
