// SPDX-License-Identifier: MIT
// snapkv inspect: its data, its page and its errors. web/test/browser tests what the page shows.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "run_process.h"

namespace snapkv::test {
namespace inspect_tests {

using Json = nlohmann::json;

TEST(InspectCommand, WritesData) {
  const std::string path = make_folder() + "/data.json";
  const Result r = run({"inspect", "-m", needle_model(), "-p", rome_prompt(20), "--json", path,
                        "--kv-budget", "64", "--kv-window", "16", "--spotlight", "3,5-9"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_NE(r.err.find("wrote " + path), std::string::npos) << r.err;
  const Json data = Json::parse(read_file(path));
  EXPECT_EQ(data.at("kind"), "inspect");
  EXPECT_EQ(data.at("configuration").at("budget"), 64);
  EXPECT_EQ(data.at("window"), 16);
  EXPECT_EQ(data.at("kept").size(), 18u);
  EXPECT_EQ(data.at("kept")[0].size(), data.at("n_columns").get<size_t>());
  int n_chosen = 0;
  for (const Json& s : data.at("spotlights")) n_chosen += s.at("group") == "chosen" ? 1 : 0;
  EXPECT_EQ(n_chosen, 2);
}

TEST(InspectCommand, ReadsThePromptAsAMessage) {
  const std::string path = make_folder() + "/data.json";
  const Result r = run({"inspect", "-m", needle_model(), "-p", rome_prompt(12), "--json", path,
                        "--kv-budget", "64", "--kv-window", "16", "--chat", "--chat-template",
                        "chatml", "--system", "Be brief."});
  ASSERT_EQ(r.code, 0) << r.err;
  const Json data = Json::parse(read_file(path));
  std::string text;
  for (const Json& part : data.at("text")) {
    for (const Json& piece : part.at("pieces")) text += piece.get<std::string>();
  }
  const std::string chat = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n" +
                           rome_prompt(12) + "<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_TRUE(text.ends_with(chat)) << text;
  EXPECT_EQ(data.at("window"), 16);
}

TEST(InspectCommand, RefusesWhatCantWork) {
  const std::string json = make_folder() + "/data.json";
  const auto code = [&](std::vector<std::string> more) {
    std::vector<std::string> args = {"inspect", "-m", needle_model()};
    args.insert(args.end(), more.begin(), more.end());
    return run(args).code;
  };
  EXPECT_EQ(code({"-p", "hello"}), 2) << "nothing to write";
  EXPECT_EQ(code({"--json", json}), 2) << "no prompt";
  EXPECT_EQ(code({"-p", "hello", "--json", json, "--spotlight", "5-3"}), 2);
  EXPECT_EQ(code({"-p", "hello", "--json", json, "--spotlight", "x"}), 2);
  EXPECT_EQ(code({"-p", "hello", "--json", json, "--spotlight", "999"}), 2);
  EXPECT_EQ(code({"-p", "hello", "--json", json, "--chat"}), 2) << "the model has no template";
  EXPECT_EQ(code({"-p", "hello", "--json", json, "--chat-template", "chatml"}), 2) << "no --chat";
  EXPECT_EQ(code({"-p", "hello", "-o", make_folder() + "/missing/page.html"}), 1);
  EXPECT_EQ(code({"-p", "hello", "--json", make_folder() + "/missing/data.json"}), 1);
}

}  // namespace inspect_tests
}  // namespace snapkv::test
