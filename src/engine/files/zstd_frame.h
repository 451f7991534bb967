// SPDX-License-Identifier: MIT
// zstd frames in cache files, each with the rows of one layer (docs/session-file.md).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"

namespace snapkv {

/// Throws Error{kUsage} unless `level` is between 0 (no frames) and kMostZstdLevel.
void check_zstd_level(int level);

/// Compresses `bytes` into one frame, which records their number.
std::vector<std::byte> make_zstd_frame(std::span<const std::byte> bytes, int level);

/// The content of `frame`, which must be `n_bytes` long. If the frame gives another length, nothing
/// is allocated or decoded. Throws Error{kBadModel} naming the file and `what` ("layer 3") if it is
/// not such a frame or is damaged, Error{kDoesNotFit} if there is no memory.
Buffer decode_zstd_frame(std::span<const std::byte> frame, size_t n_bytes, const std::string& path,
                         const std::string& what);

}  // namespace snapkv
