// SPDX-License-Identifier: MIT
// Documents: document and question together are the prompt that the template would make of both.
#include "server/document.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv::server {
namespace {

DocumentForm chat_form(const std::string& name) {
  DocumentForm form;
  form.template_source = ChatTemplate::built_in(name).source();
  form.template_name = name;
  form.variables = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  form.system = "Be brief.";
  return form;
}

Json user(const std::string& text) { return {{"role", "user"}, {"content", text}}; }

TEST(Document, DocumentAndQuestionAreOnePrompt) {
  for (const std::string& name : ChatTemplate::built_in_names()) {
    SCOPED_TRACE(name);
    const DocumentForm form = chat_form(name);
    const std::string document = "A text.\nIts <|im_end|> second line.", question = "Why?";
    RenderedChat both;
    RenderedChat question_chat;
    try {
      both = document_part(form, document);
      question_chat = question_part(form, Json::array({user(question)}));
    } catch (const Error&) {
      continue;  // formats without system messages refuse this one
    }
    Json variables = form.variables;
    variables["messages"] = Json::array(
        {{{"role", "system"}, {"content", form.system}}, user(document + "\n\n" + question)});
    variables["add_generation_prompt"] = true;
    EXPECT_EQ(both.text + question_chat.text,
              ChatTemplate::built_in(name).render(variables.dump()).text);
    // what people wrote is data in both parts
    ASSERT_FALSE(both.input.empty());
    EXPECT_EQ(both.input.back().end, both.text.size());
    ASSERT_FALSE(question_chat.input.empty());
    EXPECT_EQ(question_chat.input.front().begin, 0u);
    EXPECT_EQ(question_chat.text.substr(0, question.size()), question);
  }
}

TEST(Document, MoreMessagesFollowTheQuestion) {
  const DocumentForm form = chat_form("chatml");
  const RenderedChat chat = question_part(
      form, Json::array({user("Why?"), {{"role", "assistant"}, {"content", "So."}}, user("And?")}));
  EXPECT_EQ(chat.text.substr(0, 4), "Why?");
  EXPECT_NE(chat.text.find("So."), std::string::npos);
  EXPECT_NE(chat.text.find("And?"), std::string::npos);
}

TEST(Document, PlainTextIsContinuedByOneMessage) {
  const DocumentForm plain;
  EXPECT_EQ(document_part(plain, "A text.").text, "A text.");
  EXPECT_EQ(question_part(plain, Json::array({user(" Why?")})).text, " Why?");
  test::expect_error(ErrorCode::kUsage, {"one message", "2"}, [&] {
    question_part(plain, Json::array({user("a"), user("b")}));
  });
  test::expect_error(ErrorCode::kUsage, {"first message", "user"}, [&] {
    question_part(plain, Json::array({{{"role", "system"}, {"content", "x"}}}));
  });
}

TEST(Document, AFileSaysWhatItHolds) {
  const std::string path = ::testing::TempDir() + "document.kv";
  const auto model = test::load_model("needle");
  Session session(model, {.kv = {.name = "keydiff", .budget = 64}});
  session.prefill(model->tokenize("Some words, then some more."));
  const DocumentForm form = chat_form("chatml");
  session.save(path, document_notes(form, "/models/a.gguf", "mine"));
  const DocumentFile file = describe_document(path);
  EXPECT_FALSE(file.keeps_all);
  EXPECT_EQ(file.n_tokens, session.n_past());
  EXPECT_EQ(file.options.kv.name, "keydiff");
  EXPECT_EQ(file.model_path, "/models/a.gguf");
  EXPECT_EQ(file.notes, "mine");
  EXPECT_EQ(file.form.template_source, form.template_source);
  EXPECT_EQ(file.form.system, "Be brief.");
  EXPECT_EQ(file.form.variables, form.variables);
  for (const char* notes : {"", "{}", "[1]", R"({"kind": "snapkv-document"})"}) {
    session.save(path, notes);
    test::expect_error(ErrorCode::kBadModel, {"no document"}, [&] { describe_document(path); });
  }
}

}  // namespace
}  // namespace snapkv::server
