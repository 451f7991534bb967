// SPDX-License-Identifier: MIT
#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/standard_stream.h"

namespace snapkv {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 16;

/// Names of temporary files, at fixed addresses for a signal handler, which may not allocate. More
/// files than this can be written at once, but the others stay behind if a signal ends the process.
struct TemporaryName {
  enum State { kFree, kChanging, kUsed };
  std::atomic<int> state = kFree;
  char path[PATH_MAX];
};
TemporaryName g_temporary[16];
static_assert(std::atomic<int>::is_always_lock_free, "handlers may not wait");

int remember_temporary(const std::string& path) {
  if (path.size() >= PATH_MAX) return -1;
  for (size_t i = 0; i < std::size(g_temporary); ++i) {
    int expected = TemporaryName::kFree;
    if (!g_temporary[i].state.compare_exchange_strong(expected, TemporaryName::kChanging)) continue;
    std::memcpy(g_temporary[i].path, path.c_str(), path.size() + 1);
    g_temporary[i].state = TemporaryName::kUsed;
    return static_cast<int>(i);
  }
  return -1;
}

/// "folder" for "folder/name", "." for "name".
std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// A name next to `path` that no file has, unless a killed process left it behind. A long name is
/// cut, since the longest possible one would leave no room for an ending.
std::string temporary_name(const std::string& path, int i) {
  constexpr size_t kMostKept = 200;
  const size_t name = path.rfind('/') + 1;  // 0 if there is no folder
  return fmt::format("{}.tmp-{}-{}", path.substr(0, std::min(path.size(), name + kMostKept)),
                     ::getpid(), i);
}

/// Whether a file's name is one that temporary_name() makes.
bool is_temporary(const std::string& name) {
  const size_t ending = name.rfind(".tmp-");
  if (ending == std::string::npos || ending == 0) return false;
  const std::string numbers = name.substr(ending + 5);  // "12345-0"
  const size_t dash = numbers.find('-');
  return dash != std::string::npos && dash > 0 && dash + 1 < numbers.size() &&
         numbers.find_first_not_of("0123456789-") == std::string::npos;
}

/// The file that `path` refers to through links: renaming must not replace a link.
std::string target_of(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return path;
  const std::unique_ptr<char, decltype(&std::free)> target(::realpath(path.c_str(), nullptr),
                                                           &std::free);
  if (target == nullptr) fail(ErrorCode::kUsage, "'{}' is a link to nothing", path);
  return target.get();
}

[[noreturn]] void fail_io(const char* what, const std::string& path) {
  fail(ErrorCode::kRuntime, "can't {} '{}': {}", what, path, std::strerror(errno));
}

[[noreturn]] void fail_there(const std::string& path) {
  fail(ErrorCode::kUsage, "'{}' exists already", path);
}

/// Throws if the file must not be overwritten; returns the status of an existing file.
std::optional<struct stat> check_target(const std::string& path, bool overwrite) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) fail_io("make", path);  // for example, the name is too long
    return std::nullopt;
  }
  if (!S_ISREG(info.st_mode)) {
    fail(ErrorCode::kUsage, "'{}' is not a regular file, it can't be written", path);
  }
  if (!overwrite) fail_there(path);
  if (const std::string_view stream = standard_stream_of(info); !stream.empty()) {
    fail(ErrorCode::kUsage, "'{}' is where {} goes: name another file", path, stream);
  }
  return info;
}

}  // namespace

void check_can_write(const std::string& path, bool overwrite) {
  const std::string target = target_of(path);
  check_target(target, overwrite);
  if (::access(folder_of(target).c_str(), W_OK | X_OK) != 0) fail_io("make", target);
}

void remove_temporary_files() {
  for (TemporaryName& name : g_temporary) {
    if (name.state == TemporaryName::kUsed) ::unlink(name.path);
  }
}

int remove_abandoned_files(const std::string& folder) {
  int n = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string path = at->path().string();
    std::error_code ignored;  // a file that disappears meanwhile
    if (!is_temporary(at->path().filename().string()) || !at->is_regular_file(ignored)) continue;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) continue;
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::unlink(path.c_str()) == 0) ++n;
    ::close(fd);
  }
  return n;
}

AtomicFile::AtomicFile(const std::string& path, bool overwrite)
    : path_(target_of(path)), overwrite_(overwrite) {
  const std::optional<struct stat> there = check_target(path_, overwrite);
  constexpr int kTries = 100;  // files that a killed process left behind have taken some names
  for (int i = 0; i < kTries && fd_ < 0; ++i) {
    temporary_ = temporary_name(path_, i);
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0 && errno != EEXIST) break;
  }
  if (fd_ < 0) fail_with_errno("make");
  ::flock(fd_, LOCK_EX | LOCK_NB);  // the system unlocks it when the process ends, however it does
  slot_ = remember_temporary(temporary_);
  // the new file must be readable only by those who could read the old one
  if (there && ::fchmod(fd_, there->st_mode & 0777) != 0) {
    const int error = errno;
    ::unlink(temporary_.c_str());
    forget_temporary();
    ::close(std::exchange(fd_, -1));
    errno = error;
    fail_with_errno("make");
  }
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
  forget_temporary();
}

void AtomicFile::fail_with_errno(const char* what) const { fail_io(what, path_); }

void AtomicFile::forget_temporary() {
  if (slot_ >= 0) g_temporary[std::exchange(slot_, -1)].state = TemporaryName::kFree;
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  position_ += bytes.size();
  if (buffer_.size() + bytes.size() < kBufferBytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return;
  }
  write_now(buffer_);
  buffer_.clear();
  write_now(bytes);
}

void AtomicFile::write_now(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes = bytes.subspan(n);
    } else if (errno != EINTR) {
      fail_with_errno("write");
    }
  }
}

void AtomicFile::commit() {
  const std::string folder_name = folder_of(path_);  // first: nothing may fail after the rename
  write_now(buffer_);
  buffer_.clear();
  if (::fsync(fd_) != 0) fail_with_errno("write");
  if (overwrite_) {
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_with_errno("write");
  } else {
    // unlike rename(), fails if the name is taken
    if (::link(temporary_.c_str(), path_.c_str()) != 0) {
      if (errno == EEXIST) fail_there(path_);
      // for a file system without links
      if (::access(path_.c_str(), F_OK) == 0) fail_there(path_);
      if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_with_errno("write");
    } else {
      ::unlink(temporary_.c_str());
    }
  }
  forget_temporary();
  ::close(std::exchange(fd_, -1));
  // the new name must also survive a power failure
  const int folder = ::open(folder_name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
}

}  // namespace snapkv
