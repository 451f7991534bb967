// SPDX-License-Identifier: MIT
// snapkv explain: its text for the needle model, the head that it chooses, and the errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "run_process.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace explain_tests {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string after(const std::string& text, const std::string& part) {
  const size_t at = text.find(part);
  return at == std::string::npos ? "" : text.substr(at);
}

Result explain(std::vector<std::string> more, const std::string& locale = "C") {
  Command command;
  command.args = {"explain", "-m", needle_model(), "-p", rome_prompt(12)};
  command.args.insert(command.args.end(), more.begin(), more.end());
  command.env["LC_ALL"] = locale;
  return run(command);
}

TEST(Explain, ShowsTheFiveStepsAndChecksItself) {
  const Result r = explain({"--kv-budget", "64"});
  ASSERT_EQ(r.code, 0) << r.err;
  for (const char* part : {"1 observe", "2 vote", "3 rank", "4 keep", "5 drop", "W = 16", "B = 64",
                           "checked: the engine kept the same rows, in all 6 layers x 3 KV heads",
                           "the B - W = 48 highest", "Q [n_head, W, head_dim] = [6, 16, 32]"}) {
    EXPECT_TRUE(has(r.out, part)) << part << " is not in\n" << r.out;
  }
  // The head that looks far back looks at the fact and keeps all of it.
  EXPECT_TRUE(has(after(r.out, "still sees"), "48213")) << r.out;
  EXPECT_TRUE(std::all_of(r.out.begin(), r.out.end(), [](char c) {
    return c == '\n' || (c >= ' ' && c <= '~');
  })) << r.out;
}

