// SPDX-License-Identifier: MIT
#include "cli/common/documents.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/common/signals.h"
#include "cli/common/terminal.h"

namespace snapkv::cli {

namespace {

/// Before each read of standard input: says once that it waits, so that a pipe which stays open is
/// no riddle. Returns false when a signal ended the waiting.
class StdinPatience {
 public:
  explicit StdinPatience(bool may_be_left_out) : may_be_left_out_(may_be_left_out) {}

  bool wait() {
    const bool has_waited = !said_ && !wait_for_input(STDIN_FILENO, is_begun_ ? kPauseMs : kFirstMs);
    if (has_waited && !interrupted()) {
      write_stderr(note());
      said_ = true;
    }
    is_begun_ = true;
    return wait_for_input(STDIN_FILENO);
  }

 private:
  static constexpr int kFirstMs = 2000;
  static constexpr int kPauseMs = 10'000;  // within a text; whoever writes it may be computing

  std::string note() const {
    if (is_begun_) return "snapkv: waiting for the end of standard input\n";
    if (isatty(STDIN_FILENO) != 0) {
      return "snapkv: waiting for text on standard input; Ctrl-D in an empty line ends it\n";
    }
    return std::string("snapkv: waiting for text on standard input, which is open") +
           (may_be_left_out_ ? "; < /dev/null goes on without\n" : "\n");
  }

  bool may_be_left_out_, is_begun_ = false, said_ = false;
};

documents::PagedText read_stdin_document(bool may_be_left_out) {
  StdinPatience patience(may_be_left_out);
  documents::ReadLimits limits;
  limits.keep_going = [&] { return patience.wait(); };
  return documents::read_paged_document("-", limits);
}

}  // namespace

std::string read_document(const std::string& path) { return read_paged_document(path).text; }

documents::PagedText read_paged_document(const std::string& path) {
  const bool is_stdin = path == "-";
  documents::ReadLimits limits;
  limits.keep_going = [] { return !interrupted(); };
  documents::PagedText document = is_stdin ? read_stdin_document(/*may_be_left_out=*/false)
                                           : documents::read_paged_document(path, limits);
  if (document.text.find_first_not_of(" \t\r\n\f") != std::string::npos) return document;
  fail(ErrorCode::kUsage, "{} is empty: there is no text in it",
       is_stdin ? "standard input" : path);
}

bool stdin_is_piped() {
  struct stat input = {};
  if (fstat(STDIN_FILENO, &input) != 0) return false;
  return S_ISFIFO(input.st_mode) || S_ISREG(input.st_mode) || S_ISSOCK(input.st_mode);
}

documents::PagedText read_piped_document() { return read_stdin_document(/*may_be_left_out=*/true); }

bool stdin_has_text() {
  struct stat input = {};
  if (!stdin_is_piped() || fstat(STDIN_FILENO, &input) != 0) return false;
  if (S_ISREG(input.st_mode)) return lseek(STDIN_FILENO, 0, SEEK_CUR) < input.st_size;
  pollfd waiting = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  return poll(&waiting, 1, 0) > 0 && (waiting.revents & POLLIN) != 0;
}

}  // namespace snapkv::cli
