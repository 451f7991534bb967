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

// Two gaps in each of `n` texts, after the names "early<i>" and "late<i>" of their first lines. The
// rest begins in line 3.
std::vector<QaQuestion> gaps_in(int n) {
  std::vector<QaQuestion> questions;
  for (int i = 0; i < n; ++i) {
    const std::string first = fmt::format("early{} late{}\n", i, i);
    const std::string begin = first + words_of(i) + "\n";
    for (const char* name : {"late", "early"}) {  // the longer text first
      const bool is_late = name == std::string("late");
      QaQuestion q;
      const std::string text = begin + "rest" + (is_late ? " goes on" : "") + " ";
      q.context = std::make_shared<QaContext>(
          QaContext{fmt::format("{}.py", i), text, static_cast<uint64_t>(questions.size())});
      q.id = fmt::format("{}-{}", i, name);
      q.title = fmt::format("{}.py", i);
      q.place = fmt::format("q.jsonl:{}", questions.size() + 1);
      q.gap = {.suffix = "\nend of it\n",
               .rest = begin.size(),
               .name = name + std::to_string(i),
               .defined = first.find(name)};
      q.answers = {q.gap.name + "()"};
      questions.push_back(std::move(q));
    }
  }
  return questions;
}

TEST(JoinGaps, OtherTextsStandBeforeTheRest) {
  const auto questions = gaps_in(8);
  const auto joined = join_texts(questions, kHundredWords);
  ASSERT_EQ(joined.size(), 16u);
  std::set<std::string> ids;
  for (size_t i = 0; i < joined.size(); ++i) {
    const QaQuestion& q = joined[i];
    SCOPED_TRACE(q.id);
    EXPECT_TRUE(ids.insert(q.id).second);
    const QaQuestion& alone = *std::find_if(questions.begin(), questions.end(),
                                            [&](const QaQuestion& a) { return a.id == q.id; });
    const std::string& text = q.context->text;
    const std::string before = alone.context->text.substr(0, alone.gap.rest);
    const std::string rest = alone.context->text.substr(alone.gap.rest);
    EXPECT_TRUE(text.starts_with("# " + q.title + "\n\n" + before));
    EXPECT_TRUE(text.ends_with("\n\n# " + q.title + ", continued\n\n" + rest)) << text;
    EXPECT_EQ(text.substr(q.gap.rest), rest);
    EXPECT_EQ(text.find(q.gap.name), q.gap.defined);
    EXPECT_EQ(text.rfind(q.gap.name), q.gap.defined) << "only there";
    EXPECT_EQ(q.gap.suffix, alone.gap.suffix);
    EXPECT_EQ(q.answers, alone.answers);
    const int64_t n = kHundredWords.count_tokens(text + q.gap.suffix);
    EXPECT_LE(n, 100);
    EXPECT_GE(n, 100 - 42) << text;
    if (i % 2 == 1) {
      EXPECT_TRUE(joined[i - 1].context->text.starts_with(text.substr(0, q.gap.rest)))
          << "the longer text of the document is read first";
    }
  }
}

TEST(JoinGaps, WithoutARestTheWholeTextIsLast) {
  auto questions = gaps_in(8);
  for (QaQuestion& q : questions) q.gap.rest = 0;
  for (const QaQuestion& q : join_texts(questions, kHundredWords)) {
    const std::string& text = q.context->text;
    EXPECT_EQ(text.find(q.gap.name), q.gap.defined);
    EXPECT_TRUE(text.substr(q.gap.rest).starts_with("early")) << text;
    EXPECT_GT(q.gap.rest, 100u);
  }
}

TEST(JoinGaps, TextsThatTellTheNameAreLeftOut) {
  auto questions = gaps_in(8);
  for (QaQuestion& q : questions) {
    if (!q.title.starts_with("3")) continue;
    auto context = std::make_shared<QaContext>(*q.context);
    context->text += "late5 ";
    q.context = context;
  }
  questions.erase(questions.begin() + 7);  // text 3 has the longer context only
  for (const QaQuestion& q : join_texts(questions, kHundredWords)) {
    if (q.title != "5.py") continue;
    EXPECT_EQ(q.context->text.find("# 3.py"), std::string::npos);
    EXPECT_EQ(q.context->text.rfind("late5"), q.context->text.find("late5"));
  }
}

TEST(JoinGaps, SayWhatCantBeJoined) {
  const auto expect_bad = [](std::vector<QaQuestion> questions, int64_t n_tokens,
                             std::initializer_list<std::string_view> words) {
    JoinOptions options = kHundredWords;
    options.n_tokens = n_tokens;
    test::expect_error(ErrorCode::kUsage, words, [&] { join_texts(questions, options); });
  };
  auto questions = gaps_in(4);
  questions[2].title.clear();
  expect_bad(questions, 100, {"q.jsonl:3", "title", "missing"});
  questions = gaps_in(4);
  questions[2].title = "0.py";
  expect_bad(questions, 100, {"q.jsonl:3", "'0.py'", "q.jsonl:1"});
  questions = gaps_in(4);
  questions[1].half = "choose";
  expect_bad(questions, 100, {"q.jsonl:2", "half", "choose", "q.jsonl:1"});
  expect_bad(gaps_in(4), 20, {".py", "may have 20"});
  expect_bad(gaps_in(1), 100, {"q.jsonl:1", "0.py", "less than half of a document of 100"});
}

}  // namespace
}  // namespace snapkv::eval