// Where there are no rows, other commands have nothing to show either.
TEST(Explain, AModelWithoutAttentionIsRefused) {
  const std::string model = model_path("mamba"), page = make_folder() + "/page.html";
  const std::vector<std::vector<std::string>> commands = {
      {"explain", "-m", model, "-p", "w1 w2"},
      {"inspect", "-m", model, "-p", "w1 w2", "-o", page},
      {"demo", "-m", model, "--length", "300"}};
  for (const std::vector<std::string>& command : commands) {
    const Result r = run(command);
    EXPECT_EQ(r.code, 2) << command.front();
    EXPECT_TRUE(has(r.err, model + " has no attention")) << r.err;
  }
  const Result answer = run({"generate", "-m", model, "-p", "w1 w2", "-n", "4"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_TRUE(has(answer.err, "a state of fixed size in 3 layers")) << answer.err;
  const Result info = run({"info", "-m", model});
  EXPECT_EQ(info.code, 0) << info.err;
  EXPECT_TRUE(has(info.out, "none; 3 layers with a state of fixed size take")) << info.out;
}

TEST(Explain, CountsEveryTokenOfThePrompt) {
  const Result r = explain({"--kv-budget", "64", "--rows", "10"});
  std::smatch match;
  ASSERT_TRUE(std::regex_search(r.out, match, std::regex("L = (\\d+) tokens")));
  const int n_tokens = std::stoi(match[1]);
  const std::string table = after(r.out.substr(0, r.out.find("4 keep")), "position");
  int n_rows = 0, n_kept = 0;
  const std::regex row("\n +\\d+  \".* (keep|drop)"),
      gap("(\\d+) tokens? not shown, (\\d+) of them kept");
  for (std::sregex_iterator it(table.begin(), table.end(), row), end; it != end; ++it) {
    ++n_rows;
    n_kept += (*it)[1] == "keep";
  }
  EXPECT_GE(n_rows, 10);
  for (std::sregex_iterator it(table.begin(), table.end(), gap), end; it != end; ++it) {
    n_rows += std::stoi((*it)[1]);
    n_kept += std::stoi((*it)[2]);
  }
  EXPECT_EQ(n_rows, n_tokens - 16) << table;
  EXPECT_EQ(n_kept, 48) << table;
}

TEST(Explain, DrawsBlocksWhereTheLocaleHasThem) {
  EXPECT_TRUE(has(explain({}, "C.UTF-8").out, "█"));
  EXPECT_FALSE(has(explain({"--ascii"}, "C.UTF-8").out, "█"));
}

TEST(Explain, TheUserChoosesLayerHeadAndOptions) {
  const Result r = explain({"--layer", "0", "--head", "2", "--kv-ratio", "0.5", "--kv-pooling",
                            "avg", "--kv-kernel", "5", "--kv-group", "max", "--kv-sinks", "3"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(has(r.out, "shown: layer 0, KV head 2")) << r.out;
  EXPECT_TRUE(has(r.out, "50% of the prompt")) << r.out;
  EXPECT_TRUE(has(r.out, "positions 0-2, ") || has(r.out, "positions 0-")) << r.out;
}

// In the family's models the second to last layer has full attention, and the others have windows
// of 16.
TEST(Explain, ShowsOnlyLayersThatThePolicyChoosesRowsOf) {
  const auto of_gemma = [](const std::string& model, std::vector<std::string> more) {
    std::vector<std::string> args = {"explain",     "-m", model_path(model), "-p", rome_prompt(3),
                                     "--kv-budget", "64", "--kv-window",     "8"};
    args.insert(args.end(), more.begin(), more.end());
    return run(args);
  };
  const Result gemma3 = of_gemma("gemma3", {});
  ASSERT_EQ(gemma3.code, 0) << gemma3.err;
  EXPECT_TRUE(has(gemma3.out, "shown: layer 5, ")) << gemma3.out;
  EXPECT_TRUE(has(gemma3.out, "kept the same rows, in all 1 layer x 2 KV heads")) << gemma3.out;
  EXPECT_TRUE(has(gemma3.out, "6 more layers with sliding windows")) << gemma3.out;
  const Result window = of_gemma("gemma3", {"--layer", "4"});
  EXPECT_EQ(window.code, 2);
  EXPECT_TRUE(has(window.err, "--layer is 4") && has(window.err, "16 tokens")) << window.err;
  const Result none = of_gemma("phi3-window", {});
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(has(none.err, "every layer")) << none.err;
  const Result gemma2 = of_gemma("gemma2", {"--layer", "1"});
  ASSERT_EQ(gemma2.code, 0) << gemma2.err;
  EXPECT_TRUE(has(gemma2.out, "3 tanh(")) << gemma2.out;
}

// Two later layers read the rows of layer 2: votes are those of all three, and the engine kept what
// these votes rank.
TEST(Explain, ShowsTheVotesOfAllLayersThatReadTheRows) {
  const std::vector<std::string> args = {"explain", "-m",           model_path("gemma4-e"),
                                         "-p",      rome_prompt(3), "--kv-budget",
                                         "64",      "--kv-window",  "8"};
  const Result r = run(args);
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(has(r.out, "2 later layers read its rows too")) << r.out;
  EXPECT_TRUE(has(r.out, "layer 8   query head")) << r.out;
  EXPECT_TRUE(has(r.out, "kept the same rows, in all 1 layer x 2 KV heads")) << r.out;
  EXPECT_TRUE(has(r.out, "6 more layers: they read rows of earlier layers")) << r.out;
  EXPECT_TRUE(has(r.out, "2 more layers with sliding windows")) << r.out;
  std::vector<std::string> reader = args;
  reader.insert(reader.end(), {"--layer", "5"});
  const Result other = run(reader);
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(has(other.err, "reads those of layer 2")) << other.err;
}

TEST(Explain, ReadsThePromptAsAMessage) {
  const Result plain = explain({"--kv-budget", "64"});
  const Result r = explain({"--kv-budget", "64", "--chat", "--chat-template", "chatml"});
  ASSERT_EQ(r.code, 0) << r.err;
  const auto n_tokens = [](const Result& result) {
    std::smatch match;
    EXPECT_TRUE(std::regex_search(result.out, match, std::regex("L = (\\d+) tokens")));
    return std::stoi(match[1]);
  };
  EXPECT_GT(n_tokens(r), n_tokens(plain));
  EXPECT_TRUE(has(r.out, "assistant")) << "the window ends where the answer begins\n" << r.out;
  EXPECT_TRUE(has(r.out, "checked: the engine kept the same rows")) << r.out;
  EXPECT_EQ(explain({"--chat"}).code, 2) << "the model has no template";
  const Result none = run({"explain", "-m", needle_model(), "--chat", "--chat-template", "chatml"});
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(has(none.err, "--chat: no prompt")) << none.err;
}

TEST(Explain, SaysWhyAShortPromptLosesNothing) {
  const Result r = explain({"--kv-budget", "4000"});
  EXPECT_EQ(r.code, 0);
  EXPECT_TRUE(has(r.out, "keeps everything when L <= B")) << r.out;
}

TEST(Explain, APromptBeyondTheContextIsToldHowMuchWouldFit) {
  const std::string book = make_file("book.txt", rome_prompt(400));
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"explain", "-m", needle_model(), "-f", book},
        {"inspect", "-m", needle_model(), "-f", book, "-o", make_folder() + "/page.html"}}) {
    const Result r = run(args);
    EXPECT_EQ(r.code, 5) << r.err;
    EXPECT_TRUE(has(r.err, "and the context is 8192: about ")) << r.err;
  }
}

TEST(Explain, RefusesWhatItCantShow) {
  const auto refused = [](std::vector<std::string> more, const char* word) {
    const Result r = explain(std::move(more));
    EXPECT_EQ(r.code, 2) << word;
    EXPECT_TRUE(has(r.err, word)) << r.err;
    EXPECT_EQ(r.out, "");
  };
  refused({"--kv-policy", "h2o"}, "h2o");
  refused({"--kv-critical"}, "kv-critical");
  refused({"--layer", "6"}, "0 to 5");
  refused({"--head", "3"}, "0 to 2");
  refused({"--kv-kernel", "4"}, "odd");
}

}  // namespace explain_tests
}  // namespace snapkv::test
