// SPDX-License-Identifier: MIT
// Bad input: every failure has its exit code, writes to stderr a message that names the fault, and
// writes nothing to stdout.
#include <gtest/gtest.h>

#include "run_process.h"

namespace snapkv::test {
namespace failure_tests {

std::vector<std::string> generate(std::vector<std::string> more) {
  std::vector<std::string> args = {"generate", "-m", needle_model()};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

void expect_error(const Result& r, int code, const std::string& part) {
  EXPECT_EQ(r.code, code) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_NE(r.err.find("snapkv: error: "), std::string::npos) << r.err;
  EXPECT_NE(r.err.find(part), std::string::npos) << part << " is missing in: " << r.err;
}

TEST(Failure, UsageErrorsExitWith2) {
  const Result bare = run(std::vector<std::string>{});
  EXPECT_EQ(bare.code, 2);
  EXPECT_NE(bare.err.find("Usage: snapkv"), std::string::npos) << bare.err;
  expect_error(run({"frobnicate"}), 2, "there is no command 'frobnicate'");
  expect_error(run({"generate", "--frobnicate"}), 2, "--frobnicate");
  expect_error(run({"generate", "-p", "x"}), 2, "no model");
  expect_error(run(generate({})), 2, "no prompt");
  expect_error(run({"compress", "-m", needle_model(), "-o", "x.kv", "-p", "x", "-f", "y"}), 2,
               "two prompts");
  expect_error(run(generate({"-p", "x", "-n", "ten"})), 2, "ten");
  expect_error(run(generate({"-p", "x", "-n", "-2"})), 2, "--n-predict");
  expect_error(run(generate({"-p", "x", "-t", "-1"})), 2, "--threads");
  expect_error(run(generate({"-p", "x", "--compute", "f64"})), 2, "f64");
  expect_error(run(generate({"-p", "x", "--kv-type", "q4_0"})), 2, "q4_0");
  expect_error(run(generate({"-p", "x", "--kv-policy", "magic"})), 2, "magic");
  expect_error(run(generate({"-p", "x", "--temp", "-1"})), 2, "--temp");
  expect_error(run(generate({"-p", "x", "--top-p", "1.5"})), 2, "--top-p");
  expect_error(run(generate({"-p", "x", "--seed", "1.5"})), 2, "seed");
}

TEST(Failure, SystemMessagesAreUtf8InEveryCommand) {
  const std::vector<std::vector<std::string>> kCommands = {
      {"generate", "-m", needle_model(), "-p", "x", "-n", "1", "--chat", "--chat-template",
       "chatml"},
      {"compress", "-m", needle_model(), "-f", make_file("x.txt", "x"), "-o",
       make_folder() + "/x.kv", "--chat-template", "chatml"},
      {"chat", "-m", needle_model(), "--chat-template", "chatml"}};
  for (std::vector<std::string> args : kCommands) {
    args.insert(args.end(), {"--system", "Be \xff brief."});
    const Result r = run(args);
    EXPECT_EQ(r.code, 2) << r.err;
    EXPECT_NE(r.err.find("--system"), std::string::npos) << r.err;
    EXPECT_NE(r.err.find("not valid UTF-8"), std::string::npos) << r.err;
  }
}

TEST(Failure, TheUsersOwnWordsStayAsTheyAre) {
  for (const char* name : {"n_ctx.txt", "kv_memory", "dir/n_ctx", "n_ctx-2"}) {
    const Result r = run({"generate", "-m", needle_model(), "-f", name});
    EXPECT_EQ(r.code, 1) << r.err;
    EXPECT_NE(r.err.find(std::string("read ") + name + ": "), std::string::npos) << r.err;
  }
  Command r;
  r.args = {"generate", "-p", "x"};
  r.env["SNAPKV_MODEL"] = "n_ctx.gguf";
  EXPECT_NE(run(r).err.find("n_ctx.gguf"), std::string::npos) << run(r).err;
}

TEST(Failure, OptionsThatTheFullCacheIgnoresAreNamed) {
  const Result r = run({"generate", "-m", needle_model(), "-p", "x", "-n", "1", "--kv-policy",
                        "full", "--kv-budget", "64", "--kv-critical", "--kv-refresh"});
  EXPECT_EQ(r.code, 0) << r.err;
  const std::string warning = r.err.substr(0, r.err.find('\n'));
  for (const char* part :
       {"warning", "--kv-policy full", "--kv-budget", "--kv-critical", "--kv-refresh"}) {
    EXPECT_NE(warning.find(part), std::string::npos) << part << r.err;
  }
  Command quiet;
  quiet.args = {"generate", "-m", needle_model(), "-p", "x", "-n", "1", "--kv-policy", "full"};
  quiet.env["SNAPKV_KV_BUDGET"] = "64";
  EXPECT_EQ(run(quiet).err.find("warning"), std::string::npos) << run(quiet).err;
}

TEST(Failure, ImpossiblePoliciesExitWith2) {
  expect_error(run(generate({"-p", "x", "--kv-kernel", "4"})), 2, "kernel");
  expect_error(run(generate({"-p", "x", "--kv-budget", "32", "--kv-window", "32"})), 2, "budget");
  expect_error(run(generate({"-p", "x", "--kv-window", "0"})), 2, "window");
  expect_error(run(generate({"-p", "x", "--kv-ratio", "1.5"})), 2, "ratio");
  expect_error(run({"info", "-m", needle_model(), "--kv-kernel", "4"}), 2, "kernel");
  expect_error(run({"demo", "-m", needle_model(), "--kv-kernel", "4"}), 2, "kernel");
}

TEST(Failure, FilesThatCannotBeReadAreNamed) {
  const std::string folder = make_folder();
  expect_error(run({"generate", "-m", "/nowhere.gguf", "-p", "x"}), 1, "/nowhere.gguf");
  expect_error(run({"info", "-m", "/nowhere.gguf"}), 1, "/nowhere.gguf");
  expect_error(run({"generate", "-m", folder, "-p", "x"}), 3, "config.json");
  expect_error(run(generate({"-f", "/nowhere.txt"})), 1, "/nowhere.txt");
  expect_error(run(generate({"-f", folder})), 2, "a folder without documents");
  expect_error(run(generate({"-p", "x", "--spill-dir", folder + "/none"})), 1, folder + "/none");
}

TEST(Failure, BadModelsExitWith3) {
  const std::string model = read_file(needle_model());
  const auto check = [](const std::string& content) {
    const std::string path = make_file("model.gguf", content);
    expect_error(run({"generate", "-m", path, "-p", "x"}), 3, path);
    expect_error(run({"info", "-m", path}), 3, path);
  };
  ASSERT_GT(model.size(), 1000000u);
  check("");
  check("This is not a model, it is a text.\n");
  check(model.substr(0, 20));
  check(model.substr(0, model.size() / 2));
  check(model.substr(0, model.size() - 1));
  std::string version = model;
  version[4] = 99;
  check(version);
}

TEST(Failure, PromptsThatDoNotFitExitWith4) {
  expect_error(run(generate({"-p", rome_prompt(40), "--memory-limit", "1M"})), 4, "--spill-dir");
}

TEST(Failure, PromptsOverTheContextExitWith5) {
  expect_error(run(generate({"-p", rome_prompt(10), "-c", "64"})), 5, "64");
  expect_error(run(generate({"-p", rome_prompt(500)})), 5, "8192");
  expect_error(run({"eval", "needle", "-m", needle_model(), "--lengths", "9000"}), 5, "8192");
}

TEST(Failure, FullDiskExitsWith1) {
  for (const std::vector<std::string>& args :
       {generate({"-p", "At noon", "-n", "3"}),
        generate({"-p", "At noon", "-n", "3", "--json"}),
        std::vector<std::string>{"info", "-m", needle_model()},
        {"--help"}}) {
    Command full;
    full.args = args;
    full.stdout_path = "/dev/full";
    const Result r = run(full);
    EXPECT_EQ(r.code, 1) << r.err;
    EXPECT_NE(r.err.find("standard output: No space left"), std::string::npos) << r.err;
  }
}

// The same code as after SIGPIPE: the reader of "| head" has seen enough, so no message is needed.
TEST(Failure, ReaderThatLeavesExitsWith141WithoutAWord) {
  Command r;
  r.args = generate({"-p", "At noon", "-n", "3000", "--ignore-eos"});
  r.close_stdout_early = true;
  const Result result = run(r);
  EXPECT_EQ(result.code, 141) << result.err;
  EXPECT_EQ(result.err, "");
}

TEST(Failure, EmptyPromptWithoutBosExitsWith2) {
  expect_error(run(generate({"-p", "", "--no-bos"})), 2, "empty");
}

TEST(Failure, DemoWithoutAModelSaysWhereItLooked) {
  expect_error(run({"demo"}), 2, "models/needle.gguf");
  expect_error(run({"demo", "-m", needle_model(), "--length", "10"}), 2, "length");
  expect_error(run({"demo", "-m", needle_model(), "--depth", "101"}), 2, "--depth");
  expect_error(run({"demo", "-m", needle_model(), "--name", "Atlantis"}), 2, "Atlantis");
}

}  // namespace failure_tests
}  // namespace snapkv::test
