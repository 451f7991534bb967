// SPDX-License-Identifier: MIT
// decode_step(): what decode_steps() does when it has checked its arguments, what undoes it, and
// what guess_tokens() needs of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/core/session_impl.h"

namespace snapkv {

/// Throws unless each session can append its tokens in one step. `call`: whose arguments they are.
void check_step(std::span<Session::Impl* const> sessions, std::span<const StepTokens> tokens,
                const char* call);
/// The positions of the tokens that the sessions append next.
std::vector<int32_t> step_positions(std::span<Session::Impl* const> sessions,
                                    std::span<const StepTokens> tokens);
/// Makes room for n_tokens in every layer, after compressing those that are full (kv_decode_limit).
void prepare_rows(Session::Impl& session, int64_t n_tokens);
/// The same for guess_tokens(), whose steps together have n_tokens.
void prepare_guesses(Session::Impl& session, int64_t n_tokens);
/// Appends tokens[i] to session i.
void decode_step(std::span<Session::Impl* const> sessions, std::span<const StepTokens> tokens);
/// Session::decode_room() and Session::keep_decoded().
int64_t decode_room(const Session::Impl& session);
int64_t keep_decoded(Session::Impl& session, int64_t n);

}  // namespace snapkv
