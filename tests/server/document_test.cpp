// SPDX-License-Identifier: MIT
// Documents: the document's part and the question's together are the prompt that the template makes
// of both.
#include "chat/document.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/chat_part.h"
#include "base/cpu_timer.h"
#include "server/document_store.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv::server {

using namespace chat;

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
      continue;  // formats without system messages refuse the form's system message
    }
    Json variables = form.variables;
    variables["messages"] = Json::array(
        {{{"role", "system"}, {"content", form.system}}, user(document + "\n\n" + question)});
    variables["add_generation_prompt"] = true;
    EXPECT_EQ(both.text + question_chat.text,
              ChatTemplate::built_in(name).render(variables.dump()).text);
    // In both parts the user's text is marked as input.
    ASSERT_FALSE(both.input.empty());
    EXPECT_EQ(both.input.back().end, both.text.size());
    ASSERT_FALSE(question_chat.input.empty());
    EXPECT_EQ(question_chat.input.front().begin, 0u);
    EXPECT_EQ(question_chat.text.substr(0, question.size()), question);
  }
}

// The mark between document and question is found in one pass, for any text of the document.
TEST(Document, ATextMaySpellTheMark) {
  EXPECT_EQ(unused_mark("mark", ""), "mark");
  EXPECT_EQ(unused_mark("mark", "mar k---"), "mark");
  EXPECT_EQ(unused_mark("mark", "mark"), "mark-");
  EXPECT_EQ(unused_mark("mark", "mark-- mark---mark- x ---- mark"), "mark----");
  const DocumentForm form = chat_form("chatml");
  for (const std::string& text :
       {std::string("snapkv-question snapkv-question---"),
        std::string(1'000'000, 'x') + " snapkv-question" + std::string(50'000, '-') + " and"}) {
    const CpuTimer timer;
    const RenderedChat chat = document_part(form, text);
    EXPECT_LT(timer.seconds(), 5) << "a search for each dash takes 17 s";
    EXPECT_TRUE(chat.text.ends_with(text + "\n\n"));
    EXPECT_EQ(question_part(form, Json::array({user("Why?" + text)})).text.substr(0, 4), "Why?");
  }
}

TEST(Document, AStoredDocumentHasItsTextInItsTokens) {
  const auto model = test::load_model("needle");
  const std::string text = "A text.\n\nIts second snapkv-question, and its last.";
  const auto text_of = [&](const DocumentForm& form) {
    return document_text(*model, form, model->tokenize(document_part(form, text)));
  };
  EXPECT_EQ(text_of({}), text);
  size_t n_forms = 0;
  for (const std::string& name : ChatTemplate::built_in_names()) {
    SCOPED_TRACE(name);
    for (const char* system : {"", "Be brief."}) {
      DocumentForm form = chat_form(name);
      form.system = system;
      try {
        (void)document_part(form, text);
      } catch (const Error&) {
        continue;  // as above
      }
      EXPECT_EQ(text_of(form), text);
      ++n_forms;
    }
  }
  EXPECT_GT(n_forms, 5u);
  test::expect_error(ErrorCode::kBadModel, {"does not begin", "chatml"}, [&] {
    document_text(*model, chat_form("chatml"), model->tokenize("Another text."));
  });
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

TEST(DocumentStore, ChecksAFileOnceUntilItChanges) {
  const std::string path = ::testing::TempDir() + "stored.kv";
  const auto model = test::load_model("needle");
  Session session(model, {.kv = {.name = "keydiff", .budget = 64}});
  session.prefill(model->tokenize("Some words, then some more."));
  const auto save = [&](const std::string& to, const char* notes) {
    session.save(to, document_notes({}, "", notes));
  };
  save(path, "first");
  DocumentStore store(model);
  const auto first = store.open(path);
  EXPECT_EQ(store.open(path), first);
  save(path, "other");  // another file replaces it
  const auto second = store.open(path);
  EXPECT_EQ(second->file.notes, "other");
  EXPECT_EQ(store.size(), 1u);
  EXPECT_EQ(first->file.notes, "first");
  Session(model, first->file.options).load(*first->compressed);  // the first one is still valid

  const auto time = std::filesystem::last_write_time(path);
  const auto flip = [&](std::streamoff at) {  // flips one bit of the file in place
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(at);
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 1));
    file.close();
    std::filesystem::last_write_time(path, time + std::chrono::seconds(at));
  };
  flip(200);
  for (int i = 0; i < 2; ++i) {
    test::expect_error(ErrorCode::kBadModel, {"stored.kv", "checksum"}, [&] { store.open(path); });
  }
  EXPECT_EQ(store.size(), 1u);
  flip(200);
  std::filesystem::last_write_time(path, time + std::chrono::seconds(1));
  EXPECT_EQ(store.open(path)->file.notes, "other");

  std::filesystem::remove(path);
  test::expect_error(ErrorCode::kRuntime, {"stored.kv"}, [&] { store.open(path); });
  const std::string next = ::testing::TempDir() + "next.kv";
  save(next, "");
  store.open(next);
  EXPECT_EQ(store.size(), 1u) << "what is removed keeps no room on the disk";
  store.forget(next);
  EXPECT_EQ(store.size(), 0u);
  for (size_t i = 0; i < DocumentStore::kMostFiles + 3; ++i) {
    const std::string many = ::testing::TempDir() + "many-" + std::to_string(i) + ".kv";
    std::filesystem::remove(many);  // of an earlier run, when tests are repeated
    std::filesystem::create_hard_link(next, many);
    store.open(many);
  }
  EXPECT_EQ(store.size(), DocumentStore::kMostFiles);
}

TEST(DocumentStore, OpensDocumentsWithEveryRow) {
  const std::string path = ::testing::TempDir() + "every_row.kv";
  const auto model = test::load_model("needle");
  Session session(model, {});
  PrefillPrompt prompt;
  prompt.sessions = {&session};
  prompt.tokens = model->tokenize("Some words, then some more.");
  prompt.makes_prefix = true;
  Prefill prefill(prompt);
  while (!prefill.step()) {
  }
  prefill.take_prefix()->save(path, DType::q8_0, document_notes({}, "", "mine"));
  DocumentStore store(model);
  const auto document = store.open(path);
  EXPECT_TRUE(document->file.keeps_all);
  EXPECT_EQ(document->file.notes, "mine");
  EXPECT_EQ(document->file.n_tokens, std::ssize(prompt.tokens));
  ASSERT_TRUE(document->rows);
  EXPECT_EQ(store.open(path)->rows, document->rows);
  EXPECT_FALSE(open_document(path, nullptr).rows);
}

TEST(Document, AFileSaysWhatItHolds) {
  const std::string path = ::testing::TempDir() + "document.kv";
  const auto model = test::load_model("needle");
  Session session(model, {.kv = {.name = "keydiff", .budget = 64}});
  session.prefill(model->tokenize("Some words, then some more."));
  const DocumentForm form = chat_form("chatml");
  session.save(path, document_notes(form, "/models/a.gguf", "mine", {{0, 1}, {9, 2}}));
  const DocumentFile file = open_document(path, nullptr).file;
  EXPECT_FALSE(file.keeps_all);
  EXPECT_EQ(file.n_tokens, session.n_past());
  EXPECT_EQ(file.options.kv.name, "keydiff");
  EXPECT_EQ(file.model_path, "/models/a.gguf");
  const Json without = parse_held(document_notes(form, "/models/\xe4.gguf", "mine"));
  EXPECT_EQ(without.at("model_path"), "") << "a question then names the model, and no other file";
  EXPECT_EQ(file.notes, "mine");
  ASSERT_EQ(file.pages.size(), 2U);
  EXPECT_EQ(file.pages[1].begin, 9U);
  EXPECT_EQ(file.pages[1].number, 2);
  EXPECT_EQ(file.form.template_source, form.template_source);
  EXPECT_EQ(file.form.system, "Be brief.");
  EXPECT_EQ(file.form.variables, form.variables);
  const std::string deep = std::string(300'000, '[') + std::string(300'000, ']');
  const std::string known = document_notes(form, "", "");
  for (const std::string& notes :
       {std::string(), std::string("{}"), std::string("[1]"),
        std::string(R"({"kind": "snapkv-document"})"),
        known.substr(0, known.size() - 1) + ",\"variables\":{\"a\":" + deep + "}}"}) {
    session.save(path, notes);
    test::expect_error(ErrorCode::kBadModel, {"no document"},
                       [&] { open_document(path, nullptr); });
  }
  Json notes = parse_held(known);
  for (const char* pages : {R"([[0, 1], [9]])", R"([[9, 1], [0, 2]])", R"([[0, -1]])", R"("1")",
                            R"([[0, 9000000000]])", R"([[0.5, 1]])"}) {
    notes["pages"] = Json::parse(pages);
    session.save(path, notes.dump());
    test::expect_error(ErrorCode::kBadModel, {"page ", "of its notes"},
                       [&] { open_document(path, nullptr); });
  }
  notes.erase("pages");  // of a file that an older version made
  session.save(path, notes.dump());
  EXPECT_TRUE(open_document(path, nullptr).file.pages.empty());
}

}  // namespace
}  // namespace snapkv::server
