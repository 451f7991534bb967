// SPDX-License-Identifier: MIT
#include "cli/chat/line_reader.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "cli/chat/line_editor.h"
#include "cli/common/signals.h"
#include "cli/common/terminal.h"

namespace snapkv::cli {
namespace {

/// Reads lines from a stdin that is not a terminal.
class PipeReader final : public LineReader {
 public:
  Line read(const std::string&, const std::string&) override;
  void set_completer(std::function<Completion(const std::string&)>) override {}
  void remember(const std::string&) override {}
  bool is_terminal() const override { return false; }

 private:
  Line take(size_t n, size_t skipped);

  std::string buffer_;  // read ahead, not yet returned
  bool at_end_ = false;
};

LineReader::Line PipeReader::take(size_t n, size_t skipped) {
  Line line{Line::Kind::text, buffer_.substr(0, n)};
  buffer_.erase(0, n + skipped);
  if (line.text.ends_with('\r')) line.text.pop_back();
  return line;
}

LineReader::Line PipeReader::read(const std::string&, const std::string&) {
  size_t searched = 0;
  while (true) {
    const size_t newline = buffer_.find('\n', searched);
    if (newline != std::string::npos) return take(newline, 1);
    searched = buffer_.size();
    if (at_end_) return buffer_.empty() ? Line{Line::Kind::end} : take(buffer_.size(), 0);
    if (interrupted()) return {Line::Kind::interrupted};
    char block[65536];
    const ssize_t n = read_unless_interrupted(STDIN_FILENO, block, sizeof block);
    if (n > 0) buffer_.append(block, static_cast<size_t>(n));
    if (n == 0) at_end_ = true;
    if (n < 0 && errno != EINTR) {
      fail(ErrorCode::kRuntime, "can't read standard input: {}", std::strerror(errno));
    }
  }
}

}  // namespace

std::unique_ptr<LineReader> make_line_reader(const std::string& history_path) {
  const bool can_show = stdout_is_terminal() || stderr_is_terminal();
  if (isatty(STDIN_FILENO) != 0 && can_show) return make_line_editor(history_path);
  return std::make_unique<PipeReader>();
}

std::string default_history_path() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/snapkv/chat_history";
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return "";
  return std::string(home) + "/.local/state/snapkv/chat_history";
}

}  // namespace snapkv::cli
