// SPDX-License-Identifier: MIT
// Comparisons of records: the statistics compared with numbers computed by hand, the choice and
// pairing of records, and the errors.
#include "eval/compare/compare.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "base/cpu_timer.h"
#include "eval/compare/paired.h"
#include "eval/compare/scores.h"
#include "tests/support/expect_error.h"

namespace snapkv::eval {
namespace {

// ---------------------------------------------------------------- statistics

TEST(Paired, McNemarIsTheBinomialTest) {
  EXPECT_NEAR(mcnemar_p(9, 1), 22.0 / 1024, 1e-12);    // 2 (1 + 10) / 2^10
  EXPECT_NEAR(mcnemar_p(1, 14), 32.0 / 32768, 1e-12);  // 2 (1 + 15) / 2^15
  EXPECT_NEAR(mcnemar_p(0, 5), 2.0 / 32, 1e-12);
  EXPECT_EQ(mcnemar_p(0, 0), 1);
  EXPECT_EQ(mcnemar_p(3, 3), 1);
  EXPECT_EQ(mcnemar_p(1, 0), 1);
  // The expected value was summed with big integers, as 2^100000 is beyond every double.
  EXPECT_NEAR(mcnemar_p(49500, 50500), 0.00158235987885, 1e-12);
}

TEST(Paired, BootstrapIntervalOfKnownDistributions) {
  const Range same = bootstrap_mean(std::vector<double>(7, 0.25));
  EXPECT_EQ(same.low, 0.25);
  EXPECT_EQ(same.high, 0.25);
  const Range two = bootstrap_mean(std::vector<double>{0, 1});  // means 0, 0.5, 1: 1/4, 1/2, 1/4
  EXPECT_EQ(two.low, 0);
  EXPECT_EQ(two.high, 1);
  // 100 draws of a 1 with probability 0.09; the quantiles of the binomial distribution are 4 and
  // 15.
  std::vector<double> some(100, 0.0);
  for (size_t i = 0; i < 9; ++i) some[11 * i] = 1;
  const Range range = bootstrap_mean(some);
  EXPECT_DOUBLE_EQ(range.low, 0.04);
  EXPECT_DOUBLE_EQ(range.high, 0.15);
}

TEST(Paired, BootstrapIntervalOfRatios) {
  // (30 + 30, 30 + 10, 10 + 10) of the pairs' sums: 24/30, 36/40, 12/10: 1/4, 1/2, 1/4
  const std::vector<double> a = {24, 12}, b = {30, 10};
  const Range range = bootstrap_ratio(a, b);
  EXPECT_DOUBLE_EQ(range.low, 0.8);
  EXPECT_DOUBLE_EQ(range.high, 1.2);
  EXPECT_EQ(bootstrap_ratio(a, std::vector<double>{0, 0}).high, 0);
}

TEST(Paired, CountsPairs) {
  const std::vector<double> a = {1, 1, 1, 0, 0, 1}, b = {1, 0, 0, 1, 0, 0};
  const PairedResult r = compare_scores(a, b);
  EXPECT_EQ(r.n, 6);
  EXPECT_DOUBLE_EQ(r.mean_a, 4.0 / 6);
  EXPECT_DOUBLE_EQ(r.mean_b, 2.0 / 6);
  EXPECT_DOUBLE_EQ(r.difference, -2.0 / 6);
  EXPECT_LE(r.interval.low, r.difference);
  EXPECT_GE(r.interval.high, r.difference);
  EXPECT_EQ(r.won, 1);
  EXPECT_EQ(r.lost, 3);
  EXPECT_EQ(r.tied, 2);
  EXPECT_DOUBLE_EQ(r.p, mcnemar_p(3, 1));
  EXPECT_FALSE(r.graded);
  // A score of 0.5 is a right answer, so a higher score is not another right answer.
  const PairedResult graded =
      compare_scores(std::vector<double>{0.5, 0.25, 1}, std::vector<double>{0.75, 0.5, 0.25});
  EXPECT_EQ(graded.won, 2);
  EXPECT_EQ(graded.lost, 1);
  EXPECT_DOUBLE_EQ(graded.p, mcnemar_p(1, 1));
  EXPECT_TRUE(graded.graded);
}

// ---------------------------------------------------------------- records

const Json kFull = {{"policy", "full"}, {"kv_type", "f16"}};

Json snapkv_cache(int budget, int kernel = 15) {
  return {{"policy", "snapkv"}, {"budget", budget}, {"kernel", kernel}, {"kv_type", "f16"}};
}

Json record(const std::string& id, const Json& configuration, double score) {
  return {{"key", id + " | m.gguf 0123456789abcdef f32 | " + to_line(configuration)},
          {"id", id},
          {"model", "/models/m.gguf"},
          {"configuration", configuration},
          {"question", "aware"},
          {"length", id.size()},
          {"score", score}};
}

class CompareTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::vector<Json>& records,
                    const std::string& end = "") {
    std::ofstream out(folder_ + "/" + name);
    for (const Json& r : records) out << to_line(r) << "\n";
    out << end;
    return folder_ + "/" + name;
  }

