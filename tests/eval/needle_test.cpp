// SPDX-License-Identifier: MIT
// The needle task: facts are in the right places, scores agree with those computed by hand, and the
// trained model finds the fact with one prefill for many configurations.
#include "eval/needle/needle.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <sstream>

#include "tests/eval/needle_model.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv::eval {
namespace {

TEST(NeedlePrompt, StandsAtItsDepthAndIsDeterministic) {
  const auto model = needle_model();
  for (const double depth : {0.0, 0.3, 1.0}) {
    const Prompt prompt = make_needle(*model, {}, 1000, depth, 0);
    EXPECT_EQ(prompt.text, make_needle(*model, {}, 1000, depth, 0).text);
    EXPECT_NE(prompt.text, make_needle(*model, {}, 1000, depth, 1).text);
    EXPECT_LE(std::ssize(prompt.tokens), 1000);
    EXPECT_GT(std::ssize(prompt.tokens), 950);
    const std::string fact = prompt.details["facts"][0]["text"];
    const size_t at = prompt.text.find("\n" + fact + "\n"), end = prompt.text.find("\nQuestion");
    ASSERT_NE(at, std::string::npos);
    EXPECT_EQ(prompt.text.find(fact, at + 2), std::string::npos) << "twice";
    // The filler ends before the fact and the question; a line of filler is up to 0.15 of this
    // text.
    const double found = static_cast<double>(at) / static_cast<double>(end - fact.size() - 2);
    EXPECT_LE(found, depth + 0.02);
    EXPECT_GE(found, depth - 0.15);
  }
}

TEST(NeedlePrompt, KindsAskForWhatTheyHide) {
  const auto model = needle_model();
  const std::pair<NeedleKind, size_t> kinds[] = {
      {NeedleKind::multi_key, 1}, {NeedleKind::multi_value, 4}, {NeedleKind::multi_query, 4}};
  for (const auto& [kind, n_references] : kinds) {
    SCOPED_TRACE(name(kind));
    NeedleOptions options;
    options.kind = kind;
    const Prompt prompt = make_needle(*model, options, 800, 0.5, 3);
    EXPECT_EQ(prompt.references.size(), n_references);
    EXPECT_EQ(prompt.details["facts"].size(), 4u);
    for (const std::string& reference : prompt.references) {
      EXPECT_NE(prompt.text.find(" is " + reference + ".\n"), std::string::npos);
    }
    EXPECT_EQ(needle_kind(name(kind)), kind);
  }
  test::expect_error(ErrorCode::kUsage, {"no room", "20"},
                     [&] { make_needle(*model, {}, 20, 0.5, 0); });
}

TEST(NeedlePrompt, UsesTheUsersTextAtSentenceEnds) {
  NeedleOptions options;
  options.kind = NeedleKind::text;
  options.haystack = "First sentence here. Second one! Is this the third? And a fourth.\n";
  const Prompt prompt = make_needle(*needle_model(), options, 600, 0.5, 0);
  const size_t at = prompt.text.find("\nThe best thing to do");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NE(std::string("!?.\n ").find(prompt.text[at - 2]), std::string::npos);
  EXPECT_EQ(needle_score(NeedleKind::text, prompt,
                         " eat a sandwich and sit in Dolores Park on a sunny day."),
            1);
}

TEST(NeedlePrompt, FillsTheLengthFromTextsWithoutSentences) {
  std::string code, chinese;
  for (int i = 0; i < 3000; ++i) code += "x" + std::to_string(i) + " = f(y);\n";
  for (int i = 0; i < 300; ++i) chinese += "\u6211\u4eec\u5728\u8fd9\u91cc\u3002";
  std::string windows;
  for (int i = 0; i < 300; ++i) windows += "A line that ends twice.\r\n";
  const std::string one_word(5000, 'w');
  for (const std::string& text : {code, chinese, windows, one_word, "\u4e00" + one_word}) {
    NeedleOptions options;
    options.haystack = text;
    const Prompt prompt = make_needle(*needle_model(), options, 3000, 0.5, 0);
    EXPECT_LE(prompt.tokens.size(), 3000u);
    EXPECT_GT(prompt.tokens.size(), 2400u) << text.substr(0, 20);
    const auto at = static_cast<double>(prompt.text.find("The secret number"));
    EXPECT_NEAR(at / static_cast<double>(prompt.text.size()), 0.5, 0.1) << text.substr(0, 20);
  }
}

TEST(NeedlePrompt, InAChatTheLeadBeginsTheAnswer) {
  const auto model = needle_model();
  NeedleOptions options;
  options.format =
      PromptFormat::chat(ChatTemplate::built_in("chatml"), Json::object(), "Be brief.");
  for (const NeedleKind kind : {NeedleKind::single, NeedleKind::multi_query, NeedleKind::text}) {
    SCOPED_TRACE(name(kind));
    options.kind = kind;
    options.lengths = {600};
    options.n_depths = 1;
    const Item item = needle_items(model, options).at(0);
    const Prompt prompt = item.make();
    EXPECT_LE(std::ssize(prompt.tokens), 600);
    EXPECT_GT(std::ssize(prompt.tokens), 550);
    EXPECT_TRUE(prompt.text.starts_with("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>us"));
    const size_t answer = prompt.text.find("?<|im_end|>\n<|im_start|>assistant\nAnswer: The ");
    ASSERT_NE(answer, std::string::npos) << prompt.text;
    EXPECT_LT(prompt.text.find("\nQuestion: What "), answer);
    // The question is the one in the user's message.
    std::string question;
    for (int64_t i = prompt.n_context; i < prompt.question_end; ++i) {
      question += model->piece(prompt.tokens[i]);
    }
    EXPECT_NE(question.find("Question: What "), std::string::npos) << question;
    EXPECT_EQ(question.find("Answer"), std::string::npos) << question;
    EXPECT_EQ(prompt.details.at("chat_template").at("id"), options.format.id());
    NeedleOptions plain = options;
    plain.format = PromptFormat::plain();
    const Item other = needle_items(model, plain).at(0);
    EXPECT_EQ(item.id, other.id + " " + options.format.id());
    EXPECT_FALSE(other.make().details.contains("chat_template"));
  }
  test::expect_error(ErrorCode::kUsage, {"no room"},
                     [&] { make_needle(*model, options, 60, 0.5, 0); });
}

TEST(NeedlePrompt, Scores) {
  Prompt prompt;
  prompt.references = {"12345", "54321"};
  EXPECT_EQ(needle_score(NeedleKind::single, prompt, " 12345."), 1);
  EXPECT_EQ(needle_score(NeedleKind::single, prompt, " 123456."), 0);
  EXPECT_EQ(needle_score(NeedleKind::single, prompt, " 54321 or 12345"), 0);  // the first counts
  EXPECT_EQ(needle_score(NeedleKind::multi_value, prompt, "54321, 11111"), 0.5);
}

TEST(NeedleRun, OnePrefillForManyAndBudgetsHold) {
  RunOptions run;
  run.model = needle_model();
  const Prompt prompt = make_needle(*run.model, {}, 1000, 0.5, 0);
  const std::vector<SessionOptions> configurations = {
      configuration("full", 0), configuration("snapkv", 64), configuration("snapkv", 128)};
  int64_t n_starts = 0;  // counts prefills: progress goes back to the first layer
  int last_layer = 1 << 20;
  run.prefill_progress = [&](const Progress& p) {
    n_starts += p.phase == Phase::prefill && p.il < last_layer ? 1 : 0;
    last_layer = p.il;
    return true;
  };
  const std::vector<Answer> answers = answer_prompt(run, configurations, prompt, {});
  EXPECT_EQ(n_starts, 1);
  ASSERT_EQ(answers.size(), 3u);
  // All sessions report the one measurement of the shared work.
  EXPECT_EQ(answers[0].after_prefill.linear_seconds, answers[2].after_prefill.linear_seconds);
  EXPECT_EQ(needle_score(NeedleKind::single, prompt, answers[0].text), 1) << answers[0].text;
  EXPECT_EQ(needle_score(NeedleKind::single, prompt, answers[2].text), 1) << answers[2].text;
  const int64_t kept[] = {std::ssize(prompt.tokens), 64, 128};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(answers[i].after_prefill.n_prompt, std::ssize(prompt.tokens));
    for (const auto& layer : answers[i].after_prefill.layers) {
      for (const int64_t n : layer.n_kept) EXPECT_EQ(n, kept[i]);
    }
  }
}

