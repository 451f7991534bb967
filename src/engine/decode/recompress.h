// SPDX-License-Identifier: MIT
// SessionOptions::kv_decode_limit: when decoding has filled a layer up to the limit, its rows are
// compressed to the policy's budget again, as at the end of a prompt. With kv_refresh the policy
// chooses from all rows of the conversation.
#pragma once

#include "engine/core/session_impl.h"

namespace snapkv {

/// The number of decode steps until layer il must be compressed again; 0: before the next step. A
/// number that is never reached if there is no limit.
int64_t steps_to_limit(const Session::Impl& session, int il);

/// Compresses the layers that are at the limit, one after the other. If it throws an Error
/// (kDoesNotFit), layers that are done stay compressed and the session is valid.
void recompress_at_limit(Session::Impl& session);

}  // namespace snapkv
