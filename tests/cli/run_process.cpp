// SPDX-License-Identifier: MIT
#include "run_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

extern char** environ;

namespace snapkv::test {
namespace {

#if defined(SNAPKV_SANITIZED)
constexpr auto kLimit = std::chrono::seconds(900);
#else
constexpr auto kLimit = std::chrono::seconds(120);
#endif

// A descriptor that is closed by its destructor.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  void reset(int fd = -1) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

void make_pipe(Fd& reader, Fd& writer) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  reader.reset(ends[0]);
  writer.reset(ends[1]);
}

void make_terminal(Fd& reader, Fd& writer) {
  int master = -1, slave = -1;
  EXPECT_EQ(openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
  fcntl(master, F_SETFD, FD_CLOEXEC);
  reader.reset(master);
  writer.reset(slave);
}

// The caller's environment without its settings, with the command's variables added. It asks for
// one thread by default because ctest may run many of these processes at once.
std::vector<std::string> environment(const Command& run, const std::string& home) {
  std::map<std::string, std::string> values = {
      {"HOME", home}, {"TERM", "xterm"}, {"SNAPKV_THREADS", "1"}};
  for (const char* name : kInheritedVariables) {
    if (const char* value = std::getenv(name)) values[name] = value;
  }
  for (const auto& [name, value] : run.env) values[name] = value;
  std::vector<std::string> list;
  for (const auto& [name, value] : values) list.push_back(name + "=" + value);
  return list;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (std::string& s : strings) list.push_back(s.data());
  list.push_back(nullptr);
  return list;
}

pid_t spawn(const Command& run, int in, int out, int err) {
  const std::string home = make_folder();
  std::vector<std::string> args;
  if (!run.shell.empty()) args = {"/bin/sh", "-c", run.shell + "; exec \"$0\" \"$@\""};
  args.emplace_back(SNAPKV_BINARY);
  args.insert(args.end(), run.args.begin(), run.args.end());
  std::vector<std::string> env = environment(run, home);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  if (run.stdout_path.empty()) {
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, run.stdout_path.c_str(), O_WRONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  for (const int fd : run.closed) posix_spawn_file_actions_addclose(&actions, fd);
  posix_spawn_file_actions_addchdir_np(&actions, (run.cwd.empty() ? home : run.cwd).c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;  // a test runner in the background may ignore SIGINT
  sigemptyset(&defaults);
  for (const int each : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ}) sigaddset(&defaults, each);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  EXPECT_EQ(posix_spawn(&pid, args.front().c_str(), &actions, &attributes, pointers(args).data(),
                        pointers(env).data()),
            0);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

// Reads the available bytes; returns false at the end.
bool read_some(const Fd& fd, std::string& text) {
  char block[65536];
  const ssize_t n = read(fd.get(), block, sizeof block);
  if (n > 0) text.append(block, static_cast<size_t>(n));
  return n > 0;
}

// The rest of a line of /proc/PID/status; empty where the process has ended.
std::string status_of(pid_t pid, const std::string& field) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(field + ":\t", 0) == 0) return line.substr(field.size() + 2);
  }
  return {};
}

bool catches(pid_t pid, int signal) {
  const std::string mask = status_of(pid, "SigCgt");
  return !mask.empty() && (std::stoull(mask, nullptr, 16) >> (signal - 1) & 1) != 0;
}

// Sends a command's signal at the time that it asks for, and not before the program has come to
// catch it: a busy machine may take seconds to load its libraries.
class Interruption {
 public:
  Interruption(const Command& command, pid_t pid) : command_(command), pid_(pid) {}

  // Looks at the output so far; called again and again.
  void look(const Result& so_far) {
    if (!is_due_ && command_.interrupt_when) {
      is_due_ = command_.interrupt_when(so_far.out, so_far.err);
    }
    if (is_sent_ || !(is_due_ || command_.interrupt_asleep)) return;
    if (command_.signal != SIGKILL && !catches(pid_, command_.signal)) return;
    const bool sleeps = status_of(pid_, "State").rfind('S', 0) == 0;
    n_asleep_ = sleeps ? n_asleep_ + 1 : 0;
    if (!is_due_ && n_asleep_ < 2) return;
    kill(pid_, command_.signal);
    is_sent_ = true;
  }

