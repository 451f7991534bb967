// SPDX-License-Identifier: MIT
// The notes beside a conversation in a file: its text and tokens, which its session does not have.
#pragma once

#include <string>

#include "server/scheduler/kept_sessions.h"

namespace snapkv::server {

std::string slot_notes(const KeptSession& kept);
/// Sets what slot_notes() has written. Throws kBadModel, which names `path`, for other texts and
/// for tokens that the model does not have.
void read_slot_notes(const std::string& notes, int64_t n_vocab, const std::string& path,
                     KeptSession& kept);

}  // namespace snapkv::server
