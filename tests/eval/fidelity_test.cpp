// SPDX-License-Identifier: MIT
// Fidelity: passages are in the right places, comparisons give the same as a plain computation with
// one session at a time, records can be resumed, and the numbers of the table are consistent.
#include "eval/fidelity/fidelity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "eval/common/haystack.h"
#include "eval/common/metrics.h"
#include "tests/eval/needle_model.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv::eval {
namespace {

std::string filler(int n_sentences, uint64_t seed) {
  Random random(seed);
  const Haystack haystack;
  std::string text;
  for (int i = 0; i < n_sentences; ++i)
    text += haystack.sentence(random) + (i % 5 == 4 ? "\n" : " ");
  return text;
}

TEST(TextFiles, ReadsFilesFoldersAndInput) {
  const std::filesystem::path folder = testing::TempDir() + "fidelity_texts";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "b.txt") << "second \xff";
  std::ofstream(folder / "a.txt") << "first";
  std::ofstream(folder / "c.md") << "no";
  std::istringstream input("from input");
  const std::vector<TextFile> texts =
      read_texts({folder.string(), "-", (folder / "c.md").string()}, input);
  ASSERT_EQ(texts.size(), 4u);
  EXPECT_EQ(texts[0].content, "first");
  EXPECT_EQ(texts[1].content, "second \xef\xbf\xbd");
  EXPECT_EQ(texts[2].content, "from input");
  EXPECT_EQ(texts[3].content, "no");
  const auto read = [&](const std::string& path) {
    return [path] {
      std::istringstream empty(" \n");
      read_texts({path}, empty);
    };
  };
  test::expect_error(ErrorCode::kUsage, {"standard input", "no text"}, read("-"));
  test::expect_error(ErrorCode::kRuntime, {"/no/such.txt"}, read("/no/such.txt"));
  std::filesystem::create_directories(folder / "empty");
  test::expect_error(ErrorCode::kUsage, {"empty", "no .txt"}, read((folder / "empty").string()));
  std::filesystem::remove_all(folder);
}

TEST(FidelityPlanning, SpreadsPassagesOverTheText) {
  const auto model = needle_model();
  const std::string text = filler(60, 1);
  const std::vector<int32_t> ids = model->tokenize(text, false, false);
  const FidelityPlan plan =
      plan_fidelity(*model, {{"a.txt", text}, {"b.txt", filler(10, 2)}, {"again.txt", text}},
                    {.lengths = {200}, .n_continue = 20, .n_samples = 3});
  ASSERT_EQ(plan.begin, model->tokenize("", true, false));
  ASSERT_EQ(plan.passages.size(), 3u);
  const int64_t needed = 199 + 21;  // without BOS
  const int64_t last = std::ssize(ids) - needed;
  const int64_t firsts[] = {0, last / 2, last};
  for (size_t i = 0; i < 3; ++i) {
    const Passage& passage = plan.passages[i];
    EXPECT_EQ(passage.first, firsts[i]);
    EXPECT_EQ(plan.end(passage), firsts[i] + needed);
    std::vector<int32_t> all = plan.prompt(passage), rest = plan.continuation(passage);
    EXPECT_EQ(all.size(), 200u);
    EXPECT_EQ(rest.size(), 21u);
    all.insert(all.end(), rest.begin(), rest.end());
    EXPECT_TRUE(std::equal(all.begin() + 1, all.end(), ids.begin() + firsts[i]));
  }
  EXPECT_EQ(plan.n_tokens(),
            std::ssize(ids) + std::ssize(model->tokenize(filler(10, 2), false, false)));
  EXPECT_EQ(plan.n_used(), std::min<int64_t>(3 * needed, std::ssize(ids)));
  ASSERT_EQ(plan.remarks.size(), 2u);  // about the repeated text and the short one
  EXPECT_NE(plan.remarks[0].find("again.txt is the same text as a.txt"), std::string::npos);
  EXPECT_NE(plan.remarks[1].find("b.txt is not used for prompts of 200"), std::string::npos);
}

