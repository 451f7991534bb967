// SPDX-License-Identifier: MIT
// The command snapkv eval: records, the table, --resume and errors.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "run_process.h"

namespace snapkv::test {
namespace {

TEST(EvalCommand, WritesRecordsAndResumes) {
  const std::string path = make_folder() + "/out.jsonl";
  std::vector<std::string> args = {
      "eval",     "needle", "-m",        needle_model(), "--out",     path, "--lengths",   "400",
      "--depths", "2",      "--budgets", "64,128",       "--kernels", "15", "--kv-window", "16"};
  const Result first = run(args);
  ASSERT_EQ(first.code, 0) << first.err;
  const std::string records = read_file(path);
  std::istringstream lines(records);
  int n = 0;
  for (std::string line; std::getline(lines, line); ++n) {
    const auto record = nlohmann::json::parse(line);
    const std::string fact = record.at("facts").at(0).at("text");
    EXPECT_NE(record.at("prompt").get<std::string>().find(fact), std::string::npos);
    for (const char* field : {"key", "seed", "version", "answer", "score", "configuration"}) {
      EXPECT_TRUE(record.contains(field)) << field;
    }
  }
  EXPECT_EQ(n, 6);  // 2 prompts, each with full and two budgets
  EXPECT_NE(first.out.find("| full | aware |"), std::string::npos) << first.out;
  EXPECT_EQ(run(args).code, 2) << "the file is there";
  args.push_back("--resume");
  const Result again = run(args);
  EXPECT_EQ(again.out, first.out);
  EXPECT_EQ(read_file(path), records);
  // A model with the same name and size but other weights is another model.
  const std::string model = make_folder() + "/needle.gguf";
  std::string bytes = read_file(needle_model());
  bytes[bytes.size() - 4] ^= 1;  // the last bit of a weight
  std::ofstream(model, std::ios::binary) << bytes;
  args[3] = model;
  ASSERT_EQ(run(args).code, 0);
  EXPECT_GT(read_file(path).size(), records.size() * 3 / 2);
}

TEST(EvalCommand, PromptsMayBeMessagesOfAChat) {
  const std::string path = make_folder() + "/out.jsonl";
  const auto task = [&](std::vector<std::string> args, std::vector<std::string> more) {
    const std::vector<std::string> all = {
        "-m", needle_model(), "--out", path,          "--resume", "--lengths", "700", "--samples",
        "1",  "--kv-budget",  "64",    "--kv-window", "16"};
    args.insert(args.begin(), "eval");
    args.insert(args.end(), all.begin(), all.end());
    args.insert(args.end(), more.begin(), more.end());
    return run(args);
  };
  const std::vector<std::vector<std::string>> tasks = {{"needle", "--depths", "1"},
                                                       {"ruler", "--tasks", "niah_single_1"},
                                                       {"turns", "--questions", "2"}};
  for (const std::vector<std::string>& args : tasks) {
    SCOPED_TRACE(args[0]);
    std::filesystem::remove(path);
    ASSERT_EQ(task(args, {}).code, 0);
    const std::string plain = read_file(path);
    EXPECT_EQ(plain.find("chat_template"), std::string::npos);
    const Result chat = task(args, {"--chat", "--chat-template", "chatml"});
    ASSERT_EQ(chat.code, 0) << chat.err;
    std::string added = read_file(path);
    ASSERT_TRUE(added.starts_with(plain)) << "other prompts have other keys";
    added.erase(0, plain.size());
    const auto record = nlohmann::json::parse(added.substr(0, added.find('\n')));
    const std::string id = record.at("chat_template").at("id");
    EXPECT_NE(record.at("key").get<std::string>().find(" " + id + " |"), std::string::npos);
    const Result none = task(args, {"--chat"});
    EXPECT_EQ(none.code, 2);
    EXPECT_NE(none.err.find("no chat template"), std::string::npos) << none.err;
  }
}

TEST(EvalCommand, RulerPrintsATableForEachLength) {
  const std::string path = make_folder() + "/out.jsonl";
  const Result result =
      run({"eval", "ruler", "-m", needle_model(), "--out", path, "--tasks", "niah_single_1,fwe",
           "--lengths", "700,800", "--samples", "1", "--kv-budget", "64", "--question-agnostic"});
  ASSERT_EQ(result.code, 0) << result.err;
  const std::string head = "| cache | question | kept MiB | ";
  const size_t first = result.out.find("700 tokens:\n\n" + head + "niah_single_1 | fwe | all |");
  const size_t second = result.out.find("800 tokens:\n\n" + head + "niah_single_1 | fwe | all |");
  const size_t both = result.out.find("All tasks, by length:\n\n" + head + "700 | 800 | all |");
  EXPECT_EQ(first, 0u) << result.out;
  EXPECT_LT(first, second);
  EXPECT_LT(second, both);
  EXPECT_NE(result.out.find("| full | agnostic | ", both), std::string::npos);
  EXPECT_NE(result.out.find("| kvzip 64", both), std::string::npos) << "its default policy";
}

TEST(EvalCommand, OverlapWritesRecordsAndResumes) {
  const std::string path = make_folder() + "/out.jsonl";
  std::vector<std::string> args = {"eval",
                                   "overlap",
                                   "-m",
                                   needle_model(),
                                   "--out",
                                   path,
                                   "--length",
                                   "400",
                                   "--samples",
                                   "2",
                                   "--windows",
                                   "6",
                                   "--window-length",
                                   "32",
                                   "--gen-windows",
                                   "2",
                                   "--answer-length",
                                   "8"};
  const Result first = run(args);
  ASSERT_EQ(first.code, 0) << first.err;
  const std::string records = read_file(path);
  std::istringstream lines(records);
  int n_windows = 0, n_questions = 0, n_right = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto record = nlohmann::json::parse(line);
    ASSERT_EQ(record.at("layers").size(), 6u);
    const auto& layer = record.at("layers").at(0);
    if (record.at("part") == "windows") {
      ++n_windows;
      EXPECT_EQ(layer.at("windows").size(), 6u);
      EXPECT_EQ(layer.at("generation").size(), 2u);
      EXPECT_FALSE(record.at("continuation").get<std::string>().empty());
    } else {
      ++n_questions;
      for (size_t i = 0; i < 2; ++i) {
        const std::string number = record.at("references").at(i);
        EXPECT_EQ(number.size(), 5u);
        n_right += record.at("answers").at(i).get<std::string>().find(number) == 0 ? 1 : 0;
      }
      for (const char* field : {"other_question", "question_last", "question_first"}) {
        const double overlap = layer.at(field).at("overlap");
        EXPECT_TRUE(overlap >= 0 && overlap <= 1) << field;
      }
    }
    for (const char* field : {"key", "seed", "version", "p", "theta", "prompt", "model"}) {
      EXPECT_TRUE(record.contains(field)) << field;
    }
  }
  EXPECT_EQ(n_windows, 2);
  EXPECT_EQ(n_questions, 2);
  EXPECT_NE(first.out.find("| layer | 6 before the end |"), std::string::npos) << first.out;
  EXPECT_NE(first.out.find(fmt::format("Right answers: {} of 4 with the question last", n_right)),
            std::string::npos)
      << n_right << "\n"
      << first.out;
  EXPECT_GT(n_right, 0);
  EXPECT_EQ(run(args).code, 2) << "the file is there";
  args.push_back("--resume");
  EXPECT_EQ(run(args).out, first.out);
  EXPECT_EQ(read_file(path), records);
  args.push_back("--random-tokens");
  const Result random = run(args);
  EXPECT_EQ(random.code, 0) << random.err;
  EXPECT_EQ(random.out.find("question"), std::string::npos);
}

// A record holds U+FFFD in place of bytes that are not UTF-8.
TEST(EvalCommand, ResumesWithAModelWhoseNameIsNotUtf8) {
  const std::string model = make_file("m\xe4.gguf", read_file(needle_model()));
  const std::string path = make_folder() + "/out.jsonl";
  const std::vector<std::string> args = {"eval",  "needle",   "-m",      model,       "--lengths",
                                         "300",   "--depths", "1",       "--budgets", "64",
                                         "--out", path,       "--resume"};
  const Result first = run(args);
  ASSERT_EQ(first.code, 0) << first.err;
  const std::string records = read_file(path);
  const Result again = run(args);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, first.out);
  EXPECT_EQ(read_file(path), records);
}

