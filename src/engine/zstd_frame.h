// SPDX-License-Identifier: MIT
// Frames of zstd in the files of caches: the rows of one layer each (docs/session-file.md). Used by
// session_save.cpp, session_file.cpp and kv_prefix_file.cpp, kv_prefix_save.cpp.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"

namespace snapkv {

/// Throws Error{kUsage} unless `level` is 0 (no frames) to kMostZstdLevel.
void check_zstd_level(int level);

/// `bytes` as one frame, which says how many they are.
std::vector<std::byte> make_zstd_frame(std::span<const std::byte> bytes, int level);

/// What `frame` holds, which must be `n_bytes`; nothing is allocated or decoded for one that says
/// otherwise. Throws Error{kBadModel} naming the file and `what` ("layer 3") where it is no such
/// frame or damaged, Error{kDoesNotFit} when there is no memory.
Buffer decode_zstd_frame(std::span<const std::byte> frame, size_t n_bytes, const std::string& path,
                         const std::string& what);

}  // namespace snapkv
