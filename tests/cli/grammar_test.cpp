// SPDX-License-Identifier: MIT
// snapkv generate with a grammar or a JSON schema, and the options for biases and penalties.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "run_process.h"

namespace snapkv::test {
namespace grammar_tests {

using Json = nlohmann::json;

Result generate(std::vector<std::string> more) {
  std::vector<std::string> args = {"generate", "-m", needle_model()};
  const auto add_default = [&](const char* option, const char* value) {
    if (std::find(more.begin(), more.end(), option) == more.end()) {
      args.insert(args.end(), {option, value});
    }
  };
  add_default("--temp", "0");
  add_default("-n", "100");
  args.insert(args.end(), more.begin(), more.end());
  return run(args);
}

void expect_refused(std::vector<std::string> more, const std::vector<std::string>& parts) {
  more.insert(more.end(), {"-p", "x"});
  const Result r = generate(more);
  EXPECT_EQ(r.code, 2) << more[1] << ": " << r.err;
  EXPECT_EQ(r.out, "");
  for (const std::string& part : parts) {
    EXPECT_NE(r.err.find(part), std::string::npos) << part << " in\n" << r.err;
  }
}

TEST(GrammarOptions, TheAnswerIsOneThatTheGrammarAllows) {
  const Result r =
      generate({"-p", rome_prompt(8), "--grammar", "root ::= \"The code is\" [^\\n]{5,9} \"!\""});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out.rfind("The code is", 0), 0u) << r.out;
  EXPECT_TRUE(r.out.ends_with("!\n")) << r.out;
  EXPECT_NE(r.err.find("the model ended the answer"), std::string::npos) << r.err;
  // If the grammar allows the right answer, the model gives it.
  const Result free =
      generate({"-p", rome_prompt(8), "--grammar", "root ::= \" \" [0-9]+ \".\" | \"no\""});
  EXPECT_EQ(free.out, " 48213.\n") << free.err;
}

TEST(GrammarOptions, ASchemaMakesJson) {
  const std::string schema =
      R"({"type": "object", "properties": {"code": {"type": "integer", "maximum": 99999, "minimum": 10000},)"
      R"( "city": {"enum": ["Rome", "Paris"]}}, "required": ["code", "city"]})";
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--json-schema", schema},
        {"-j", schema},
        {"--json-schema-file", make_file("schema.json", schema)},
        {"-jf", make_file("schema.json", schema)}}) {
    std::vector<std::string> args = {"-p", rome_prompt(8), "--json"};
    args.insert(args.end(), options.begin(), options.end());
    const Result r = generate(args);
    ASSERT_EQ(r.code, 0) << r.err;
    const Json report = Json::parse(r.out);
    const Json answer = Json::parse(report.at("text").get<std::string>());
    EXPECT_GE(answer.at("code"), 10000);
    EXPECT_TRUE(answer.at("city") == "Rome" || answer.at("city") == "Paris") << answer;
    EXPECT_EQ(report.at("stop_reason"), "eos");
    EXPECT_EQ(report.at("settings").at("grammar").get<std::string>().rfind("root ::= ", 0), 0u);
  }
}

TEST(GrammarOptions, SeveralAnswersAndBothCaches) {
  const std::string file = make_file("g.gbnf", "root ::= \" \" [a-z]{3,8} \".\"");
  const Result compared =
      generate({"-p", rome_prompt(8), "--grammar-file", file, "--compare", "full"});
  EXPECT_EQ(compared.code, 0) << compared.err;
  for (const char* seed : {"1", "2", "3"}) {
    const Result r =
        generate({"-p", rome_prompt(2), "--grammar-file", file, "--temp", "2", "--seed", seed});
    EXPECT_EQ(r.code, 0) << r.err;
    ASSERT_GE(r.out.size(), 5u) << r.out;
    EXPECT_EQ(r.out.front(), ' ');
    EXPECT_EQ(r.out.find_first_not_of("abcdefghijklmnopqrstuvwxyz", 1), r.out.size() - 2) << r.out;
  }
}

TEST(GrammarOptions, BadOnesAreRefusedBeforeAModelIsRead) {
  expect_refused({"--grammar", "root ::= ("}, {"--grammar: line 1, column 11", "expected )"});
  expect_refused({"--grammar-file", make_file("bad.gbnf", "root = 1")},
                 {"bad.gbnf: line 1", "::="});
  expect_refused({"--json-schema", "{"}, {"--json-schema: no JSON"});
  expect_refused({"-j", R"({"type": "text"})"}, {"--json-schema: #: type \"text\""});
  expect_refused({"--json-schema-file", make_file("s.json", R"({"not": {}})")},
                 {"s.json: #", "not"});
  expect_refused({"--grammar", "root ::= \"a\"", "-j", "{}"}, {"--grammar", "excludes"});
  expect_refused({"--grammar", "root ::= \"a\"", "--ignore-eos"}, {"--ignore-eos", "grammar"});
  const Result missing = generate({"-p", "x", "--grammar-file", "/nowhere/g.gbnf"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.err.find("/nowhere/g.gbnf"), std::string::npos) << missing.err;
}

TEST(SamplingOptions, BiasesAndPenaltiesChangeTheAnswer) {
  const Result plain = generate({"-p", rome_prompt(8), "--json", "-n", "3"});
  const Json first = Json::parse(plain.out);
  const int id = first.at("tokens").at(0);
  const Result banned = generate({"-p", rome_prompt(8), "--json", "-n", "3", "--logit-bias",
                                  std::to_string(id) + "-inf", "-l", "7+0.5"});
  ASSERT_EQ(banned.code, 0) << banned.err;
  const Json report = Json::parse(banned.out);
  for (const Json& token : report.at("tokens")) EXPECT_NE(token, id);
  const Json expected = {{{"id", id}, {"bias", "-inf"}}, {{"id", 7}, {"bias", 0.5}}};
  EXPECT_EQ(report.at("settings").at("sampler").at("logit_bias"), expected);
  const Result forced = generate({"-p", rome_prompt(8), "--json", "-n", "3", "-l", "7+100"});
  EXPECT_EQ(Json::parse(forced.out).at("tokens"), (Json{7, 7, 7})) << forced.err;
  const Result penalized = generate({"-p", "x", "--json", "-n", "3", "-l", "7+30", "-l", "8+29",
                                     "--frequency-penalty", "2", "--presence-penalty", "-1.5"});
  const Json sampler = Json::parse(penalized.out).at("settings").at("sampler");
  EXPECT_EQ(sampler.at("frequency_penalty"), 2.0);
  EXPECT_EQ(sampler.at("presence_penalty"), -1.5);
}

TEST(SamplingOptions, BadBiasesAreRefused) {
  for (const char* text :
       {"7", "+1", "7+", "x+1", "7+1x", "-7+1", "7+101", "7+inf", "7+-1", "7--1", "7-nan", ""}) {
    expect_refused({"--logit-bias", text}, {"--logit-bias", "token's number"});
  }
  expect_refused({"--presence-penalty", "2.5"}, {"--presence-penalty", "'2.5'", "-2"});
}

}  // namespace grammar_tests
}  // namespace snapkv::test
