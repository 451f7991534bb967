// SPDX-License-Identifier: MIT
// The RULER tasks: the prompts are parsed here by other means (patterns, counting, following
// assignments), and the results must be the answers that the generator gives.
#include "eval/ruler/ruler.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "eval/ruler/tasks.h"
#include "tests/eval/needle_model.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv::eval {
namespace {

Prompt make(const std::string& task, int64_t length, int sample = 0) {
  return make_ruler(*needle_model(), {}, task, length, sample);
}

std::string input(const Prompt& prompt) { return prompt.details.at("input"); }

// The text between the last `begin` and the last `end`.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.rfind(begin), to = text.rfind(end);
  EXPECT_NE(from, std::string::npos);
  EXPECT_NE(to, std::string::npos);
  return text.substr(from + begin.size(), to - from - begin.size());
}

std::map<std::string, int> count_words(const std::string& text, const std::regex& skip) {
  std::map<std::string, int> counts;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    if (!std::regex_match(word, skip)) ++counts[word];
  }
  return counts;
}

TEST(Ruler, HasTheElevenTasks) {
  EXPECT_EQ(ruler_task_names(),
            (std::vector<std::string>{"niah_single_1", "niah_single_2", "niah_single_3",
                                      "niah_multikey_1", "niah_multikey_2", "niah_multikey_3",
                                      "niah_multivalue", "niah_multiquery", "vt", "cwe", "fwe"}));
  for (const Item& item : ruler_items(needle_model(), {.lengths = {5000}})) {
    SCOPED_TRACE(item.column);
    const bool niah = item.column.starts_with("niah");
    EXPECT_EQ(item.limit.n_predict, niah                   ? 128
                                    : item.column == "vt"  ? 30
                                    : item.column == "cwe" ? 120
                                                           : 50);
    EXPECT_FALSE(item.limit.ends_at_line);
  }
}

TEST(Ruler, FillsTheLengthAndSplitsBeforeTheQuestion) {
  const auto model = needle_model();
  for (const Item& item : ruler_items(model, {.lengths = {1600, 2500}, .n_samples = 1})) {
    SCOPED_TRACE(item.id);
    const Prompt prompt = item.make();
    const int64_t wanted = prompt.details.at("length_wanted");
    const int64_t length = prompt.details.at("length");  // RULER's count, which includes the answer
    EXPECT_EQ(length, std::ssize(prompt.tokens) + item.limit.n_predict);
    EXPECT_LE(length, wanted);
    EXPECT_GT(length, wanted - 150) << "room for more: a line of uuids has about 90 tokens";
    EXPECT_EQ(prompt.text, input(prompt) + prompt.details.at("answer_prefix").get<std::string>());
    EXPECT_EQ(prompt.tokens, model->tokenize(prompt.text, true, false));
    const auto n_context = static_cast<size_t>(prompt.n_context);
    const std::string rest = model->detokenize(std::span(prompt.tokens).subspan(n_context));
    EXPECT_TRUE(std::regex_search(rest, std::regex("^\\s*(What (is|are all) the|Question: )")));
    EXPECT_EQ(item.make().text, prompt.text);
    EXPECT_EQ(item.score(prompt, "First " + prompt.references.front() + "\nthen more"),
              1.0 / static_cast<double>(prompt.references.size()));
  }
  EXPECT_NE(make("vt", 2000, 0).text, make("vt", 2000, 1).text);
}

TEST(Ruler, ChatsHoldTheInputAndBeginTheAnswer) {
  const auto model = needle_model();
  RulerOptions options = {.tasks = {"niah_single_1", "vt", "cwe"}, .lengths = {1600}};
  options.n_samples = 1;
  options.format = PromptFormat::chat(ChatTemplate::built_in("chatml"), Json::object(), "");
  for (const Item& item : ruler_items(model, options)) {
    SCOPED_TRACE(item.id);
    const Prompt prompt = item.make();
    EXPECT_EQ(prompt.text, "<|im_start|>user\n" + input(prompt) +
                               "<|im_end|>\n<|im_start|>assistant\n" +
                               prompt.details.at("answer_prefix").get<std::string>());
    EXPECT_LE(prompt.details.at("length"), 1600) << "the template counts";
    EXPECT_GT(prompt.details.at("length"), 1450);
    EXPECT_EQ(prompt.details.at("length"), std::ssize(prompt.tokens) + item.limit.n_predict);
    EXPECT_EQ(prompt.details.at("chat_template").at("id"), options.format.id());
    EXPECT_TRUE(item.id.ends_with(options.format.id()));
    const auto n_context = static_cast<size_t>(prompt.n_context);
    const std::string rest = model->detokenize(std::span(prompt.tokens).subspan(n_context));
    EXPECT_TRUE(std::regex_search(rest, std::regex("^\\s*(What is the|Question: )"))) << rest;
  }
}

