// SPDX-License-Identifier: MIT
// find_or_pull_model(): snapkv run offers to fetch a model that is not on this machine.
#include <fmt/core.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/common/signals.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"
#include "cli/models/local_models.h"
#include "cli/pull/pull.h"

namespace snapkv::cli {
namespace {

/// Reads a line from the terminal, and no byte of the next one.
std::string read_answer() {
  std::string line;
  while (true) {
    char c = 0;
    const ssize_t n = read_unless_interrupted(STDIN_FILENO, &c, 1);
    if (interrupted()) fail(ErrorCode::kCancelled, "stopped by {}", interruption());
    if (n <= 0 || c == '\n') return line;
    line += c;
  }
}

bool says_yes(const std::string& question) {
  write_stderr(question + " [y/N] ");
  const std::string answer = read_answer();
  return answer == "y" || answer == "Y" || answer == "yes";
}

[[noreturn]] void fail_not_here(const std::string& name) {
  fail(ErrorCode::kUsage, "{} is not on this machine: snapkv pull {} fetches it", name, name);
}

}  // namespace

std::string find_or_pull_model(const std::string& name, const CommonSettings& common) {
  if (std::string path = find_local_model(name); !path.empty()) return path;
  if (!is_source(name)) return find_model(name);  // which says what there is
  if (isatty(STDIN_FILENO) == 0 || !stderr_is_terminal()) fail_not_here(name);
  const std::unique_ptr<Pull> pull = Pull::plan({.source = name});
  const std::string question =
      fmt::format("{} is not on this machine. Fetch {} ({}) from {}?", name, pull->name(),
                  format_bytes(pull->bytes_to_fetch()), pull->host());
  if (!says_yes(question)) fail_not_here(name);
  return pull->run(common);
}

}  // namespace snapkv::cli