// A prompt that counted twice would make the confidence intervals too narrow.
TEST(EvalCommand, WhatListsNameTwiceCountsOnce) {
  const auto table_of = [](std::vector<std::string> args, int n_records) {
    const std::string path = make_folder() + "/out.jsonl";
    args.insert(args.begin(), "eval");
    args.insert(args.end(), {"-m", needle_model(), "--out", path});
    const Result r = run(args);
    EXPECT_EQ(r.code, 0) << r.err;
    const std::string records = read_file(path);
    EXPECT_EQ(std::count(records.begin(), records.end(), '\n'), n_records) << r.out;
    return r.out;
  };
  const std::vector<std::string> twice[] = {{"--lengths", "300,300", "--budgets", "64,64"},
                                            {"--policies", "snapkv,full,snapkv,full"},
                                            {"--kernels", "7,7", "--windows", "16,16"}};
  std::vector<std::string> args = {"needle", "--depths", "1", "--samples", "2"};
  for (const auto& list : twice) args.insert(args.end(), list.begin(), list.end());
  const std::string needle = table_of(args, 4);
  EXPECT_NE(needle.find(" of 2 |"), std::string::npos) << needle;
  EXPECT_EQ(std::count(needle.begin(), needle.end(), '\n'), 4) << needle;
  const std::string ruler =
      table_of({"ruler", "--tasks", "niah_single_1,niah_single_1", "--lengths", "700,700",
                "--samples", "1", "--kv-budget", "64"},
               2);
  EXPECT_EQ(ruler.find("700 tokens:"), ruler.rfind("700 tokens:")) << ruler;
  EXPECT_NE(ruler.find(" of 1 |"), std::string::npos) << ruler;
  table_of({"turns", "--lengths", "400,400", "--questions", "2", "--samples", "1", "--budgets",
            "64", "--modes", "append,append", "--n-predict", "2"},
           2);
}

