// SPDX-License-Identifier: MIT
// Questions about texts: errors name the line of the file, scores and counts agree with those
// computed by hand, and questions that share a context get the same answers as if each had been
// read alone.
#include "eval/qa/qa.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "eval/common/metrics.h"
#include "eval/common/prompt_reader.h"
#include "eval/qa/after.h"
#include "snapkv/fill_in.h"
#include "tests/eval/needle_model.h"
#include "tests/support/expect_error.h"
#include "tests/support/hostile_text_model.h"
#include "tests/support/test_models.h"

namespace snapkv::eval {
namespace {

class Qa : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/prose");
    write("prose/a.txt", kText);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << content;
  }
  std::vector<QaQuestion> read(const std::string& half = {}) {
    return read_qa(folder_ + "/q.jsonl", folder_, half);
  }
  std::vector<QaQuestion> write_and_read(const std::string& lines, const std::string& half = {}) {
    write("q.jsonl", lines);
    return read(half);
  }
  void expect_bad(Json line, std::initializer_list<std::string_view> words) {
    write("q.jsonl", "\n" + line.dump() + "\n");
    test::expect_error(ErrorCode::kUsage, words, [&] { read(); });
    test::expect_error(ErrorCode::kUsage, {"q.jsonl:2"}, [&] { read(); });
  }
  Json line_with(const std::string& field, const Json& value) const {
    Json line = good_;
    line[field] = value;
    return line;
  }

  static constexpr const char* kText = "Caf\u00e9 talk. The bridge was built in 1,862 by Ann Lee.";
  std::string folder_;
  const Json good_ = {{"id", "a"},
                      {"text", "prose/a.txt"},
                      {"question", "When?"},
                      {"answers", {"1862", "in 1862"}}};
};

TEST_F(Qa, ReadsQuestionsOfOneContextTogether) {
  const Json list = {{"text", "prose/a.txt"},
                     {"kind", "prose"},
                     {"half", "report"},
                     {"extra", 1},
                     {"questions",
                      {{{"id", "c"},
                        {"question", "Who?"},
                        {"answers", {"Ann Lee"}},
                        {"prefix", "It was"},
                        {"metric", "f1"},
                        {"half", "choose"},
                        {"at", 45}}}}};
  const Json other = {{"id", "b"}, {"context", "Other."}, {"question", "W?"}, {"answers", {"x"}}};
  const auto questions = write_and_read(good_.dump() + "\n" + other.dump() + "\n\n" + list.dump());
  ASSERT_EQ(questions.size(), 3u);
  EXPECT_EQ(questions[1].id, "c");
  EXPECT_EQ(questions[0].context, questions[1].context);
  EXPECT_EQ(questions[0].context->text, kText);
  EXPECT_EQ(questions[0].kind, "text");
  EXPECT_EQ(questions[1].kind, "prose");
  EXPECT_EQ(questions[1].half, "choose");
  EXPECT_EQ(questions[1].lead, "It was");
  EXPECT_EQ(questions[1].metric, QaMetric::f1);
  EXPECT_EQ(questions[2].id, "b");
  EXPECT_EQ(questions[2].place, folder_ + "/q.jsonl:2");
  EXPECT_EQ(read("choose").size(), 1u);
  EXPECT_EQ(first_of_each_kind(questions, 1).size(), 2u);
  EXPECT_EQ(questions[0].title, "prose/a.txt");
  EXPECT_EQ(questions[2].title, "") << "a text of the line itself has no name";
  test::expect_error(ErrorCode::kUsage, {"no question", "report"},
                     [&] { write_and_read(good_.dump(), "report"); });
}

TEST_F(Qa, ReadsPartsOfFiles) {
  Json line = good_;
  line["begin"] = 12;
  line["end"] = 40;
  line["answers"] = {"the bridge"};
  line["at"] = 12;  // counted from the start of the file
  const auto questions = write_and_read(line.dump());
  EXPECT_EQ(questions[0].context->text, std::string(kText).substr(12, 28));
  EXPECT_EQ(questions[0].context->name, "prose/a.txt [12, 40)");
  line["begin"] = 4;  // the second byte of a character
  expect_bad(line, {"[4, 40)", "UTF-8"});
  line["begin"] = 50;
  expect_bad(line, {"end", "40"});
  line["begin"] = 13;
  expect_bad(line, {"at"});
}