TEST(Ruler, NeedlesAreThereAndOnlyTheRightOnesAnswer) {
  struct Row {
    const char* task;
    size_t n_needles, n_answers;
    const char *key, *value;
  };
  const char *words = "[a-z]+-[a-z]+", *numbers = "[1-9][0-9]{6}";
  const char* uuids = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";
  const Row rows[] = {
      {"niah_single_1", 1, 1, words, numbers},   {"niah_single_2", 1, 1, words, numbers},
      {"niah_single_3", 1, 1, words, uuids},     {"niah_multikey_1", 4, 1, words, numbers},
      {"niah_multikey_2", 0, 1, words, numbers}, {"niah_multikey_3", 0, 1, uuids, uuids},
      {"niah_multivalue", 4, 4, words, numbers}, {"niah_multiquery", 4, 4, words, numbers}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.task);
    const Prompt prompt = make(row.task, 2000);
    const std::string text = input(prompt);
    const std::regex needle(std::string("One of the special magic [a-z]+s for (") + row.key +
                            ") is: (" + row.value + ")\\.");
    const std::string question = text.substr(text.rfind("\nWhat "));
    std::set<std::string> answers, keys;
    size_t n_needles = 0;
    for (std::sregex_iterator it(text.begin(), text.end(), needle), end; it != end; ++it) {
      ++n_needles;
      keys.insert((*it)[1]);
      const bool asked = std::regex_search(question, std::regex("[ ,]" + (*it)[1].str() + "[ ,]"));
      if (asked) answers.insert((*it)[2]);
    }
    EXPECT_EQ(answers, std::set(prompt.references.begin(), prompt.references.end()));
    EXPECT_EQ(answers.size(), row.n_answers);
    if (row.n_needles > 0) {
      EXPECT_EQ(n_needles, row.n_needles);
    } else {
      EXPECT_GT(n_needles, 10u) << "a haystack of needles";
    }
    EXPECT_EQ(keys.size(), row.task == std::string("niah_multivalue") ? 1 : n_needles);
    const bool one = row.n_answers == 1;
    EXPECT_EQ(text.rfind(one ? "A special magic " : "Some special magic ", 0), 0u);
    EXPECT_NE(question.find(one ? "What is the special" : "What are all the special"),
              std::string::npos);
  }
}

TEST(Ruler, NoiseIsRepeatedLinesAndEssaysAreTheUsersText) {
  const Prompt noise = make("niah_single_1", 1500);
  std::istringstream lines(input(noise));
  int64_t n_noise = 0;
  for (std::string line; std::getline(lines, line);) n_noise += line == kRulerNoise ? 1 : 0;
  EXPECT_EQ(n_noise, noise.details.at("size").get<int64_t>());
  RulerOptions options;
  options.haystack = "One sentence here.\nAnd \"a second one.\" Is this  the third?\n";
  const Prompt essay = make_ruler(*needle_model(), options, "niah_single_2", 1000, 0);
  EXPECT_EQ(essay.details.at("haystack"), "files");
  const std::string text = std::regex_replace(
      input(essay), std::regex(" ?One of the special magic numbers [^.]*\\. ?"), " ");
  EXPECT_NE(
      text.find("afterwards.\nOne sentence here. And \"a second one.\" Is this the third? One "
                "sentence here. And"),
      std::string::npos)
      << text;
}

TEST(Ruler, AssignmentsLeadToTheAnswer) {
  const Prompt prompt = make("vt", 2000);
  const std::string text = input(prompt);
  // The worked example has its answer; then the prompt begins again.
  const size_t begin = text.rfind("Memorize and track");
  ASSERT_GT(begin, 100u);
  EXPECT_TRUE(std::regex_search(text.substr(0, begin),
                                std::regex("they are:  [A-Z]{3}( [A-Z]{3}){4}\n\n$")));
  const std::string asked = between(text, "assigned the value ", " in the text above.");
  std::map<std::string, std::string> values;  // filled in the order of the text
  std::istringstream lines(text.substr(begin));
  for (std::string line; std::getline(lines, line);) {
    std::smatch m;
    if (std::regex_match(line, m, std::regex("VAR ([A-Z]{5}) = ([0-9]{5})"))) values[m[1]] = m[2];
    if (std::regex_match(line, m, std::regex("VAR ([A-Z]{5}) = VAR ([A-Z]{5}) "))) {
      ASSERT_TRUE(values.contains(m[2])) << "assigned before it is used";
      values[m[1]] = values.at(m[2]);
    }
  }
  ASSERT_EQ(values.size(), 5u);
  for (const std::string& name : prompt.references) EXPECT_EQ(values[name], asked);
}

