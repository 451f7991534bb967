// SPDX-License-Identifier: MIT
#include "tests/support/refused_allocations.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <new>

namespace {

int64_t left = -1;  // allocations until one is refused; negative: none
bool was_refused = false;

[[maybe_unused]] bool refuses() {  // unused with a sanitizer
  if (left < 0 || left-- > 0) return false;
  was_refused = true;
  return true;
}

}  // namespace

namespace snapkv::test {

void refuse_allocation(int64_t n) {
  was_refused = false;
  left = n;
}

bool refuse_no_allocation() {
  left = -1;
  return was_refused;
}

}  // namespace snapkv::test

#if !defined(SNAPKV_SANITIZED)

void* operator new(std::size_t bytes) {
  void* p = refuses() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }

extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return refuses() ? nullptr : memalign(alignment, bytes);
}
extern "C" void* mmap(void* at, std::size_t bytes, int protection, int flags, int fd,
                      off_t offset) noexcept {
  if (refuses()) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, fd, offset));
}

#endif