TEST_F(Qa, NamesLineAndField) {
  write("q.jsonl", "{\n");
  test::expect_error(ErrorCode::kUsage, {"q.jsonl:1", "no valid JSON"}, [&] { read(); });
  write("q.jsonl", "\n");
  test::expect_error(ErrorCode::kUsage, {"q.jsonl", "no questions"}, [&] { read(); });
  expect_bad(Json::array(), {"object"});
  expect_bad(Json{{"id", "a"}}, {"context", "text", "neither"});
  expect_bad(line_with("context", "x"), {"both"});
  expect_bad(line_with("question", 5), {"question", "5", "text"});
  expect_bad(line_with("question", " "), {"question", "empty"});
  expect_bad(line_with("answers", Json::array()), {"answers", "empty"});
  expect_bad(line_with("answers", Json::array({1})), {"answers[0]"});
  expect_bad(line_with("answers", Json::array({"The."})), {"'The.'", "a"});
  expect_bad(line_with("answers", Json::array({" "})), {"a"});
  expect_bad(line_with("metric", "bleu"), {"metric", "bleu", "contains, exact, f1, rouge-l"});
  expect_bad(line_with("half", "third"), {"half", "third"});
  expect_bad(line_with("questions", Json::array()), {"exclude"});
  expect_bad(line_with("text", "../a.txt"), {"text", "../a.txt", "--texts"});
  expect_bad(line_with("text", "/etc/passwd"), {"text", "--texts"});
  expect_bad(line_with("at", 5), {"at", "byte 5", "talk"});
  expect_bad(line_with("at", 5000), {"at", "5000"});
  Json without = good_;
  without.erase("id");
  expect_bad(without, {"id", "missing"});
  write("q.jsonl", good_.dump() + "\n" + good_.dump());
  test::expect_error(ErrorCode::kUsage, {"q.jsonl:2", "id", "q.jsonl:1"}, [&] { read(); });
  write("q.jsonl", line_with("text", "none.txt").dump());
  test::expect_error(ErrorCode::kRuntime, {"q.jsonl:1", "none.txt"}, [&] { read(); });
  write("q.jsonl", good_.dump());
  test::expect_error(ErrorCode::kUsage, {"q.jsonl:1", "prose/a.txt", "--texts"},
                     [&] { read_qa(folder_ + "/q.jsonl", ""); });
  test::expect_error(ErrorCode::kRuntime, {"none.jsonl"},
                     [&] { read_qa(folder_ + "/none.jsonl", ""); });
}

TEST_F(Qa, ReadsGaps) {
  write("a.py", "first_name = 1\n\nx = 2\ny = ");
  const Json gap = {
      {"id", "a"},    {"text", "a.py"},       {"suffix", "\nz = 3\n"},     {"rest", 16},
      {"defined", 0}, {"name", "first_name"}, {"answers", {"first_name"}}, {"metric", "begins"}};
  const auto read_gap = write_and_read(gap.dump());
  ASSERT_EQ(read_gap.size(), 1u);
  EXPECT_TRUE(fills_gap(read_gap[0]));
  EXPECT_EQ(read_gap[0].gap.suffix, "\nz = 3\n");
  EXPECT_EQ(read_gap[0].gap.rest, 16u);
  EXPECT_EQ(read_gap[0].gap.name, "first_name");
  EXPECT_FALSE(fills_gap(write_and_read(good_.dump())[0]));
  const auto with = [&](const char* field, const Json& value) {
    Json line = gap;
    line[field] = value;
    return line;
  };
  Json part = gap;  // places count from the file's beginning
  part["begin"] = 16;
  part["rest"] = 22;
  part["name"] = "x";
  part["defined"] = 16;
  EXPECT_EQ(write_and_read(part.dump())[0].gap.rest, 6u);
  EXPECT_EQ(read()[0].gap.defined, 0u);
  expect_bad(with("question", "Why?"), {"question", "suffix", "exclude"});
  expect_bad(with("prefix", "y"), {"prefix", "suffix", "exclude"});
  expect_bad(with("suffix", " \n"), {"suffix", "empty"});
  expect_bad(with("rest", 17), {"rest", "byte 17", "beginning of a line"});
  expect_bad(with("rest", 400), {"rest", "400"});
  expect_bad(with("defined", 1), {"defined", "first_name", "byte 1", "irst_name"});
  Json without = gap;
  without.erase("defined");
  expect_bad(without, {"defined", "missing"});
}

