// SPDX-License-Identifier: MIT
// Fields that change an answer: each endpoint obeys them or refuses them by name.
#include <gtest/gtest.h>

#include "snapkv/options.h"
#include "tests/server/request_support.h"

namespace snapkv::test {
namespace {

const std::pair<ReadExchange, std::string> kBodies[] = {
    {read_chat_completion, R"({"messages": [{"role": "user", "content": "x"}])"},
    {read_completion, R"({"prompt": "x")"},
    {read_response, R"({"input": "x")"},
    {read_messages, R"({"max_tokens": 5, "messages": [{"role": "user", "content": "x"}])"}};

TEST_F(Requests, EveryEndpointThatGeneratesHasGrammars) {
  const std::string schema = R"({"type": "object", "properties": {"a": {"type": "integer"}}})";
  const std::string expected = Grammar::from_json_schema(schema, "schema").source();
  for (const auto& [read_exchange, body] : kBodies) {
    EXPECT_EQ(read(read_exchange, body + "}").grammar, nullptr) << body;
    Request request = read(read_exchange, body + R"(, "grammar": "root ::= \"yes\""})");
    ASSERT_NE(request.grammar, nullptr) << body;
    EXPECT_NE(request.grammar->source().find("yes"), std::string::npos);
    for (
        const std::string& field : std::vector<std::string>{
            R"("json_schema": )" + schema,
            R"("response_format": {"type": "json_schema", "schema": )" + schema + "}",
            R"("response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": )" +
                schema + "}}"}) {
      request = read(read_exchange, body + ", " + field + "}");
      ASSERT_NE(request.grammar, nullptr) << body << field;
      EXPECT_EQ(request.grammar->source(), expected);
    }
    const std::string twice =
        error(read_exchange, body + R"(, "json_schema": {}, "grammar": "root ::= \"a\""})");
    EXPECT_EQ(twice, "json_schema| 'json_schema': the answer's form is given twice");
  }
}

TEST_F(Requests, FormatsHaveTheirApisNames) {
  const std::string format = R"({"type": "json_schema", "schema": {"type": "integer"}})";
  const std::string expected = Grammar::from_json_schema(R"({"type": "integer"})").source();
  const auto& [read_body, message] = kBodies[3];
  const auto& [read_input, response] = kBodies[2];
  for (const std::string& field : std::vector<std::string>{
           R"("output_config": {"format": )" + format + "}", R"("output_format": )" + format}) {
    const Request request = read(read_body, message + ", " + field + "}");
    ASSERT_NE(request.grammar, nullptr) << field;
    EXPECT_EQ(request.grammar->source(), expected);
  }
  EXPECT_TRUE(error(read_body, message + R"(, "output_config": {"format": )" + format +
                                   R"(}, "output_format": )" + format + "}")
                  .starts_with("output_format| "));
  EXPECT_TRUE(error(read_body, message + R"(, "output_config": {"format": {"type": "xml"}}})")
                  .starts_with("output_config.format.type| "));
  EXPECT_TRUE(error(read_input, response + R"(, "grammar": "root ::= \"a\"", "text": {"format": )" +
                                    format + "}}")
                  .starts_with("text.format| "));
  EXPECT_TRUE(error(read_input, response + R"(, "response_format": )" + format +
                                    R"(, "text": {"format": )" + format + "}}")
                  .starts_with("text.format| "));
}

TEST_F(Requests, HaveEveryOptionOfTheSampler) {
  const OptionTable<SamplerConfig>& table = sampler_option_table();
  for (const auto& [read_exchange, body] : kBodies) {
    for (const OptionInfo& info : table.infos()) {
      const bool is_whole = info.type == OptionInfo::Type::integer;
      const std::string value = is_whole ? "3" : "0.5";
      const Request request = read(read_exchange, body + ", \"" + info.name + "\": " + value + "}");
      EXPECT_EQ(value_text(table.get(request.sampler, info.name)), value) << info.name;
      const std::string text = error(read_exchange, body + ", \"" + info.name + "\": \"x\"}");
      EXPECT_TRUE(text.starts_with(info.name + "| ")) << text;
    }
  }
}

TEST_F(Requests, SayWhetherTokensAreGuessed) {
  for (const auto& [read_exchange, body] : kBodies) {
    const Request request = read(
        read_exchange, body + R"(, "draft": "lookup", "draft_max": 3, "draft_min": 1})");
    EXPECT_EQ(request.session.draft, Draft::lookup);
    EXPECT_EQ(request.session.draft_max, 3);
    EXPECT_EQ(request.session.draft_min, 1);
    EXPECT_EQ(read(read_exchange, body + R"(, "draft": "off"})").session.draft, Draft::off);
    EXPECT_EQ(read(read_exchange, body + R"(, "draft": "self"})").session.draft, Draft::self);
    EXPECT_TRUE(error(read_exchange, body + R"(, "draft": "x"})").starts_with("draft| "));
    EXPECT_TRUE(error(read_exchange, body + R"(, "draft_max": 16})").starts_with("draft_max| "));
    EXPECT_NE(error(read_exchange, body + R"(, "draft_max": 3, "draft_min": 4})").find("draft_min"),
              std::string::npos);
  }
}