TEST(FidelityPlanning, RefusesWhatCantWork) {
  const auto model = needle_model();
  test::expect_error(ErrorCode::kUsage, {"long enough", "200", "short.txt"}, [&] {
    plan_fidelity(*model, {{"short.txt", "A few words."}}, {.lengths = {200}});
  });
  test::expect_error(ErrorCode::kContextExceeded, {"100000", "128"}, [&] {
    plan_fidelity(*model, {{"a.txt", filler(60, 1)}}, {.lengths = {200, 100'000}});
  });
  test::expect_error(ErrorCode::kUsage, {"a prompt of 1 "}, [&] {
    plan_fidelity(*model, {{"a.txt", filler(60, 1)}}, {.lengths = {1}, .n_continue = 4});
  });
}

TEST(FidelityCompare, EqualsOneSessionAtATime) {
  RunOptions run;
  run.model = needle_model();
  const FidelityPlan plan =
      plan_fidelity(*run.model, {{"a.txt", filler(60, 1)}}, {.lengths = {300}, .n_continue = 6});
  const std::vector<int32_t> prompt = plan.prompt(plan.passages[0]);
  const std::vector<int32_t> truth = plan.continuation(plan.passages[0]);
  const std::vector<SessionOptions> configurations = {
      configuration("full", 0), configuration("snapkv", 32), configuration("snapkv", 1000)};
  const std::vector<Comparison> all = compare(run, configurations, prompt, truth);
  ASSERT_EQ(all.size(), 3u);
  Session full(run.model, configurations[0]), small(run.model, configurations[1]);
  full.prefill(prompt);
  small.prefill(prompt);
  for (size_t i = 0; i < 6; ++i) {
    full.decode(truth[i]);
    small.decode(truth[i]);
    double kl = 0;
    for (int32_t id = 0; id < run.model->info().n_vocab; ++id) {
      const double p = test::log_probability(full.logits(), id);
      kl += std::exp(p) * (p - test::log_probability(small.logits(), id));
    }
    const auto best = [](const Session& s) {
      return std::max_element(s.logits().begin(), s.logits().end()) - s.logits().begin();
    };
    // Batches and single sequences sum in the same order, so only rounding to f64 differs.
    EXPECT_NEAR(all[0].nll[i], -test::log_probability(full.logits(), truth[i + 1]), 1e-4);
    EXPECT_NEAR(all[1].nll[i], -test::log_probability(small.logits(), truth[i + 1]), 1e-4);
    EXPECT_NEAR(all[1].kl[i], kl, 1e-4);
    EXPECT_EQ(all[1].agreement[i], best(full) == best(small) ? 1 : 0);
    EXPECT_EQ(all[0].kl[i], 0);
    EXPECT_EQ(all[2].kl[i], 0) << "a budget above the prompt keeps everything";
    EXPECT_EQ(all[2].agreement[i], 1);
  }
  EXPECT_GT(all[1].kl[0], 0);
  EXPECT_EQ(all[1].after_prefill.layers[0].n_kept[0], 32);
}

class FidelityRun : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove(path_);
    run_.model = needle_model();
    run_.configurations = {configuration("snapkv", 32)};
    plan_ = plan_fidelity(*run_.model, {{"a.txt", filler(60, 1)}},
                          {.lengths = {200, 300}, .n_continue = 8, .n_samples = 2});
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string path_ = testing::TempDir() + "fidelity_run.jsonl";
  RunOptions run_;
  FidelityPlan plan_;
};

TEST_F(FidelityRun, RecordsTheReferenceToo) {
  RecordFile file(path_, false);
  double last = -1;
  run_fidelity(run_, plan_, file, [&](const std::string& title, double fraction) {
    EXPECT_TRUE(title.starts_with("passage ")) << title;
    EXPECT_GE(fraction, last);
    EXPECT_LE(fraction, 1);
    last = fraction;
  });
  EXPECT_EQ(last, 1);
  EXPECT_EQ(file.size(), 8u);  // 4 passages, each with full and snapkv
  const Json& record =
      file.at(fidelity_key(run_, plan_, plan_.passages[1], run_.configurations[0])).json();
  EXPECT_EQ(record.at("nll").size(), 8u);
  EXPECT_EQ(record.at("first_token"), plan_.passages[1].first);
  EXPECT_EQ(record.at("rows_kept").at(0), 32);
  double sum = 0;
  for (const Json& x : record.at("nll")) sum += x.get<double>();
  EXPECT_NEAR(record.at("perplexity").get<double>(), std::exp(sum / 8), 1e-3 * std::exp(sum / 8));
}

TEST_F(FidelityRun, ResumesAndTabulates) {
  {
    RecordFile file(path_, false);
    FidelityPlan one = plan_;
    one.passages.resize(1);
    run_fidelity(run_, one, file);
    EXPECT_EQ(file.size(), 2u);
  }
  RecordFile file(path_, true);
  run_.configurations.push_back(configuration("snapkv", 64));
  std::string first;
  run_fidelity(run_, plan_, file, [&](const std::string& title, double) {
    if (first.empty()) first = title;
  });
  EXPECT_EQ(first, "passage 1 of 4") << "its new configuration was missing";
  EXPECT_EQ(file.size(), 12u);
  run_fidelity(run_, plan_, file,
               [&](const std::string&, double) { ADD_FAILURE() << "all there"; });
  const std::string table = fidelity_table(run_, plan_, file);
  EXPECT_NE(table.find("Prompts of 200 tokens: 2, 8 positions each"), std::string::npos) << table;
  // full agrees with itself. Wilson: 16 of 16 is at least 16 / (16 + z2) = 80.6%.
  EXPECT_NE(table.find("| 0 | 0 | 100.0% [80.6, 100.0] of 16 |"), std::string::npos) << table;
  EXPECT_NE(table.find("| snapkv 32, window 16, kernel 15 | 32 |"), std::string::npos) << table;
  // The first and last passages of 299 + 9 tokens; those of 200 lie within them.
  EXPECT_NE(table.find("Used 616 of "), std::string::npos) << table;
}

// exp(1000) is too large for a double; the table once had "inf" and the record null.
TEST_F(FidelityRun, APerplexityBeyondNumbersIsAnError) {
  {
    RecordFile file(path_, false);
    run_fidelity(run_, plan_, file);
  }
  std::vector<Json> records;
  std::ifstream in(path_);
  for (std::string line; std::getline(in, line);) records.push_back(Json::parse(line));
  in.close();
  std::ofstream out(path_);
  for (Json& record : records) {
    for (Json& nll : record["nll"]) nll = 1000;
    out << record.dump() << "\n";
  }
  out.close();
  RecordFile file(path_, true);
  test::expect_error(ErrorCode::kRuntime, {"perplexity", "exp(1000)"},
                     [&] { fidelity_table(run_, plan_, file); });
}

}  // namespace
}  // namespace snapkv::eval
