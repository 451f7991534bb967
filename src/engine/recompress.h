// SPDX-License-Identifier: MIT
// SessionOptions::kv_decode_limit: when decoding has filled a layer up to the limit, its rows are
// compressed to the policy's budget again, as at the end of a prompt. Called by decode.cpp.
#pragma once

#include "engine/session_impl.h"

namespace snapkv {

/// The number of decode steps after which layer il must be compressed again, 0 where that is before
/// the next one. Without a limit the number is never reached.
int64_t steps_to_limit(const Session::Impl& session, int il);

/// Compresses the layers that are at the limit, one after the other. On an Error (kDoesNotFit) the
/// layers done so far stay compressed and the session is valid.
void recompress_at_limit(Session::Impl& session);

}  // namespace snapkv
