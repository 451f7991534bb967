// SPDX-License-Identifier: MIT
#include "long_documents/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "long_documents/words.h"
#include "tests/support/expect_error.h"

namespace snapkv::long_documents {
namespace {

int64_t count_words(std::string_view text) {
  return static_cast<int64_t>(index_words(text).size());
}

/// 400 paragraphs of 10 words; one of them names Rome's number.
std::string document() {
  std::string text;
  for (int i = 0; i < 400; ++i) {
    text += i == 300 ? "The secret number of Rome is 48213 as everyone knows.\n\n"
                     : "The wind blew from the sea and the baker slept.\n\n";
  }
  return text;
}

constexpr Room kRoom = {.n_once = 1000, .n_part = 900};

TEST(PlanReading, RareWordsChoosePassages) {
  const std::string text = document();
  const LongPlan plan = plan_reading({text, {}}, "What is the number of Rome?", LongMode::automatic,
                                     kRoom, count_words);
  EXPECT_EQ(plan.way, Way::passages);
  EXPECT_EQ(plan.words, (std::vector<std::string>{"number", "Rome"}));
  ASSERT_EQ(plan.parts.size(), 1u) << "no other passage has a word of the question";
  EXPECT_NE(text.substr(plan.parts[0].begin, plan.parts[0].end - plan.parts[0].begin).find("48213"),
            std::string::npos);
  EXPECT_EQ(plan.n_document, 4000);
}

TEST(PlanReading, OtherwiseAllOfItIsReadInParts) {
  const std::string text = document();
  for (const char* question : {"What is this text about?", "Summarize it.", "Who sleeps and where?",
                               "Where is Atlantis?"}) {
    const LongPlan plan =
        plan_reading({text, {}}, question, LongMode::automatic, kRoom, count_words);
    EXPECT_EQ(plan.way, Way::parts) << question;
    ASSERT_GE(plan.parts.size(), 5u);
    EXPECT_EQ(plan.parts.front().begin, 0u);
    EXPECT_EQ(plan.parts.back().end, text.size());
    for (const TextPart& part : plan.parts) EXPECT_LE(part.n_tokens, kRoom.n_part);
    EXPECT_EQ(plan.n_read, plan.n_document);
  }
  EXPECT_EQ(plan_reading({text, {}}, "Rome?", LongMode::parts, kRoom, count_words).way, Way::parts);
}

TEST(PlanReading, FirstReadsWhatFits) {
  const std::string text = document();
  const LongPlan plan = plan_reading({text, {}}, "Rome?", LongMode::first, kRoom, count_words);
  ASSERT_EQ(plan.parts.size(), 1u);
  EXPECT_EQ(plan.parts[0].begin, 0u);
  EXPECT_EQ(plan.n_read, 1000);
  EXPECT_EQ(plan.parts[0].n_tokens, plan.n_read);
}

TEST(PlanReading, NoRoomIsAnError) {
  test::expect_error(ErrorCode::kContextExceeded, {"--ctx-size", "5 tokens"}, [] {
    (void)plan_reading({"A text.", {}}, "Rome?", LongMode::parts, {.n_once = 200, .n_part = 5},
                       count_words);
  });
}

TEST(PlanThatFits, HasLessRoomUntilItsReadingsFit) {
  const std::string text = document();
  for (const LongMode mode : {LongMode::first, LongMode::parts}) {
    size_t n_asked = 0;
    const LongPlan plan =
        plan_that_fits({text, {}}, "Rome?", mode, kRoom, count_words, [&](const LongPlan& each) {
          ++n_asked;  // as if every word took two tokens where they stand together
          int64_t most = 0;
          for (const TextPart& part : each.parts) most = std::max(most, 2 * part.n_tokens);
          return most - 1000;
        });
    EXPECT_GT(n_asked, 1u);
    ASSERT_FALSE(plan.parts.empty());
    for (const TextPart& part : plan.parts) EXPECT_LE(2 * part.n_tokens, 1000);
  }
  test::expect_error(ErrorCode::kContextExceeded, {"--ctx-size"}, [&] {
    (void)plan_that_fits({text, {}}, "Rome?", LongMode::parts, kRoom, count_words,
                         [](const LongPlan&) { return int64_t{100}; });
  });
}

TEST(BestPassages, AreInOrderAndFit) {
  std::vector<TextPart> passages;
  for (size_t i = 0; i < 5; ++i) passages.push_back({i, i + 1, 100, 0, 0});
  EXPECT_EQ(best_passages(passages, {0.5, 3, 0, 2, 1}, 350), (std::vector<size_t>{1, 3, 4}));
  EXPECT_EQ(best_passages(passages, {0, 0, 0, 0, 0}, 350), std::vector<size_t>{});
}

TEST(LongMode, HasNames) {
  EXPECT_EQ(long_mode("auto"), LongMode::automatic);
  EXPECT_EQ(long_mode("refuse"), LongMode::refuse);
  EXPECT_EQ(long_mode("Parts"), std::nullopt);
}

}  // namespace
}  // namespace snapkv::long_documents