  // Records for the prompts p0, p1, ... with these scores: '1', '0', or 'h' for a half.
  static std::vector<Json> records(const Json& configuration, const std::string& scores) {
    std::vector<Json> all;
    for (size_t i = 0; i < scores.size(); ++i) {
      const double score = scores[i] == 'h' ? 0.5 : scores[i] - '0';
      all.push_back(record(fmt::format("p{}", i), configuration, score));
    }
    return all;
  }

  static std::vector<Json> joined(const std::vector<std::vector<Json>>& lists) {
    std::vector<Json> all;
    for (const std::vector<Json>& list : lists) all.insert(all.end(), list.begin(), list.end());
    return all;
  }

  std::string folder_;
};

void expect_words(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) {
    EXPECT_NE(text.find(word), std::string::npos) << "no '" << word << "' in:\n" << text;
  }
}

TEST_F(CompareTest, TwoFilesOfOneConfigurationEach) {
  std::vector<Json> b = records(snapkv_cache(64), "101100");
  std::reverse(b.begin(), b.end());  // the order does not matter
  b.push_back(record("other", snapkv_cache(64), 1));
  const std::string path_a = write("a.jsonl", records(kFull, "11101110")),
                    path_b = write("b.jsonl", b);
  const std::string table = compare_records({.file_a = path_a, .file_b = path_b});
  // The scores of the shared prompts: A 1 1 1 0 1 1, B 1 0 1 1 0 0.
  expect_words(table,
               {"a.jsonl, policy=full\n", "| policy=snapkv,budget=64 | 6 | 83.3% | 50.0% | -33.3 [",
                "] | 1 | 3 | 2 | 0.62 |\n", "2 prompts only in A, 1 only in B"});
  EXPECT_EQ(table.find("right from"), std::string::npos) << "all scores are 0 or 1";
  EXPECT_EQ(table, compare_records({.file_a = path_a, .file_b = path_b}));
}

TEST_F(CompareTest, EveryConfigurationWithABase) {
  const std::string path = write(
      "r.jsonl",
      joined({records(kFull, "1111"), records(snapkv_cache(64, 7), "1000"),
              records(snapkv_cache(64, 15), "1h10"), records(snapkv_cache(128, 15), "1111")}));
  const std::string table =
      compare_records({.file_a = path, .file_b = path, .base = "policy=snapkv,budget=64,kernel=7"});
  expect_words(table, {"policy=snapkv,budget=64,kernel=7\nB: ", "| policy=full | 4 | 25.0% |",
                       "| policy=snapkv,budget=64,kernel=15 | 4 | 25.0% | 62.5% | +37.5 [",
                       "| policy=snapkv,budget=128,kernel=15 | 4 |", "right from a score of 0.5"});
  EXPECT_EQ(table.find("| policy=snapkv,budget=64,kernel=7 |"), std::string::npos) << table;
  test::expect_error(ErrorCode::kUsage, {"--base must leave one", "budget=128"}, [&] {
    compare_records({.file_a = path, .file_b = path, .base = "policy=snapkv"});
  });
}

