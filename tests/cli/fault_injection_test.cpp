// SPDX-License-Identifier: MIT
// One allocation or one system call fails, the n-th of a small run (tests/support/fault_shim.cpp),
// for many n. The run must end with a documented exit code and a message, or as if nothing had
// happened; never by a signal, and never with half a file under the final name.
// SNAPKV_TEST_FAULTS=N tries every N-th, from the SNAPKV_TEST_FAULTS_FIRST-th on (0 by default);
// `make faults` tries all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "run_process.h"

namespace snapkv::test {
namespace fault_injection_tests {

/// The number of faults of each kind that ctest tries per command.
constexpr int64_t kSample = 40;

struct SmallRun {
  std::string name;
  std::vector<std::string> args;
  std::string file;  ///< the file that the run writes
  bool is_records = false;
};

SmallRun make_run(const std::string& name, const std::string& folder) {
  SmallRun r{.name = name, .args = {}, .file = folder + "/" + name};
  if (name == "generate") {
    r.args = {"generate", "-m", needle_model(), "-p", "The secret number", "-n", "3",
              "--temp",   "0",  "-t",           "1",  "--kv-budget",       "64", "--save-cache",
              r.file};
  } else if (name == "convert") {
    r.args = {"convert", needle_model(), "-o", r.file};
  } else {
    r.is_records = true;
    r.args = {"eval", "needle",   "-m",       needle_model(), "--lengths",
              "200",  "--depths", "1",        "--budgets",    "64",
              "-t",   "1",        "--resume", "--out",        r.file};
  }
  return r;
}

struct Outcome {
  Result result;
  int64_t count = 0;
  int state = 0;
};

Outcome run_with_fault(const SmallRun& r, const std::string& kind, int64_t at,
                       const std::string& folder) {
  const std::string log = folder + "/fault.log";
  Command command;
  command.args = r.args;
  command.env = {{"LD_PRELOAD", SNAPKV_FAULT_SHIM},
                 {"SNAPKV_TEST_FAULT", kind},
                 {"SNAPKV_TEST_FAULT_AT", std::to_string(at)},
                 {"SNAPKV_TEST_FAULT_LOG", log}};
  Outcome outcome;
  outcome.result = run(command);
  outcome.state = 1;  // if the run ends at once, it writes no log
  std::ifstream(log) >> outcome.count >> outcome.state;
  std::filesystem::remove(log);
  return outcome;
}

/// Describes a fault in the files that the run left behind; nullopt if there is none.
std::optional<std::string> damage(const SmallRun& r, const std::string& folder,
                                  const std::string& whole) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (path != r.file && path != r.file + ".lock") return "left behind: " + path;
  }
  if (!std::filesystem::exists(r.file)) return std::nullopt;
  const std::string content = read_file(r.file);
  if (!r.is_records) return content == whole ? std::nullopt : std::optional("the file differs");
  std::istringstream lines(content);
  std::string line;
  while (std::getline(lines, line)) {  // all lines but the last must be whole
    const bool is_last = lines.peek() == EOF;
    if (!is_last && (line.empty() || line.back() != '}')) return "torn: " + line;
  }
  return std::nullopt;
}

/// The number in an environment variable, or `otherwise` if it is not set.
int64_t number(const char* name, int64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}

class FaultInjectionTest : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(FaultInjectionTest, EndsWithAMessageAndNoHalfFile) {
#if defined(SNAPKV_SANITIZED)
  GTEST_SKIP() << "a sanitizer replaces the same functions";
#endif
  const auto& [name, kind] = GetParam();
  const std::string folder = make_folder();
  const SmallRun r = make_run(name, folder);
  const Outcome whole = run_with_fault(r, kind, -1, folder);
  ASSERT_EQ(whole.result.code, 0) << whole.result.err;
  ASSERT_GT(whole.count, 10) << "the shim is in place";
  const std::string content = read_file(r.file);
  const int64_t step = number("SNAPKV_TEST_FAULTS", std::max<int64_t>(1, whole.count / kSample));
  ASSERT_GE(step, 1);
  int64_t n_refused = 0, n_failed = 0;
  for (int64_t at = number("SNAPKV_TEST_FAULTS_FIRST", 0); at < whole.count; at += step) {
    std::filesystem::remove(r.file);
    const Outcome o = run_with_fault(r, kind, at, folder);
    SCOPED_TRACE(kind + " " + std::to_string(at) + " of " + std::to_string(whole.count));
    if (o.state == 1) ++n_refused;
    if (o.result.code != 0) ++n_failed;
    EXPECT_TRUE(o.result.code >= 0 && o.result.code <= 5) << o.result.code << "\n" << o.result.err;
    if (o.result.code != 0) {
      EXPECT_NE(o.result.err.find("snapkv: error:"), std::string::npos) << o.result.err;
    } else {
      EXPECT_TRUE(std::filesystem::exists(r.file)) << o.result.err;
    }
    const auto bad = damage(r, folder, content);
    EXPECT_FALSE(bad) << *bad << "\n" << o.result.err;
  }
  EXPECT_GT(n_refused, 0);
  EXPECT_GT(n_failed, 0);
  RecordProperty("refused", static_cast<int>(n_refused));
  std::printf("%s, %s: %lld of %lld refused, %lld of the runs failed\n", name.c_str(), kind.c_str(),
              static_cast<long long>(n_refused), static_cast<long long>(whole.count),
              static_cast<long long>(n_failed));
}

INSTANTIATE_TEST_SUITE_P(Runs, FaultInjectionTest,
                         testing::Combine(testing::Values("generate", "convert", "eval"),
                                          testing::Values("memory", "calls")),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + std::get<1>(test.param);
                         });

}  // namespace fault_injection_tests
}  // namespace snapkv::test
