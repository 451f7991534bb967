// SPDX-License-Identifier: MIT
// The built-in chat templates, compared with llama.cpp's own code for the same names, and the chat
// metadata of a model file.
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/gguf_writer.h"
#include "tests/text/jinja/render.h"

namespace snapkv::test {
namespace {

TEST(BuiltInTemplate, WritesWhatLlamaCppWrites) {
  const Json golden = read_json("builtin_templates.json");
  const Json& conversations = golden.at("conversations");
  size_t n_texts = 0;
  for (const std::string& name : ChatTemplate::built_in_names()) {
    ASSERT_TRUE(golden.at("results").contains(name)) << name;
    const ChatTemplate tmpl = ChatTemplate::built_in(name);
    for (const auto& [conversation, expected] : golden.at("results").at(name).items()) {
      const Json variables = {{"messages", conversations.at(conversation)},
                              {"add_generation_prompt", true}};
      EXPECT_EQ(tmpl.render(variables.dump()).text, expected.get<std::string>())
          << name << " with " << conversation;
      ++n_texts;
    }
  }
  EXPECT_EQ(n_texts, golden.at("results").size() * conversations.size());
}

TEST(BuiltInTemplate, AnUnknownNameIsAnErrorWithTheNamesThereAre) {
  expect_error(ErrorCode::kUsage, {"'nosuch'", "chatml, ", "llama3"},
               [] { ChatTemplate::built_in("nosuch"); });
}

std::string write(const GgufWriter& writer, const std::string& name) {
  const std::string path = testing::TempDir() + name;
  const std::vector<std::byte> bytes = writer.bytes();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return path;
}

TEST(ModelChat, IsReadFromTheFilesMetadata) {
  GgufWriter writer;
  writer.add("tokenizer.ggml.tokens", std::vector<std::string>{"<unk>", "<s>", "</s>"});
  writer.add("tokenizer.ggml.bos_token_id", uint32_t{1});
  writer.add("tokenizer.ggml.eos_token_id", uint32_t{2});
  writer.add("tokenizer.chat_template", "{{ messages[0].content }}");
  writer.add("tokenizer.chat_template.tool_use", "{{ tools }}");
  writer.add("tokenizer.chat_templates", std::vector<std::string>{"tool_use"});
  const ModelChat chat = read_model_chat(write(writer, "chat.gguf"));
  EXPECT_EQ(chat.templates,
            (std::map<std::string, std::string>{{"default", "{{ messages[0].content }}"},
                                                {"tool_use", "{{ tools }}"}}));
  EXPECT_EQ(chat.bos_token, "<s>");
  EXPECT_EQ(chat.eos_token, "</s>");
}

TEST(ModelChat, MayBeMissingOrWrong) {
  GgufWriter named;  // as files of RWKV have it
  named.add("general.architecture", "rwkv7").add("tokenizer.chat_template", "rwkv-world");
  EXPECT_EQ(read_model_chat(write(named, "named.gguf")).templates.at("default"),
            ChatTemplate::built_in("rwkv-world").source());
  const ModelChat chat = read_model_chat(write(GgufWriter(), "empty.gguf"));
  EXPECT_TRUE(chat.templates.empty());
  EXPECT_EQ(chat.bos_token + chat.eos_token, "");
  GgufWriter wrong;
  wrong.add("tokenizer.chat_template", uint32_t{1});
  const std::string path = write(wrong, "wrong.gguf");
  expect_error(ErrorCode::kBadModel, {"wrong.gguf", "tokenizer.chat_template"},
               [&] { read_model_chat(path); });
}

TEST(ChatTemplate, KnowsItsNameAndSource) {
  const auto tmpl = ChatTemplate::parse("x{{ a }}", "mine");
  EXPECT_EQ(tmpl.name(), "mine");
  EXPECT_EQ(tmpl.source(), "x{{ a }}");
  EXPECT_EQ(tmpl.render(R"({"a": 1})").text, "x1");
  expect_error(ErrorCode::kUsage, {"big", "1048576"},
               [] { ChatTemplate::parse(std::string(2 << 20, 'x'), "big"); });
}

}  // namespace
}  // namespace snapkv::test