TEST(EvalCommand, RecordsSayWhereTheyComeFrom) {
  const std::string folder = make_folder();
  const std::vector<std::vector<std::string>> tasks = {
      {"needle", "--lengths", "300", "--depths", "1", "--budgets", "64"},
      {"fidelity", "--text", make_file("text.txt", rome_prompt(30)), "--lengths", "200",
       "--n-continue", "4"},
      {"overlap", "--length", "200", "--samples", "1", "--windows", "2", "--window-length", "16",
       "--gen-windows", "1", "--question-window", "16"}};
  for (const std::vector<std::string>& task : tasks) {
    const std::string path = folder + "/" + task[0] + ".jsonl";
    std::vector<std::string> args = {"eval"};
    args.insert(args.end(), task.begin(), task.end());
    args.insert(args.end(), {"-m", needle_model(), "--out", path});
    const Result r = run(args);
    ASSERT_EQ(r.code, 0) << r.err;
    std::istringstream lines(read_file(path));
    for (std::string line; std::getline(lines, line);) {
      const auto record = nlohmann::json::parse(line);
      const std::string key = record.at("key");
      for (const char* field : {"commit", "date", "processor"}) {
        const std::string text = record.at(field);
        EXPECT_FALSE(text.empty()) << field;
        EXPECT_EQ(key.find(text), std::string::npos) << "a run is continued elsewhere and later";
      }
      const std::string date = record.at("date"), fingerprint = record.at("fingerprint");
      EXPECT_EQ(date.size(), 20u) << date;
      EXPECT_EQ(date.back(), 'Z');
      EXPECT_NE(key.find(" " + fingerprint + " "), std::string::npos) << key;
    }
  }
}

TEST(EvalCommand, ComparesRecords) {
  const std::string folder = make_folder(), path = folder + "/out.jsonl",
                    other = folder + "/agnostic.jsonl";
  const std::vector<std::string> args = {
      "eval",      "needle", "-m",        needle_model(), "--lengths",   "400", "--depths", "3",
      "--samples", "2",      "--budgets", "24,64",        "--kv-window", "16",  "--out"};
  const auto ask = [&](std::vector<std::string> more) {
    more.insert(more.begin(), args.begin(), args.end());
    const Result r = run(more);
    ASSERT_EQ(r.code, 0) << r.err;
  };
  ask({path});
  ask({other, "--policies", "snapkv", "--question-agnostic"});
  const auto compare = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"eval", "compare"});
    return run(more);
  };
  const Result all = compare({path, "--base", "policy=full"});
  ASSERT_EQ(all.code, 0) << all.err;
  EXPECT_NE(all.out.find("A: " + path + ", policy=full\n"), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("| policy=snapkv-max,budget=24 | 6 | "), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("| policy=snapkv-max,budget=64 | 6 | "), std::string::npos) << all.out;
  EXPECT_EQ(compare({path, "--base", "policy=full"}).out, all.out);
  const Result modes = compare({path, other, "--a", "budget=64", "--b", "budget=64", "--of-full"});
  ASSERT_EQ(modes.code, 0) << modes.err;
  EXPECT_NE(modes.out.find(",question=agnostic | "), std::string::npos) << modes.out;
  EXPECT_NE(modes.out.find(" of 6 | "), std::string::npos) << modes.out;
  const struct {
    std::vector<std::string> args;
    std::string words;
  } refused[] = {{{}, "RECORDS is required"},
                 {{path}, "3 configurations"},
                 {{path, path, path}, ""},
                 {{path, "--base", "policy=full", "--a", "budget=64"}, "--a"},
                 {{path, "--a", "budget=1", "--b", "budget=64"}, "--a: no record"}};
  for (const auto& r : refused) {
    const Result result = compare(r.args);
    EXPECT_EQ(result.code, 2) << result.out;
    EXPECT_NE(result.err.find(r.words), std::string::npos) << result.err;
  }
}

