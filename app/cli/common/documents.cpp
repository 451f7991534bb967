// SPDX-License-Identifier: MIT
#include "cli/common/documents.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/common/signals.h"
#include "cli/common/terminal.h"
#include "documents/document_reader.h"

namespace snapkv::cli {

std::string read_document(const std::string& path) {
  documents::ReadLimits limits;
  limits.keep_going = [] { return !interrupted(); };
  return documents::read_document(path, limits);
}

bool stdin_is_piped() {
  struct stat input = {};
  if (fstat(STDIN_FILENO, &input) != 0) return false;
  return S_ISFIFO(input.st_mode) || S_ISREG(input.st_mode) || S_ISSOCK(input.st_mode);
}

std::string read_piped_document() {
  constexpr int kPatience = 2000;  // milliseconds
  pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (poll(&input, 1, kPatience) == 0) {
    write_stderr("snapkv: waiting for the text that is piped in; < /dev/null says there is none\n");
  }
  return read_document("-");
}

}  // namespace snapkv::cli
