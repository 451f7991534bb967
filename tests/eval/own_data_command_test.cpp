// SPDX-License-Identifier: MIT
// snapkv eval fidelity and longbench as users run them on files of their own.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

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
  EXPECT_NE(first.out.find(" No chat template.\n"), std::string::npos) << first.out;
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

}  // namespace
}  // namespace snapkv::test
