// SPDX-License-Identifier: MIT
// decode_step(): what decode_steps() does when it has checked its arguments, and what undoes it.
#pragma once

#include <cstdint>
#include <span>

#include "engine/core/session_impl.h"

namespace snapkv {

/// Appends tokens[i] to session i.
void decode_step(std::span<Session::Impl* const> sessions, std::span<const StepTokens> tokens);
/// Session::decode_room() and Session::keep_decoded().
int64_t decode_room(const Session::Impl& session);
int64_t keep_decoded(Session::Impl& session, int64_t n);

}  // namespace snapkv
