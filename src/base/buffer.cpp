// SPDX-License-Identifier: MIT
#include "base/buffer.h"

#include <cstdlib>

#include "base/error.h"

namespace snapkv {

Buffer Buffer::host(size_t bytes, const char* what) {
  if (bytes == 0) return {};
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* data = rounded >= bytes ? std::aligned_alloc(kAlignment, rounded) : nullptr;
  if (data == nullptr) {
    fail(ErrorCode::kDoesNotFit, "{}: {} bytes of memory are not available", what, bytes);
  }
  return Buffer(data, bytes, [](void* p, size_t, void*) { std::free(p); });
}

}  // namespace snapkv
