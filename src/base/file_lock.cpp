// SPDX-License-Identifier: MIT
#include "base/file_lock.h"

#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <sstream>

#if defined(__linux__)
#include <sys/sysmacros.h>
#endif

namespace snapkv {
namespace {

/// Finds the holder in Linux's list of locks: "1: FLOCK  ADVISORY  WRITE 1234 fe:00:110926 0 EOF",
/// with the device in hexadecimal, then the inode.
std::string holder_of(int fd) {
  std::string holder = "another process";
#if defined(__linux__)
  struct stat info = {};
  if (fstat(fd, &info) != 0) return holder;
  const std::string file =
      fmt::format("{:02x}:{:02x}:{}", major(info.st_dev), minor(info.st_dev), info.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, mode, access, pid, place;
    words >> number >> kind >> mode >> access >> pid >> place;
    // 0 is a process in another namespace
    if (kind == "FLOCK" && place == file && pid != "0") return "process " + pid;
  }
#else
  static_cast<void>(fd);
#endif
  return holder;
}

}  // namespace

std::string lock_file(int fd) {
  int result = 0;
  do {
    result = flock(fd, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  return result != 0 && errno == EWOULDBLOCK ? holder_of(fd) : "";
}

}  // namespace snapkv
