// SPDX-License-Identifier: MIT
// Runs the built `snapkv` and captures its output.
#pragma once

#include <signal.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace snapkv::test {

struct Command {
  std::vector<std::string> args;
  std::string input;                       ///< the text for stdin
  std::map<std::string, std::string> env;  ///< added to SNAPKV_THREADS=1 and the usual variables
  std::string cwd;                         ///< if empty, a fresh folder without a model
  std::string stdout_path;                 ///< the file to write stdout to; if empty, captured
  bool close_stdout_early = false;         ///< the reader of stdout closes it at the first byte
  std::vector<int> closed;                 ///< standard descriptors (0 to 2) closed at the start
  bool terminal = false;                   ///< whether stderr is a terminal
  /// Sends `signal` once this returns true for the output so far and the program catches it.
  std::function<bool(const std::string& out, const std::string& err)> interrupt_when;
  bool interrupt_asleep = false;  ///< sends `signal` once the program catches it and only waits
  int signal = SIGINT;
  std::string shell;  ///< a shell command that runs first, such as "ulimit -v 1000000"
};

struct Result {
  int code = -1;  ///< exit code, or 128 + signal
  std::string out, err;
};

Result run(const Command& command);
/// The same for a command that has only arguments.
Result run(std::vector<std::string> args);

/// The variables that the program inherits from the test: search paths, and options of sanitizers.
inline constexpr const char* kInheritedVariables[] = {
    "PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS"};

/// The path of the program under test.
std::string binary();
/// The path of models/needle.gguf.
std::string needle_model();
/// Makes a fresh folder below the test's temporary folder.
std::string make_folder();
/// Writes a file into a fresh folder and returns its path.
std::string make_file(const std::string& name, const std::string& content);
std::string read_file(const std::string& path);

/// A prompt of n paragraphs that holds "The secret number of Rome is 48213." and asks for it.
std::string rome_prompt(int n_paragraphs);

}  // namespace snapkv::test
