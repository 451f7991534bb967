// SPDX-License-Identifier: MIT
// The commands snapkv eval fidelity, longbench and qa on files of the user's own.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "run_process.h"

namespace snapkv::test {
namespace {

std::vector<nlohmann::json> records_of(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::vector<nlohmann::json> records;
  for (std::string line; std::getline(lines, line);) {
    records.push_back(nlohmann::json::parse(line));
  }
  return records;
}

TEST(EvalFidelityCommand, ReadsStandardInputAndResumes) {
  const std::string out = make_folder() + "/out.jsonl";
  Command command;
  command.args = {"eval",       "fidelity",  "-m",        needle_model(), "--text",
                  "-",          "--lengths", "200",       "--n-continue", "8",
                  "--policies", "snapkv",    "--budgets", "64",           "--kv-window",
                  "16",         "--out",     out};
  command.input = rome_prompt(30);
  const Result first = run(command);
  ASSERT_EQ(first.code, 0) << first.err;
  const auto records = records_of(out);
  ASSERT_EQ(records.size(), 2u) << "the full cache is the reference";
  EXPECT_EQ(records[0].at("configuration").at("policy"), "full");
  EXPECT_EQ(records[1].at("kl").size(), 8u);
  EXPECT_EQ(records[1].at("rows_kept").at(1), 64);
  const std::string prompt = records[1].at("prompt");
  EXPECT_TRUE(command.input.starts_with(prompt + records[1].at("continuation").get<std::string>()));
  EXPECT_NE(first.out.find("| full | 200 |"), std::string::npos) << first.out;
  EXPECT_NE(first.out.find("Used 208 of "), std::string::npos) << first.out;
  EXPECT_EQ(run(command).code, 2) << "the file is there";
  command.args.push_back("--resume");
  EXPECT_EQ(run(command).out, first.out);
  EXPECT_EQ(records_of(out).size(), 2u);
}

TEST(EvalFidelityCommand, SaysWhatCantWork) {
  const auto fidelity = [](const std::string& text, const std::string& length) {
    return run({"eval", "fidelity", "-m", needle_model(), "--text", text, "--lengths", length,
                "--out", make_folder() + "/out.jsonl"});
  };
  const std::string text = make_file("a.txt", rome_prompt(5));
  const Result too_short = fidelity(text, "3000");
  EXPECT_EQ(too_short.code, 2);
  EXPECT_NE(too_short.err.find("no text is long enough"), std::string::npos) << too_short.err;
  EXPECT_EQ(fidelity(text, "100000").code, 5);
  EXPECT_EQ(fidelity("/no/such.txt", "100").code, 1);
  EXPECT_EQ(fidelity(make_folder(), "100").code, 2);
}

TEST(EvalLongbenchCommand, RunsAndNamesFileAndLine) {
  const std::string folder = make_folder(), out = make_folder() + "/out.jsonl";
  const auto write = [&](const std::string& name, const std::string& content) {
    std::ofstream(folder + "/" + name) << content;
  };
  write("dataset2prompt.json",
        R"({"qasper": "{context}\nQuestion: {input}\nAnswer: The secret number of Rome is"})");
  write("dataset2maxlen.json", R"({"qasper": 8})");
  write("vcsum.jsonl", "");
  const nlohmann::json row = {
      {"context", rome_prompt(10)}, {"input", "What?"}, {"answers", {"48213"}},   {"length", 500},
      {"dataset", "qasper"},        {"language", "en"}, {"all_classes", nullptr}, {"_id", "a"}};
  write("qasper.jsonl", row.dump() + "\n");
  std::vector<std::string> args = {"eval",        "longbench", "-m",           needle_model(),
                                   "--data",      folder,      "--out",        out,
                                   "--budgets",   "128",       "--kernels",    "15",
                                   "--kv-window", "16",        "--max-length", "200"};
  const Result first = run(args);
  ASSERT_EQ(first.code, 0) << first.err;
  const auto records = records_of(out);
  ASSERT_EQ(records.size(), 2u);
  for (const char* field : {"key", "version", "answer", "score", "configuration", "prompt"}) {
    EXPECT_TRUE(records[1].contains(field)) << field;
  }
  EXPECT_EQ(records[1].at("truncated"), true);
  EXPECT_LE(records[1].at("n_prompt").get<int>(), 200);
  EXPECT_NE(first.out.find("| qasper | F1 | 1 of 1 | 1 |"), std::string::npos) << first.out;
  EXPECT_NE(first.out.find("1 of 1 prompt lost the middle"), std::string::npos) << first.out;
  EXPECT_NE(first.out.find("Left out: vcsum (not supported: word segmentation"), std::string::npos);
  args.push_back("--resume");
  EXPECT_EQ(run(args).out, first.out);
  EXPECT_NE(first.out.find(" Without the chat template (--chat).\n"), std::string::npos)
      << first.out;
  std::vector<std::string> chat_args = args;
  chat_args.insert(chat_args.end(), {"--chat", "--chat-template", "chatml"});
  const Result chat = run(chat_args);
  ASSERT_EQ(chat.code, 0) << chat.err;
  EXPECT_NE(chat.out.find(" In the chat template.\n"), std::string::npos) << chat.out;
  EXPECT_EQ(records_of(out).size(), 4u);
  EXPECT_TRUE(records_of(out)[2].at("chat_template").contains("id"));
  write("qasper.jsonl", row.dump() + "\n{\n");
  const Result bad = run(args);
  EXPECT_EQ(bad.code, 2);
  EXPECT_NE(bad.err.find("qasper.jsonl:2: no valid JSON"), std::string::npos) << bad.err;
}

class EvalQaCommand : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(folder_ + "/rome.py") << rome_prompt(10);
    const nlohmann::json rome = {{"text", "rome.py"},
                                 {"kind", "code"},
                                 {"questions",
                                  {{{"id", "a"},
                                    {"question", "What is the secret number of Rome?"},
                                    {"prefix", "The secret number of Rome is"},
                                    {"answers", {"48,213"}}},
                                   {{"id", "b"}, {"question", "Why?"}, {"answers", {"Why not"}}}}}};
    std::ofstream(data_) << rome.dump() << "\n";
  }
  Result ask(std::vector<std::string> more) const {
    std::vector<std::string> args = {"eval", "qa",      "-m",    needle_model(), "--data",
                                     data_,  "--texts", folder_, "--policies",   "snapkv"};
    args.insert(args.end(), more.begin(), more.end());
    return run(args);
  }