TEST_F(CompareTest, TwoConfigurationsOfOneFile) {
  const std::string path =
      write("r.jsonl", joined({records(snapkv_cache(64), "10"), records(snapkv_cache(128), "11")}));
  const auto compare = [&](const std::string& a, const std::string& b) {
    return compare_records({.file_a = path, .file_b = path, .a = a, .b = b});
  };
  const std::string table = compare("budget=64", "budget=128.0, question=aware");
  expect_words(table, {"| policy=snapkv,budget=128 | 2 | 50.0% | 100.0% | +50.0 ["});
  expect_words(compare("budget=64,length=2,model=m.gguf", "budget=128"), {"| 2 |"});
  const auto refuses = [&](const std::string& a, const std::string& b,
                           std::initializer_list<std::string_view> words) {
    test::expect_error(ErrorCode::kUsage, words, [&] { compare(a, b); });
  };
  refuses("", "", {"r.jsonl has 2 configurations", "--a", "--base", "policy=snapkv,budget=128"});
  refuses("budget=64", "", {"--b"});
  refuses("budget=64", "budget=64", {"the same records"});
  refuses("budget=32", "budget=64", {"--a: no record", "policy=snapkv,budget=64"});
  refuses("bugdet=64", "", {"no record has a field bugdet", "budget, "});
  refuses("score=1", "", {"no record has a field score"});
  refuses("budget", "", {"--a: budget is not a condition"});
  refuses("=64", "", {"not a condition"});
  refuses("budget=64", "budget=128,,", {"--b: an empty text is not a condition"});
}

// Configurations leave out settings that are off.
TEST_F(CompareTest, AMissingFieldIsOff) {
  Json refresh = snapkv_cache(64);
  refresh["kv_refresh"] = true;
  const std::string path =
      write("r.jsonl", joined({records(snapkv_cache(64), "10"), records(refresh, "11")}));
  for (const char* off : {"kv_refresh=false", "kv_refresh=0"}) {
    expect_words(
        compare_records({.file_a = path, .file_b = path, .a = off, .b = "kv_refresh=true"}),
        {"policy=snapkv,budget=64,kv_refresh=0\n",
         "| policy=snapkv,budget=64,kv_refresh=true | 2 |"});
  }
}

TEST_F(CompareTest, EachConfigurationWithTheSameOfTheOtherFile) {
  const auto list = [&](const std::string& full, const std::string& snapkv) {
    return joined({records(kFull, full), records(snapkv_cache(64), snapkv)});
  };
  const std::string a = write("a.jsonl", list("11", "10")), b = write("b.jsonl", list("11", "11"));
  const std::string table = compare_records({.file_a = a, .file_b = b});
  expect_words(table, {"the same configuration", "| policy=full | 2 | 100.0% | 100.0% |",
                       "| policy=snapkv,budget=64 | 2 | 50.0% | 100.0% |"});
  const std::string other =
      write("c.jsonl", joined({records(snapkv_cache(32), "11"), records(snapkv_cache(64), "11")}));
  expect_words(compare_records({.file_a = a, .file_b = other}),
               {"| policy=snapkv,budget=64 | 2 |", "Only in one file: policy=full",
                "policy=snapkv,budget=32"});
}

TEST_F(CompareTest, PromptsThatTheFullCacheAnswers) {
  const std::string a = write("a.jsonl",
                              joined({records(kFull, "1h01"), records(snapkv_cache(64), "10101")})),
                    b = write("b.jsonl", records(snapkv_cache(128), "11111"));
  CompareOptions options = {.file_a = a, .file_b = b, .a = "budget=64", .of_full = true};
  expect_words(compare_records(options), {"| policy=snapkv,budget=128 | 3 of 5 | 33.3% | 100.0% |",
                                          "1 prompts without a record of the full cache"});
  const std::string c =
      write("c.jsonl", joined({records(snapkv_cache(64), "1"), records(snapkv_cache(128), "1")}));
  options = {.file_a = c, .file_b = c, .base = "budget=64", .of_full = true};
  test::expect_error(ErrorCode::kUsage, {"--of-full: no record of the full cache"},
                     [&] { compare_records(options); });
  const std::string d =
      write("d.jsonl", joined({records(kFull, "0"), records(snapkv_cache(128), "1")}));
  options.file_b = d;
  test::expect_error(ErrorCode::kUsage, {"answers none of the 1 prompts"},
                     [&] { compare_records(options); });
}

