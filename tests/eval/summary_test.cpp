// SPDX-License-Identifier: MIT
// Summaries: which names, numbers and identifiers count as facts of a text, which as inventions,
// and that records and table count them as by hand.
#include "eval/summary/summary.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "eval/common/metrics.h"
#include "eval/summary/facts.h"
#include "tests/eval/needle_model.h"
#include "tests/support/expect_error.h"

namespace snapkv::eval {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kBridge =
    "The bridge at Aarhus was built by Ann Lee and J. Kiel in 1,862, on May 3.\n"
    "Its keeper, old\nBruno, was paid 3.5 crowns a day; Bruno\u2019s house had number 12.\n\n"
    "Rain fell. In winter the river froze, and the Bridge Company shut it. Pontus left, and then\n"
    "the company, its bridge and the debts of the company were sold.\n"
    "Call `os.path.join()` or open_gate(), a BridgeKeeper in utf8.";

Words facts_of(const std::string& summary) { return FactText(kBridge).named_in(summary).facts; }
Words strange_of(const std::string& summary) { return FactText(kBridge).named_in(summary).strange; }

TEST(Facts, AreNamesAndNumbersOfTheText) {
  EXPECT_EQ(facts_of("It was built by Ann Lee in Aarhus in 1862."),
            (Words{"Ann Lee", "Aarhus", "1862"}));
  EXPECT_EQ(facts_of("Someone called Lee did it, with J. Kiel, on May 3, 1862"),
            (Words{"Lee", "J Kiel", "May 3", "1862"}));
  EXPECT_EQ(facts_of("He got 3.5 crowns, and lived at 12."), (Words{"3 5", "12"}));
  EXPECT_EQ(facts_of("They say Lee Ann met Bruno's wife."), (Words{"Lee", "Ann", "Bruno"}))
      << "words that do not stand so in the text count one by one";
  EXPECT_EQ(facts_of("So Ann Lee came. And Lee left, with Bruno and Bruno."),
            (Words{"Ann Lee", "Bruno"}))
      << "each once, without what ends another";
  EXPECT_EQ(facts_of("A bridge at Aarhus, by Ann Lee of Ann."),
            (Words{"Aarhus", "Ann Lee", "Ann"}));
  EXPECT_EQ(facts_of("1. It has 3 rooms\n12. and 4 doors"), Words{})
      << "single digits and the numbers of a list";
  EXPECT_EQ(facts_of(""), Words{});
}

TEST(Facts, BeginSentencesOnlyWhereTheTextHasThemAsNames) {
  EXPECT_EQ(facts_of("Bruno was paid. Aarhus paid him.\n- Ann Lee did not: Kiel did."),
            (Words{"Bruno", "Aarhus", "Ann Lee", "Kiel"}));
  EXPECT_EQ(facts_of("Rain fell. The winter was long. It froze: In winter."), Words{});
  EXPECT_EQ(facts_of("They say Pontus left."), Words{})
      << "the text has the word at a sentence's start only";
  EXPECT_EQ(strange_of("They say Pontus left."), Words{});
  EXPECT_EQ(facts_of("He saw the Bridge, and the Company."), Words{})
      << "common words, written with a capital";
  EXPECT_EQ(facts_of("Then the Bridge Company shut it."), Words{"Bridge Company"});
}

TEST(Facts, AreIdentifiers) {
  EXPECT_EQ(facts_of("It uses `os.path` and open_gate, with a BridgeKeeper in utf8 and join()."),
            (Words{"os path", "open_gate", "BridgeKeeper", "utf8", "join"}));
  EXPECT_EQ(facts_of("open_gate opens it"), Words{"open_gate"}) << "at a sentence's start";
  EXPECT_EQ(facts_of("the path of the gate"), Words{}) << "words without backticks";
  EXPECT_EQ(facts_of("```\npath join\n```\n"), Words{});
  EXPECT_EQ(strange_of("It uses `shut` and close_gate, a GateKeeper."),
            (Words{"close_gate", "GateKeeper"}));
}

TEST(Facts, AreStrangeIfTheTextHasThemInNoLetterCase) {
  EXPECT_EQ(strange_of("It was Nils Quist of Aarhus, in 1863, for 4.5 crowns."),
            (Words{"Nils", "Quist", "1863", "4 5"}));
  EXPECT_EQ(strange_of("Nils did it. In short: Good work."), Words{})
      << "a sentence's first word may be no name";
  EXPECT_EQ(strange_of("the Winter, the River, two Rivers"), Words{});
  EXPECT_EQ(strange_of("He told Nils and Nils"), Words{"Nils"});
}

QaQuestion text_of(const std::string& title, const std::string& kind, const std::string& text) {
  QaQuestion q;
  q.context = std::make_shared<const QaContext>(QaContext{title + ".txt", text, text.size()});
  q.title = title;
  q.kind = kind;
  return q;
}

std::string rome_text() {
  std::string text;
  for (int i = 0; i < 30; ++i) {
    if (i == 10) text += "The secret number of Rome is 48213.\n";
    text += "The sun was low and the road was long. We went home in the rain.\n";
  }
  return text;
}

TEST(Summary, RecordsFactsBesideTheFullCachesSummary) {
  RunOptions run;
  run.model = needle_model();
  run.configurations = {configuration("full", 0)};
  const auto items =
      summary_items(run.model, {text_of("Rome", "prose", rome_text())}, {.n_predict = 24});
  ASSERT_EQ(items.size(), 1u);
  RecordFile file("", false);
  run_items(run, items, file);
  // chosen again after every 4 tokens beyond the budget, from all rows
  SessionOptions refreshed = configuration("snapkv", 64);
  refreshed.kv_refresh = true;
  refreshed.kv_decode_limit = 68;
  run.configurations.push_back(configuration("snapkv", 64));
  run.configurations.push_back(refreshed);
  run_items(run, items, file);  // the full cache's summary is in the file
  ASSERT_EQ(file.size(), 3u);
  const std::string full =
      file.at(record_key(run, items[0], run.configurations[0])).at("answer").text();
  EXPECT_FALSE(full.empty());
  for (const SessionOptions& options : run.configurations) {
    const JsonField record = file.at(record_key(run, items[0], options));
    const std::string& answer = record.at("answer").text();
    const NamedFacts named = FactText(rome_text()).named_in(answer);
    EXPECT_EQ(record.at("facts").integer(), std::ssize(named.facts)) << answer;
    EXPECT_EQ(record.at("named").size(), std::ssize(named.facts));
    EXPECT_EQ(record.at("strange").integer(), std::ssize(named.strange));
    EXPECT_EQ(record.at("score").number(), rouge_l(answer, full));
    EXPECT_EQ(record.at("task").text(), "summary");
  }
  EXPECT_EQ(file.at(record_key(run, items[0], run.configurations[0])).at("score").number(), 1);
}

TEST(Summary, TableHasRatiosOfSums) {
  RunOptions run;
  run.model = needle_model();
  run.configurations = {configuration("full", 0), configuration("snapkv", 64)};
  const std::vector<QaQuestion> texts = {text_of("a", "prose", "One."), text_of("b", "code", "x")};
  const auto items = summary_items(run.model, texts, {});
  RecordFile file("", false);
  const auto add = [&](int item, int cache, int facts, int strange, double rouge) {
    file.append({{"key", record_key(run, items[item], run.configurations[cache])},
                 {"facts", facts},
                 {"strange", strange},
                 {"score", rouge},
                 {"kv_bytes", 2048 * (2 - cache)}});
  };
  add(0, 0, 30, 1, 1);
  add(1, 0, 10, 0, 1);
  add(0, 1, 24, 2, 0.5);
  add(1, 1, 12, 3, 0.25);
  const std::string table = facts_table(run, items, file);
  EXPECT_NE(table.find("| ROUGE-L | prose | code |\n"), std::string::npos) << table;
  EXPECT_NE(table.find("| full | 4 | 40 | 100.0% [100.0, 100.0] | 1 | 100.0% | 100.0% of 30 | "
                       "100.0% of 10 |\n"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find(" | 2 | 36 | 90.0% [80.0, 120.0] | 5 | 37.5% | 80.0% of 30 | 120.0% of 10 "
                       "|\n\n2 summaries.\n"),
            std::string::npos)
      << table;
}

TEST(Summary, AsksForEachTextOnce) {
  std::vector<QaQuestion> questions = {text_of("a", "prose", "One."), text_of("b", "code", "x")};
  questions.insert(questions.begin() + 1, questions[0]);
  EXPECT_EQ(first_of_each_text(questions).size(), 2u);
  const auto model = needle_model();
  const auto one = summary_items(model, questions, {});
  EXPECT_EQ(one.size(), 2u) << "the same prompt";
  EXPECT_NE(one[0].make().text.find("One.\n\nSummarize the text above"), std::string::npos);
  const auto several = summary_items(model, questions, {.has_several = true});
  EXPECT_NE(several[0].make().text.find("Summarize each of the texts"), std::string::npos);
  EXPECT_NE(several[0].id, one[0].id);
  test::expect_error(ErrorCode::kContextExceeded, {"a.txt", "tokens", "context"}, [&] {
    summary_items(model, questions, {.n_predict = model->info().n_ctx_train});
  });
}

}  // namespace
}  // namespace snapkv::eval
