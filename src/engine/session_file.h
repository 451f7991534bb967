// SPDX-License-Identifier: MIT
// The file of a saved session: parsing and writing it (docs/session-file.md has the layout).
// session_save.cpp fills it from a session and a session from it; the fuzz target parses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "snapkv/engine.h"

namespace snapkv {

inline constexpr char kSessionMagic[8] = {'S', 'N', 'A', 'P', 'K', 'V', 'S', '\n'};
inline constexpr uint32_t kSessionVersion = 1;

/// What one layer holds. Spans point into the file's bytes and have no alignment.
struct SessionFileLayer {
  SessionStats::Layer stats;             // rows seen, and kept at the end of the last prefill
  std::vector<int32_t> n_kv;             // [n_head_kv]
  std::span<const std::byte> positions;  // int32, of each head in turn
  std::span<const std::byte> keys;       // rows in the cache's type, of each head in turn
  std::span<const std::byte> values;
  std::span<const std::byte> queries;  // [n_queries, n_head, head_dim] f32, oldest first
};

struct SessionFile {
  SavedSession saved;
  int64_t n_ctx = 0;  // of the session: some models rotate by it
  int64_t n_head = 0, n_head_kv = 0, head_dim = 0, n_vocab = 0;
  int64_t n_queries = 0;              // tokens whose queries are there, with kv_decode_limit
  std::span<const std::byte> logits;  // [n_vocab] f32
  std::vector<SessionFileLayer> layers;
};

/// Checks everything that can be checked without the model: the checksum, sizes, positions that
/// ascend up to the last token, logits that are finite. `path` is for messages. The spans of the
/// result point into `bytes`. Throws Error{kBadModel}.
SessionFile parse_session_file(std::span<const std::byte> bytes, const std::string& path);

/// The hash of all bytes before it with which such a file ends: XXH3, 64 bits.
uint64_t session_checksum(std::span<const std::byte> bytes);

}  // namespace snapkv
