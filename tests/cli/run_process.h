// SPDX-License-Identifier: MIT
// Runs the built `snapkv` and captures what it writes. Used by every test of this folder.
#pragma once

#include <signal.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace snapkv::test {

struct Command {
  std::vector<std::string> args;
  std::string input;                       ///< of stdin
  std::map<std::string, std::string> env;  ///< added to one of only SNAPKV_THREADS=1 and the usual
  std::string cwd;                         ///< empty: a folder of its own without a model
  std::string stdout_path;                 ///< write stdout there instead of capturing it
  bool close_stdout_early = false;         ///< the reader of stdout goes away at the first byte
  std::vector<int> closed;                 ///< standard descriptors (0 to 2) that it starts without
  bool terminal = false;                   ///< stderr is a terminal
  /// Sends `signal` once this is true of what came so far.
  std::function<bool(const std::string& out, const std::string& err)> interrupt_when;
  int signal = SIGINT;
  std::string shell;  ///< run in this shell's environment: "ulimit -v 1000000"
};

struct Result {
  int code = -1;  ///< exit code, or 128 + signal
  std::string out, err;
};

Result run(const Command& command);
/// The same for plain arguments.
Result run(std::vector<std::string> args);

/// What the program gets of the test's own environment: where things are, and sanitizers' options.
inline constexpr const char* kInheritedVariables[] = {
    "PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS"};

/// The program that is tested.
std::string binary();
/// models/needle.gguf
std::string needle_model();
/// A fresh folder below the test's temporary folder.
std::string make_folder();
/// Writes a file into a fresh folder and returns its path.
std::string make_file(const std::string& name, const std::string& content);
std::string read_file(const std::string& path);

/// A prompt of n paragraphs that holds "The secret number of Rome is 48213." and asks for it.
std::string rome_prompt(int n_paragraphs);

}  // namespace snapkv::test
