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

TEST(Turns, NeedTwoQuestions) {
  TurnsOptions options;
  options.n_questions = 1;
  test::expect_error(ErrorCode::kUsage, {"at least 2"}, [&] { turns_items(nullptr, options); });
}

}  // namespace
}  // namespace snapkv::eval
