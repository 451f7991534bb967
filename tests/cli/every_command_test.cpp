// SPDX-License-Identifier: MIT
// What every command promises: it works, and it gives no scores for a model that computes NaN.
#include "every_command.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "run_process.h"
#include "tests/support/poisoned_model.h"

namespace snapkv::test {
namespace every_command_tests {

Result run_every(const EveryCommand& every, const std::vector<int>& closed = {}) {
  Command command;
  command.args = every.args;
  command.input = every.input;
  command.closed = closed;
  return run(command);
}

// The names of the subcommands in a help text.
std::vector<std::string> commands_in(const std::string& help) {
  std::vector<std::string> names;
  std::istringstream lines(help.substr(std::min(help.size(), help.find("Subcommands:"))));
  std::string line;
  std::getline(lines, line);
  static const std::regex kName("^  ([a-z-]+) ");
  for (std::smatch match; std::getline(lines, line) && !line.empty();) {
    if (std::regex_search(line, match, kName)) names.push_back(match[1]);
  }
  return names;
}

TEST(EveryCommand, IsInTheListOfTheseTests) {
  std::set<std::string> there, listed;
  for (const std::string& name : commands_in(run({"--help"}).out)) {
    const std::vector<std::string> tasks = commands_in(run({name, "--help"}).out);
    for (const std::string& task : tasks) there.insert(name + " " + task);
    // Only a signal ends a server (serve_test.cpp); ask reads what compress wrote
    // (document_test.cpp); pull needs a server (pull_test.cpp).
    static const std::set<std::string> kElsewhere = {"serve", "ask", "pull"};
    if (tasks.empty() && kElsewhere.count(name) == 0) there.insert(name);
  }
  for (const EveryCommand& command : every_command(needle_model())) listed.insert(command.name);
  EXPECT_EQ(there, listed) << "add new commands to every_command.cpp";
  EXPECT_GE(there.size(), 12u);
}

TEST(EveryCommand, Works) {
  for (const EveryCommand& command : every_command(needle_model())) {
    const Result result = run_every(command);
    EXPECT_EQ(result.code, 0) << command.name << ": " << result.err;
    if (!command.records.empty()) {
      EXPECT_NE(read_file(command.records), "") << command.name;
    }
  }
}

// Scores, tables, pages and answers of a model that computes NaN would look like valid ones.
void expect_no_scores(const std::string& model) {
  for (const EveryCommand& command : every_command(model)) {
    if (!command.computes) continue;
    SCOPED_TRACE(command.name);
    const Result result = run_every(command);
    EXPECT_TRUE(result.code == 1 || result.code == 3) << result.code << ": " << result.err;
    // The error comes while computing or, in evaluations, from a check of the weights before that.
    EXPECT_TRUE(result.err.find("finite") != std::string::npos ||
                result.err.find("holds an infinity or a NaN") != std::string::npos)
        << result.err;
    for (const char* score : {"nan", "NaN", "%", "48213."}) {
      if (command.name == "demo") continue;  // prints the text with the number before computing
      EXPECT_EQ(result.out.find(score), std::string::npos) << result.out;
    }
    EXPECT_EQ(result.out.find("right"), std::string::npos) << result.out;
    if (!command.records.empty()) {
      EXPECT_FALSE(std::filesystem::exists(command.records) &&
                   std::filesystem::file_size(command.records) > 0)
          << read_file(command.records);
    }
  }
}

TEST(EveryCommand, RefusesAModelWithALayerOfNan) {
  const std::string path = make_folder() + "/poisoned.gguf";
  write_poisoned_model(needle_model(), path,
                       {.tensor = "blk.2.attn_v.weight",
                        .value = std::numeric_limits<float>::quiet_NaN(),
                        .first = 0,
                        .count = -1});
  expect_no_scores(path);
}

// One value of the embedding, which is also the output matrix, is NaN. This affects one of 1024
// logits, and a token that occurs in no text here.
TEST(EveryCommand, RefusesAModelWithOneLogitOfNan) {
  const std::string path = make_folder() + "/poisoned.gguf";
  write_poisoned_model(needle_model(), path,
                       {.tensor = "token_embd.weight",
                        .value = std::numeric_limits<float>::quiet_NaN(),
                        .first = 200 * 192,
                        .count = 1});
  expect_no_scores(path);
}

bool holds(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// If a standard descriptor is closed when the program starts, one of its own files must not get
// that number, or output would be written into the file.
TEST(EveryCommand, KeepsClosedDescriptorsOutOfItsFiles) {
  const std::vector<std::vector<int>> kClosed = {{0}, {1}, {2}, {0, 1}, {1, 2}, {0, 1, 2}};
  for (const std::vector<int>& closed : kClosed) {
    for (const EveryCommand& every : every_command(needle_model())) {
      SCOPED_TRACE(every.name + ", " + std::to_string(closed.size()) + " closed from " +
                   std::to_string(closed.front()));
      const Result result = run_every(every, closed);
      const bool prints =
          every.name != "inspect" && every.name != "convert" && every.name != "compress";
      const bool misses_input = !every.input.empty() && holds(closed, 0);
      const bool fails = misses_input || (prints && holds(closed, 1));
      EXPECT_EQ(result.code, fails ? 1 : 0) << result.err;
      if (fails && !misses_input && !holds(closed, 2)) {
        EXPECT_NE(result.err.find("standard output: Bad file descriptor"), std::string::npos)
            << result.err;
      }
      if (every.records.empty()) continue;
      std::istringstream lines(read_file(every.records));
      int n = 0;
      for (std::string line; std::getline(lines, line); ++n) {
        EXPECT_TRUE(nlohmann::json::accept(line)) << line;
      }
      EXPECT_GT(n, 0);
    }
  }
}

TEST(EveryCommand, SaysThatAClosedStandardInputCannotBeRead) {
  Command command;
  command.args = {"generate", "-m", needle_model(), "-f", "-", "-n", "2"};
  command.closed = {0};
  const Result result = run(command);
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.err.find("can't read standard input: Bad file descriptor"), std::string::npos)
      << result.err;
}

}  // namespace every_command_tests
}  // namespace snapkv::test
