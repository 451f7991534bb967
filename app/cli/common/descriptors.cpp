// SPDX-License-Identifier: MIT
#include "cli/common/descriptors.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace snapkv::cli {

void open_closed_standard_descriptors() {
  // open for the wrong direction, so that using it fails with EBADF, as with a closed descriptor
  constexpr std::pair<int, int> kModes[] = {
      {STDIN_FILENO, O_WRONLY}, {STDOUT_FILENO, O_RDONLY}, {STDERR_FILENO, O_WRONLY}};
  for (const auto& [fd, mode] : kModes) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // open() returns the lowest free number, and all numbers below this one are taken by now
    if (open("/dev/null", mode) != fd) _exit(1);
  }
}

}  // namespace snapkv::cli
