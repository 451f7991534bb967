// SPDX-License-Identifier: MIT
// Host memory that lies in a file without a name: pages that are not in use may leave the memory.
// Used for hidden states of prompts that are longer than the memory.
#pragma once

#include <cstddef>
#include <string>

#include "base/buffer.h"

namespace snapkv {

/// `bytes` of zeroed memory in a new file in the folder `dir`, which nobody else sees and which is
/// gone when the buffer is. The room is taken on the disk at once. Throws Error{kRuntime} naming
/// `dir` and the cause when no file can be made there, Error{kDoesNotFit} when the disk has too
/// little room.
Buffer make_file_buffer(const std::string& dir, size_t bytes, const char* what);

// Hints about a part of such a buffer, whole pages around [data, data + bytes); nothing is lost.
/// It will not be needed for a while: takes it out of this process's resident memory.
void release_pages(const void* data, size_t bytes);
/// It is needed soon: reads it ahead.
void prefetch_pages(const void* data, size_t bytes);

}  // namespace snapkv
