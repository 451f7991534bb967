// SPDX-License-Identifier: MIT
#include "long_documents/condensed.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "long_documents/estimate.h"
#include "tests/support/expect_error.h"

namespace snapkv::long_documents {
namespace {

int64_t count_bytes(std::string_view text) { return static_cast<int64_t>(text.size()); }

/// Ten passages of 100 bytes, two on each page, in two parts.
struct Sample {
  Sample() {
    plan.way = Way::parts;
    for (size_t i = 0; i < 10; ++i) {
      text += "Passage " + std::to_string(i) + std::string(89, static_cast<char>('a' + i)) + "\n\n";
      const int page = static_cast<int>(i / 2) + 1;
      plan.passages.push_back({i * 100, i * 100 + 100, 100, page, page});
    }
    plan.parts = {{0, 500, 500, 1, 3}, {500, 1000, 500, 3, 5}};
    plan.scores.assign(10, 0.0);
  }
  LongDocument document() const { return {text, {}}; }
  std::string text;
  LongPlan plan;
};

TEST(Condensed, PassagesStandUnderTheirPages) {
  Sample sample;
  sample.plan.way = Way::passages;
  sample.plan.parts = {sample.plan.passages[2], sample.plan.passages[3], sample.plan.passages[8]};
  const Condensed condensed = condense(sample.document(), sample.plan);
  ASSERT_EQ(condensed.excerpts.size(), 2u) << "neighbours are one excerpt";
  EXPECT_TRUE(condensed.text.starts_with("[page 2]\nPassage 2"));
  EXPECT_NE(condensed.text.find("\n\n[page 5]\nPassage 8"), std::string::npos) << condensed.text;
  for (const Excerpt& each : condensed.excerpts) {
    EXPECT_EQ(condensed.text.substr(each.begin, each.n_bytes),
              sample.text.substr(each.document_begin, each.n_bytes));
  }
}

TEST(Condensed, TheBeginningStandsAlone) {
  Sample sample;
  sample.plan.way = Way::first;
  sample.plan.parts = {{0, 200, 200, 1, 1}};
  EXPECT_EQ(condense(sample.document(), sample.plan).text, sample.text.substr(0, 198));
}

TEST(Condensed, PartsGiveTheirAnswersAndSources) {
  const Sample sample;
  const std::vector<PartAnswer> answers = {
      {.part = 0, .text = "It is a.", .sources = {{110, 130, 0.5F}}, .seconds = 1},
      {.part = 1, .text = "", .sources = {{900, 910, 0.9F}}, .seconds = 1}};
  const Condensed condensed =
      condense(sample.document(), sample.plan, answers, /*in_chat=*/true, 1000, count_bytes);
  ASSERT_EQ(condensed.excerpts.size(), 1u) << "a part without an answer has no sources";
  EXPECT_EQ(condensed.excerpts[0].document_begin, 100u);
  ASSERT_EQ(condensed.quoted.size(), 1u);
  EXPECT_EQ(condensed.text.substr(condensed.quoted[0].begin, condensed.quoted[0].n_bytes),
            "It is a.");
  EXPECT_NE(condensed.text.find("pages 1-3"), std::string::npos) << condensed.text;
  const Condensed plain =
      condense(sample.document(), sample.plan, answers, /*in_chat=*/false, 1000, count_bytes);
  EXPECT_TRUE(plain.quoted.empty());
  EXPECT_EQ(plain.text.find("It is a."), std::string::npos);
  EXPECT_EQ(plain.excerpts.size(), 1u);

  const auto json = long_json(sample.document(), sample.plan, answers, condensed);
  EXPECT_EQ(json["way"], "parts");
  EXPECT_EQ(json["parts"][0]["answer"], "It is a.");
  EXPECT_EQ(json["parts"][0]["pages"], (nlohmann::ordered_json{1, 3}));
  EXPECT_TRUE(json["parts"][1]["answer"].is_null());
  EXPECT_EQ(json["passages"][0]["begin"], 100);
}

TEST(Condensed, TheMostAttendedPassagesFit) {
  const Sample sample;
  const std::vector<PartAnswer> answers = {
      {.part = 0, .text = "A.", .sources = {{0, 10, 0.1F}, {110, 120, 0.3F}}},
      {.part = 1, .text = "B.", .sources = {{610, 620, 0.2F}}}};
  const Condensed condensed =
      condense(sample.document(), sample.plan, answers, /*in_chat=*/false, 230, count_bytes);
  ASSERT_EQ(condensed.excerpts.size(), 2u);
  EXPECT_EQ(condensed.excerpts[0].document_begin, 100u);
  EXPECT_EQ(condensed.excerpts[1].document_begin, 600u);
  test::expect_error(ErrorCode::kContextExceeded, {"2 parts"}, [&] {
    (void)condense(sample.document(), sample.plan, answers, /*in_chat=*/true, 20, count_bytes);
  });
}

TEST(Condensed, HasFewerPassagesUntilItFits) {
  const Sample sample;
  const std::vector<PartAnswer> answers = {
      {.part = 0, .text = "A.", .sources = {{0, 10, 0.1F}, {110, 120, 0.3F}}},
      {.part = 1, .text = "B.", .sources = {{610, 620, 0.2F}}}};
  const auto fitting = [&](bool in_chat, size_t most) {
    return condense_to_fit(sample.document(), sample.plan, answers, in_chat, 1000, count_bytes,
                           [&](const Condensed& each) {
                             return static_cast<int64_t>(each.text.size()) -
                                    static_cast<int64_t>(most);
                           });
  };
  const Condensed all = fitting(false, 1000);
  ASSERT_EQ(all.excerpts.size(), 2u);  // the first two passages follow one another
  EXPECT_EQ(all.excerpts[0].document_begin, 0u);
  const Condensed one = fitting(false, 150);
  ASSERT_EQ(one.excerpts.size(), 1u);
  EXPECT_EQ(one.excerpts[0].document_begin, 100u);
  test::expect_error(ErrorCode::kContextExceeded, {"2 parts"}, [&] { (void)fitting(true, 10); });
}

TEST(Condensed, RangesOfSeveralDocumentsAreThoseOfEach) {
  //                        0         1         2         3         4         5         6
  const std::string text = "<a>\n01234567\n</a>\n\n<b>\nABCDEFGH\n</b>\n\n<c>\nabcdefgh\n</c>";
  const PageMarks pages = {{4, 1}, {8, 2}, {23, 0}, {42, 1}};
  const DocumentMarks marks = {{4, 12, "a.pdf"}, {23, 31, "b.md"}, {42, 50, "c.pdf"}};
  const LongDocument document = {text, pages, marks};
  LongPlan plan;
  plan.way = Way::parts;
  plan.parts = {{0, 25, 7, 0, 0}, {25, 55, 9, 0, 1}};
  plan.passages = {{0, 19, 5, 0, 2}, {19, 55, 5, 0, 1}};
  const std::vector<PartAnswer> answers = {
      {.part = 0, .text = "A.", .sources = {{9, 11, 0.5F}, {25, 29, 0.25F}}}};
  const Condensed condensed =
      condense(document, plan, answers, /*in_chat=*/true, 1000, count_bytes);
  EXPECT_NE(condensed.text.find("Answer from a.pdf, page 1 to b.md: A."), std::string::npos)
      << condensed.text;
  const auto json = long_json(document, plan, answers, condensed);
  using Json = nlohmann::ordered_json;
  EXPECT_EQ(json["document_bytes"], 24);
  EXPECT_EQ(json["parts"][0]["tokens"], 7);
  EXPECT_EQ(json["parts"][0]["documents"],
            Json::parse(R"([{"document": "a.pdf", "begin": 0, "end": 8, "pages": [1, 2]},
                            {"document": "b.md", "begin": 0, "end": 2}])"));
  EXPECT_EQ(json["parts"][1]["documents"],
            Json::parse(R"([{"document": "b.md", "begin": 2, "end": 8},
                            {"document": "c.pdf", "begin": 0, "end": 8, "pages": [1, 1]}])"));
  EXPECT_EQ(json["parts"][0]["sources"],
            Json::parse(R"([{"document": "a.pdf", "begin": 5, "end": 7, "pages": [2, 2],
                             "attention": 0.5},
                            {"document": "b.md", "begin": 2, "end": 6, "attention": 0.25}])"));
  EXPECT_EQ(json["passages"],
            Json::parse(R"([{"document": "a.pdf", "begin": 0, "end": 8, "pages": [1, 2]},
                            {"document": "b.md", "begin": 0, "end": 8},
                            {"document": "c.pdf", "begin": 0, "end": 8, "pages": [1, 1]}])"));
}

TEST(PartAnswers, NoneIsNoAnswer) {
  for (const char* text : {"", " ", "NONE", "NONE.", "none", " None.\n", "**NONE**",
                           "NONE: it says nothing", "...", "\"NONE\""}) {
    EXPECT_TRUE(is_none(text)) << text;
  }
  for (const char* text :
       {"None of the options is needed.", "48213", "It is none.", "Nonesuch", "東京です。"}) {
    EXPECT_FALSE(is_none(text)) << text;
  }
}

TEST(PartAnswers, AreAskedForInChatsOnly) {
  const std::string asked = part_question("Why?", 1, 3, true);
  EXPECT_NE(asked.find("part 2 of 3"), std::string::npos) << asked;
  EXPECT_TRUE(asked.ends_with("Question: Why?")) << asked;
  EXPECT_EQ(part_question("Why?", 1, 3, false), "Why?");
}

TEST(EstimateSeconds, FollowsTheModelsSizes) {
  ModelInfo model;
  model.n_layer = 10;
  model.n_head = 10;
  model.head_dim = 100;
  model.n_active_params = 1'000'000;
  // 2 s to begin with, 1 ms for 2e6 operations; attention adds 2 * 10 * 1000 * n for each token
  const auto seconds = [](double n) { return 2 + n * (2e6 + 20'000 * n) / 2e9; };
  const std::vector<TextPart> parts = {{0, 1, 4000, 0, 0}, {1, 2, 2000, 0, 0}};
  EXPECT_NEAR(estimate_seconds(model, {100, seconds(100)}, {500, seconds(500)}, parts),
              seconds(4000) + seconds(2000), 1e-6);
  // readings that contradict that: the longer one alone counts
  EXPECT_NEAR(estimate_seconds(model, {500, 1}, {500, 1}, {{0, 1, 500, 0, 0}}), 1, 1e-9);
}

}  // namespace
}  // namespace snapkv::long_documents
