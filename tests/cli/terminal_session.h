// SPDX-License-Identifier: MIT
// TerminalSession: runs the built `snapkv` at a pseudo terminal and types at it as a person does.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace snapkv::test {

class TerminalSession {
 public:
  /// Starts the program with stdin, stdout and stderr at a terminal of 100 columns. It is the
  /// program's controlling terminal, so Ctrl-C sends a signal. `home` is HOME; if it is empty, a
  /// fresh folder is. `env` has further variables.
  explicit TerminalSession(const std::vector<std::string>& args, const std::string& home = "",
                           const std::map<std::string, std::string>& env = {});
  ~TerminalSession();
  TerminalSession(const TerminalSession&) = delete;
  TerminalSession& operator=(const TerminalSession&) = delete;

  void type(const std::string& text);
  /// As if the window had been drawn wider or narrower.
  void resize(int columns);
  /// Reads until `text` has come since the last call; what came up to its end. Fails the test when
  /// it does not come.
  std::string wait_for(const std::string& text);
  /// Reads until the program has ended, and returns its exit code, or 128 + signal.
  int wait_for_end();
  pid_t pid() const { return pid_; }
  /// All output so far.
  const std::string& screen() const { return screen_; }

 private:
  /// Returns false at the end, and if there is no output for too long.
  bool read_some();

  int fd_ = -1;
  pid_t pid_ = -1;
  std::string screen_;
  size_t seen_ = 0;  // bytes of screen_ that wait_for() has returned
};

}  // namespace snapkv::test
