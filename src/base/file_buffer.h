// SPDX-License-Identifier: MIT
// Host memory in an unnamed file: pages that are not in use may leave the memory.
#pragma once

#include <cstddef>
#include <string>

#include "base/buffer.h"

namespace snapkv {

/// `bytes` of zeroed memory in a new file in the folder `dir`, which no one else sees and which
/// disappears with the buffer. The disk space is reserved at once. Throws Error{kRuntime} naming
/// `dir` and the cause if no file can be made there, Error{kDoesNotFit} if the disk has too little
/// space.
Buffer make_file_buffer(const std::string& dir, size_t bytes, const char* what);

// Hints about a part of such a buffer, whole pages around [data, data + bytes). No data are lost.
/// Not needed for a while: takes it out of this process's resident memory.
void release_pages(const void* data, size_t bytes);
/// Needed soon: reads it ahead.
void prefetch_pages(const void* data, size_t bytes);

}  // namespace snapkv