TEST(Ruler, CommonWordsAreTheMostFrequent) {
  // At 4096 tokens this vocabulary has no room for the longer list.
  const std::pair<int64_t, std::pair<int, int>> repeats[] = {
      {2000, {6, 1}}, {4096, {6, 1}}, {5000, {30, 3}}};
  for (const auto& [length, expected] : repeats) {
    const Prompt prompt = make("cwe", length);
    const std::string list = between(input(prompt), "appear most often.\n", "\nQuestion:");
    const auto counts = count_words(list, std::regex("[0-9]+\\."));
    const std::set<std::string> common(prompt.references.begin(), prompt.references.end());
    EXPECT_EQ(common.size(), 10u);
    EXPECT_EQ(prompt.details.at("common_repeats"), expected.first);
    EXPECT_GT(counts.size(), 20u);
    for (const auto& [word, n] : counts) {
      EXPECT_EQ(n, common.contains(word) ? expected.first : expected.second) << word;
    }
  }
  bool are_pairs = false;
  Random random(1);
  const auto many = ruler_words().draw(random, 3000, are_pairs);
  EXPECT_TRUE(are_pairs);
  EXPECT_EQ(std::set(many.begin(), many.end()).size(), 3000u);
}

TEST(Ruler, FrequentWordsFollowTheZetaDistribution) {
  const Prompt prompt = make("fwe", 3000);
  const std::string text = between(input(prompt), "coded words. ", "\nQuestion:");
  const auto counts = count_words(text, std::regex(""));
  std::vector<std::pair<int, std::string>> ranked;
  for (const auto& [word, n] : counts) ranked.emplace_back(n, word);
  std::sort(ranked.rbegin(), ranked.rend());
  EXPECT_EQ(ranked[0].second, "...");
  EXPECT_GT(ranked[3].first, ranked[4].first);
  // zeta(2) = 1.644934: the word of rank r occurs floor(size / (1.644934 r^2)) times.
  const auto size = static_cast<double>(prompt.details.at("size").get<int64_t>());
  for (int rank = 1; rank <= 5; ++rank) {
    EXPECT_EQ(ranked[static_cast<size_t>(rank - 1)].first,
              static_cast<int>(size / (1.644934 * rank * rank)));
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ranked[static_cast<size_t>(i + 1)].second, prompt.references[static_cast<size_t>(i)]);
  }
}

TEST(Ruler, FindsTheLargestSize) {
  for (const int64_t limit : {10, 11, 12, 29, 30, 31, 1000}) {
    const int64_t size = largest_size(3, limit, [](int64_t n) { return 3 * n; });
    EXPECT_EQ(size, limit / 3);
  }
  EXPECT_EQ(largest_size(4, 11, [](int64_t n) { return 3 * n; }), 0);
}

TEST(Ruler, NeverCuts) {
  for (const std::string& task : ruler_task_names()) {
    test::expect_error(ErrorCode::kUsage, {"200", task.c_str()}, [&] { make(task, 200); });
  }
  RulerOptions options;
  options.lengths = {2000, 600};
  test::expect_error(ErrorCode::kUsage, {"600"}, [&] { ruler_items(needle_model(), options); });
  test::expect_error(ErrorCode::kUsage, {"niah_single_1", "qa_1"}, [] { make("qa_1", 2000); });
}

TEST(Ruler, RecordsHoldRulersFields) {
  const std::string path = testing::TempDir() + "ruler.jsonl";
  std::filesystem::remove(path);
  RunOptions run;
  run.model = needle_model();
  run.configurations = {{.kv = {.name = "full"}}};
  RulerOptions options;
  options.tasks = {"fwe"};
  options.lengths = {700};
  options.n_samples = 2;
  const std::vector<Item> items = ruler_items(run.model, options);
  {
    RecordFile file(path, false);
    run_items(run, items, file);
    run.question_agnostic = true;
    run_items(run, items, file);
    EXPECT_EQ(file.size(), 4u) << "both modes";
  }
  std::ifstream in(path);
  for (int i = 0; i < 4; ++i) {
    std::string line;
    std::getline(in, line);
    const Json record = Json::parse(line);
    const Prompt prompt = make_ruler(*run.model, options, "fwe", 700, i % 2);
    EXPECT_EQ(record.at("index"), i % 2);
    EXPECT_EQ(record.at("input"), input(prompt));
    EXPECT_EQ(record.at("outputs"), Json(prompt.references));
    EXPECT_EQ(record.at("length"), std::ssize(prompt.tokens) + 50);
    EXPECT_EQ(record.at("question"), i < 2 ? "aware" : "agnostic");
    EXPECT_FALSE(record.contains("prompt")) << "input and answer_prefix hold it";
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace snapkv::eval
