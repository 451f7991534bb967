// SPDX-License-Identifier: MIT
// Whether a file is where stdout or stderr goes: writing to both would destroy one of them.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <string_view>
#include <utility>

namespace snapkv {

/// "stdout" or "stderr", or nothing if the regular file of `info` is neither.
inline std::string_view standard_stream_of(const struct stat& info) {
  if (!S_ISREG(info.st_mode)) return "";
  for (const auto& [fd, name] :
       {std::pair(STDOUT_FILENO, "stdout"), std::pair(STDERR_FILENO, "stderr")}) {
    struct stat stream = {};
    const bool is_same =
        ::fstat(fd, &stream) == 0 && stream.st_dev == info.st_dev && stream.st_ino == info.st_ino;
    if (is_same) return name;
  }
  return "";
}

}  // namespace snapkv
