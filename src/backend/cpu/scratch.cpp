// SPDX-License-Identifier: MIT
#include "backend/cpu/scratch.h"

#include "base/buffer.h"

namespace snapkv::cpu {

char* scratch(size_t bytes) {
  thread_local Buffer buffer;
  if (buffer.bytes() < bytes) {
    buffer = Buffer();  // free first: the contents need not survive
    buffer = Buffer::host(bytes + bytes / 4, "scratch memory of the attention kernels");
  }
  return static_cast<char*>(buffer.data());
}

}  // namespace snapkv::cpu
