// SPDX-License-Identifier: MIT
// LongBench, with made-up files in the published form: prompts, truncation, scores computed by
// hand, and errors that name the file and the line.
#include "eval/longbench/longbench.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/eval/needle_model.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv::eval {
namespace {

Json row(const std::string& dataset, const std::string& id, const std::string& context,
         const std::string& input, const std::vector<std::string>& answers) {
  return {{"input", input},     {"context", context}, {"answers", answers},    {"length", 9},
          {"dataset", dataset}, {"language", "en"},   {"all_classes", Json()}, {"_id", id}};
}

class Longbench : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/config");
    write("config/dataset2prompt.json",
          Json{{"hotpotqa",
                "Read {{this}}:\n{context}\nQuestion: {input}\nAnswer: The secret "
                "number of Rome is"},
               {"trec", "{context}\n{input}"},
               {"lsht", "{context}\n{input}"},
               {"gov_report", "{context}\nSummary:"},
               {"passage_retrieval_en", "{context}\n{input}"}}
              .dump());
    write("config/dataset2maxlen.json",
          R"({"hotpotqa": 8, "trec": 4, "gov_report": 4, "passage_retrieval_en": 4})");
    write("hotpotqa.jsonl", hotpot_.dump() + "\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << content;
  }
  std::vector<LongbenchSet> open(const std::vector<std::string>& tasks = {}, int64_t n = 0) {
    left_out_.clear();
    return open_longbench(folder_, "", tasks, n, left_out_);
  }
  void expect_bad(const std::string& content, std::initializer_list<std::string_view> words) {
    write("hotpotqa.jsonl", content);
    test::expect_error(ErrorCode::kUsage, words, [&] { open({"hotpotqa"}); });
  }

  std::string folder_;
  std::vector<std::string> left_out_;
  const Json hotpot_ =
      row("hotpotqa", "q1", "Caf\u00e9 talk.\nThe secret number of Rome is 48213.\n",
          "What is the secret number of Rome?", {"48213"});
};

TEST_F(Longbench, FillsInThePrompt) {
  const LongbenchSet set = open()[0];
  EXPECT_EQ(set.n_predict, 8);
  const Prompt prompt = make_longbench(*needle_model(), set, set.lines[0], {.max_length = 1000});
  EXPECT_EQ(prompt.text,
            "Read {this}:\nCaf\u00e9 talk.\nThe secret number of Rome is 48213.\n\nQuestion: What "
            "is the secret number of Rome?\nAnswer: The secret number of Rome is");
  EXPECT_EQ(prompt.tokens, needle_model()->tokenize(prompt.text, true, false));
  EXPECT_EQ(prompt.references, std::vector<std::string>{"48213"});
  EXPECT_EQ(prompt.details.at("truncated"), false);
  EXPECT_EQ(prompt.details.at("n_left_out"), 0);
  // The question is the text after the context.
  const std::span tokens(prompt.tokens);
  const std::string after = needle_model()->detokenize(tokens.subspan(prompt.n_context));
  EXPECT_TRUE(after.starts_with("\nQuestion") || after.starts_with("Question")) << after;
}