TEST(NeedleRun, QuestionAgnosticCompressesBeforeTheQuestion) {
  RunOptions run;
  run.model = needle_model();
  run.question_agnostic = true;
  const Prompt prompt = make_needle(*run.model, {}, 1000, 0.5, 0);
  const int64_t n_prompt = std::ssize(prompt.tokens), n_question = n_prompt - prompt.n_context;
  const auto question = std::span(prompt.tokens).last(static_cast<size_t>(n_question));
  EXPECT_EQ(run.model->detokenize(question).find("\nQuestion: What is"), 0u)
      << run.model->detokenize(question);
  const std::vector<Answer> answers = answer_prompt(
      run, {configuration("full", 0), configuration("streaming-llm", 128)}, prompt, {});
  EXPECT_EQ(needle_score(NeedleKind::single, prompt, answers[0].text), 1) << answers[0].text;
  EXPECT_EQ(needle_score(NeedleKind::single, prompt, answers[1].text), 0) << answers[1].text;
  EXPECT_EQ(answers[1].after_prefill.n_prompt, n_prompt);
  for (const auto& layer : answers[1].after_prefill.layers) {
    for (const int64_t n : layer.n_kept) EXPECT_EQ(n, 128 + n_question);
  }
}

TEST(NeedleRun, ChatsAreCompressedBeforeTheQuestionToo) {
  NeedleOptions options;
  options.lengths = {300};
  options.n_depths = 1;
  options.n_predict = 4;
  options.format = PromptFormat::chat(ChatTemplate::built_in("chatml"), Json::object(), "");
  for (const bool keeps_full : {false, true}) {
    RunOptions run;
    run.model = needle_model();
    run.configurations = {configuration("full", 0), configuration("snapkv", 64)};
    run.question_agnostic = !keeps_full;
    run.keeps_full = keeps_full;
    const std::vector<Item> items = needle_items(run.model, options);
    RecordFile file("", false);
    run_items(run, items, file);
    const Json& full = file.at(record_key(run, items[0], run.configurations[0])).json();
    const Json& small = file.at(record_key(run, items[0], run.configurations[1])).json();
    EXPECT_EQ(full.at("n_prompt"), small.at("n_prompt"));
    EXPECT_LT(small.at("kv_bytes"), full.at("kv_bytes"));
    EXPECT_EQ(full.at("chat_template").at("id"), options.format.id());
  }
}

