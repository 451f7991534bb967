// SPDX-License-Identifier: MIT
// Prompts whose context is stored with every row, as `snapkv compress --keep-full` does. Used by
// runner.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "snapkv/engine.h"

namespace snapkv::eval {

/// Reads the first `n_context` tokens once, writes their rows to a file in stored_kv_type(), and
/// lets each session, which has seen nothing, read the whole prompt from there: it selects with the
/// question. Throws what sessions and KvPrefix throw.
void prefill_stored(const std::shared_ptr<const Model>& model, std::span<Session* const> sessions,
                    std::span<const int32_t> tokens, int64_t n_context, const ProgressFn& progress);

}  // namespace snapkv::eval