TEST_F(Longbench, CutsTheMiddle) {
  const auto model = needle_model();
  std::string context;
  for (int i = 0; i < 300; ++i) context += "word" + std::to_string(i) + " \u00e9t\u00e9. ";
  write("hotpotqa.jsonl", row("hotpotqa", "long", context, "Why?", {"x"}).dump());
  const LongbenchSet set = open()[0];
  for (const int64_t most : {100, 101, 177}) {
    const Prompt prompt = make_longbench(*model, set, set.lines[0], {.max_length = most});
    const Prompt whole = make_longbench(*model, set, set.lines[0], {.max_length = 100'000});
    EXPECT_LE(std::ssize(prompt.tokens), most);
    EXPECT_GT(std::ssize(prompt.tokens), most - 12);
    EXPECT_TRUE(prompt.text.starts_with("Read {this}:\nword0 "));
    EXPECT_TRUE(prompt.text.ends_with("Question: Why?\nAnswer: The secret number of Rome is"));
    EXPECT_EQ(prompt.details.at("truncated"), true);
    const int64_t n_whole = prompt.details.at("n_prompt_whole");
    EXPECT_EQ(n_whole, std::ssize(whole.tokens));
    const int64_t half = (n_whole - prompt.details.at("n_left_out").get<int64_t>()) / 2;
    EXPECT_LE(half, most / 2);
    const std::span all(whole.tokens);
    EXPECT_EQ(prompt.text,
              to_utf8(model->detokenize(all.first(half)) + model->detokenize(all.last(half))));
  }
  test::expect_error(ErrorCode::kUsage, {"hotpotqa.jsonl:1", "question", "20"}, [&] {
    make_longbench(*model, set, set.lines[0], {.max_length = 20, .question_agnostic = true});
  });
}

TEST_F(Longbench, ChatsAreAroundTheCutPromptOfSomeTasks) {
  const auto model = needle_model();
  const PromptFormat format =
      PromptFormat::chat(ChatTemplate::built_in("chatml"), Json::object(), "");
  std::string context;
  for (int i = 0; i < 3000; ++i) context += "word" + std::to_string(i) + " \u00e9t\u00e9. ";
  write("hotpotqa.jsonl", row("hotpotqa", "long", context, "Why?", {"x"}).dump());
  Json example = row("trec", "t", "Question: a", "Question: b", {"Date"});
  example["all_classes"] = {"Date", "Number"};
  write("trec.jsonl", example.dump());
  const auto sets = open();
  const LongbenchOptions cut = {.max_length = 100, .format = format};
  const Prompt prompt = make_longbench(*model, sets[0], sets[0].lines[0], cut);
  const Prompt plain = make_longbench(*model, sets[0], sets[0].lines[0], {.max_length = 100});
  EXPECT_EQ(prompt.text, "<|im_start|>user\n" + plain.text + "<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(prompt.details.at("n_left_out"), plain.details.at("n_left_out"));
  EXPECT_EQ(prompt.details.at("chat_template").at("id"), format.id());
  EXPECT_TRUE(plain.details.at("chat_template").is_null());
  EXPECT_GT(prompt.n_context, plain.n_context);
  EXPECT_LT(prompt.question_end, std::ssize(prompt.tokens));
  // For worked examples and code the prompt is a text to continue, not a chat.
  const Prompt trec = make_longbench(*model, sets[1], sets[1].lines[0], cut);
  EXPECT_EQ(trec.text, "Question: a\nQuestion: b");
  EXPECT_TRUE(trec.details.at("chat_template").is_null());
  const auto items = longbench_items(model, sets, {.format = format});
  const auto plain_items = longbench_items(model, sets, {});
  EXPECT_TRUE(items[0].id.ends_with(format.id()));
  EXPECT_EQ(items[1].id, plain_items[1].id);
  // There is room for the template and the answer.
  const int64_t n_ctx = model->info().n_ctx_train;
  const Prompt longest = items[0].make();
  EXPECT_EQ(longest.details.at("truncated"), true);
  EXPECT_LE(std::ssize(longest.tokens) + items[0].limit.n_predict, n_ctx);
  EXPECT_GT(std::ssize(longest.tokens) + items[0].limit.n_predict, n_ctx - 40);
  test::expect_error(ErrorCode::kContextExceeded, {"chat template"}, [&] {
    longbench_items(model, sets, {.max_length = n_ctx - 8, .format = format});
  });
  EXPECT_FALSE(longbench_items(model, sets, {.max_length = n_ctx - 8}).empty());
}

TEST_F(Longbench, ChoosesTasks) {
  write("trec.jsonl", [&] {
    Json line = row("trec", "t", "", "", {"Date"});
    line["all_classes"] = {"Date", "Number"};
    return "\n" + line.dump() + "\n" + line.dump() + "\n\n" + line.dump();
  }());
  write("dureader.jsonl", "anything");
  const auto sets = open({}, 2);
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_EQ(sets[1].task.name, "trec");
  EXPECT_EQ(sets[1].n_lines, 3);
  ASSERT_EQ(sets[1].lines.size(), 2u);
  EXPECT_EQ(sets[1].lines[1].number, 3);
  EXPECT_EQ(read_longbench_row(sets[1], sets[1].lines[1]).classes.size(), 2u);
  EXPECT_EQ(left_out_, std::vector<std::string>{"dureader"});
  EXPECT_EQ(open({"trec", "trec"}).size(), 1u);
  EXPECT_EQ(longbench_items(needle_model(), sets, {}).size(), 2u) << "equal lines count once";
  test::expect_error(ErrorCode::kUsage, {"dureader", "word segmentation"},
                     [&] { open({"dureader"}); });
  test::expect_error(ErrorCode::kUsage, {"no task hotpot;", "hotpotqa"}, [&] { open({"hotpot"}); });
  test::expect_error(ErrorCode::kRuntime, {"gov_report.jsonl"}, [&] { open({"gov_report"}); });
  std::filesystem::remove(folder_ + "/config/dataset2prompt.json");
  test::expect_error(ErrorCode::kUsage, {"dataset2prompt.json", "--prompts", "THUDM/LongBench"},
                     [&] { open(); });
}

TEST_F(Longbench, SaysWhatIsWrongWithAFile) {
  const std::string good = hotpot_.dump() + "\n";
  expect_bad(good + "{\"input\": \n", {"hotpotqa.jsonl:2: no valid JSON"});
  expect_bad(good + "\n[1]\n", {"hotpotqa.jsonl:3: the record is [1], expected an object"});
  expect_bad("\n", {"hotpotqa.jsonl: no lines"});
  Json bad = hotpot_;
  bad["answers"] = Json::array();
  expect_bad(good + bad.dump(), {":2: field answers is [], expected an array of at least 1"});
  bad["answers"] = "48213";
  expect_bad(bad.dump(), {":1: field answers is \"48213\", expected an array"});
  bad = hotpot_;
  bad.erase("context");
  expect_bad(bad.dump(), {":1: field context is missing"});
  bad = hotpot_;
  bad["dataset"] = "musique";
  expect_bad(bad.dump(), {"field dataset must be hotpotqa, it is musique"});
  bad = hotpot_;
  bad["length"] = "9";
  expect_bad(bad.dump(), {"field length is \"9\", expected a whole number"});
  write("trec.jsonl", row("trec", "t", "", "", {"Date"}).dump());
  test::expect_error(ErrorCode::kUsage, {"trec.jsonl:1: field all_classes is"},
                     [&] { open({"trec"}); });
  write("passage_retrieval_en.jsonl", row("passage_retrieval_en", "p", "", "", {"none"}).dump());
  test::expect_error(ErrorCode::kUsage, {"passage_retrieval_en.jsonl:1", "paragraph's number"},
                     [&] { open({"passage_retrieval_en"}); });
}

TEST_F(Longbench, SaysWhatIsWrongWithPromptsAndLengths) {
  test::expect_error(ErrorCode::kUsage, {"dataset2maxlen.json", "field lsht is missing"},
                     [&] { open({"lsht"}); });
  test::expect_error(ErrorCode::kUsage, {"dataset2prompt.json", "field lcc is missing"},
                     [&] { open({"lcc"}); });
  write("config/dataset2prompt.json", R"({"hotpotqa": "{context} {inputs}"})");
  test::expect_error(ErrorCode::kUsage, {"hotpotqa", "{inputs}"}, [&] { open({"hotpotqa"}); });
  write("config/dataset2prompt.json", "{");
  test::expect_error(ErrorCode::kUsage, {"dataset2prompt.json: no JSON"}, [&] { open(); });
  const std::string deep = std::string(300'000, '[') + std::string(300'000, ']');
  for (const char* name : {"dataset2prompt.json", "dataset2maxlen.json"}) {
    write("config/dataset2prompt.json", R"({"hotpotqa": "{context}"})");
    write("config/dataset2maxlen.json", R"({"hotpotqa": 8})");
    write(std::string("config/") + name, "{\"hotpotqa\": " + deep + "}");
    test::expect_error(ErrorCode::kUsage, {name, "deeper than 64 levels"}, [&] { open(); });
  }
  write("config/dataset2prompt.json", R"({"hotpotqa": "{context}"})");
  for (const std::string& length : {std::string("0"), std::string("9223372036854775807"),
                                    "\"" + std::string(500, 'x') + "\""}) {
    write("config/dataset2maxlen.json", "{\"hotpotqa\": " + length + "}");
    test::expect_error(ErrorCode::kUsage, {"dataset2maxlen.json: field hotpotqa is"},
                       [&] { open(); });
  }
}

TEST(LongbenchScores, ByHand) {
  const auto score = [](const std::string& task, const std::vector<std::string>& references,
                        const std::string& answer, const std::vector<std::string>& classes = {}) {
    for (const LongbenchTask& t : longbench_tasks()) {
      if (t.name == task) return longbench_score(t, references, classes, answer);
    }
    ADD_FAILURE() << task;
    return -1.0;
  };
  // The best answer counts. "Rome": 1 of 2 words and 1 of 1, so F1 is 2/3; "Rome Italy": 1.
  EXPECT_NEAR(score("hotpotqa", {"Rome"}, "Rome, Italy."), 2.0 / 3, 1e-9);
  EXPECT_EQ(score("hotpotqa", {"Rome", "the Rome Italy"}, "Rome, Italy."), 1);
  EXPECT_EQ(score("hotpotqa", {"Rome"}, ""), 0);
  EXPECT_EQ(score("hotpotqa", {"\u7f57\u9a6c"}, "\u7f57\u9a6c"), 1);
  // Some tasks use only the first line, after leading newlines are removed.
  EXPECT_EQ(score("triviaqa", {"Rome"}, "\n\nRome\nItaly"), 1);
  EXPECT_NEAR(score("hotpotqa", {"Rome"}, "\n\nRome\nItaly"), 2.0 / 3, 1e-9);
  EXPECT_EQ(score("trec", {"Date"}, "Date\nNumber", {"Date", "Number"}), 1);
  EXPECT_EQ(score("trec", {"Date"}, "Date or Number", {"Date", "Number"}), 0.5);
  EXPECT_EQ(score("gov_report", {"a b c d"}, "a b c d"), 1);
  EXPECT_EQ(score("passage_retrieval_en", {"Paragraph 12"}, "Paragraph 12 or 13"), 0.5);
  EXPECT_EQ(score("passage_retrieval_zh", {"\u6bb5\u843d12"}, "\u6bb5\u843d12"), 1);
  EXPECT_EQ(score("passage_count", {"7"}, "7"), 1);
  EXPECT_NEAR(score("lcc", {"x = 2"}, "# comment\nx = 1\n"), 0.8, 1e-9);
  EXPECT_EQ(longbench_tasks().size(), 21u);
}

TEST_F(Longbench, RunsResumesAndTabulates) {
  Json trec = row("trec", "t", "Type: Date", "Type:", {"Date"});
  trec["all_classes"] = {"Date", "Number"};
  write("trec.jsonl", trec.dump() + "\n");
  write(
      "hotpotqa.jsonl", hotpot_.dump() + "\n" + [&] {
        Json second = hotpot_;
        second["_id"] = "q2";
        second["answers"] = {"other", "99999"};
        return second.dump();
      }());
  RunOptions run;
  run.model = needle_model();
  SessionOptions small;
  small.kv.budget = 40;
  small.kv.window_size = 16;
  small.kv.params["kernel_size"] = 15;
  SessionOptions full;
  full.kv.name = "full";
  run.configurations = {full, small};
  const auto sets = open();
  const std::vector<Item> items = longbench_items(run.model, sets, {});
  ASSERT_EQ(items.size(), 3u);
  EXPECT_TRUE(items[2].limit.ends_at_line);
  EXPECT_FALSE(items[0].limit.ends_at_line);
  {
    RecordFile file(folder_ + "/out.jsonl", false);
    run_items(run, {items[0]}, file);
  }
  RecordFile file(folder_ + "/out.jsonl", true);
  EXPECT_EQ(file.size(), 2u);
  run_items(run, items, file);
  EXPECT_EQ(file.size(), 6u);
  const Json& record = file.at(record_key(run, items[0], full)).json();
  EXPECT_EQ(record.at("_id"), "q1");
  EXPECT_EQ(record.at("score"), 1) << record;
  EXPECT_EQ(file.at(record_key(run, items[1], full)).at("score").number(), 0);
  const std::string table = longbench_table(run, sets, items, file);
  // 1 of 2. Wilson: centre 0.5, half 1.96 sqrt(0.125 + 3.8415 / 16) / (1 + 3.8415 / 2) = 0.4055
  EXPECT_NE(table.find("| hotpotqa | F1 | 2 of 2 | 0 | 50.00 [9.5, 90.5] |"), std::string::npos)
      << table;
  EXPECT_NE(table.find("| mean of 2 of the 16 English tasks |"), std::string::npos) << table;
  EXPECT_NE(table.find("0 of 3 prompts lost the middle to fit. Question aware"), std::string::npos)
      << table;
  EXPECT_NE(table.find(" Without the chat template (--chat).\n"), std::string::npos) << table;
  const auto format = PromptFormat::chat(ChatTemplate::built_in("chatml"), Json::object(), "");
  const std::string remark = " In the chat template, but for " + sets.back().task.name + ".\n";
  EXPECT_NE(longbench_table(run, sets, items, file, format).find(remark), std::string::npos);
  test::expect_error(ErrorCode::kContextExceeded, {"100000"},
                     [&] { longbench_items(run.model, sets, {.max_length = 100'000}); });
  write("hotpotqa.jsonl", "changed, and shorter");
  test::expect_error(ErrorCode::kRuntime, {"hotpotqa.jsonl:1", "changed"}, items[0].make);
}

}  // namespace
}  // namespace snapkv::eval
