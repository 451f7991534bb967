// SPDX-License-Identifier: MIT
// `snapkv eval quality`: what it counts, what it says of it, the picture, and that it ends in time.
#include "eval/quality/quality.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/eval/needle_model.h"
#include "tests/support/expect_error.h"

namespace snapkv::eval {
namespace {

// Texts that each hide the number of one city, with a question that the model answers and one that
// it does not.
std::vector<QaQuestion> city_questions() {
  std::vector<QaQuestion> questions;
  const std::vector<std::pair<std::string, std::string>> facts = {
      {"Rome", "48213"}, {"Seoul", "71554"}, {"Lima", "30926"}};
  for (const auto& [city, number] : facts) {
    auto context = std::make_shared<QaContext>();
    context->name = city;
    context->fingerprint = std::stoull(number);
    for (int i = 0; i < 20; ++i) {
      if (i == 5) context->text += fmt::format("The secret number of {} is {}.\n", city, number);
      context->text += "The sun was low and the road was long. We went home in the rain.\n";
    }
    for (const std::string& answer : {number, std::string("99999")}) {
      QaQuestion q;
      q.context = context;
      q.title = city;
      q.id = city + answer;
      q.question = fmt::format("What is the secret number of {}?", city);
      q.lead = fmt::format("The secret number of {} is", city);
      q.answers = {answer};
      q.place = "q.jsonl:1";
      questions.push_back(std::move(q));
    }
  }
  return questions;
}

RunOptions quality_run() {
  RunOptions run;
  run.model = needle_model();
  run.configurations = {configuration("full", 0), configuration("streaming-llm", 24),
                        configuration("streaming-llm", 4000)};
  return run;
}

TEST(Quality, CountsWhatFewerRowsAnswerToo) {
  const RunOptions run = quality_run();
  RecordFile file("", false);
  const QualityResult result =
      measure_quality(run, city_questions(), {.asks_documents = false}, file);
  ASSERT_EQ(result.parts.size(), 1u);
  const QualityPart& texts = result.parts[0];
  EXPECT_EQ(texts.n_questions, 6);
  EXPECT_EQ(texts.n_asked, 6);
  EXPECT_EQ(texts.n_contexts, 3);
  EXPECT_EQ(texts.n_answered, 3);
  EXPECT_EQ(texts.n_kept, (std::vector<int64_t>{0, 3})) << "the last 20 do not have the fact";
  EXPECT_GT(texts.n_tokens, 300);
  EXPECT_EQ(result.rows, (std::vector<int64_t>{24, 4000}));
  EXPECT_EQ(enough_rows(result), 1u);
  EXPECT_TRUE(result.remarks.empty()) << result.remarks[0];
  EXPECT_LT(result.bytes[0], result.bytes[1]);
  EXPECT_LE(result.bytes[1], result.full_bytes);
}

TEST(Quality, CountsTheAutomaticBudgetApart) {
  RunOptions run = quality_run();
  run.configurations = {configuration("full", 0), configuration("snapkv-max", 40),
                        configuration("snapkv-max", 300)};
  run.configurations[1].kv.window_size = run.configurations[2].kv.window_size = 32;
  set_param(run.configurations[2].kv, "least_attention", 0.05);
  RecordFile file("", false);
  const QualityResult result =
      measure_quality(run, city_questions(), {.asks_documents = false}, file);
  EXPECT_EQ(result.rows, (std::vector<int64_t>{40}));
  EXPECT_EQ(result.bytes.size(), 1u);
  EXPECT_EQ(result.parts[0].n_kept.size(), 1u);
  EXPECT_EQ(result.parts[0].n_kept_auto, 3);
  ASSERT_TRUE(result.auto_bytes);
  EXPECT_GT(*result.auto_bytes, 0);
  EXPECT_LT(*result.auto_bytes, static_cast<double>(result.full_bytes));
  const std::string report = quality_report(result);
  EXPECT_NE(report.find(" With --kv-budget auto it keeps 100.0%, in "), std::string::npos);
  EXPECT_NE(report.find("\n| auto | 100.0% ["), std::string::npos) << report;
  const Json json = quality_json(run, result);
  EXPECT_EQ(json.at("parts").at(0).at("answered_auto"), 3);
  EXPECT_EQ(json.at("cache").at("auto_bytes").get<double>(), std::round(*result.auto_bytes));
}

TEST(Quality, AsksAboutDocumentsToo) {
  RecordFile file("", false);
  QualityOptions options;
  options.n_document = 1200;
  const QualityResult result = measure_quality(quality_run(), city_questions(), options, file);
  ASSERT_EQ(result.parts.size(), 2u);
  EXPECT_EQ(result.parts[1].n_asked, 6);
  EXPECT_LT(result.parts[1].n_contexts, 3);
  EXPECT_GT(result.parts[1].n_tokens, 1.4 * result.parts[0].n_tokens);
}

TEST(Quality, ALengthThatTheTextsDontSuitIsRefusedAtOnce) {
  RunOptions run = quality_run();
  run.progress = [](int64_t, int64_t) { ADD_FAILURE() << "a question was asked"; };
  RecordFile file("", false);
  QualityOptions options;
  options.n_document = 100;
  test::expect_error(ErrorCode::kUsage, {"a document of joined texts may have 100"},
                     [&] { measure_quality(run, city_questions(), options, file); });
}

TEST(Quality, EndsInTime) {
  const RunOptions run = quality_run();
  RecordFile file("", false);
  QualityOptions options;
  options.seconds = 0;
  const QualityResult result = measure_quality(run, city_questions(), options, file);
  ASSERT_EQ(result.parts.size(), 1u);
  EXPECT_EQ(result.parts[0].n_asked, 1) << "the first question is asked in any case";
  const std::string report = quality_report(result);
  EXPECT_NE(report.find("1 question about 1 text,"), std::string::npos) << report;
  EXPECT_NE(report.find("5 more questions were not asked"), std::string::npos) << report;
  EXPECT_NE(report.find("No questions about documents"), std::string::npos) << report;
  options.seconds = 600;
  options.asks_documents = false;
  EXPECT_EQ(measure_quality(run, city_questions(), options, file).parts[0].n_asked, 6);
  EXPECT_EQ(file.size(), 18u) << "the first question was not asked again";
}

QualityPart made_part(const std::string& name, double n_tokens, int64_t n_answered,
                      std::vector<int64_t> n_kept) {
  QualityPart part;
  part.name = name;
  part.n_questions = part.n_asked = 120;
  part.n_contexts = 15;
  part.n_tokens = n_tokens;
  part.n_answered = n_answered;
  part.n_kept = std::move(n_kept);
  return part;
}

QualityResult made_result() {
  QualityResult result;
  result.model = "a<b & c";
  result.policy = "snapkv-max";
  result.rows = {64, 128, 256};
  result.parts = {made_part("texts", 2600.4, 100, {90, 99, 100}),
                  made_part("documents", 15800, 50, {40, 46, 50})};
  result.n_memory_tokens = 32768;
  result.full_bytes = 400 << 20;
  result.bytes = {2 << 20, 3 << 20, 5 << 20};
  return result;
}

TEST(QualityReport, SaysHowManyRowsAreEnough) {
  QualityResult result = made_result();
  const std::string report = quality_report(result);
  for (const char* part :
       {"With 256 rows this model keeps 100.0% of its 150 answers, in 1.2% of the memory that a "
        "full cache takes at 32768 tokens.\n",
        "| rows kept | texts of 2600 tokens | documents of 15800 tokens | cache at 32768 tokens |",
        "| all | 100 of 120 answered | 50 of 120 answered | 400.0 MiB |",
        "| 128 | 99.0% [94.6, 99.8] | 92.0% [81.2, 96.8] | 3.0 MiB, 0.8% |",
        "120 questions about 15 texts and 120 questions about 15 documents, asked as plain text"}) {
    EXPECT_NE(report.find(part), std::string::npos) << part << "\n" << report;
  }
  result.parts[1].n_kept = {40, 48, 49};  // 147 of 150 are 98%
  EXPECT_EQ(enough_rows(result), 1u);
  result.parts[0].n_kept = {90, 91, 92};
  EXPECT_EQ(enough_rows(result), 2u) << "the most that were tried";
  for (QualityPart& part : result.parts) {
    part.n_answered = 0;
    part.n_kept = {0, 0, 0};
  }
  EXPECT_NE(quality_report(result).find("answers none of the questions"), std::string::npos);
}

TEST(QualityReport, JsonHasTheSameNumbers) {
  const QualityResult result = made_result();
  const Json json = quality_json(quality_run(), result);
  EXPECT_EQ(json.at("parts").at(0).at("tokens"), 2600);
  EXPECT_EQ(json.at("parts").at(1).at("kept").at(1).at("answered"), 46);
  EXPECT_NEAR(json.at("parts").at(1).at("kept").at(1).at("share").get<double>(), 0.92, 1e-9);
  EXPECT_EQ(json.at("cache").at("rows").at(2).at("cache_share"), 0.0125);
  EXPECT_EQ(quality_report(result).find(json.at("summary").get<std::string>()), 0u);
}

size_t count_in(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(QualityPicture, HasALineForEachPart) {
  const std::string picture = quality_picture(made_result());
  EXPECT_EQ(count_in(picture, "<polyline"), 2u);
  EXPECT_EQ(count_in(picture, "<circle"), 6u);
  EXPECT_NE(picture.find(">a&lt;b &amp; c<"), std::string::npos);
  EXPECT_NE(picture.find("prefers-color-scheme:dark"), std::string::npos);
  EXPECT_NE(picture.find(">256 rows<"), std::string::npos);
  EXPECT_NE(picture.find(">70%<"), std::string::npos) << "the least share is 80%";
  // all is kept with the most rows, so that both lines end at the top
  EXPECT_EQ(count_in(picture, "440.0,60.0\"/>"), 2u) << picture;
}

TEST(QualityQuestions, MissingTextsSayHowToGetThem) {
  test::expect_error(ErrorCode::kUsage, {"/none/", "make texts", "--texts", "--data"},
                     [] { built_in_questions("/none"); });
}

}  // namespace
}  // namespace snapkv::eval