// An option is either refused or has an effect.
TEST(EvalCommand, RefusesOptionsThatSayNothing) {
  const struct {
    std::vector<std::string> args;
    std::string words;
  } cases[] = {
      {{"needle", "--kv-policy", "h2o"}, "--kv-policy"},
      {{"ruler", "--kv-policy", "h2o"}, "--kv-policy"},
      {{"turns", "--kv-refresh"}, "--kv-refresh"},
      {{"needle", "--policies", "streaming-llm", "--kernels", "7,15"},
       "--kernels is not an option"},
      {{"needle", "--policies", "full,streaming-llm", "--kernels", "7"}, "policy streaming-llm"},
      {{"needle", "--policies", "full,streaming-llm", "--kv-kernel", "7"}, "--kv-kernel is no"},
      {{"needle", "--budgets", "64", "--kv-budget", "64"}, "--budgets and --kv-budget exclude"},
      {{"needle", "--budgets", "64", "--kv-ratio", "0.5"}, "--budgets and --kv-ratio exclude"},
      {{"needle", "--kernels", "7", "--kv-kernel", "7"}, "--kernels and --kv-kernel exclude"},
      {{"needle", "--windows", "8", "--kv-window", "8"}, "--windows and --kv-window exclude"},
  };
  for (const auto& c : cases) {
    std::vector<std::string> args = {"eval"};
    args.insert(args.end(), c.args.begin(), c.args.end());
    args.insert(args.end(), {"-m", needle_model()});
    const Result r = run(args);
    EXPECT_EQ(r.code, 2) << r.err;
    EXPECT_NE(r.err.find(c.words), std::string::npos) << r.err;
    EXPECT_EQ(r.out, "");
  }
  // Settings for other commands and tasks are ignored.
  Command command;
  command.args = {"eval",     "needle", "-m",         needle_model(),  "--lengths", "300",
                  "--depths", "1",      "--policies", "streaming-llm", "--budgets", "64"};
  command.env = {{"SNAPKV_KV_POLICY", "h2o"}, {"SNAPKV_KERNELS", "7"}, {"SNAPKV_KV_BUDGET", "32"}};
  const Result r = run(command);
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("| streaming-llm 64,"), std::string::npos) << r.out;
}

TEST(EvalCommand, RefusesWhatCantWork) {
  const std::string path = make_folder() + "/out.jsonl";
  EXPECT_EQ(run({"eval", "ruler", "--out", path, "--tasks", "qa_1"}).code, 2);
  EXPECT_EQ(run({"eval", "ruler", "-m", needle_model(), "--out", path, "--lengths", "9000"}).code,
            5);
  EXPECT_EQ(run({"eval", "ruler", "-m", needle_model(), "--out", path, "--lengths", "100"}).code,
            2);
  EXPECT_EQ(run({"eval", "nothing", "--out", path}).code, 2);
  EXPECT_EQ(run({"eval", "needle", "-m", needle_model(), "--out", path, "--lengths", "9000"}).code,
            5);
  EXPECT_EQ(run({"eval", "needle", "-m", needle_model(), "--out", path, "--budgets", "8"}).code, 2);
  const Result overlap =
      run({"eval", "overlap", "-m", needle_model(), "--out", path, "--length", "2000"});
  EXPECT_EQ(overlap.code, 2);
  EXPECT_NE(overlap.err.find("--length is 2000"), std::string::npos) << overlap.err;
}

}  // namespace
}  // namespace snapkv::test
