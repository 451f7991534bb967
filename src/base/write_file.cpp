// SPDX-License-Identifier: MIT
#include "base/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "base/atomic_file.h"
#include "base/error.h"

namespace snapkv {
namespace {

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(n);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

void write_device(const std::string& path, std::string_view bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const bool ok = fd >= 0 && write_all(fd, bytes);
  const int error = errno;
  if (fd >= 0) close(fd);
  if (!ok) fail(ErrorCode::kRuntime, "can't write '{}': {}", path, std::strerror(error));
}

}  // namespace

void write_file(const std::string& path, std::string_view bytes) {
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return write_device(path, bytes);
  AtomicFile file(path, true);
  file.write(std::as_bytes(std::span(bytes)));
  file.commit();
}

}  // namespace snapkv