TEST_F(CompareTest, ModelsMustBeTheSame) {
  const std::string a = write("a.jsonl", records(kFull, "11"));
  std::vector<Json> other = records(kFull, "10");
  const auto compare = [&](const std::string& b, bool any_model = false) {
    return compare_records({.file_a = a, .file_b = b, .any_model = any_model});
  };
  for (Json& r : other) r["model"] = "elsewhere/renamed.gguf";  // the key has the fingerprint
  expect_words(compare(write("b.jsonl", other)), {"| 2 | 100.0% | 50.0% |"});
  for (Json& r : other) r["fingerprint"] = "fedcba9876543210";
  const std::string b = write("b.jsonl", other);
  test::expect_error(
      ErrorCode::kUsage,
      {"m.gguf (0123456789abcdef)", "renamed.gguf (fedcba9876543210)", "--any-model"},
      [&] { compare(b); });
  expect_words(compare(b, true), {"| policy=full,model=renamed.gguf | 2 | 100.0% | 50.0% |"});
}

TEST_F(CompareTest, RefusesWhatCantBePaired) {
  const std::string a = write("a.jsonl", records(kFull, "11"));
  const auto refuses = [&](const std::string& b, std::initializer_list<std::string_view> words) {
    test::expect_error(ErrorCode::kUsage, words,
                       [&] { compare_records({.file_a = a, .file_b = b}); });
  };
  refuses(write("b.jsonl", {record("q", kFull, 1)}), {"no prompt is on both sides", "p0", "q"});
  Json twice = record("p0", kFull, 0);
  twice["key"] = "p0 | m.gguf 0123456789abcdef bf16 | x";
  refuses(write("b.jsonl", {record("p0", kFull, 1), twice}), {"lines 1 and 2", "prompt p0"});
  // The last of several records with one key counts, as with --resume.
  expect_words(compare_records(
                   {.file_a = a,
                    .file_b = write("b.jsonl", {record("p0", kFull, 1), record("p0", kFull, 0)})}),
               {"| 1 | 100.0% | 0.0% |"});
  Json no_score = record("p0", kFull, 1);
  no_score.erase("score");
  refuses(write("b.jsonl", {no_score}), {"no records with a score", "fidelity"});
  refuses(write("b.jsonl", {}), {"no records with a score"});
  refuses(write("b.jsonl", {record("p0", kFull, 2)}), {"b.jsonl:1", "score", "between 0 and 1"});
  refuses(write("b.jsonl", {}, "{}\n"), {"b.jsonl:1", "no record"});
  test::expect_error(ErrorCode::kRuntime, {"nothing.jsonl"},
                     [&] { compare_records({.file_a = a, .file_b = folder_ + "/nothing.jsonl"}); });
  // A file that a run is still writing, and records of other tasks.
  const std::string torn =
      write("b.jsonl", {record("p0", kFull, 0), no_score}, R"({"key":"p1","id)");
  expect_words(compare_records({.file_a = a, .file_b = torn}),
               {"| 1 | 100.0% | 0.0% |", "1 records without a score", "last line is not complete"});
}

TEST_F(CompareTest, ReadsManyRecordsQuickly) {
  std::vector<Json> a, b;
  for (int i = 0; i < 10'000; ++i) {
    const std::string id = fmt::format("prompt {}", i);
    a.push_back(record(id, kFull, i % 3 == 0 ? 0 : 1));
    b.push_back(record(id, snapkv_cache(64), i % 2));
  }
  const std::string path_a = write("a.jsonl", a), path_b = write("b.jsonl", b);
  const CpuTimer timer;
  expect_words(compare_records({.file_a = path_a, .file_b = path_b}),
               {"| 10000 | 66.7% | 50.0% |"});
  EXPECT_LT(timer.seconds(), 60) << "a second is usual; the rest is for sanitizers";
}

}  // namespace
}  // namespace snapkv::eval
