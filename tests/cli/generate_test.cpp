// SPDX-License-Identifier: MIT
// snapkv generate: the answer, what goes to stdout and to stderr, and the JSON object.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "run_process.h"

namespace snapkv::test {
namespace generate_tests {

using Json = nlohmann::json;

std::vector<std::string> generate(std::vector<std::string> more) {
  std::vector<std::string> args = {"generate", "-m", needle_model(), "--temp", "0"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Generate, StdoutIsTheAnswerAndNothingElse) {
  const Result r = run(generate({"-p", rome_prompt(8), "-n", "8"}));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, " 48213.\n");
}

TEST(Generate, SummaryGoesToStderrWithoutEscapeCodes) {
  const Result r = run(generate({"-p", rome_prompt(20), "-n", "7", "--show-timings", "--kv-budget",
                                 "128", "--kv-window", "16", "--kv-kernel", "15"}));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, " 48213.\n");
  for (const char* part :
       {"prompt", "answer", "7 tokens", "tok/s", "first token", "128 of ", "6 layers x 3 KV heads",
        "KV cache", "peak during prefill", "peak RSS", "attention", "gather"}) {
    EXPECT_TRUE(contains(r.err, part)) << part << " is missing in\n" << r.err;
  }
  EXPECT_FALSE(contains(r.err, "\x1b")) << r.err;
  EXPECT_FALSE(contains(r.err, "\r")) << r.err;
}

TEST(Generate, TerminalGetsABarWithThePromptsProgress) {
  Command tty;
  tty.args = generate({"-p", rome_prompt(200), "-n", "4", "--chunk", "64"});
  tty.terminal = true;
  const Result r = run(tty);
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.err, "\r\x1b[K")) << r.err;
  EXPECT_TRUE(contains(r.err, "prefill")) << r.err;
  tty.args.push_back("--no-progress");
  EXPECT_FALSE(contains(run(tty).err, "prefill  ["));
}

TEST(Generate, ReadsThePromptFromAFileAndStdin) {
  const std::string prompt = rome_prompt(6);
  const Result text = run(generate({"-p", prompt, "-n", "8"}));
  const Result file = run(generate({"-f", make_file("prompt.txt", prompt + "\n"), "-n", "8"}));
  Command piped;
  piped.args = generate({"-f", "-", "-n", "8"});
  piped.input = prompt;
  const Result from_stdin = run(piped);
  EXPECT_EQ(text.out, " 48213.\n");
  EXPECT_EQ(file.out, text.out);
  EXPECT_EQ(from_stdin.out, text.out);
  EXPECT_EQ(from_stdin.code, 0) << from_stdin.err;
}

TEST(Generate, StopStringsEndTheAnswerAndAreNotPrinted) {
  const std::string prompt = rome_prompt(8);
  const Result r = run(generate({"-p", prompt, "-n", "8", "--stop", "213", "--stop", "X"}));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, " 48\n") << "a token is one digit: the string lies across three";
  EXPECT_TRUE(contains(r.err, "--stop")) << r.err;
  const Json json =
      Json::parse(run(generate({"-p", prompt, "-n", "8", "--stop", "213", "--json"})).out);
  EXPECT_EQ(json.at("text"), " 48");
  EXPECT_EQ(json.at("stop_reason"), "stop");
  EXPECT_EQ(json.at("stop"), "213");
  EXPECT_EQ(json.at("tokens").size(), 6u);
  EXPECT_EQ(run(generate({"-p", prompt, "-n", "8", "--stop", "213.x"})).out, " 48213.\n")
      << "what could have been one comes in the end";
  const Result empty = run(generate({"-p", prompt, "-n", "8", "--stop", ""}));
  EXPECT_EQ(empty.code, 2) << empty.err;
  EXPECT_TRUE(contains(empty.err, "stop string is empty")) << empty.err;
}

TEST(Generate, JsonIsOneObjectWithTheSameAnswer) {
  const Result r = run(generate({"-p", rome_prompt(20), "-n", "8", "--json", "--kv-budget", "96",
                                 "--kv-window", "16", "--kv-kernel", "15", "--kv-type", "f32"}));
  ASSERT_EQ(r.code, 0) << r.err;
  const Json json = Json::parse(r.out);
  EXPECT_EQ(json.at("text"), " 48213.\n");
  EXPECT_EQ(json.at("tokens").size(), 8u);
  EXPECT_EQ(json.at("stop_reason"), "length");
  const Json& kv = json.at("kv");
  ASSERT_EQ(kv.at("layers").size(), 6u);
  for (const Json& layer : kv.at("layers")) {
    EXPECT_EQ(layer.at("total"), json.at("prompt_tokens"));
    EXPECT_EQ(layer.at("kept"), Json({96, 96, 96}));
  }
  // A row is 6 layers of 3 heads of a K and a V of 32 f32 values and a position of 4 bytes.
  const int64_t row = 6 * 3 * (2 * 32 * 4 + 4);
  EXPECT_EQ(kv.at("bytes_after_compression"), 96 * row);
  EXPECT_EQ(kv.at("bytes_full"), json.at("prompt_tokens").get<int64_t>() * row);
  EXPECT_GE(kv.at("bytes_peak"), kv.at("bytes_after_compression"));
  EXPECT_LT(kv.at("bytes_peak"), kv.at("bytes_full"));
  EXPECT_EQ(json.at("timings").at("decode_steps"), 7);
  EXPECT_GT(json.at("timings").at("prefill_tokens_per_second"), 0);
  EXPECT_GT(json.at("timings").at("first_token_seconds"), 0);
  EXPECT_GT(json.at("peak_rss_bytes"), 1 << 20);
  EXPECT_EQ(json.at("settings").at("kv").at("budget"), 96);
}