  const std::string folder_ = make_folder(), data_ = folder_ + "/questions.jsonl",
                    out_ = make_folder() + "/out.jsonl";
};

TEST_F(EvalQaCommand, CountsWhatTheFullCacheAnswersAndResumes) {
  for (const char* mode : {"", "--question-agnostic", "--keep-full"}) {
    SCOPED_TRACE(mode);
    std::vector<std::string> args = {"--budgets", "128",   "--kernels", "15",      "--kv-window",
                                     "16",        "--out", out_,        "--resume"};
    if (*mode != 0) args.emplace_back(mode);
    const size_t before = std::filesystem::exists(out_) ? records_of(out_).size() : 0;
    const Result first = ask(args);
    ASSERT_EQ(first.code, 0) << first.err;
    const auto records = records_of(out_);
    ASSERT_EQ(records.size(), before + 4) << "policy full runs too";
    EXPECT_EQ(records.back().at("task"), "qa");
    EXPECT_NE(first.out.find("| 1 of 2 |"), std::string::npos) << first.out;
    EXPECT_NE(first.out.find("The full cache answers 50.0%"), std::string::npos) << first.out;
    EXPECT_EQ(ask(args).out, first.out);
    EXPECT_EQ(records_of(out_).size(), records.size());
  }
}

TEST_F(EvalQaCommand, AsksInAChat) {
  const Result none = ask({"--chat", "--out", out_});
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("no chat template"), std::string::npos) << none.err;
  EXPECT_EQ(ask({"--system", "Be brief."}).code, 2) << "it needs --chat";
  const Result chat =
      ask({"--chat", "--chat-template", "chatml", "--system", "Be brief.", "--out", out_});
  ASSERT_EQ(chat.code, 0) << chat.err;
  const auto record = records_of(out_).at(0);
  EXPECT_EQ(record.at("chat_template").at("system"), "Be brief.");
  EXPECT_TRUE(record.at("prompt").get<std::string>().ends_with(
      "Rome?<|im_end|>\n<|im_start|>assistant\nThe secret number of Rome is"));
  const Result itself = ask({"--chat", "--chat-template", "chatml", "--system", "Be brief.",
                             "--no-prefix", "--resume", "--out", out_});
  ASSERT_EQ(itself.code, 0) << itself.err;
  ASSERT_EQ(records_of(out_).size(), 6u) << "the question without a prefix is the same";
  EXPECT_TRUE(records_of(out_).at(4).at("prompt").get<std::string>().ends_with("assistant\n"));
}