TEST_F(Qa, AnswersStandWhereTheySay) {
  const size_t year = std::string(kText).find("1,862");
  EXPECT_EQ(write_and_read(line_with("at", year).dump()).size(), 1u) << "without its comma";
  EXPECT_EQ(write_and_read(line_with("at", year - 3).dump()).size(), 1u) << "in 1862";
  expect_bad(line_with("at", year + 2), {"at", "862 by Ann"});
}

TEST(QaScore, ComparesWords) {
  const auto contains = [](const char* answer, const char* reference) {
    return qa_score(QaMetric::contains, {"nothing", reference}, answer);
  };
  EXPECT_EQ(contains(" It was 12,345 men.", "12345"), 1);
  EXPECT_EQ(contains("12345", "12,345 "), 1);
  EXPECT_EQ(contains("1234567", "12345"), 0);
  EXPECT_EQ(contains("a rate of 3.5%", "3"), 0);
  EXPECT_EQ(contains("a rate of 3.5%.", "3.5"), 1);
  EXPECT_EQ(contains("Use `--threads=4`.", "4"), 1);
  EXPECT_EQ(contains("The U.S. Congress", "us congress"), 1);
  EXPECT_EQ(contains("twenty\u2014five", "twenty-five"), 1);
  EXPECT_EQ(contains("Lincoln\u2019s plan", "lincolns plan"), 1);
  EXPECT_EQ(contains("the Red House", "a red house"), 1);
  EXPECT_EQ(contains("redhouse", "red house"), 0);
  EXPECT_EQ(contains("It is the ` + ` sign.", " +"), 1) << "a mark that is not a word";
  EXPECT_EQ(contains("It is a plus.", "+"), 0);
  EXPECT_EQ(qa_score(QaMetric::exact, {"+"}, " + "), 1);
  EXPECT_EQ(qa_score(QaMetric::exact, {"The end."}, " end"), 1);
  EXPECT_EQ(qa_score(QaMetric::exact, {"The end."}, "end of it"), 0);
  EXPECT_NEAR(qa_score(QaMetric::f1, {"x", "ann lee"}, "Ann Smith"), 0.5, 1e-9);
  EXPECT_NEAR(qa_score(QaMetric::rouge_l, {"a b c d"}, "a x c d"), 0.75, 1e-9);
  const auto begins = [](const char* answer, const char* reference) {
    return qa_score(QaMetric::begins, {"nothing", reference}, answer);
  };
  EXPECT_EQ(begins(" open_file(path)", "open_file"), 1);
  EXPECT_EQ(begins("open_file", "open_file "), 1);
  EXPECT_EQ(begins("open_files(path)", "open_file"), 0);
  EXPECT_EQ(begins("open_file_now", "open_file"), 0);
  EXPECT_EQ(begins("f(a, b)", "f(a"), 1);
  EXPECT_EQ(begins("f(ab)", "f(a"), 0);
  EXPECT_EQ(begins("f(ab)", "f("), 1);
  EXPECT_EQ(begins("Open_file", "open_file"), 0);
  EXPECT_EQ(begins("self.open_file", "open_file"), 0);
  EXPECT_EQ(begins("", "open_file"), 0);
}

