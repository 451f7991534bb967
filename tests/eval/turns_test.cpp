// SPDX-License-Identifier: MIT
// Several questions about one document: each is asked once, and the records hold every answer.
#include "eval/turns/turns.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "eval/needle/document.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv::eval {
namespace {

TEST(NeedleDocument, HasAQuestionForEachFact) {
  const auto model = test::load_model("needle");
  NeedleOptions options;
  options.n_facts = 3;
  const NeedleDocument document = make_needle_document(*model, options, 800, 0.5, 1);
  ASSERT_EQ(document.questions.size(), 3u);
  EXPECT_EQ(document.text.find("Question"), std::string::npos);
  std::set<std::string> answers;
  for (const NeedleDocument::Question& q : document.questions) {
    const std::string fact = q.lead.substr(std::string("Answer: ").size()) + " " + q.answer + ".";
    EXPECT_NE(document.text.find("\n" + fact + "\n"), std::string::npos) << fact;
    EXPECT_LE(std::ssize(model->tokenize(document.text + q.question + q.lead)), 800);
    answers.insert(q.answer);
  }
  EXPECT_EQ(answers.size(), 3u);
}

TEST(Turns, TheFullCacheAnswersEveryQuestion) {
  const auto model = test::load_model("needle");
  TurnsOptions options;
  options.lengths = {600};
  options.n_samples = 2;
  options.n_questions = 3;
  RunOptions run;
  run.model = model;
  SessionOptions full;
  full.kv.name = "full";
  run.configurations = {full};
  const std::vector<Item> items = turns_items(model, options);
  ASSERT_EQ(items.size(), 2u);
  RecordFile file("", false);
  run_items(run, items, file);
  for (const Item& item : items) {
    const Json& record = file.at(record_key(run, item, full)).json();
    EXPECT_EQ(record.at("score"), 1.0) << record.dump();
    EXPECT_EQ(record.at("scores").size(), 3u);
    EXPECT_EQ(record.at("answers").size(), 3u);
    EXPECT_EQ(record.at("turn_seconds").size(), 2u);
    for (size_t q = 0; q < 3; ++q) {
      const std::string answer = record.at("answers").at(q);
      EXPECT_NE(answer.find(record.at("references").at(q).get<std::string>()), std::string::npos);
    }
    EXPECT_GT(record.at("kv_bytes_at_end"), record.at("kv_bytes"));
  }
  const std::string table = turns_tables(run, options, items, file);
  EXPECT_NE(table.find("| full | 100.0%"), std::string::npos) << table;
}

TEST(Turns, InAChatEachQuestionIsAMessage) {
  const auto model = test::load_model("needle");
  TurnsOptions options;
  options.lengths = {500};
  options.n_samples = 1;
  options.n_questions = 3;
  options.format = PromptFormat::chat(ChatTemplate::built_in("chatml"), Json::object(), "");
  const std::vector<Item> items = turns_items(model, options);
  const Prompt prompt = items.at(0).make();
  EXPECT_LE(std::ssize(prompt.tokens), 500);
  EXPECT_TRUE(prompt.text.starts_with("<|im_start|>user\n"));
  EXPECT_NE(prompt.text.find("?<|im_end|>\n<|im_start|>assistant\nAnswer: The secret number of "),
            std::string::npos);
  ASSERT_EQ(prompt.turns.size(), 2u);
  int64_t n_later = options.n_predict;
  for (const Turn& turn : prompt.turns) {
    EXPECT_TRUE(turn.text.starts_with(
        "<|im_end|>\n<|im_start|>user\nQuestion: What is the secret number of "))
        << turn.text;
    EXPECT_NE(turn.text.find("?<|im_end|>\n<|im_start|>assistant\nAnswer: The secret number of "),
              std::string::npos)
        << turn.text;
    EXPECT_EQ(model->detokenize(turn.tokens), turn.text);
    n_later += std::ssize(turn.tokens) + options.n_predict;
  }
  EXPECT_LE(n_later, later_tokens(*model, options));
  EXPECT_TRUE(items[0].id.ends_with(options.format.id()));
  RunOptions run;
  run.model = model;
  SessionOptions small;
  small.kv.budget = 64;
  small.kv.window_size = 16;
  small.kv.params["kernel_size"] = 15;
  run.configurations = {small};
  RecordFile file("", false);
  run_items(run, items, file);
  const Json& record = file.at(record_key(run, items[0], small)).json();
  EXPECT_EQ(record.at("scores").size(), 3u);
  EXPECT_EQ(record.at("chat_template").at("id"), options.format.id());
}

TEST(Turns, ChatsReadAnAnswerToItsLastToken) {
  RunOptions run;
  run.model = test::load_model("needle");
  SessionOptions full;
  full.kv.name = "full";
  run.configurations = {full};
  Prompt prompt;
  prompt.tokens = run.model->tokenize("The secret number of Rome is 48213.\n");
  prompt.turns.emplace_back().tokens = run.model->tokenize("\nWhy?", false);
  const auto row_bytes = [&](bool completes_answer) {
    prompt.turns[0].completes_answer = completes_answer;
    const AnswerLimit limit = {.n_predict = 3, .ends_at_line = false};
    const std::vector<Answer> answers = answer_prompt(run, {full}, prompt, limit);
    return static_cast<int64_t>(answers.at(0).at_end.kv_bytes_used);
  };
  const auto n_rows = std::ssize(prompt.tokens) + 2 + std::ssize(prompt.turns[0].tokens) + 2;
  const int64_t without = row_bytes(false);
  EXPECT_EQ(row_bytes(true) * n_rows, without * (n_rows + 1));
}

TEST(Turns, NeedTwoQuestions) {
  TurnsOptions options;
  options.n_questions = 1;
  test::expect_error(ErrorCode::kUsage, {"at least 2"}, [&] { turns_items(nullptr, options); });
}

}  // namespace
}  // namespace snapkv::eval