 private:
  const Command& command_;
  const pid_t pid_;
  bool is_due_ = false, is_sent_ = false;
  int n_asleep_ = 0;  // looks in a row
};

// Writes to stdin and collects the output until both output pipes are closed.
void exchange(const Command& run, pid_t pid, Fd& in, Fd& out, Fd& err, Result& result) {
  const auto deadline = std::chrono::steady_clock::now() + kLimit;
  size_t fed = 0;
  Interruption interruption(run, pid);
  if (run.input.empty()) in.reset();
  while (out.get() >= 0 || err.get() >= 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      kill(pid, SIGKILL);
      ADD_FAILURE() << "ran too long: " << result.err;
      return;
    }
    pollfd fds[] = {{out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}, {in.get(), POLLOUT, 0}};
    poll(fds, 3, 200);
    if ((fds[0].revents & (POLLIN | POLLHUP)) != 0) {
      if (!read_some(out, result.out) || run.close_stdout_early) out.reset();
    }
    if ((fds[1].revents & (POLLIN | POLLHUP)) != 0 && !read_some(err, result.err)) err.reset();
    if ((fds[2].revents & POLLERR) != 0) {
      in.reset();
    } else if ((fds[2].revents & POLLOUT) != 0) {
      const ssize_t n = write(in.get(), run.input.data() + fed, run.input.size() - fed);
      if (n > 0) fed += static_cast<size_t>(n);
      if (n < 0 || fed == run.input.size()) in.reset();
    }
    interruption.look(result);
  }
}

}  // namespace

Result run(const Command& run) {
  signal(SIGPIPE, SIG_IGN);
  Fd in_reader, in_writer, out_reader, out_writer, err_reader, err_writer;
  make_pipe(in_reader, in_writer);
  make_pipe(out_reader, out_writer);
  run.terminal ? make_terminal(err_reader, err_writer) : make_pipe(err_reader, err_writer);
  fcntl(in_writer.get(), F_SETFL, O_NONBLOCK);
  const pid_t pid = spawn(run, in_reader.get(), out_writer.get(), err_writer.get());
  in_reader.reset();
  out_writer.reset();
  err_writer.reset();
  Result result;
  exchange(run, pid, in_writer, out_reader, err_reader, result);
  int status = 0;
  waitpid(pid, &status, 0);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

Result run(std::vector<std::string> args) {
  Command plain;
  plain.args = std::move(args);
  return run(plain);
}

std::string binary() { return SNAPKV_BINARY; }

std::string needle_model() { return SNAPKV_MODEL_FILE; }

std::string make_folder() {
  std::string pattern = testing::TempDir() + "snapkv-cli-XXXXXX";
  EXPECT_NE(mkdtemp(pattern.data()), nullptr);
  struct Cleaner {  // removes all the folders when the program ends
    std::vector<std::string> folders;
    ~Cleaner() {
      std::error_code error;
      for (const std::string& folder : folders) std::filesystem::remove_all(folder, error);
    }
  };
  static Cleaner cleaner;
  cleaner.folders.push_back(pattern);
  return pattern;
}

std::string make_file(const std::string& name, const std::string& content) {
  const std::filesystem::path path = std::filesystem::path(make_folder()) / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
  return path.string();
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string rome_prompt(int n_paragraphs) {
  static constexpr const char* kLines[] = {
      "The baker found a silver coin near the market. At noon the farmer walked to the river.\n",
      "A grey fox sat by the old mill while a thin rain fell. The house near the well was quiet.\n",
      "The teacher told the sailor about a map that someone lost at the harbour.\n"};
  std::string text;
  for (int i = 0; i < n_paragraphs; ++i) {
    if (i == n_paragraphs / 2) text += "\nThe secret number of Rome is 48213.\n";
    text += kLines[i % 3];
  }
  return text +
         "\nQuestion: What is the secret number of Rome?\nAnswer: The secret number of Rome is";
}

}  // namespace snapkv::test
