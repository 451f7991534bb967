// SPDX-License-Identifier: MIT
#include "base/write_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace snapkv {
namespace {

/// A descriptor and, until it has its final name, the file it made.
class NewFile {
 public:
  ~NewFile() {
    const int error = errno;  // the caller reports what went wrong before
    if (fd >= 0) close(fd);
    if (!made.empty()) unlink(made.c_str());
    errno = error;
  }
  int fd = -1;
  std::string made;
};

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

/// The file's own name where `path` is a symbolic link: the link stays one.
std::string target_of(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;  // it does not exist yet
  std::string target(resolved);
  free(resolved);
  return target;
}

bool close_file(NewFile& file) {
  const int fd = file.fd;
  file.fd = -1;
  return close(fd) == 0;
}

bool write_over(const std::string& path, std::string_view bytes) {
  NewFile file;
  file.fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  return file.fd >= 0 && write_all(file.fd, bytes) && close_file(file);
}

/// `old`: of the file that will be replaced, or nullptr.
bool write_new(const std::string& path, std::string_view bytes, const struct stat* old) {
  NewFile file;
  const std::string name = fmt::format("{}.{}.tmp", path, getpid());
  unlink(name.c_str());  // a process of this number may have been killed here
  file.fd = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file.fd < 0) return false;
  file.made = name;
  if (old != nullptr && fchmod(file.fd, old->st_mode & 0777) != 0) return false;
  if (!write_all(file.fd, bytes) || fsync(file.fd) != 0 || !close_file(file) ||
      rename(name.c_str(), path.c_str()) != 0) {
    return false;
  }
  file.made.clear();
  return true;
}

}  // namespace

void write_file(const std::string& path, std::string_view bytes) {
  struct stat info = {};
  const bool there = stat(path.c_str(), &info) == 0;
  const bool ok = there && !S_ISREG(info.st_mode)
                      ? write_over(path, bytes)
                      : write_new(target_of(path), bytes, there ? &info : nullptr);
  if (ok) return;
  fail(ErrorCode::kRuntime, "{}: can't be written: {}", path, std::strerror(errno));
}

}  // namespace snapkv
