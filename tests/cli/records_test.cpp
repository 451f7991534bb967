// SPDX-License-Identifier: MIT
// The record files of `snapkv eval`: only one run at a time writes a file, errors name damaged
// files, and a run that ends early leaves whole records or no file.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "every_command.h"
#include "run_process.h"

namespace snapkv::test {
namespace records_tests {

using Json = nlohmann::ordered_json;

std::vector<Json> records_of(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::vector<Json> records;
  for (std::string line; std::getline(lines, line);) records.push_back(Json::parse(line));
  return records;
}

void write_records(const std::string& path, const std::vector<Json>& records) {
  std::ofstream out(path);
  for (const Json& record : records) out << record.dump() << "\n";
}

std::vector<std::string> many_prompts(const std::string& out) {
  return {"eval",      "needle", "-m",        needle_model(), "--lengths", "400",
          "--samples", "500",    "--budgets", "64",           "--out",     out};
}

TEST(Records, TwoRunsDoNotWriteOneFile) {
  const std::string out = make_folder() + "/out.jsonl";
  Command first;
  first.args = many_prompts(out);
  Result second, third;
  first.interrupt_when = [&](const std::string&, const std::string&) {
    if (!std::filesystem::exists(out) || std::filesystem::file_size(out) == 0) return false;
    std::vector<std::string> args = many_prompts(out);
    second = run(args);
    args.push_back("--resume");
    third = run(args);
    return true;
  };
  const Result result = run(first);
  EXPECT_EQ(result.code, 130) << result.err;
  for (const Result& r : {second, third}) {
    EXPECT_EQ(r.code, 2) << r.err;
    EXPECT_NE(r.err.find(out + ": process "), std::string::npos) << r.err;
    EXPECT_NE(r.err.find(" is writing it"), std::string::npos) << r.err;
  }
  std::set<std::string> keys;
  for (const Json& record : records_of(out)) {
    EXPECT_TRUE(keys.insert(record.at("key")).second) << "twice: " << record.at("key");
  }
  EXPECT_FALSE(keys.empty());
}

TEST(Records, AFailureLeavesNoEmptyFile) {
  const std::string out = make_folder() + "/out.jsonl";
  EXPECT_EQ(run({"eval", "needle", "-m", needle_model(), "--lengths", "20", "--out", out}).code, 2);
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_EQ(run({"eval", "needle", "-m", "/none.gguf", "--out", out}).code, 1);
  EXPECT_FALSE(std::filesystem::exists(out));
  const std::string model = make_file("model.gguf", read_file(needle_model()).substr(0, 10000));
  EXPECT_EQ(run({"eval", "overlap", "-m", model, "--out", out}).code, 3);
  EXPECT_FALSE(std::filesystem::exists(out));
}

// If stdout goes to the same file, the table or the summary would damage the records or the cache.
TEST(Records, AreNotWrittenWhereStdoutGoes) {
  const std::string file = make_file("out", "");
  for (const std::string& name : {file, std::string("/dev/stdout")}) {
    for (std::vector<std::string> args :
         {std::vector<std::string>{"eval", "needle", "-m", needle_model(), "--lengths", "200"},
          std::vector<std::string>{"compress", "-m", needle_model(), "-p", "A text."}}) {
      Command command;
      command.args = std::move(args);
      command.args.insert(command.args.end(), {"-o", name});
      command.stdout_path = file;
      const Result r = run(command);
      EXPECT_EQ(r.code, 2) << r.err;
      EXPECT_NE(r.err.find("stdout goes"), std::string::npos) << r.err;
      EXPECT_EQ(read_file(file), "");
    }
  }
  EXPECT_TRUE(std::filesystem::is_symlink("/dev/stdout"));
}

// The records, the page or the data of a run must not overwrite the files that it reads.
TEST(Records, AreNotWrittenOverWhatIsRead) {
  const std::string text = make_file("one.txt", rome_prompt(30)),
                    lines = make_file("a.txt", "my only copy");
  const std::string model = make_file("needle.gguf", read_file(needle_model()));
  const std::string config = make_file("config.toml", "threads = 1\n");
  const std::string fidelity = "eval fidelity --lengths 200 --n-continue 4 --text " + text;
  const std::string needle = "eval needle --lengths 300 --depths 1 --samples 1 --budgets 64";
  const struct {
    std::string args, words;
  } cases[] = {
      {fidelity + " --resume --out " + text, "--text"},
      {fidelity + " --html " + text, "--text"},
      {needle + " --haystack " + text + " --html " + text, "--haystack"},
      {needle + " --resume --out " + lines, lines + ":1: no record"},
      {needle + " --html " + model, "--model"},
      {needle + " --config " + config + " --html " + config, "--config"},
      {needle + " --out " + text + ".new --html " + text + ".new", "--out"},
      {"inspect -f " + text + " --json " + text, "--file"},
      {"inspect -p a --json " + model, "--model"},
      {"inspect -p a --json x.json --out x.json", "--out"},
      {"bench -p 8 -n 0 -r 1 --html " + model, "--model"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.args);
    std::istringstream words(c.args);
    std::vector<std::string> args((std::istream_iterator<std::string>(words)), {});
    args.insert(args.end(), {"-m", model});
    const Result r = run(args);
    EXPECT_EQ(r.code, 2) << r.err;
    EXPECT_NE(r.err.find(c.words), std::string::npos) << r.err;
    EXPECT_EQ(r.out, "");
  }
  EXPECT_EQ(read_file(text), rome_prompt(30));
  EXPECT_EQ(read_file(lines), "my only copy");
  EXPECT_EQ(read_file(model), read_file(needle_model()));
}

// Without --out the table is the only result of a run.
TEST(Records, APageThatFailsLeavesTheTable) {
  const std::string page = make_folder() + "/page.html";
  Command command;
  command.args = {"eval",     "needle", "-m",        needle_model(), "--lengths", "300",
                  "--depths", "1",      "--budgets", "64",           "--html",    page};
  command.shell = "ulimit -f 1";  // a page is larger
  const Result r = run(command);
  if (r.code == 2) GTEST_SKIP() << "built without pages (SNAPKV_PAGES)";
  EXPECT_EQ(r.code, 1) << r.err;
  EXPECT_NE(r.err.find(page), std::string::npos) << r.err;
  EXPECT_NE(r.out.find("| full |"), std::string::npos) << r.out;
}

TEST(Records, AFileThatVanishesEndsTheRun) {
  const std::string folder = make_folder(), out = folder + "/out.jsonl";
  Command command;
  command.args = many_prompts(out);
  bool removed = false;
  command.interrupt_when = [&](const std::string&, const std::string&) {
    if (!removed && std::filesystem::exists(out) && std::filesystem::file_size(out) > 0) {
      removed = std::filesystem::remove_all(folder) > 0;
    }
    return false;  // the run ends by itself
  };
  const Result result = run(command);
  EXPECT_TRUE(removed);
  EXPECT_EQ(result.code, 1) << result.err;
  EXPECT_NE(result.err.find(out + ": it was removed"), std::string::npos) << result.err;
}

// Each field of a record in turn is changed to another value or removed. A run that reads the field
// must name the file, the line and the field; other runs must not notice.
TEST(Records, DamagedFieldsAreNamed) {
  for (const EveryCommand& command : every_command(needle_model())) {
    if (command.records.empty()) continue;
    ASSERT_EQ(run(command.args).code, 0) << command.name;
    std::vector<std::string> args = command.args;
    args.push_back("--resume");
    const std::vector<Json> whole = records_of(command.records);
    int n_named = 0;
    for (const auto& [field, value] : whole.back().items()) {
      if (field == "key") continue;
      SCOPED_TRACE(command.name + " " + field);
      std::vector<Json> damaged = whole;
      if (n_named % 2 == 0) {
        damaged.back()[field] = Json::object();
      } else {
        damaged.back().erase(field);
      }
      write_records(command.records, damaged);
      const Result result = run(args);
      if (result.code == 0) continue;
      ++n_named;
      EXPECT_EQ(result.code, 2);
      const std::string place = command.records + ":" + std::to_string(whole.size());
      EXPECT_NE(result.err.find(place + ": field " + field), std::string::npos) << result.err;
      EXPECT_EQ(result.out, "");
    }
    EXPECT_GE(n_named, 1) << command.name;
  }
}

}  // namespace records_tests
}  // namespace snapkv::test