TEST(NeedleRun, StoredRowsAreSelectedWithTheQuestion) {
  RunOptions run;
  run.model = needle_model();
  run.keeps_full = true;
  run.configurations = {configuration("full", 0), configuration("snapkv", 64)};
  const Prompt prompt = make_needle(*run.model, {}, 1000, 0.5, 0);
  const std::vector<Answer> answers = answer_prompt(run, run.configurations, prompt, {});
  const int64_t kept[] = {std::ssize(prompt.tokens), 64};
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(needle_score(NeedleKind::single, prompt, answers[i].text), 1) << answers[i].text;
    for (const auto& layer : answers[i].after_prefill.layers) {
      for (const int64_t n : layer.n_kept) EXPECT_EQ(n, kept[i]);
    }
  }
  const std::vector<Item> items = needle_items(run.model, {});
  const std::string stored = record_key(run, items[0], run.configurations[0]);
  run.keeps_full = false;
  EXPECT_NE(stored, record_key(run, items[0], run.configurations[0]));
  run.keeps_full = true;
  EXPECT_THROW(answer_prompt(run, {configuration("h2o", 64)}, prompt, {}), Error);
}

// The file with all rows is in a folder that the run creates, and is removed with it.
TEST(NeedleRun, StoredRowsAreWhereNobodyElsePutALink) {
  const std::string folder = testing::TempDir() + "needle_stored", mine = folder + "/mine.txt";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  std::ofstream(mine) << "precious";
  std::filesystem::create_symlink(mine, fmt::format("{}/snapkv-eval-{}.kv", folder, ::getpid()));
  const char* before = std::getenv("TMPDIR");
  const std::string restored = before != nullptr ? before : "";
  RunOptions run;
  run.model = needle_model();
  run.keeps_full = true;
  const Prompt prompt = make_needle(*run.model, {}, 300, 0.5, 0);
  setenv("TMPDIR", folder.c_str(), 1);
  answer_prompt(run, {configuration("snapkv", 64)}, prompt, {.n_predict = 1});
  setenv("TMPDIR", (folder + "/none").c_str(), 1);
  test::expect_error(ErrorCode::kRuntime, {"temporary files"}, [&] {
    answer_prompt(run, {configuration("snapkv", 64)}, prompt, {.n_predict = 1});
  });
  before != nullptr ? setenv("TMPDIR", restored.c_str(), 1) : unsetenv("TMPDIR");
  std::ostringstream text;
  text << std::ifstream(mine).rdbuf();
  EXPECT_EQ(text.str(), "precious");
  const auto entries = std::filesystem::directory_iterator(folder);
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 2);
  std::filesystem::remove_all(folder);
}

