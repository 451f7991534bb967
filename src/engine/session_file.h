// SPDX-License-Identifier: MIT
// Parser of the file of a saved session (docs/session-file.md has the layout). The fuzz target runs
// it too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "snapkv/engine.h"

namespace snapkv {

inline constexpr char kSessionMagic[8] = {'S', 'N', 'A', 'P', 'K', 'V', 'S', '\n'};
inline constexpr uint32_t kSessionVersion = 1;
inline constexpr uint32_t kSessionVersionZstd = 2;  // each layer's rows are a zstd frame

/// The rows of a layer. The spans point into the file's bytes, or into those decoded from them, and
/// are not aligned.
struct SessionFileRows {
  std::span<const std::byte> positions;  // int32, head by head
  std::span<const std::byte> keys;       // rows in the cache's type, head by head
  std::span<const std::byte> values;
  std::span<const std::byte> queries;  // [n_queries, n_head, head_dim] f32, oldest first
};

struct SessionFileLayer {
  SessionStats::Layer stats;          // rows seen, and rows kept at the end of the last prefill
  std::vector<int32_t> n_kv;          // [n_head_kv]
  std::span<const std::byte> stored;  // the rows as stored: plain, or a zstd frame
};

struct SessionFile {
  std::string path;  // for error messages
  bool has_frames = false;
  SavedSession saved;
  int64_t n_ctx = 0;  // of the session; some models' rotation depends on it
  int64_t n_head = 0, n_head_kv = 0, head_dim = 0, n_vocab = 0;
  int64_t n_queries = 0;              // tokens whose queries are stored, with kv_decode_limit
  std::span<const std::byte> logits;  // [n_vocab] f32
  std::vector<SessionFileLayer> layers;
};

/// Checks everything that needs neither the model nor decoded frames: the checksum, sizes,
/// ascending positions up to the last token, finite logits. The spans of the result point into
/// `bytes`. Throws Error{kBadModel}.
SessionFile parse_session_file(std::span<const std::byte> bytes, const std::string& path);

/// Bytes of the decoded rows of layer il. Only the file's own fields bound them, so compare those
/// with a model before calling rows_of().
size_t rows_bytes(const SessionFile& file, int64_t il);
/// The rows of layer il; if they are a frame, they are decoded into `memory` and checked. Throws
/// Error{kBadModel}, Error{kDoesNotFit}.
SessionFileRows rows_of(const SessionFile& file, int64_t il, Buffer& memory);

/// XXH3, 64 bits, of `bytes`. A session file ends with this hash of all bytes before it.
uint64_t session_checksum(std::span<const std::byte> bytes);

}  // namespace snapkv
