// SPDX-License-Identifier: MIT
// A shared library for LD_PRELOAD that fails one call of a program, the n-th since main() began:
//   SNAPKV_TEST_FAULT=memory   malloc, calloc, realloc, aligned_alloc, posix_memalign, memalign,
//                              mmap, and with them operator new
//   SNAPKV_TEST_FAULT=calls    open, read, pread, write, pwrite, fsync, ftruncate, posix_fallocate,
//                              rename, mmap; not writes to stderr
//   SNAPKV_TEST_FAULT_AT=n     counted from 0; -1: none
//   SNAPKV_TEST_FAULT_LOG=file "COUNT STATE" at exit: calls that were counted, and whether one was
//                              refused (1), spared (2) or not reached (0)
// Calls on behalf of oneDNN and libgomp, which do not survive a refusal (docs/reliability.md), and
// of the dynamic linker are spared.
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

enum Kind { kNone, kMemory, kCalls };
enum State { kNotReached, kRefused, kSpared };

Kind g_kind = kNone;
long g_at = -1;
std::atomic<bool> g_counting{false};
std::atomic<long> g_count{0};
std::atomic<int> g_state{kNotReached};
int (*g_main)(int, char**, char**) = nullptr;

/// Whether the stack has a frame of a library whose calls are spared.
bool is_spared() {
  constexpr int kFrames = 64;
  void* frames[kFrames];
  const int n = backtrace(frames, kFrames);
  for (int i = 0; i < n; ++i) {
    Dl_info info;
    if (dladdr(frames[i], &info) == 0 || info.dli_fname == nullptr) continue;
    for (const char* library : {"libdnnl", "libgomp", "ld-linux"}) {
      if (std::strstr(info.dli_fname, library) != nullptr) return true;
    }
  }
  return false;
}

bool refuses(Kind kind) {
  if (!g_counting.load(std::memory_order_relaxed) || kind != g_kind) return false;
  if (g_count++ != g_at) return false;
  g_counting = false;  // examining the stack may allocate
  const bool spared = is_spared();
  g_state = spared ? kSpared : kRefused;
  return !spared;
}

bool refuses(Kind kind, int error) {
  if (!refuses(kind)) return false;
  errno = error;
  return true;
}

void write_log() {
  g_counting = false;
  const char* path = std::getenv("SNAPKV_TEST_FAULT_LOG");
  if (path == nullptr) return;
  const long fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0) return;
  char line[64];
  const int n = std::snprintf(line, sizeof line, "%ld %d\n", g_count.load(), g_state.load());
  syscall(SYS_write, fd, line, n);
  syscall(SYS_close, fd);
}

int counted_main(int argc, char** argv, char** environment) {
  void* frame[1];
  backtrace(frame, 1);  // loads now what it needs later
  const char* kind = std::getenv("SNAPKV_TEST_FAULT");
  const char* at = std::getenv("SNAPKV_TEST_FAULT_AT");
  if (kind != nullptr) g_kind = std::strcmp(kind, "memory") == 0 ? kMemory : kCalls;
  if (at != nullptr) g_at = std::atol(at);
  std::atexit(write_log);
  g_counting = true;
  return g_main(argc, argv, environment);
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

int open_at(int folder, const char* path, int flags, mode_t mode) {
  if (refuses(kCalls, EMFILE)) return -1;
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}

void* map(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  if (refuses(kMemory, ENOMEM) || refuses(kCalls, ENOMEM)) return MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, fd, offset));
}

}  // namespace

extern "C" {

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(),
                      void (*fini)(), void (*rtld_fini)(), void* stack_end) {
  g_main = main;
  using Start =
      int (*)(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*);
  const auto start = reinterpret_cast<Start>(dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}

void* malloc(size_t bytes) { return refuses(kMemory, ENOMEM) ? nullptr : __libc_malloc(bytes); }
void* calloc(size_t n, size_t bytes) {
  return refuses(kMemory, ENOMEM) ? nullptr : __libc_calloc(n, bytes);
}
void* realloc(void* p, size_t bytes) {
  return refuses(kMemory, ENOMEM) ? nullptr : __libc_realloc(p, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  return refuses(kMemory, ENOMEM) ? nullptr : __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** p, size_t alignment, size_t bytes) {
  *p = memalign(alignment, bytes);
  return *p == nullptr ? ENOMEM : 0;
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(AT_FDCWD, path, flags, mode);
}
ssize_t read(int fd, void* to, size_t n) {
  return refuses(kCalls, EIO) ? -1 : syscall(SYS_read, fd, to, n);
}
ssize_t pread(int fd, void* to, size_t n, off_t at) {
  return refuses(kCalls, EIO) ? -1 : syscall(SYS_pread64, fd, to, n, at);
}
ssize_t write(int fd, const void* from, size_t n) {
  if (fd != STDERR_FILENO && refuses(kCalls, ENOSPC)) return -1;
  return syscall(SYS_write, fd, from, n);
}
ssize_t pwrite(int fd, const void* from, size_t n, off_t at) {
  return refuses(kCalls, ENOSPC) ? -1 : syscall(SYS_pwrite64, fd, from, n, at);
}
int fsync(int fd) { return refuses(kCalls, EIO) ? -1 : static_cast<int>(syscall(SYS_fsync, fd)); }
int ftruncate(int fd, off_t n) {
  return refuses(kCalls, EIO) ? -1 : static_cast<int>(syscall(SYS_ftruncate, fd, n));
}
int ftruncate64(int fd, off_t n) { return ftruncate(fd, n); }
int posix_fallocate(int fd, off_t at, off_t n) {
  if (refuses(kCalls)) return ENOSPC;
  return syscall(SYS_fallocate, fd, 0, at, n) == 0 ? 0 : errno;
}
int rename(const char* from, const char* to) {
  return refuses(kCalls, EIO) ? -1 : static_cast<int>(syscall(SYS_rename, from, to));
}
void* mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  return map(at, bytes, protection, flags, fd, offset);
}
void* mmap64(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  return map(at, bytes, protection, flags, fd, offset);
}

}  // extern "C"
