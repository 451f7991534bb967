// SPDX-License-Identifier: MIT
#include "terminal_session.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "run_process.h"

namespace snapkv::test {
namespace {

constexpr int kLimitMs = 300000;  // long enough for a busy machine with sanitizers

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (std::string& s : strings) list.push_back(s.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

TerminalSession::TerminalSession(const std::vector<std::string>& args, const std::string& home,
                                 const std::map<std::string, std::string>& env) {
  std::vector<std::string> command = {binary()};
  command.insert(command.end(), args.begin(), args.end());
  std::map<std::string, std::string> values = {
      {"HOME", home.empty() ? make_folder() : home}, {"TERM", "xterm"}, {"SNAPKV_THREADS", "1"}};
  for (const char* name : kInheritedVariables) {
    if (const char* value = std::getenv(name)) values[name] = value;
  }
  for (const auto& [name, value] : env) values[name] = value;
  std::vector<std::string> environment;
  for (const auto& [name, value] : values) environment.push_back(name + "=" + value);
  std::vector<char*> argv = pointers(command), envp = pointers(environment);
  const winsize size = {.ws_row = 30, .ws_col = 100, .ws_xpixel = 0, .ws_ypixel = 0};
  pid_ = forkpty(&fd_, nullptr, nullptr, &size);
  EXPECT_GE(pid_, 0);
  if (pid_ == 0) {
    for (const int each : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(each, SIG_DFL);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
}

TerminalSession::~TerminalSession() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(fd_);
}

bool TerminalSession::read_some() {
  pollfd out = {.fd = fd_, .events = POLLIN, .revents = 0};
  if (poll(&out, 1, kLimitMs) <= 0) return false;
  char block[4096];
  const ssize_t n = read(fd_, block, sizeof block);
  if (n <= 0) return false;
  screen_.append(block, static_cast<size_t>(n));
  return true;
}

void TerminalSession::type(const std::string& text) {
  EXPECT_EQ(write(fd_, text.data(), text.size()), std::ssize(text));
}

void TerminalSession::resize(int columns) {
  winsize size = {};
  size.ws_row = 30;
  size.ws_col = static_cast<unsigned short>(columns);
  EXPECT_EQ(ioctl(fd_, TIOCSWINSZ, &size), 0);
}

std::string TerminalSession::wait_for(const std::string& text) {
  size_t found = std::string::npos;
  while ((found = screen_.find(text, seen_)) == std::string::npos) {
    if (read_some()) continue;
    ADD_FAILURE() << "'" << text << "' did not come, but:\n" << screen_.substr(seen_);
    return "";
  }
  const std::string part = screen_.substr(seen_, found + text.size() - seen_);
  seen_ = found + text.size();
  return part;
}

int TerminalSession::wait_for_end() {
  while (read_some()) {
  }
  pollfd out = {.fd = fd_, .events = POLLIN, .revents = 0};
  if (poll(&out, 1, 0) == 0) {  // still open, and there was no more output
    ADD_FAILURE() << "the program does not end; it wrote:\n" << screen_.substr(seen_);
    kill(pid_, SIGKILL);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace snapkv::test
