// SPDX-License-Identifier: MIT
// Documents made of several texts: they are nearly as long as asked for, ask each question once,
// have their texts whole, and those of the two halves share none.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "eval/qa/join.h"
#include "eval/qa/qa.h"
#include "tests/eval/needle_model.h"
#include "tests/support/expect_error.h"

namespace snapkv::eval {
namespace {

// Counts words, the "#" of a title included.
const JoinOptions kHundredWords = {.n_tokens = 100, .count_tokens = [](std::string_view text) {
                                     int64_t n = 0;
                                     for (size_t i = 1; i < text.size(); ++i) {
                                       n += text[i] <= ' ' && text[i - 1] > ' ' ? 1 : 0;
                                     }
                                     return n;
                                   }};

std::string words_of(int text) {
  std::string words;
  for (int i = 0; i < 20 + text; ++i) words += fmt::format("word{}x{} ", text, i);
  return words;
}

// Two questions about each of `n` texts of 20 and more words, the odd ones to choose by.
std::vector<QaQuestion> questions_about(int n) {
  std::vector<QaQuestion> questions;
  for (int i = 0; i < n; ++i) {
    const auto context =
        std::make_shared<QaContext>(QaContext{fmt::format("{}.txt", i), words_of(i), uint64_t(i)});
    for (const char* asked : {"What?", "Who?"}) {
      QaQuestion q;
      q.context = context;
      q.id = fmt::format("{}-{}", i, asked);
      q.question = asked;
      q.title = fmt::format("Book {}", i);
      q.half = i % 2 == 1 ? "choose" : "report";
      q.place = fmt::format("q.jsonl:{}", questions.size() + 1);
      q.answers = {"x"};
      questions.push_back(std::move(q));
    }
  }
  return questions;
}

TEST(JoinTexts, DocumentsAreFullAndAskEachQuestionOnce) {
  const auto joined = join_texts(questions_about(20), kHundredWords);
  std::set<std::string> ids;
  std::map<std::string, std::set<const QaContext*>> documents;  // by half
  for (const QaQuestion& q : joined) {
    EXPECT_TRUE(ids.insert(q.id).second) << q.id;
    documents[q.half].insert(q.context.get());
    const int text = std::stoi(q.id);
    EXPECT_EQ(q.question, fmt::format("In \"Book {}\": {}", text, q.id.substr(q.id.find('-') + 1)));
    EXPECT_NE(q.context->text.find(fmt::format("# Book {}\n\n{}\n\n", text, words_of(text))),
              std::string::npos);
    const int64_t n = kHundredWords.count_tokens(q.context->text);
    EXPECT_LE(n, 100);
    EXPECT_GE(n, 100 - 42) << "another text fits: " << q.context->text;
  }
  EXPECT_EQ(ids.size(), 40u);
  EXPECT_GE(documents["choose"].size(), 3u);
  for (const QaContext* document : documents["choose"]) {
    for (int even = 0; even < 20; even += 2) {
      EXPECT_EQ(document->text.find(fmt::format("# Book {}\n", even)), std::string::npos);
    }
    for (int odd = 1; odd < 20; odd += 2) {
      const std::string title = fmt::format("# Book {}\n", odd);
      EXPECT_EQ(document->text.find(title), document->text.rfind(title)) << "it is there twice";
    }
  }
}

TEST(JoinTexts, QuestionsOfADocumentAreTogether) {
  const auto joined = join_texts(questions_about(20), kHundredWords);
  std::set<const QaContext*> before;
  const QaContext* last = nullptr;
  for (const QaQuestion& q : joined) {
    const bool is_new = q.context.get() != last;
    EXPECT_EQ(before.insert(q.context.get()).second, is_new);
    last = q.context.get();
  }
}

TEST(JoinTexts, TheSameTextsGiveTheSameDocuments) {
  const auto questions = questions_about(20);
  auto reversed = questions;
  std::reverse(reversed.begin(), reversed.end());
  std::map<std::string, uint64_t> found;
  for (const QaQuestion& q : join_texts(questions, kHundredWords)) {
    found[q.id] = q.context->fingerprint;
  }
  for (const QaQuestion& q : join_texts(reversed, kHundredWords)) {
    EXPECT_EQ(q.context->fingerprint, found.at(q.id)) << q.id;
  }
}

TEST(JoinTexts, SaysWhatCantBeJoined) {
  const auto expect_bad = [](auto change, std::initializer_list<std::string_view> words) {
    auto questions = questions_about(20);
    change(questions);
    test::expect_error(ErrorCode::kUsage, words, [&] { join_texts(questions, kHundredWords); });
  };
  expect_bad([](auto& q) { q[2].title = ""; }, {"q.jsonl:3", "field title is missing"});
  expect_bad([](auto& q) { q[3].title = "A"; }, {"q.jsonl:4", "'A'", "'Book 1'", "q.jsonl:3"});
  expect_bad([](auto& q) { q[2].title = q[3].title = "Book 0"; },
             {"q.jsonl:3", "Book 0", "another text in q.jsonl:1"});
  expect_bad([](auto& q) { q[3].half = "report"; }, {"q.jsonl:4", "report", "choose", "share"});
  expect_bad([](auto& q) { q.resize(4); },
             {"texts of half choose have 24 tokens", "a document of 100"});
  auto longer = std::make_shared<QaContext>();
  longer->name = "long.txt";
  for (int i = 0; i < 10; ++i) longer->text += words_of(0);
  expect_bad([&](auto& q) { q[2].context = q[3].context = longer; },
             {"q.jsonl:3", "long.txt has 203 tokens", "100"});
}

TEST(JoinTexts, AModelAnswersFromTheTextThatIsNamed) {
  const auto model = needle_model();
  std::vector<QaQuestion> questions;
  const std::vector<std::pair<std::string, std::string>> facts = {
      {"Rome", "48213"}, {"Seoul", "71554"}, {"Lima", "30926"}};
  for (const auto& [city, number] : facts) {
    std::string text;
    for (int i = 0; i < 8; ++i) {
      if (i == 4) text += fmt::format("The secret number of {} is {}.\n", city, number);
      text += "The sun was low and the road was long. We went home in the rain.\n";
    }
    QaQuestion q;
    q.context = std::make_shared<QaContext>(QaContext{city, text, 0});
    q.id = q.title = city;
    q.question = fmt::format("What is the secret number of {}?", city);
    q.lead = fmt::format("The secret number of {} is", city);
    q.answers = {number};
    questions.push_back(std::move(q));
  }
  const auto joined = join_texts(questions, {.n_tokens = 450, .count_tokens = [&](auto text) {
                                               return std::ssize(model->tokenize(text));
                                             }});
  EXPECT_EQ(joined[0].context, joined[1].context);
  RunOptions run;
  run.model = model;
  run.configurations = {configuration("full", 0), configuration("snapkv", 64)};
  const QaItems items = qa_items(model, joined, {});
  RecordFile file("", false);
  run_items(run, items.items, file);
  for (const Item& item : items.items) {
    for (const SessionOptions& options : run.configurations) {
      EXPECT_EQ(file.at(record_key(run, item, options)).at("score").number(), 1) << item.id;
    }
  }
}

}  // namespace
}  // namespace snapkv::eval
