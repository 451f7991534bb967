// SPDX-License-Identifier: MIT
#include "base/buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "base/huge_pages.h"

namespace snapkv {
namespace {

/// Buffers of at least this many huge pages ask for them; in smaller ones the last, partly used
/// page would waste too much.
constexpr size_t kLargePages = 4;

/// Buffers of at least this many bytes are mapped, so that their memory goes back to the system as
/// soon as they are released. In the heap it would be trapped behind later allocations, exceeding
/// what a memory plan promises. The heap also keeps twice the largest block that it ever mapped
/// itself, so the limit is where it begins to map (mallopt(3), M_MMAP_THRESHOLD). AddressSanitizer
/// watches only the heap.
#if defined(__SANITIZE_ADDRESS__)  // GCC
#define SNAPKV_WATCHES_HEAP
#elif defined(__has_feature)  // Clang
#if __has_feature(address_sanitizer)
#define SNAPKV_WATCHES_HEAP
#endif
#endif
#if defined(SNAPKV_WATCHES_HEAP)
constexpr size_t kMappedBytes = SIZE_MAX;
#else
constexpr size_t kMappedBytes = size_t{128} << 10;
#endif

/// Buffers end at a multiple of this; a system with larger pages rounds up further.
constexpr size_t kPageBytes = 4096;

/// Maps whole pages at an address that is a multiple of `alignment`; nullptr on failure.
void* map_aligned(size_t bytes, size_t alignment) {
  const size_t spare = alignment > kPageBytes ? alignment : 0;
  if (bytes > SIZE_MAX - spare) return nullptr;
  void* all =
      ::mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  if (spare == 0) return all;
  const auto first = reinterpret_cast<uintptr_t>(all);
  const uintptr_t begin = (first + alignment - 1) / alignment * alignment;
  const uintptr_t end = begin + bytes, last = first + bytes + spare;
  if (begin > first) ::munmap(all, begin - first);
  if (last > end) ::munmap(reinterpret_cast<void*>(end), last - end);
  return reinterpret_cast<void*>(begin);
}

}  // namespace

Buffer Buffer::host(size_t bytes, const char* what) {
  if (bytes == 0) return {};
  const bool large = huge_page_size() > 0 && bytes >= kLargePages * huge_page_size();
  const bool mapped = bytes >= kMappedBytes;
  const size_t unit = large ? huge_page_size() : mapped ? kPageBytes : kAlignment;
  const size_t rounded = (bytes + unit - 1) / unit * unit;
  void* data = nullptr;
  if (rounded >= bytes) {
    data = mapped ? map_aligned(rounded, unit) : std::aligned_alloc(unit, rounded);
  }
  if (data == nullptr) {
    fail(ErrorCode::kDoesNotFit, "{}: {} bytes of memory are not available", what, bytes);
  }
  if (large) prefer_huge_pages(data, bytes);
  if (!mapped) return Buffer(data, bytes, [](void* p, size_t, void*) { std::free(p); });
  return Buffer(
      data, bytes,
      [](void* p, size_t, void* size) { ::munmap(p, reinterpret_cast<uintptr_t>(size)); },
      reinterpret_cast<void*>(rounded));
}

}  // namespace snapkv
