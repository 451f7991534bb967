// SPDX-License-Identifier: MIT
#include "base/buffer.h"

#include <cstdlib>

#include "base/error.h"
#include "base/huge_pages.h"

namespace snapkv {
namespace {

/// Buffers of at least so many huge pages ask for them; in smaller ones the last, partly used page
/// would weigh too much.
constexpr size_t kLargePages = 4;

}  // namespace

Buffer Buffer::host(size_t bytes, const char* what) {
  if (bytes == 0) return {};
  const bool large = huge_page_size() > 0 && bytes >= kLargePages * huge_page_size();
  const size_t alignment = large ? huge_page_size() : kAlignment;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* data = rounded >= bytes ? std::aligned_alloc(alignment, rounded) : nullptr;
  if (data == nullptr) {
    fail(ErrorCode::kDoesNotFit, "{}: {} bytes of memory are not available", what, bytes);
  }
  if (large) prefer_huge_pages(data, bytes);
  return Buffer(data, bytes, [](void* p, size_t, void*) { std::free(p); });
}

}  // namespace snapkv
