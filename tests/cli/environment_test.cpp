// SPDX-License-Identifier: MIT
// Hostile environments: folders that cannot be written to or that vanish, kill -9, tiny limits, and
// clocks that jump. Full disks are in failure_test.cpp. SNAPKV_TEST_KILLS is the number of times
// that runs are killed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "run_process.h"

namespace snapkv::test {
namespace environment_tests {

using Json = nlohmann::json;

constexpr int kKills = 20;

int n_kills() {
  const char* wanted = std::getenv("SNAPKV_TEST_KILLS");
  return wanted == nullptr ? kKills : std::max(1, std::atoi(wanted));
}

/// A shell command that, after this time, kills the program that replaces the shell.
std::string killer(int milliseconds) {
  return "{ (sleep " + std::to_string(milliseconds / 1000.0) + "; kill -9 $$) >/dev/null 2>&1 & }";
}

std::vector<std::string> generate(std::vector<std::string> more) {
  std::vector<std::string> args = {"generate", "-m", needle_model(), "-p", "The secret number",
                                   "-n",       "3",  "--temp",       "0"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

std::vector<std::string> needle(const std::string& out) {
  return {"eval", "needle",    "-m", needle_model(), "--lengths", "200,300", "--depths",
          "3",    "--budgets", "64", "--resume",     "--out",     out};
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The fields of every record that are the same in every run, so without times.
std::multiset<std::string> stable(const std::vector<std::string>& lines) {
  std::multiset<std::string> all;
  for (const std::string& line : lines) {
    Json json = Json::parse(line);
    std::string text;
    for (const auto& [key, value] : json.items()) {
      if (key != "date" && key.find("seconds") == std::string::npos &&
          key.find("time") == std::string::npos && key.find("rss") == std::string::npos) {
        text += key + value.dump() + ";";
      }
    }
    all.insert(text);
  }
  return all;
}

TEST(Environment, FoldersThatCannotBeWrittenToAreErrors) {
  std::vector<std::string> folders = {"/proc", make_folder() + "/missing"};
  if (geteuid() != 0) {  // root may write to read-only folders
    folders.push_back(make_folder());
    std::filesystem::permissions(
        folders.back(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  }
  for (const std::string& folder : folders) {
    const std::string file = folder + "/snapkv-test-out";
    for (const auto& args : {generate({"--save-cache", file}),
                             needle(file),
                             std::vector<std::string>{"convert", needle_model(), "-o", file},
                             {"inspect", "-m", needle_model(), "-p", "a b c d", "--json", file},
                             generate({"--spill-dir", folder})}) {
      const Result r = run(args);
      EXPECT_EQ(r.code, 1) << args[0] << " " << folder << ": " << r.err;
      EXPECT_NE(r.err.find(folder), std::string::npos) << r.err;
    }
  }
}

TEST(Environment, AFolderThatVanishesEndsTheRun) {
  for (const bool saves : {true, false}) {
    const std::string folder = make_folder(), out = folder + "/out";
    Command command;
    command.args = saves ? generate({"--save-cache", out}) : needle(out);
    command.cwd = folder;
    // The folder is gone before the program opens a file in it.
    command.shell = "rm -r '" + folder + "'";
    const Result r = run(command);
    EXPECT_EQ(r.code, 1) << r.err;
    EXPECT_NE(r.err.find(out), std::string::npos) << r.err;
  }
  // The folder vanishes during the run: open files stay writable, and the loss is noticed at the
  // end.
  const std::string folder = make_folder(), out = folder + "/out";
  Command command;
  command.args = needle(out);
  command.terminal = true;
  bool removed = false;
  command.interrupt_when = [&](const std::string&, const std::string&) {
    if (!removed && std::filesystem::exists(out) && std::filesystem::file_size(out) > 0) {
      std::filesystem::remove_all(folder);
      removed = true;
    }
    return false;
  };
  const Result r = run(command);
  if (removed) {
    EXPECT_TRUE(r.code == 1 || r.code == 0) << r.err;
    if (r.code == 1) {
      EXPECT_NE(r.err.find(out), std::string::npos) << r.err;
    }
  }
}

TEST(Environment, KilledEvaluationsLoseAtMostTheLastLine) {
  const std::string folder = make_folder();
  const Result whole = run(needle(folder + "/whole"));
  ASSERT_EQ(whole.code, 0) << whole.err;
  const auto expected = stable(lines_of(folder + "/whole"));
  const std::string out = folder + "/killed";
  size_t n_before = 0;
  for (int i = 0; i < n_kills(); ++i) {
    Command command;
    command.args = needle(out);
    command.shell = killer(10 + i % 10 * 15);
    run(command);
    if (!std::filesystem::exists(out)) continue;
    std::vector<std::string> lines = lines_of(out);
    const bool is_torn = !lines.empty() && read_file(out).back() != '\n';
    if (is_torn) lines.pop_back();
    EXPECT_NO_THROW(stable(lines)) << "all lines but the last are whole";
    EXPECT_GE(lines.size(), n_before) << "nothing is lost that was written";
    n_before = lines.size();
  }
  const Result rest = run(needle(out));
  EXPECT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(stable(lines_of(out)), expected);
}

TEST(Environment, KilledRunsLeaveAWholeCacheOrNone) {
  const std::string folder = make_folder(), out = folder + "/cache";
  const std::vector<std::string> args = generate({"--save-cache", out});
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(run(args).code, 0);
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  const std::string whole = read_file(out);
  int n_absent = 0;
  for (int i = 0; i < n_kills(); ++i) {
    std::filesystem::remove(out);
    Command command;
    command.args = args;
    const double part = i % 10 / 8.0;  // from the start of the run to past its end
    command.shell = killer(static_cast<int>(part * time.count()));
    run(command);
    if (!std::filesystem::exists(out)) {
      ++n_absent;
      continue;
    }
    EXPECT_EQ(read_file(out) == whole, true) << "the file is whole";
  }
  EXPECT_GT(n_absent, 0) << "some were killed before";
}

/// Whether the program does not even say its version after this command of the shell.
bool has_no_libraries(const std::string& shell) {
  Command command;
  command.args = {"--version"};
  command.shell = shell;
  return run(command).code != 0;
}

TEST(Environment, TinyLimitsAreErrorsOrEnough) {
#if defined(SNAPKV_SANITIZED)
  GTEST_SKIP() << "sanitizers need address space";
#endif
  const std::string folder = make_folder();
  for (const std::string limit :
       {"-v 30000", "-v 60000", "-v 70000", "-v 90000", "-n 3", "-n 4", "-n 5", "-n 8", "-s 64",
        "-s 256", "-f 0", "-f 1", "-f 8", "-f 100"}) {
    const std::string out = folder + "/cache";
    std::filesystem::remove(out);
    Command command;
    command.args = generate({"--save-cache", out});
    command.shell = "ulimit " + limit;
    const Result r = run(command);
    SCOPED_TRACE(limit + ": " + r.err);
    // The dynamic linker may have no memory for the libraries, or no descriptor for them, or a
    // library for what it needs before main(): then nothing else runs either.
    const bool no_libraries = r.code > 5 && has_no_libraries(command.shell);
    EXPECT_TRUE((r.code >= 0 && r.code <= 5) || no_libraries) << r.code;
    EXPECT_FALSE(r.err.empty());
    EXPECT_EQ(std::filesystem::exists(out), r.code == 0);
  }
}

TEST(Environment, ClocksThatJumpChangeNothing) {
#if defined(SNAPKV_SANITIZED)
  GTEST_SKIP() << "a sanitizer's library must be the first";
#endif
  const std::string folder = make_folder();
  for (const auto& args :
       {generate({"--json"}), needle(folder + "/out"),
        std::vector<std::string>{"bench", "-m", needle_model(), "-p", "64", "-n", "4", "-r", "1",
                                 "--no-check", "--no-limits", "-o", "json"}}) {
    Command command;
    command.args = args;
    command.env = {{"LD_PRELOAD", SNAPKV_CLOCK_SHIM}};
    const Result r = run(command);
    EXPECT_EQ(r.code, 0) << r.err;
    std::istringstream words(r.out + " " + r.err);
    for (std::string word; words >> word;) {  // times must not be negative
      EXPECT_FALSE(word.size() > 1 && word[0] == '-' &&
                   std::isdigit(static_cast<unsigned char>(word[1])) != 0)
          << word;
    }
  }
}

}  // namespace environment_tests
}  // namespace snapkv::test
