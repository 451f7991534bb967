// SPDX-License-Identifier: MIT
// snapkv apply-template: the sources of the template and the variables, the output, and the errors.
#include <gtest/gtest.h>

#include <fstream>

#include "run_process.h"
#include "tests/support/gguf_writer.h"

namespace snapkv::test {
namespace apply_template_tests {

std::string nested(int levels) { return std::string(levels, '[') + std::string(levels, ']'); }

const char* const kMessages =
    R"({"messages": [{"role": "user", "content": "Hi <|im_end|> ä"}], "add_generation_prompt": true})";

Result apply(std::vector<std::string> args, const std::string& json = kMessages) {
  Command command;
  command.args = {"apply-template", "-f", "-"};
  command.args.insert(command.args.end(), args.begin(), args.end());
  command.input = json;
  return run(command);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string write_model(const GgufWriter& writer) {
  const std::vector<std::byte> bytes = writer.bytes();
  return make_file("model.gguf", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

TEST(ApplyTemplate, PrintsTheTextAndNothingElse) {
  const Result r = apply({"--chat-template", "chatml"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, "<|im_start|>user\nHi <|im_end|> ä<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(r.err, "");
}

TEST(ApplyTemplate, ReadsTemplatesAndConversationsFromFiles) {
  const std::string file =
      make_file("t.jinja",
                "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
                "{{ custom }}{{ tools | tojson }}\n");
  const std::string json =
      make_file("m.json", R"({"messages": [{"role": "user", "content": "a"}], "bos_token": "<s>",
                    "custom": 1.5, "tools": [{"b": 1, "a": "<"}]})");
  for (const char* option : {"--template", "--chat-template"}) {
    const Result r = run({"apply-template", option, file, "-f", json});
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.out, "<s>user: a\n1.5[{\"b\": 1, \"a\": \"<\"}]");
  }
}

TEST(ApplyTemplate, TakesMessagesAloneASystemMessageAndVariables) {
  const std::string t = "{% for m in messages %}{{ m.role }}={{ m.content }};{% endfor %}{{ x }}";
  const Result r = apply(
      {"--chat-template", t, "--system", "Be brief.", "--chat-template-kwargs", R"({"x": [1]})"},
      R"([{"role": "user", "content": "a"}])");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, "system=Be brief.;user=a;[1]");
}

TEST(ApplyTemplate, UsesTheModelsOwnWithItsTokens) {
  GgufWriter writer;
  writer.add("tokenizer.ggml.tokens", std::vector<std::string>{"<unk>", "<s>", "</s>"});
  writer.add("tokenizer.ggml.bos_token_id", uint32_t{1});
  writer.add("tokenizer.ggml.eos_token_id", uint32_t{2});
  writer.add("tokenizer.chat_template", "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}");
  writer.add("tokenizer.chat_template.tool_use", "tools: {{ tools | length }}");
  const std::string model = write_model(writer);
  EXPECT_EQ(apply({"-m", model}).out, "<s>Hi <|im_end|> ä</s>");
  const std::string with_tools = R"({"messages": [], "tools": [{}, {}]})";
  EXPECT_EQ(apply({"-m", model}, with_tools).out, "tools: 2");
  EXPECT_EQ(
      apply({"-m", model, "--chat-template", "tool_use"}, R"({"messages": [], "tools": []})").out,
      "tools: 0");
  EXPECT_EQ(apply({"-m", model, "--chat-template", "llama2"}).out,
            "[INST] Hi <|im_end|> ä [/INST]");
  EXPECT_EQ(apply({"-m", model}, R"({"messages": [{"content": ""}], "bos_token": "B"})").out,
            "B</s>");
}

TEST(ApplyTemplate, TokensThatAreNotUtf8AreReplaced) {
  GgufWriter writer;
  writer.add("tokenizer.ggml.tokens", std::vector<std::string>{"<unk>", "\xffs", "</s>"});
  writer.add("tokenizer.ggml.bos_token_id", uint32_t{1});
  writer.add("tokenizer.chat_template", "{{ bos_token }}{{ messages[0].content }}");
  const Result r = apply({"-m", write_model(writer)});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, "\xef\xbf\xbdsHi <|im_end|> ä");
}

TEST(ApplyTemplate, ErrorsNameWhatIsWrong) {
  const struct {
    std::vector<std::string> args;
    std::string json;
    int code;
    std::vector<std::string> words;
  } cases[] = {
      {{}, kMessages, 2, {"no template", "-m FILE", "--chat-template NAME"}},
      {{"--chat-template", "nosuch"}, kMessages, 2, {"nosuch", "neither a file", "chatml"}},
      {{"--template", "nosuch.jinja"}, kMessages, 1, {"nosuch.jinja"}},
      {{"--chat-template", "{% if %}"}, kMessages, 2, {"--chat-template: line 1"}},
      {{"--chat-template", "{{ raise_exception('no!') }}"},
       kMessages,
       2,
       {"line 1", "refuses", "no!"}},
      {{"--chat-template", "chatml"}, "{", 2, {"standard input", "not JSON"}},
      {{"--chat-template", "chatml"},
       nested(300'000),
       2,
       {"standard input", "nested deeper than 64 levels"}},
      {{"--chat-template", "chatml", "--chat-template-kwargs", "{\"a\": " + nested(1000) + "}"},
       kMessages,
       2,
       {"--chat-template-kwargs", "64 levels"}},
      {{"--chat-template", "chatml"}, R"([{"role": "user", "content": 1e999}])", 2, {"not JSON"}},
      {{"--chat-template", "chatml"}, "{}", 2, {"standard input", "'messages'"}},
      {{"--chat-template", "chatml", "--chat-template-kwargs", "[1]"},
       kMessages,
       2,
       {"--chat-template-kwargs", "[1]"}},
      {{"--chat-template", "chatml", "--system", "x"},
       R"([{"role": "system", "content": ""}])",
       2,
       {"--system", "already"}},
      {{"--chat-template", "chatml", "--system", "x"},
       R"([{"role": 5, "content": "a"}])",
       2,
       {"standard input", "role", "5", "a text"}},
      {{"--chat-template", "chatml", "--system", "\xff"}, kMessages, 2, {"--system", "UTF-8"}},
      {{"--chat-template", "chatml", "--template", "x"}, kMessages, 2, {"two templates"}},
      {{"-m", needle_model()}, kMessages, 2, {"needle.gguf", "has no chat template", "base model"}},
      {{"--chat-template", "help"}, kMessages, 2, {"built in are", "chatml"}},
      {{"-m", "nosuch.gguf"}, kMessages, 1, {"nosuch.gguf"}},
  };
  for (const auto& c : cases) {
    const Result r = apply(c.args, c.json);
    EXPECT_EQ(r.code, c.code) << r.err;
    EXPECT_EQ(r.out, "");
    for (const std::string& word : c.words) EXPECT_TRUE(contains(r.err, word)) << word << r.err;
  }
  GgufWriter writer;
  writer.add("tokenizer.chat_template", "{{ 1 |\nnosuch }}");
  const Result r = apply({"-m", write_model(writer)});
  EXPECT_EQ(r.code, 3) << r.err;
  for (const char* word : {"model.gguf", "line 2", "'nosuch'", "--chat-template"}) {
    EXPECT_TRUE(contains(r.err, word)) << word << r.err;
  }
}

}  // namespace apply_template_tests
}  // namespace snapkv::test
