// SPDX-License-Identifier: MIT
#include "cli/common/terminal.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "cli/common/plain_text.h"
#include "cli/common/signals.h"

namespace snapkv::cli {
namespace {

[[noreturn]] void fail_stdout(int error) {
  if (error == EPIPE) throw StdoutClosed{};
  fail(ErrorCode::kRuntime, "can't write to standard output: {}", std::strerror(error));
}

// Writes the whole text; returns 0, or errno on failure.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN ||
               errno == EWOULDBLOCK) {  // a pipe that its owner made non-blocking
      pollfd wait = {.fd = fd, .events = POLLOUT, .revents = 0};
      poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

bool colour(bool terminal) {
  const char* no_colour = std::getenv("NO_COLOR");
  return terminal && (no_colour == nullptr || *no_colour == '\0') && !is_dumb_terminal();
}

}  // namespace

bool is_dumb_terminal() {
  const char* term = std::getenv("TERM");
  return term != nullptr && std::strcmp(term, "dumb") == 0;
}

bool stdout_is_terminal() { return isatty(STDOUT_FILENO) != 0; }
bool stderr_is_terminal() { return isatty(STDERR_FILENO) != 0; }
bool colour_stdout() { return colour(stdout_is_terminal()); }
bool colour_stderr() { return colour(stderr_is_terminal()); }

int terminal_width() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

int stdout_width() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const int n = columns == nullptr ? 0 : std::atoi(columns);
  return n > 0 && n < 10000 ? n : 80;
}

void write_stdout(std::string_view text) {
  write_styled_stdout(stdout_is_terminal() ? safe_output(text) : std::string(text));
}

void write_styled_stdout(std::string_view text) {
  if (const int error = write_all(STDOUT_FILENO, text)) fail_stdout(error);
}

void close_stdout() {
  if (close(STDOUT_FILENO) != 0 && errno != EBADF && errno != EINTR) fail_stdout(errno);
}

void write_stderr(std::string_view text) { write_styled_stderr(safe_output(text)); }

void write_styled_stderr(std::string_view text) {
  write_all(STDERR_FILENO, text);  // a failure could be reported nowhere
}

bool wait_for_input(int fd, int limit_ms) {
  constexpr int kSignalCheckMs = 200;
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(limit_ms);
  while (!interrupted() && (limit_ms < 0 || Clock::now() < end)) {
    pollfd input = {.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = poll(&input, 1, kSignalCheckMs);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;  // read() says what is wrong
  }
  return false;
}

ssize_t read_unless_interrupted(int fd, char* data, size_t size) {
  while (wait_for_input(fd)) {
    const ssize_t n = read(fd, data, size);
    if (n >= 0 || (errno != EINTR && errno != EAGAIN)) return n;
  }
  errno = EINTR;
  return -1;
}

std::string read_text(const std::string& path, size_t most) {
  const bool from_stdin = path == "-";
  const std::string what = from_stdin ? "standard input" : path;
  const int fd = from_stdin ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && interrupted()) fail(ErrorCode::kCancelled, "cancelled while opening {}", what);
  if (fd < 0) fail(ErrorCode::kRuntime, "can't read {}: {}", what, std::strerror(errno));
  std::string text;
  char block[65536];
  int error = 0;
  while (error == 0 && !interrupted() && text.size() <= most) {
    const ssize_t n = read_unless_interrupted(fd, block, sizeof block);
    if (n == 0) break;
    if (n > 0) {
      text.append(block, static_cast<size_t>(n));
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  if (!from_stdin) close(fd);
  if (error != 0) fail(ErrorCode::kRuntime, "can't read {}: {}", what, std::strerror(error));
  if (interrupted()) fail(ErrorCode::kCancelled, "cancelled while reading {}", what);
  if (text.size() > most) {
    fail(ErrorCode::kUsage, "{} has more than {} bytes, the most that it may have", what, most);
  }
  return text;
}

std::string paint(Style style, std::string_view text, bool enabled) {
  if (!enabled) return std::string(text);
  int code = 1;
  switch (style) {
    case Style::bold:
      code = 1;
      break;
    case Style::dim:
      code = 2;
      break;
    case Style::red:
      code = 31;
      break;
    case Style::green:
      code = 32;
      break;
  }
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

}  // namespace snapkv::cli
