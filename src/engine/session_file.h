// SPDX-License-Identifier: MIT
// What the file of a saved session says of it, besides its layers.
#pragma once

#include <vector>

#include "engine/cache_file.h"
#include "snapkv/engine.h"

namespace snapkv {

struct SessionFile {
  SavedSession saved;
  int64_t n_ctx = 0;      // of the session; some models' rotation depends on it
  int64_t n_queries = 0;  // tokens whose queries are stored, with kv_decode_limit
  std::vector<SessionStats::Layer> stats;  // rows seen, and rows kept at the end of the last prefill
};

/// The blocks before those of the layers: head, session, logits.
inline constexpr size_t kSessionBlocks = 3;

/// Reads and checks all that needs no model. Throws Error{kBadModel} naming the field.
SessionFile read_session_file(const CacheFile& file);

}  // namespace snapkv