TEST_F(Requests, ReadVllmsStructuredOutputs) {
  const std::string schema = R"({"type": "integer"})";
  const std::string expected = Grammar::from_json_schema(schema).source();
  for (const auto& [read_exchange, body] : kBodies) {
    for (const std::string& field :
         {R"("guided_json": )" + schema, std::string(R"("guided_json": "{\"type\": \"integer\"}")"),
          R"("structured_outputs": {"json": )" + schema + "}"}) {
      const Request request = read(read_exchange, body + ", " + field + "}");
      ASSERT_NE(request.grammar, nullptr) << field;
      EXPECT_EQ(request.grammar->source(), expected) << field;
    }
    const auto source = [&, &read_one = read_exchange, &begin = body](const std::string& field) {
      return read(read_one, begin + ", " + field + "}").grammar->source();
    };
    EXPECT_EQ(source(R"("guided_choice": ["yes", "no"])"), R"(root ::= "yes" | "no")");
    EXPECT_EQ(source(R"("structured_outputs": {"choice": ["a"]})"), R"(root ::= "a")");
    EXPECT_EQ(source(R"("guided_grammar": "root ::= [0-9]")"), "root ::= [0-9]");
    const auto refused = [&, &read_one = read_exchange, &begin = body](const std::string& field) {
      return error(read_one, begin + ", " + field + "}");
    };
    EXPECT_EQ(source(R"("guided_regex": "[0-9]+")"), Grammar::from_regex("[0-9]+").source());
    EXPECT_EQ(source(R"("structured_outputs": {"regex": "a|b"})"),
              Grammar::from_regex("a|b").source());
    EXPECT_TRUE(refused(R"x("guided_regex": "(?=a)")x").starts_with("guided_regex| "));
    EXPECT_TRUE(refused(R"("structured_outputs": {"structural_tag": "{}"})")
                    .starts_with("structured_outputs.structural_tag| "));
    EXPECT_TRUE(refused(R"("guided_choice": [])").starts_with("guided_choice| "));
    EXPECT_TRUE(refused(R"("guided_choice": [1])").starts_with("guided_choice| "));
    EXPECT_TRUE(refused(R"("guided_json": "{")").starts_with("guided_json| "));
    EXPECT_TRUE(refused(R"("guided_choice": ["a"], "grammar": "root ::= \"a\"")")
                    .starts_with("guided_choice| "));
  }
}

TEST_F(Requests, WhatWouldChangeTheAnswerIsNotIgnored) {
  for (const auto& [read_exchange, body] : kBodies) {
    for (const auto& [field, value] : std::vector<std::pair<std::string, std::string>>{
             {"dynatemp_range", "0.5"},
             {"dry_multiplier", "0.8"},
             {"xtc_probability", "0.5"},
             {"mirostat", "2"},
             {"top_n_sigma", "1"},
             {"min_keep", "3"},
             {"n_probs", "2"},
             {"n_indent", "4"},
             {"t_max_predict_ms", "100"},
             {"lora", R"([{"id": 0, "scale": 1}])"},
             {"samplers", R"(["temperature", "top_k"])"}}) {
      const std::string text = error(read_exchange, body + ", \"" + field + "\": " + value + "}");
      EXPECT_TRUE(text.starts_with(field + "| '" + field + "': ")) << body << text;
    }
    // All settings that a client of llama-server may send, with their default values.
    EXPECT_FALSE(read(read_exchange, body + R"(, "typical_p": 1.0, "dynatemp_range": 0.0,
      "dynatemp_exponent": 1.0, "dry_multiplier": 0, "dry_base": 1.75, "xtc_probability": 0,
      "xtc_threshold": 0.1, "mirostat": 0, "mirostat_tau": 5.0, "top_n_sigma": -1, "min_keep": 0,
      "n_probs": 0, "n_keep": 0, "t_max_predict_ms": -1, "lora": [], "samplers": ["penalties",
      "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"],
      "timings_per_token": true, "user": "me", "metadata": {"a": "b"}, "id_slot": -1})")
                     .prompt.tokens.empty());
    EXPECT_FALSE(read(read_exchange, body + R"(, "cache_prompt": false})").reuses);
    EXPECT_TRUE(read(read_exchange, body + R"(, "cache_prompt": true})").reuses);
  }
  const auto refused = [&](size_t api, const std::string& members, const std::string& param) {
    const std::string text = error(kBodies[api].first, kBodies[api].second + ", " + members + "}");
    EXPECT_TRUE(text.starts_with(param + "| ")) << members << " gives " << text;
  };
  refused(3, R"("container": "c_1")", "container");
  refused(3, R"("mcp_servers": [{"type": "url", "url": "u", "name": "n"}])", "mcp_servers");
  EXPECT_EQ(error(kBodies[3].first, kBodies[3].second + R"(, "mcp_servers": [],
    "context_management": {"edits": [{"type": "clear_thinking_20251015"}]}})"),
            "accepted");
  EXPECT_EQ(error(kBodies[2].first, kBodies[2].second + R"(, "truncation": "disabled",
    "text": {"verbosity": "medium"}, "store": true, "service_tier": "auto"})"),
            "accepted");
}