TEST(Generate, AQuantizedCacheAnswersTheSameInHalfTheMemory) {
  for (const char* policy : {"snapkv", "full"}) {
    const Result r = run(
        generate({"-p", rome_prompt(20), "-n", "8", "--json", "--kv-budget", "96", "--kv-window",
                  "16", "--kv-kernel", "15", "--kv-type", "q8_0", "--kv-policy", policy}));
    ASSERT_EQ(r.code, 0) << r.err;
    const Json json = Json::parse(r.out);
    EXPECT_EQ(json.at("text"), " 48213.\n") << policy;
    EXPECT_EQ(json.at("settings").at("kv").at("type"), "q8_0");
    // A row is 6 layers of 3 heads of a K and a V of one block of 32 values and a position of 4
    // bytes.
    const int64_t row = 6 * 3 * (2 * 34 + 4);
    const Json& kv = json.at("kv");
    EXPECT_EQ(kv.at("bytes_full"), json.at("prompt_tokens").get<int64_t>() * row);
    const int64_t kept =
        policy == std::string("full") ? json.at("prompt_tokens").get<int64_t>() : 96;
    EXPECT_EQ(kv.at("bytes_after_compression"), kept * row);
  }
}

TEST(Generate, JsonIsUtf8WhateverTheModelWrites) {
  // At this temperature the model writes random byte tokens.
  const Result r =
      run({"generate", "-m", needle_model(), "-p", "x", "-n", "400", "--json", "--temp", "50",
           "--top-k", "0", "--top-p", "1", "--min-p", "0", "--ignore-eos"});
  ASSERT_EQ(r.code, 0) << r.err;
  const Json json = Json::parse(r.out);
  EXPECT_EQ(json.at("tokens").size(), 400u);
  EXPECT_TRUE(contains(r.out, "\xef\xbf\xbd"))
      << "no replacement character: a weaker test than meant";
}

TEST(Generate, FullPolicyKeepsEverything) {
  const Result r =
      run(generate({"-p", rome_prompt(20), "-n", "1", "--json", "--kv-policy", "full"}));
  ASSERT_EQ(r.code, 0) << r.err;
  const Json json = Json::parse(r.out);
  for (const Json& layer : json.at("kv").at("layers")) {
    for (const Json& kept : layer.at("kept")) EXPECT_EQ(kept, json.at("prompt_tokens"));
  }
}

TEST(Generate, SeedsRepeatAndDiffer) {
  const auto sample = [](const char* seed) {
    return run({"generate", "-m", needle_model(), "-p", "At noon", "-n", "40", "--temp", "1.5",
                "--seed", seed});
  };
  const Result a = sample("7"), b = sample("7"), c = sample("8");
  EXPECT_EQ(a.code, 0) << a.err;
  EXPECT_EQ(a.out, b.out);
  EXPECT_NE(a.out, c.out);
}

TEST(Generate, ZeroTokensOnlyReadsThePrompt) {
  const Result r = run(generate({"-p", rome_prompt(3), "-n", "0"}));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_TRUE(contains(r.err, "0 tokens")) << r.err;
}

TEST(Generate, StopsWhenTheContextIsFull) {
  const Result r = run(generate({"-p", "At noon", "-c", "40", "--ignore-eos", "--json"}));
  ASSERT_EQ(r.code, 0) << r.err;
  const Json json = Json::parse(r.out);
  EXPECT_EQ(json.at("stop_reason"), "context");
  // The last token is chosen from the logits of the 40th and needs no place itself.
  EXPECT_EQ(json.at("prompt_tokens").get<int>() + static_cast<int>(json.at("tokens").size()), 41);
  EXPECT_TRUE(contains(r.err, "the context is full")) << r.err;
}

TEST(Generate, AMissingGpuIsAnErrorOnlyWhenItWasAskedFor) {
  const Result r = run(generate({"-p", rome_prompt(8), "-n", "2", "--device", "cuda"}));
  if (r.code == 0) GTEST_SKIP() << "there is a GPU";
  EXPECT_TRUE(contains(r.err, "SNAPKV_CUDA") || contains(r.err, "no CUDA device")) << r.err;
  const Result automatic = run(generate({"-p", rome_prompt(8), "-n", "2", "--device", "auto"}));
  EXPECT_EQ(automatic.code, 0) << automatic.err;
  EXPECT_EQ(run(generate({"-p", "x", "--device", "tpu"})).code, 2);
}

TEST(Generate, ThreadsDoNotChangeTheAnswer) {
  const auto tokens = [](const char* n) {
    const Result r = run({"generate", "-m", needle_model(), "-p", rome_prompt(12), "-n", "30",
                          "--temp", "0", "--json", "-t", n});
    return Json::parse(r.out).at("tokens");
  };
  EXPECT_EQ(tokens("1"), tokens("2"));
}

TEST(Help, NamesEveryCommandAndGoesToStdout) {
  const Result r = run({"--help"});
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.err, "");
  for (const char* command : {"generate", "info", "demo", "explain"}) {
    EXPECT_TRUE(contains(r.out, command));
    const Result help = run({command, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_TRUE(contains(help.out, "--kv-budget")) << help.out;
  }
  const Result version = run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out.rfind("snapkv 0.", 0), 0u) << version.out;
}

}  // namespace generate_tests
}  // namespace snapkv::test
