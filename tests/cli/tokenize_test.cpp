// SPDX-License-Identifier: MIT
// snapkv tokenize and detokenize: their output, and texts that come back unchanged.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "run_process.h"

namespace snapkv::test {
namespace tokenize_tests {

using Json = nlohmann::json;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Result tokenize(std::vector<std::string> more, const std::string& input = "") {
  Command command;
  command.args = {"tokenize", "-m", needle_model()};
  command.args.insert(command.args.end(), more.begin(), more.end());
  command.input = input;
  return run(command);
}

Result detokenize(std::vector<std::string> more, const std::string& input = "") {
  Command command;
  command.args = {"detokenize", "-m", needle_model()};
  command.args.insert(command.args.end(), more.begin(), more.end());
  command.input = input;
  return run(command);
}

TEST(Tokenize, PrintsIdsAndPieces) {
  const Result r = tokenize({"-p", "The secret\n"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.err, "");
  EXPECT_EQ(r.out,
            "       1 -> '<s>'\n     278 -> ' The'\n     286 -> ' secret'\n       3 -> '\\n'\n");
  EXPECT_EQ(tokenize({"-p", "The secret\n", "--ids"}).out, "[1, 278, 286, 3]\n");
  EXPECT_EQ(tokenize({"-p", "The secret\n", "--count"}).out, "4\n");
  EXPECT_EQ(tokenize({"-p", "The secret\n", "--ids", "--no-bos"}).out, "[278, 286, 3]\n");
  EXPECT_EQ(tokenize({"-p", "", "--ids", "--no-bos"}).out, "[]\n");
}

TEST(Tokenize, ControlTokensInTheTextOnlyWhereTheyAreWanted) {
  EXPECT_EQ(tokenize({"-p", "</s>", "--ids"}).out, "[1, 2]\n");
  const Json plain = Json::parse(tokenize({"-p", "</s>", "--json", "--no-special"}).out);
  for (const Json& token : plain.at("tokens")) {
    EXPECT_EQ(token.at("control"), token.at("id") == 1) << token;
  }
  EXPECT_GT(plain.at("n_tokens"), 2);
}

TEST(Tokenize, TheFileIsReadAsItIs) {
  const Result r = tokenize({"-f", "-", "--json"}, "The \xff\x1b secret\n");
  ASSERT_EQ(r.code, 0) << r.err;
  const Json json = Json::parse(r.out);
  EXPECT_EQ(json.at("n_vocab"), 1024);
  EXPECT_EQ(json.at("tokenizer"), "SentencePiece BPE");
  EXPECT_EQ(json.at("tokens").back().at("piece"), "\n") << "the newline at the end counts";
  EXPECT_EQ(json.at("n_tokens"), json.at("tokens").size());
  EXPECT_FALSE(contains(tokenize({"-p", "a\x1b[31m"}).out, "\x1b"));
}

TEST(Tokenize, JsonLines) {
  const Result r =
      tokenize({"-f", "-", "--json-lines", "--no-bos"}, "\"The secret\\n\"\n\"\"\n\"The\"");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, "[278, 286, 3]\n[]\n[278]\n");
  const Result bad = tokenize({"-f", "-", "--json-lines"}, "\"a\"\nb\n");
  EXPECT_EQ(bad.code, 2);
  EXPECT_TRUE(contains(bad.err, "line 2")) << bad.err;
  EXPECT_EQ(detokenize({"-f", "-", "--json-lines"}, "[278, 286, 3]\n[]\n").out,
            "\"The secret\\n\"\n\"\"\n");
}

TEST(Tokenize, TextsComeBackByteForByte) {
  const std::string texts[] = {"The secret number of Rome is 48213.\n",
                               "",
                               " a  b ",
                               "caf\xc3\xa9 \xf0\x9f\x9a\x80",
                               "\xff\xfe latin \xe9",
                               "\t\r\n"};
  for (const std::string& text : texts) {
    const Result ids = tokenize({"-f", "-", "--ids"}, text);
    const Result back = detokenize({"-f", "-"}, ids.out);
    EXPECT_EQ(back.code, 0) << back.err;
    EXPECT_EQ(back.out, text);
  }
}

TEST(Detokenize, ControlTokensAndJson) {
  EXPECT_EQ(detokenize({"-i", "1 278,2"}).out, "The");
  EXPECT_EQ(detokenize({"-i", "[1, 278, 2]", "--control"}).out, "<s>The</s>");
  const Json json = Json::parse(detokenize({"-i", "278", "--json"}).out);
  EXPECT_EQ(json.at("text"), "The");
  EXPECT_EQ(json.at("n_tokens"), 1);
}

TEST(Tokenize, WhatCannotWorkSaysWhy) {
  const std::pair<Result, std::vector<std::string>> cases[] = {
      {tokenize({}), {"-p TEXT", "-f FILE"}},
      {tokenize({"-p", "a", "-f", "-"}), {"two texts"}},
      {tokenize({"-p", "a", "--ids", "--json"}), {"--ids", "--json"}},
      {run({"tokenize", "-p", "a"}), {"no model"}},
      {detokenize({"-i", "1 x"}), {"'x'", "token id"}},
      {detokenize({"-i", "99999999999"}), {"99999999999"}},
      {detokenize({"-i", "1024"}), {"1024"}},
      {detokenize({"-i", "-1"}), {"-1"}},
  };
  for (const auto& [result, words] : cases) {
    EXPECT_EQ(result.code, 2) << result.err;
    for (const std::string& word : words) EXPECT_TRUE(contains(result.err, word)) << result.err;
  }
  const Result missing = run({"tokenize", "-m", "/no/such.gguf", "-p", "a"});
  EXPECT_EQ(missing.code, 1) << missing.err;
  EXPECT_TRUE(contains(missing.err, "/no/such.gguf")) << missing.err;
}

TEST(Tokenize, ReadsATokenizerJsonAndItsFolder) {
  const std::string path = make_file("tokenizer.json", R"({"model": {"type": "BPE",
    "vocab": {"a": 0, "b": 1, "ab": 2, "<e>": 3}, "merges": ["a b"]},
    "added_tokens": [{"id": 3, "content": "<e>", "special": true}], "decoder": {"type": "Fuse"}})");
  EXPECT_EQ(run({"tokenize", "-m", path, "-p", "abba<e>", "--ids"}).out, "[2, 1, 0, 3]\n");
  const std::string folder = path.substr(0, path.rfind('/'));
  EXPECT_EQ(run({"tokenize", "-m", folder, "-p", "ab", "--ids"}).out, "[2]\n");
  EXPECT_EQ(run({"detokenize", "-m", folder, "-i", "2 1"}).out, "abb");
  const Result bad = run({"tokenize", "-m", make_file("x.json", "{\"a\": }"), "-p", "ab"});
  EXPECT_EQ(bad.code, 3) << bad.err;
  EXPECT_TRUE(contains(bad.err, "x.json") && contains(bad.err, "byte 7")) << bad.err;
}

}  // namespace tokenize_tests
}  // namespace snapkv::test