// Facts in filler; the model answers the questions that have the right lead.
std::vector<QaQuestion> rome_questions(int n_lines) {
  std::string text;
  for (int i = 0; i < n_lines; ++i) {
    if (i == n_lines / 3) text += "The secret number of Rome is 48213.\n";
    if (i == n_lines / 2) text += "The secret number of Seoul is 71554.\n";
    text += "The sun was low and the road was long. We went home in the rain.\n";
  }
  auto context = std::make_shared<QaContext>();
  context->name = "rome";
  context->text = text;
  context->fingerprint = 7;
  std::vector<QaQuestion> questions;
  for (const auto& [city, number] : {std::pair{"Rome", "48213"}, {"Seoul", "71554"}}) {
    QaQuestion q;
    q.context = context;
    q.id = city;
    q.kind = city == std::string("Rome") ? "south" : "east";
    q.question = fmt::format("What is the secret number of {}?", city);
    q.lead = fmt::format("The secret number of {} is", city);
    q.answers = {number};
    q.place = "q.jsonl:1";
    questions.push_back(std::move(q));
  }
  return questions;
}

// The parts of an answer that must not depend on how its prompt was read.
Json essence(const Answer& answer) {
  Json kept = Json::array();
  for (const auto& layer : answer.after_prefill.layers) kept.push_back(layer.n_kept);
  return {{"text", answer.text},
          {"bytes", answer.after_prefill.kv_bytes_used},
          {"full", answer.after_prefill.kv_bytes_full},
          {"kept", kept}};
}

// Answers every question with one reader that keeps what the questions share, and with a reader of
// its own; the answers must be the same.
void expect_same_answers(RunOptions run, const std::vector<SessionOptions>& configurations) {
  int64_t n_starts = 0;  // counts prompts: progress goes back to the first layer
  int last_layer = 1 << 20;
  run.prefill_progress = [&](const Progress& p) {
    n_starts += p.phase == Phase::prefill && p.il < last_layer ? 1 : 0;
    last_layer = p.il;
    return true;
  };
  const QaItems items = qa_items(run.model, rome_questions(40), {});
  PromptReader reader(run);
  for (int i = 0; i < 4; ++i) {  // each question twice: what is kept may be used again
    const Item& item = items.items[i % 2];
    SCOPED_TRACE(item.id);
    const Prompt prompt = item.make();
    const auto shared = answer_prompt(run, configurations, prompt, item.limit, reader, true);
    const auto alone = answer_prompt(run, configurations, prompt, item.limit);
    for (size_t c = 0; c < configurations.size(); ++c) {
      SCOPED_TRACE(configuration_label(configurations[c]));
      EXPECT_EQ(essence(shared[c]), essence(alone[c]));
    }
    EXPECT_EQ(item.score(prompt, shared[0].text), 1) << shared[0].text;
  }
}

TEST(QaRun, AwareQuestionsShareTheirContext) {
  RunOptions run;
  run.model = needle_model();
  expect_same_answers(run, {configuration("full", 0), configuration("snapkv", 64),
                            configuration("streaming-llm", 64), configuration("h2o", 64)});
}

TEST(QaRun, AgnosticQuestionsShareTheirContext) {
  RunOptions run;
  run.model = needle_model();
  run.question_agnostic = true;
  SessionOptions refresh = configuration("snapkv", 64);
  refresh.kv_refresh = true;  // this session cannot be saved, so the prompt is read again
  expect_same_answers(run, {configuration("full", 0), configuration("snapkv", 64),
                            configuration("h2o", 64), refresh});
}

TEST(QaRun, StoredQuestionsShareTheirContext) {
  RunOptions run;
  run.model = needle_model();
  run.keeps_full = true;
  expect_same_answers(run, {configuration("full", 0), configuration("snapkv", 64)});
}

TEST(QaRun, ReadsASharedContextOnce) {
  RunOptions run;
  run.model = needle_model();
  run.configurations = {configuration("full", 0), configuration("snapkv", 64)};
  std::vector<int64_t> lengths;  // the lengths of the prompts that were begun
  int last_layer = 1 << 20;
  run.prefill_progress = [&](const Progress& p) {
    if (p.il < last_layer) lengths.push_back(p.n_tokens);
    last_layer = p.il;
    return true;
  };
  const QaItems items = qa_items(run.model, rome_questions(40), {});
  RecordFile file("", false);
  run_items(run, items.items, file);
  EXPECT_EQ(file.size(), 4u);
  ASSERT_EQ(lengths.size(), 2u);
  EXPECT_LT(lengths[1], 64) << "the second question's own tokens";
  EXPECT_GT(lengths[0], 500);
}