TEST_F(EvalQaCommand, SummariesAreOfTheQuestionsTextsOrOfFiles) {
  const auto summarize = [&](std::vector<std::string> more) {
    std::vector<std::string> args = {"eval",   "summary",    "-m",     needle_model(), "--budgets",
                                     "64,128", "--policies", "snapkv", "--n-predict",  "12"};
    args.insert(args.end(), more.begin(), more.end());
    return run(args);
  };
  const Result first =
      summarize({"--data", data_, "--texts", folder_, "--refresh-limits", "0,4", "--out", out_});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.out.find("| cache | kept KiB | facts named |"), std::string::npos) << first.out;
  EXPECT_NE(first.out.find("\n1 summary.\n"), std::string::npos) << "two questions, one text";
  const auto records = records_of(out_);
  ASSERT_EQ(records.size(), 5u) << "the full cache, and two budgets without and with refresh";
  EXPECT_FALSE(records.at(1).at("configuration").contains("kv_decode_limit"));
  EXPECT_EQ(records.at(2).at("configuration").at("kv_decode_limit"), 68);
  EXPECT_EQ(records.at(2).at("configuration").at("kv_refresh"), true);
  EXPECT_EQ(records.at(4).at("configuration").at("kv_decode_limit"), 132);
  const Result again = summarize(
      {"--data", data_, "--texts", folder_, "--refresh-limits", "0,4", "--out", out_, "--resume"});
  EXPECT_EQ(again.out, first.out);
  EXPECT_EQ(records_of(out_).size(), 5u);
  const Result file = summarize({"--text", folder_ + "/rome.py", "--chat", "--chat-template",
                                 "chatml", "--out", out_, "--resume"});
  ASSERT_EQ(file.code, 0) << file.err;
  ASSERT_EQ(records_of(out_).size(), 8u);
  EXPECT_EQ(records_of(out_).at(5).at("title"), "rome.py");
  EXPECT_TRUE(records_of(out_).at(5).at("prompt").get<std::string>().ends_with("assistant\n"));
  // 140 to 190 tokens each: two fit into a document
  std::ofstream titled(folder_ + "/titled.jsonl");
  for (const char* title : {"4", "5", "6"}) {
    titled << nlohmann::json({{"context", rome_prompt(std::stoi(title))},
                              {"title", title},
                              {"id", title},
                              {"question", "What?"},
                              {"answers", {"x"}}})
           << "\n";
  }
  titled.close();
  const Result joined =
      summarize({"--data", folder_ + "/titled.jsonl", "--join", "400", "--out", out_, "--resume"});
  ASSERT_EQ(joined.code, 0) << joined.err;
  ASSERT_EQ(records_of(out_).size(), 14u) << "two documents in three configurations";
  const auto document = records_of(out_).back();
  EXPECT_EQ(document.at("kind"), "documents");
  EXPECT_TRUE(document.at("title").get<std::string>().starts_with("2 texts from '"));
  EXPECT_NE(document.at("prompt").get<std::string>().find("Summarize each"), std::string::npos);
  const Result kinds = summarize({"--data", data_, "--texts", folder_, "--kinds", "prose"});
  EXPECT_EQ(kinds.code, 2);
  EXPECT_NE(kinds.err.find("the texts are of the kinds code"), std::string::npos) << kinds.err;
  EXPECT_EQ(summarize({"--text", data_, "--half", "report"}).code, 2) << "only questions have it";
  const Result missing = summarize({"--texts", folder_});
  EXPECT_EQ(missing.code, 2);
  EXPECT_NE(missing.err.find("make texts"), std::string::npos) << missing.err;
  const Result ratio = run({"eval", "summary", "-m", needle_model(), "--text", data_, "--kv-ratio",
                            "0.1", "--refresh-limits", "4"});
  EXPECT_EQ(ratio.code, 2);
  EXPECT_NE(ratio.err.find("--refresh-limits 4 needs a budget of rows"), std::string::npos)
      << ratio.err;
}

