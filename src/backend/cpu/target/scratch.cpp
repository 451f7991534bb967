// SPDX-License-Identifier: MIT
#include "backend/cpu/target/scratch.h"

#include "base/buffer.h"
#include "base/per_thread.h"

namespace snapkv::cpu {

char* scratch(size_t bytes) {
  static auto& buffers = *new PerThread<Buffer>;
  Buffer& buffer = buffers.get();
  if (buffer.bytes() < bytes) {
    buffer = Buffer();  // free first, since the contents are not needed
    buffer = Buffer::host(bytes + bytes / 4, "scratch memory of the attention kernels");
  }
  return static_cast<char*>(buffer.data());
}

}  // namespace snapkv::cpu