TEST(QaRun, CountsWhatTheFullCacheAnswers) {
  RunOptions run;
  run.model = needle_model();
  run.configurations = {configuration("full", 0), configuration("snapkv", 64),
                        configuration("streaming-llm", 32)};
  std::vector<QaQuestion> questions = rome_questions(40);
  questions.push_back(questions[0]);
  questions.back().id = "wrong";
  questions.back().answers = {"12345"};
  const QaItems items = qa_items(run.model, questions, {});
  RecordFile file("", false);
  run_items(run, items.items, file);
  const JsonField record = file.at(record_key(run, items.items[1], run.configurations[1]));
  EXPECT_EQ(record.at("task").text(), "qa");
  EXPECT_EQ(record.at("question_id").text(), "Seoul");
  const std::string table = qa_table(run, items, file);
  EXPECT_NE(table.find("| cache | question | kept KiB | south | east | all |"), std::string::npos)
      << table;
  EXPECT_NE(table.find(" 1 of 2 | 1 of 1 | 2 of 3 |"), std::string::npos) << table;
  EXPECT_NE(table.find("100.0% [20.7, 100.0] of 1 | 100.0% [20.7, 100.0] of 1 | 100.0% [34.2, "
                       "100.0] of 2 |"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("0.0% [0.0, 65.8] of 2 |"), std::string::npos) << table;
  EXPECT_NE(table.find("3 questions about 1 text. The full cache answers 66.7%"), std::string::npos)
      << table;
}

TEST(QaItems, LongPromptsAreAnErrorOrLeftOut) {
  const auto model = needle_model();
  std::vector<QaQuestion> questions = rome_questions(40);
  auto longer = std::make_shared<QaContext>(*questions[0].context);
  longer->name = "long.txt";
  while (model->tokenize(longer->text).size() < static_cast<size_t>(model->info().n_ctx_train)) {
    longer->text += longer->text;
  }
  questions[1].context = longer;
  test::expect_error(ErrorCode::kContextExceeded,
                     {"q.jsonl:1", "long.txt", "Seoul", "--max-length"},
                     [&] { qa_items(model, questions, {}); });
  const QaItems items = qa_items(model, questions, {.max_length = 3000});
  EXPECT_EQ(items.items.size(), 1u);
  EXPECT_EQ(items.n_left_out, 1);
  test::expect_error(ErrorCode::kUsage, {"all 2", "10 tokens"},
                     [&] { qa_items(model, questions, {.max_length = 10}); });
}

// A question whose text after the question's place is a suffix, not a question.
QaQuestion gap_question() {
  QaQuestion q = rome_questions(10)[0];
  q.question.clear();
  q.lead.clear();
  q.title = "rome.py";
  q.gap = {.suffix = "\nThe end.\n", .rest = 0, .name = "48213", .defined = 0};
  q.gap.defined = q.context->text.find(q.gap.name);
  return q;
}

TEST(QaItems, GapsAreFilledByTokensOfTheVocabulary) {
  const std::string path = testing::TempDir() + "fills_gaps.gguf";
  test::write_model_with_keys(test::model_path("needle"), path,
                              {{"tokenizer.ggml.fim_pre_token_id", 5},
                               {"tokenizer.ggml.fim_suf_token_id", 6},
                               {"tokenizer.ggml.fim_mid_token_id", 7}});
  const auto model = Model::load({.path = path});
  const QaQuestion q = gap_question();
  const Item item = qa_items(model, {q}, {}).items.at(0);
  const Prompt prompt = item.make();
  EXPECT_EQ(prompt.tokens, fill_in_prompt(model->tokenizer(), q.context->text, q.gap.suffix));
  const std::vector<int32_t> suffix = model->tokenizer().encode(q.gap.suffix, false, false);
  const auto mark = prompt.tokens.end() - 2 - std::ssize(suffix);
  EXPECT_EQ(*mark, 6);
  EXPECT_EQ(prompt.n_context, mark - prompt.tokens.begin()) << "the suffix is the question";
  EXPECT_EQ(prompt.tokens.back(), 7);
  EXPECT_EQ(prompt.question_end, std::ssize(prompt.tokens));
  EXPECT_EQ(prompt.references, q.answers);
  EXPECT_EQ(prompt.details.at("suffix"), q.gap.suffix);
  EXPECT_EQ(prompt.details.at("name"), "48213");
  const auto n_back = model->tokenize(q.context->text.substr(q.gap.defined), false, false).size();
  EXPECT_EQ(prompt.details.at("n_back"), n_back);
  QaQuestion other = q;
  other.gap.suffix += "x";
  const Item second = qa_items(model, {other}, {}).items.at(0);
  EXPECT_NE(second.id, item.id);
  EXPECT_EQ(second.group, item.group) << "the same text";
  RunOptions run;
  run.model = model;
  run.configurations = {configuration("full", 0), configuration("snapkv", 64)};
  RecordFile file("", false);
  run_items(run, {item, second}, file);
  EXPECT_EQ(file.size(), 4u);
  QaOptions chat;
  chat.format = PromptFormat::chat(ChatTemplate::built_in("chatml"), Json::object(), "");
  test::expect_error(ErrorCode::kUsage, {"q.jsonl:1", "Rome", "suffix", "--chat"},
                     [&] { qa_items(model, {q}, chat); });
  test::expect_error(ErrorCode::kUsage, {"q.jsonl:1", "Rome", "suffix", "<|fim_prefix|>", "needle"},
                     [&] { qa_items(needle_model(), {q}, {}); });
}

// Four questions about two facts in filler.
std::vector<QaQuestion> conversation_questions() {
  std::vector<QaQuestion> questions = rome_questions(40);
  for (const char* city : {"Rome again", "Seoul again"}) {
    questions.push_back(questions[questions.size() - 2]);
    questions.back().id = city;
  }
  return questions;
}

TEST(QaAfter, OthersOfTheTextComeFirst) {
  const auto asked = ask_after_others(conversation_questions(), 3);
  ASSERT_EQ(asked.size(), 4u);
  const auto earlier = [&](size_t i) {
    std::vector<std::string> ids;
    for (const auto& q : asked.at(i).earlier) ids.push_back(q->id);
    return ids;
  };
  EXPECT_EQ(earlier(0), (std::vector<std::string>{"Seoul", "Rome again", "Seoul again"}));
  EXPECT_EQ(earlier(2), (std::vector<std::string>{"Seoul again", "Rome", "Seoul"}));
  test::expect_error(ErrorCode::kUsage, {"q.jsonl:1", "rome", "4 questions", "at least 5"},
                     [] { ask_after_others(conversation_questions(), 4); });
  test::expect_error(ErrorCode::kUsage, {"q.jsonl:1", "Rome", "suffix"},
                     [] { ask_after_others({gap_question()}, 1); });
}

TEST(QaAfter, EveryConfigurationReadsTheFullCachesAnswers) {
  const auto model = needle_model();
  QaOptions options;
  options.format = PromptFormat::chat(ChatTemplate::built_in("chatml"), Json::object(), "");
  const auto asked = ask_after_others(conversation_questions(), 2);
  const Item item = qa_items(model, {asked[0]}, options).items.at(0);
  const Prompt prompt = item.make();
  ASSERT_EQ(prompt.turns.size(), 2u);
  EXPECT_TRUE(prompt.text.ends_with(
      "\n\nWhat is the secret number of Seoul?<|im_end|>\n<|im_start|>assistant\nThe secret number "
      "of Seoul is"))
      << prompt.text;
  EXPECT_EQ(prompt.turns[1].text,
            "<|im_end|>\n<|im_start|>user\nWhat is the secret number of Rome?<|im_end|>\n"
            "<|im_start|>assistant\nThe secret number of Rome is");
  EXPECT_EQ(prompt.references, asked[0].answers);
  EXPECT_NE(item.id, qa_items(model, {conversation_questions()[0]}, options).items[0].id);
  RunOptions run;
  run.model = model;
  SessionOptions refresh = configuration("snapkv", 64);
  refresh.kv_refresh = true;
  run.configurations = {configuration("full", 0), configuration("snapkv", 64), refresh,
                        configuration("streaming-llm", 32)};
  RecordFile file("", false);
  run_items(run, {item}, file);
  const auto record = [&](size_t i) {
    return file.at(record_key(run, item, run.configurations[i])).json();
  };
  const Json history = record(0).at("history");
  ASSERT_EQ(history.size(), 2u);
  EXPECT_NE(history.at(0).get<std::string>().find("71554"), std::string::npos) << history;
  EXPECT_NE(history.at(1).get<std::string>().find("48213"), std::string::npos) << history;
  EXPECT_EQ(record(0).at("score"), 1.0) << record(0);
  EXPECT_EQ(record(2).at("score"), 1.0) << "every row is there to choose from";
  EXPECT_EQ(record(3).at("history"), history) << "not its own answers";
  EXPECT_FALSE(record(0).contains("scores")) << "one question counts";
  for (size_t i = 0; i < run.configurations.size(); ++i) {
    EXPECT_EQ(record(i).at("n_prompt"), record(0).at("n_prompt"));
    EXPECT_GT(record(i).at("n_prompt"), prompt.tokens.size());
  }
  EXPECT_LE(record(2).at("kv_bytes"), record(0).at("kv_bytes"));
  RunOptions alone = run;  // without the full cache's own configuration, as a resumed run may be
  alone.configurations = {configuration("streaming-llm", 32)};
  RecordFile other("", false);
  run_items(alone, {item}, other);
  const Json again = other.at(record_key(alone, item, alone.configurations[0])).json();
  EXPECT_EQ(again.at("history"), history);
  EXPECT_EQ(again.at("answer"), record(3).at("answer"));
}

TEST(QaAfter, PlainConversationsGoOnInTheSameWay) {
  const auto model = needle_model();
  const auto asked = ask_after_others(conversation_questions(), 3);
  const Prompt prompt = qa_items(model, {asked[1]}, {}).items.at(0).make();
  ASSERT_EQ(prompt.turns.size(), 3u);
  EXPECT_EQ(prompt.turns[2].text,
            "\n\nQuestion: What is the secret number of Seoul?\nAnswer: The secret number of Seoul "
            "is");
  EXPECT_EQ(model->detokenize(prompt.turns[2].tokens), prompt.turns[2].text);
  int64_t n_tokens = std::ssize(prompt.tokens);
  for (const Turn& turn : prompt.turns) n_tokens += std::ssize(turn.tokens) + 32;
  QaOptions options;
  options.max_length = n_tokens;
  EXPECT_EQ(qa_items(model, {asked[1]}, options).n_left_out, 0);
  options.max_length = n_tokens - 1;
  test::expect_error(ErrorCode::kUsage, {"all 1"}, [&] { qa_items(model, {asked[1]}, options); });
}

TEST(QaItems, FormatsAreDifferentItems) {
  const auto model = needle_model();
  QaOptions chat;
  chat.format = PromptFormat::chat(ChatTemplate::built_in("chatml"), Json::object(), "");
  const auto questions = rome_questions(4);
  const Item a = qa_items(model, questions, {}).items[0];
  const Item b = qa_items(model, questions, chat).items[0];
  EXPECT_NE(a.id, b.id);
  EXPECT_TRUE(a.make().text.ends_with("\nAnswer: The secret number of Rome is"));
  EXPECT_TRUE(b.make().text.ends_with("assistant\nThe secret number of Rome is"));
  const Json details = a.make().details;
  EXPECT_EQ(details.at("prompt"),
            "\n\nQuestion: What is the secret number of Rome?\nAnswer: The secret number of Rome "
            "is");
}

}  // namespace
}  // namespace snapkv::eval
