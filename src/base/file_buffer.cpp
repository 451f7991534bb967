// SPDX-License-Identifier: MIT
#include "base/file_buffer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace snapkv {
namespace {

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& dir, const char* what)
      : fd_(::open(dir.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) {
    // for file systems without unnamed files: a named one that is removed at once
    if (fd_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
      std::string path = dir + "/snapkv-XXXXXX";
      fd_ = ::mkostemp(path.data(), O_CLOEXEC);
      if (fd_ >= 0) ::unlink(path.c_str());
    }
    if (fd_ < 0) {
      fail(ErrorCode::kRuntime, "{}: cannot make a file in '{}': {}", what, dir,
           std::strerror(errno));
    }
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { ::close(fd_); }
  int get() const { return fd_; }

 private:
  int fd_;
};

void advise(const void* data, size_t bytes, int advice) {
  if (bytes == 0) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(data);
  const uintptr_t begin = first / page * page;
  ::madvise(reinterpret_cast<void*>(begin), first + bytes - begin, advice);
}

}  // namespace

Buffer make_file_buffer(const std::string& dir, size_t bytes, const char* what) {
  if (bytes == 0) return {};
  const TemporaryFile file(dir, what);
  // reserve the space now: a full disk must be an error here, not a signal at a later store
  if (const int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)); error != 0) {
    const bool full = error == ENOSPC || error == EFBIG || error == EDQUOT;
    fail(full ? ErrorCode::kDoesNotFit : ErrorCode::kRuntime, "{}: {} bytes in a file in '{}': {}",
         what, bytes, dir, std::strerror(error));
  }
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) {
    fail(ErrorCode::kRuntime, "{}: cannot map {} bytes of a file in '{}': {}", what, bytes, dir,
         std::strerror(errno));
  }
  return Buffer(data, bytes, [](void* p, size_t n, void*) { ::munmap(p, n); });
}

void release_pages(const void* data, size_t bytes) { advise(data, bytes, MADV_DONTNEED); }

void prefetch_pages(const void* data, size_t bytes) { advise(data, bytes, MADV_WILLNEED); }

}  // namespace snapkv