TEST(NeedleRun, AnswersEndAsTheyShould) {
  RunOptions run;
  run.model = needle_model();
  const Prompt prompt = make_needle(*run.model, {}, 300, 0.5, 0);
  const auto answer = [&](const AnswerLimit& limit) {
    return answer_prompt(run, {configuration("full", 0)}, prompt, limit)[0].text;
  };
  const std::string line = answer({.n_predict = 20, .ends_at_line = true});
  const std::string more = answer({.n_predict = 20, .ends_at_line = false});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(more.find(line + "\n"), 0u) << more;
  EXPECT_EQ(answer({.n_predict = 2, .ends_at_line = false}), line.substr(0, 2));
}

TEST(NeedleRun, ResumesAndTabulates) {
  const std::string path = testing::TempDir() + "needle_run.jsonl";
  std::filesystem::remove(path);
  RunOptions run;
  run.model = needle_model();
  run.configurations = {configuration("full", 0)};
  NeedleOptions options;
  options.lengths = {300, 400};
  options.n_depths = 2;
  const std::vector<Item> items = needle_items(run.model, options);
  ASSERT_EQ(items.size(), 4u);
  {
    RecordFile file(path, false);
    run_items(run, {items[0]}, file);
    EXPECT_EQ(file.size(), 1u);
  }
  int64_t n_prompts = 0;
  run.progress = [&](int64_t, int64_t total) { n_prompts = total; };
  RecordFile file(path, true);
  run_items(run, items, file);
  EXPECT_EQ(n_prompts, 3) << "the first record was there";
  EXPECT_EQ(file.size(), 4u);
  run.configurations.push_back(configuration("snapkv", 128));
  run_items(run, items, file);
  EXPECT_EQ(file.size(), 8u);
  const std::string table = summary_table(run, items, file);
  // Wilson: 2 of 2 is at least 2 / (2 + z2) = 34.2%, and 4 of 4 at least 51.0%.
  EXPECT_NE(table.find("| 100.0% [34.2, 100.0] of 2 | 100.0% [34.2, 100.0] of 2 | 100.0% "
                       "[51.0, 100.0] of 4 |"),
            std::string::npos)
      << table;
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace snapkv::eval
