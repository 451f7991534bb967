// SPDX-License-Identifier: MIT
// The contents of a model file, a template, a record or a file name cannot control the terminal: no
// command writes their control characters to a terminal, nor megabytes of their text.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "every_command.h"
#include "run_process.h"
#include "terminal_session.h"
#include "tests/support/hostile_text_model.h"

namespace snapkv::test {
namespace terminal_output_tests {

/// The limit for the output in bytes: enough for a table or a page of help.
constexpr size_t kMostOutput = 200'000;

std::string hostile_model() {
  const std::string path = make_folder() + "/model" + std::string(kHostileText) + ".gguf";
  write_hostile_text_model(needle_model(), path);
  return path;
}

/// Expects none of kHostileText's sequences. The program's own sequences (colours, the progress
/// bar) are different ones.
void expect_harmless(const std::string& screen) {
  for (const std::string_view bad :
       {"\x1b]", "\x07", "\x1b[35m", "\x1b[2J", "\xc2\x9b", "\xe2\x80\xae"}) {
    EXPECT_EQ(screen.find(bad), std::string::npos)
        << testing::PrintToString(screen.substr(std::min(screen.find(bad), screen.size()), 60));
  }
  EXPECT_LT(screen.size(), kMostOutput);
}

class TerminalOutputTest : public testing::TestWithParam<size_t> {};

TEST_P(TerminalOutputTest, HoldsNoControlCharactersOfTheModel) {
  const EveryCommand command = every_command(hostile_model()).at(GetParam());
  TerminalSession session(command.args);
  session.wait_for_end();
  SCOPED_TRACE(command.name);
  expect_harmless(session.screen());
  EXPECT_FALSE(session.screen().empty());
}

std::vector<size_t> all_commands() {
  const std::vector<EveryCommand> commands = every_command("");
  std::vector<size_t> all;
  for (size_t i = 0; i < commands.size(); ++i) {
    if (commands[i].name != "chat") all.push_back(i);  // chat has its own test below
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Commands, TerminalOutputTest, testing::ValuesIn(all_commands()));

TEST(TerminalOutput, ShowsWhatItEscapes) {
  TerminalSession session({"info", "-m", hostile_model()});
  EXPECT_EQ(session.wait_for_end(), 0);
  EXPECT_NE(session.screen().find("name\\x1b]0;owned\\x07"), std::string::npos) << session.screen();
  EXPECT_NE(session.screen().find("bytes)"), std::string::npos) << "the name is cut";
}

TEST(TerminalOutput, OfTheModelsTemplateIsEscapedAtATerminalOnly) {
  const std::string messages =
      make_file("messages.json", R"([{"role": "user", "content": "hello"}])");
  const std::vector<std::string> args = {"apply-template", "-m", hostile_model(), "-f", messages};
  TerminalSession session(args);
  EXPECT_EQ(session.wait_for_end(), 0);
  expect_harmless(session.screen());
  EXPECT_NE(session.screen().find("\\x1b]0;owned"), std::string::npos) << session.screen();
  const Result piped = run(args);
  EXPECT_NE(piped.out.find(kHostileText), std::string::npos) << piped.out;
}

TEST(TerminalOutput, OfAnAnswerIsEscapedAtATerminalOnly) {
  const std::string model = hostile_model();
  const std::vector<std::string> args = {"generate", "-m", model,    "-p", "secret",
                                         "-n",       "12", "--temp", "0",  "--ignore-eos"};
  TerminalSession session(args);
  EXPECT_EQ(session.wait_for_end(), 0);
  expect_harmless(session.screen());
  const Result piped = run(args);
  EXPECT_EQ(piped.code, 0) << piped.err;
  // The model writes an ordinary piece with hostile text in it, which a pipe gets unchanged.
  EXPECT_NE(piped.out.find("\x1b"), std::string::npos) << piped.out;
  EXPECT_NE(session.screen().find("\\x1b"), std::string::npos) << session.screen();
}

TEST(TerminalOutput, OfTheChatIsHarmless) {
  TerminalSession session({"chat", "-m", hostile_model(), "-n", "4", "--temp", "0"});
  session.wait_for("/help lists the commands");
  session.type("hello\n");
  session.wait_for("]0;owned");
  session.type("/stats\n");
  session.wait_for("peak RSS");
  session.type("/quit\n");
  session.wait_for_end();
  for (const std::string_view bad : {"\x1b]0", "\x1b[35m", "\x1b[2J", "\xc2\x9b", "\xe2\x80\xae"}) {
    EXPECT_EQ(session.screen().find(bad), std::string::npos);
  }
}

TEST(TerminalOutput, OfErrorsIsEscapedAndCut) {
  const std::string hostile(kHostileText);
  const std::string name = make_folder() + "/missing" + hostile;
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"generate", "-m", name, "-p", "a"},
        {"info", "--" + hostile},
        {"tokenize", "-m", make_file("bad.gguf", hostile + std::string(1 << 20, 'x')), "-p", "a"},
        {"policies", "--config", make_file("config.toml", hostile + " = 1\n")},
        {"policies", "--config", make_file("config.toml", "[" + hostile + "]\na = 1\n")},
        {"eval", "needle", "-m", needle_model(), "--resume", "--out",
         make_file("records.jsonl", "{\"type\": \"" + hostile + "\"}\n")}}) {
    SCOPED_TRACE(args[0] + " " + args[1]);
    const Result r = run(args);  // stderr is a pipe, as for a log that a person reads later
    EXPECT_NE(r.code, 0);
    expect_harmless(r.err);
    EXPECT_FALSE(r.err.empty());
  }
  const Result cut = run({"generate", "-m", std::string(3000, 'x'), "-p", "a"});
  EXPECT_LT(cut.err.size(), 10'000u);
}

TEST(TerminalOutput, ConfigurationFilesAreBounded) {
  const auto error_of = [](const std::string& config) {
    const Result result = run({"policies", "--config", make_file("c.toml", config)});
    EXPECT_EQ(result.code, 2);
    return result.err;
  };
  std::string nested = "[a";
  for (int i = 0; i < 1001; ++i) nested += ".a";
  EXPECT_NE(error_of("\n" + nested + "]\n").find("line 2 has more than 1000 dots"),
            std::string::npos);
  EXPECT_NE(error_of(std::string((1 << 20) + 1, '#')).find("more than 1048576 bytes"),
            std::string::npos);
  std::string half;  // of the dots of a line
  for (int i = 0; i < 499; ++i) half += "a.";
  std::string tables;  // as deep as can be, and as many of them as fit
  for (int i = 0; tables.size() < (1 << 20) - 10'000; ++i) {
    tables += "[" + half + half + std::to_string(i) + "]\n" + half + "a = [{" + half + "a = 1}]\n";
  }
  EXPECT_NE(error_of(tables).find("section [a] is not a command"), std::string::npos);
}

}  // namespace terminal_output_tests
}  // namespace snapkv::test