TEST_F(EvalQaCommand, AsksAfterOtherQuestions) {
  const std::vector<std::string> options = {"--budgets",   "128", "--kernels", "15",
                                            "--kv-window", "16",  "--after",   "1"};
  const auto after = [&](std::vector<std::string> more) {
    more.insert(more.begin(), options.begin(), options.end());
    return ask(more);
  };
  const Result both = after({"--out", out_});
  ASSERT_EQ(both.code, 0) << both.err;
  const auto records = records_of(out_);
  ASSERT_EQ(records.size(), 6u) << "2 questions: the full cache, append and refresh";
  for (const auto& record : records) {
    EXPECT_EQ(record.at("after").size(), 1u);
    EXPECT_EQ(record.at("history").size(), 1u);
  }
  EXPECT_NE(both.out.find(", refresh |"), std::string::npos) << both.out;
  const std::string refresh_only = make_folder() + "/refresh.jsonl";
  ASSERT_EQ(after({"--modes", "refresh", "--out", refresh_only}).code, 0);
  EXPECT_EQ(records_of(refresh_only).size(), 4u);
  EXPECT_EQ(after({"--kv-refresh"}).code, 2) << "--modes says it";
  EXPECT_EQ(after({"--keep-full"}).code, 2);
  EXPECT_EQ(after({"--question-agnostic"}).code, 2);
  EXPECT_EQ(ask({"--modes", "append"}).code, 2) << "it needs --after";
  const Result too_few = ask({"--after", "2"});
  EXPECT_EQ(too_few.code, 2);
  EXPECT_NE(too_few.err.find("at least 3"), std::string::npos) << too_few.err;
}

TEST_F(EvalQaCommand, GapsNeedAModelThatFillsThem) {
  std::ofstream(data_) << R"({"id": "g", "text": "rome.py", "end": 100, "suffix": "\nx\n", )"
                       << R"("answers": ["y"]})"
                       << "\n";
  const Result none = ask({});
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("questions.jsonl:1: g fills a gap"), std::string::npos) << none.err;
  EXPECT_NE(none.err.find("<|fim_prefix|>"), std::string::npos) << none.err;
  const Result chat = ask({"--chat", "--chat-template", "chatml"});
  EXPECT_EQ(chat.code, 2);
  EXPECT_NE(chat.err.find("without --chat"), std::string::npos) << chat.err;
}

TEST_F(EvalQaCommand, QualityAsksAndWritesItsResult) {
  const std::string json = folder_ + "/result.json", svg = folder_ + "/result.svg";
  const auto quality = [&](std::vector<std::string> more) {
    std::vector<std::string> args = {"eval", "quality", "-m", needle_model()};
    args.insert(args.end(), more.begin(), more.end());
    return run(args);
  };
  const Result result = quality({"--data", data_, "--texts", folder_, "--budgets", "128,32",
                                 "--json", json, "--svg", svg, "--out", out_});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("| all | 1 of 2 answered |"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("asked as plain text, policy snapkv-max."), std::string::npos);
  EXPECT_EQ(records_of(out_).size(), 8u)
      << "2 questions, with the full cache, two budgets and the automatic one";
  const auto written = nlohmann::json::parse(read_file(json));
  EXPECT_EQ(written.at("parts").at(0).at("kept").at(0).at("rows"), 32) << "ascending";
  EXPECT_EQ(written.at("parts").at(0).at("answered"), 1);
  EXPECT_EQ(written.at("parts").at(0).at("answered_auto"), 1);
  EXPECT_TRUE(read_file(svg).starts_with("<svg "));
  const Result missing = quality({"--texts", folder_});
  EXPECT_EQ(missing.code, 2);
  EXPECT_NE(missing.err.find("make texts"), std::string::npos) << missing.err;
  EXPECT_EQ(quality({"--data", data_, "--texts", folder_, "--policy", "full"}).code, 2);
  EXPECT_EQ(quality({"--data", data_, "--texts", folder_, "--json", data_}).code, 2)
      << "a file that is read";
}

TEST_F(EvalQaCommand, SaysWhatCantWork) {
  const Result longer = ask({"--max-length", "10"});
  EXPECT_EQ(longer.code, 2);
  EXPECT_NE(longer.err.find("no question is left"), std::string::npos) << longer.err;
  EXPECT_EQ(ask({"--half", "report"}).code, 2);
  const std::string text = folder_ + "/rome.py", before = read_file(text);
  EXPECT_EQ(ask({"--html", text}).code, 2) << "a text that is read";
  EXPECT_EQ(read_file(text), before);
  std::ofstream(data_, std::ios::app) << "{\"id\": 5}\n";
  const Result bad = ask({});
  EXPECT_EQ(bad.code, 2);
  EXPECT_NE(bad.err.find("questions.jsonl:2: "), std::string::npos) << bad.err;
}

}  // namespace
}  // namespace snapkv::test