TEST_F(Requests, OnlyCompletionsMayHaveNoTokens) {
  EXPECT_EQ(read(read_completion, R"({"prompt": "x", "max_tokens": 0})").max_tokens, 0);
  EXPECT_EQ(read(read_completion, R"({"prompt": "x", "n_predict": -1})").max_tokens, -1);
  expect_error(R"("max_tokens": 0)", "max_tokens", "at least 1 token");
  expect_error(R"("max_completion_tokens": 0)", "max_completion_tokens", "at least 1 token");
  EXPECT_EQ(chat(R"("n_predict": 7)").max_tokens, 7);
  EXPECT_TRUE(error(read_response, R"({"input": "x", "max_output_tokens": 0})")
                  .starts_with("max_output_tokens| "));
  EXPECT_TRUE(
      error(read_messages, R"({"max_tokens": 0, "messages": [{"role": "user", "content": "x"}]})")
          .starts_with("max_tokens| "));
}

TEST_F(Requests, MetadataOfResponsesIsBounded) {
  const auto with = [&](const Json& metadata) {
    return error(read_response, Json{{"input", "x"}, {"metadata", metadata}}.dump());
  };
  Json pairs = Json::object();
  for (int i = 0; i < 16; ++i) pairs["key" + std::to_string(i)] = std::string(512, 'v');
  EXPECT_EQ(with(pairs), "accepted");
  pairs["one more"] = "";
  EXPECT_NE(with(pairs).find("metadata| 'metadata': at most 16 pairs"), std::string::npos);
  std::string umlauts;
  for (int i = 0; i < 512; ++i) umlauts += "\xc3\xa4";
  EXPECT_EQ(with({{"a", umlauts}}), "accepted");
  EXPECT_NE(with({{"a", umlauts + "x"}}).find("at most 512 characters"), std::string::npos);
  EXPECT_NE(with({{"a", 5}}).find("must be a string"), std::string::npos);
  EXPECT_NE(with({{std::string(65, 'k'), "v"}}).find("at most 64 characters"), std::string::npos);
}

TEST_F(Requests, EffortsReachTheTemplate) {
  options_.chat_template = ChatTemplate::parse(
      "{{ reasoning_effort }}{{ enable_thinking }}{{ messages[0].content }}", "effort");
  const std::pair<size_t, const char*> kEfforts[] = {
      {0, R"("reasoning_effort": "%")"},
      {2, R"("reasoning": {"effort": "%", "summary": "auto"})"},
      {3, R"("output_config": {"effort": "%"})"}};
  for (const auto& [api, members] : kEfforts) {
    const auto body = [begin = kBodies[api].second, end = members](const std::string& effort) {
      std::string all = begin + ", " + end + "}";
      return all.replace(all.find('%'), 1, effort);
    };
    EXPECT_EQ(read(kBodies[api].first, body("low")).prompt.chat.text, "lowx");
    EXPECT_EQ(read(kBodies[api].first, body("none")).prompt.chat.text, "noneFalsex");
    EXPECT_NE(error(kBodies[api].first, body("huge")).find("not \"huge\""), std::string::npos);
  }
  EXPECT_EQ(chat(R"("reasoning_effort": "low",
                    "chat_template_kwargs": {"reasoning_effort": "high"})")
                .prompt.chat.text,
            "highHi");
}

TEST_F(Requests, ReasoningIsLeftInTheAnswerWhereItShallBe) {
  const auto splits = [&](const std::string& members) {
    const ApiContext context{engine_, options_};
    return read_chat_completion(parse_body(kBodies[0].second + members + "}"), context)
        .answers->options()
        .syntax.has_reasoning;
  };
  EXPECT_TRUE(splits(""));
  EXPECT_TRUE(splits(R"(, "reasoning_format": "deepseek")"));
  EXPECT_FALSE(splits(R"(, "reasoning_format": "none")"));
  expect_error(R"("reasoning_format": "xml")", "reasoning_format", "auto, deepseek or none");
}

TEST_F(Requests, LogprobsOfResponsesAreAlsoIncluded) {
  const auto top = [&](const std::string& members) {
    return read(read_response, kBodies[2].second + members + "}").top_logprobs;
  };
  EXPECT_EQ(top(""), -1);
  EXPECT_EQ(top(R"(, "top_logprobs": 3)"), 3);
  EXPECT_EQ(top(R"(, "include": ["message.output_text.logprobs"])"), 0);
  EXPECT_EQ(top(R"(, "include": ["reasoning.encrypted_content"])"), -1);
}

}  // namespace
}  // namespace snapkv::test
