// SPDX-License-Identifier: MIT
// The file of a saved session: parsing it (docs/session-file.md has the layout). session_save.cpp
// writes it, session_load.cpp fills a session from it; the fuzz target parses it.
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
inline constexpr uint32_t kSessionVersionZstd = 2;  // each layer's rows are a frame of zstd

/// The rows of a layer. Spans point into the file's bytes, or what was decoded of them, and have no
/// alignment.
struct SessionFileRows {
  std::span<const std::byte> positions;  // int32, of each head in turn
  std::span<const std::byte> keys;       // rows in the cache's type, of each head in turn
  std::span<const std::byte> values;
  std::span<const std::byte> queries;  // [n_queries, n_head, head_dim] f32, oldest first
};

struct SessionFileLayer {
  SessionStats::Layer stats;          // rows seen, and kept at the end of the last prefill
  std::vector<int32_t> n_kv;          // [n_head_kv]
  std::span<const std::byte> stored;  // its rows: themselves, or a frame of zstd
};

struct SessionFile {
  std::string path;  // for messages
  bool has_frames = false;
  SavedSession saved;
  int64_t n_ctx = 0;  // of the session: some models rotate by it
  int64_t n_head = 0, n_head_kv = 0, head_dim = 0, n_vocab = 0;
  int64_t n_queries = 0;              // tokens whose queries are there, with kv_decode_limit
  std::span<const std::byte> logits;  // [n_vocab] f32
  std::vector<SessionFileLayer> layers;
};

/// Checks everything that can be checked without the model and without decoding frames: the
/// checksum, sizes, positions that ascend up to the last token, logits that are finite. The spans
/// of the result point into `bytes`. Throws Error{kBadModel}.
SessionFile parse_session_file(std::span<const std::byte> bytes, const std::string& path);

/// Bytes of the rows of layer il, decoded. They are bounded by what the file says of itself only:
/// compare that with a model before rows_of().
size_t rows_bytes(const SessionFile& file, int64_t il);
/// The rows of layer il, decoded into `memory` and checked where they are a frame. Throws
/// Error{kBadModel}, Error{kDoesNotFit}.
SessionFileRows rows_of(const SessionFile& file, int64_t il, Buffer& memory);

/// The hash of all bytes before it with which such a file ends: XXH3, 64 bits.
uint64_t session_checksum(std::span<const std::byte> bytes);

}  // namespace snapkv
