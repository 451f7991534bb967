// SPDX-License-Identifier: MIT
#include "eval/common/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/file_lock.h"
#include "base/standard_stream.h"

namespace snapkv::eval {
namespace {

/// Writes all bytes; returns errno, or 0 on success.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(n);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

/// Waits until a new file's name is on the disk too. If the file system cannot do that, this is
/// ignored: the file's content is what counts.
void sync_folder(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const int fd = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  static_cast<void>(fsync(fd));
  close(fd);
}

}  // namespace

void AppendFile::fail_io(const char* what) const {
  fail(ErrorCode::kRuntime, "{}: {}: {}", path_, what, std::strerror(errno));
}

AppendFile::AppendFile(std::string path) : path_(std::move(path)) {
  struct stat info = {};
  const bool was_there = stat(path_.c_str(), &info) == 0;
  try {
    open();
  } catch (...) {
    close(fd_);
    throw;
  }
  created_ = !was_there;
}

void AppendFile::open() {
  do {  // repeat if it was removed between opening and locking, by a last writer that wrote nothing
    close(fd_);
    fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    struct stat info = {};
    if (fd_ < 0 || fstat(fd_, &info) != 0) fail_io("can't be written");
    is_regular_ = S_ISREG(info.st_mode);
    if (!is_regular_) return;
    if (const std::string_view stream = standard_stream_of(info); !stream.empty()) {
      fail(ErrorCode::kUsage, "{}: {} goes there too: name another file", path_, stream);
    }
    if (const std::string holder = lock_file(fd_); !holder.empty()) {
      fail(ErrorCode::kUsage, "{}: {} is writing it: wait for its end, or name another file", path_,
           holder);
    }
    if (fstat(fd_, &info) != 0) fail_io("can't be read");
    size_ = info.st_size;
  } while (!is_still_there());
}

AppendFile::~AppendFile() {
  if (created_ && is_regular_ && size_ == 0) unlink(path_.c_str());  // while still holding the lock
  close(fd_);
}

bool AppendFile::is_still_there() const {
  struct stat named = {}, opened = {};
  return stat(path_.c_str(), &named) == 0 && fstat(fd_, &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

void AppendFile::append(std::string_view bytes) {
  if (is_regular_ && !is_still_there()) {
    fail(ErrorCode::kRuntime, "{}: it was removed, moved or replaced while this run wrote it",
         path_);
  }
  errno = write_all(fd_, bytes);
  const bool written = errno == 0;
  if (!written || (is_regular_ && fdatasync(fd_) != 0)) {
    const int error = errno;
    // As far as possible; otherwise the next run cuts off the unfinished line.
    if (is_regular_) static_cast<void>(ftruncate(fd_, size_) == 0);
    errno = error;
    fail_io(written ? "can't be brought to the disk" : "can't be written");
  }
  if (created_ && size_ == 0) sync_folder(path_);
  size_ += bytes.size();
}

void AppendFile::truncate(uint64_t size) {
  if (ftruncate(fd_, size) != 0) fail_io("can't be cut off");
  size_ = size;
}

}  // namespace snapkv::eval
