// SPDX-License-Identifier: MIT
// Questions made by rules: eval qa can read them, each can be answered from its text alone and from
// one place in it, and the seed decides which are drawn.
#include "eval/make_qa/make_qa.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "eval/common/metrics.h"
#include "eval/common/record_file.h"
#include "eval/make_qa/sentences.h"
#include "eval/qa/data.h"
#include "tests/support/expect_error.h"

namespace snapkv::eval {
namespace {

constexpr const char* kProse =
    "The harbour of Visby was built long ago. In the year of the great flood the keeper wrote down "
    "a total of 48213 barrels of oil. Nobody in the village had ever met the famous captain Ingrid "
    "Solberg before that day. Mr. Brown said so.\n\n"
    "On the following morning the whole crew walked slowly along the narrow path to the lighthouse "
    "on the hill. She told every one of them to remember the words \"never trust still water\" "
    "until spring came. Then the wind turned, and it rained.\n\n"
    "For the rest of that week nobody spoke, as there was nothing left that anyone could say. The "
    "log names the function read_the_log twice. Or so it seemed to the few who had stayed behind "
    "in "
    "that winter.\n";

constexpr const char* kTable =
    "Malta\n\nArea:\n  total: 316 sq km\nCoastline: 196.8 km (without Gozo)\n"
    "Capital: Valletta\nLanguages: Maltese and English; Italian is common\nArea:\n"
    "  total: 5 sq km\nNote: this value of Malta is much too long to be asked for, as nobody would "
    "ever repeat it word by word in an answer\n";

constexpr const char* kCode =
    "MAX_DEPTH = 64\nLONG = [1,\n        2]\n\n\nclass Reader(BaseReader):\n"
    "    def read(self, size: int = 4096, mode=\"strict\", *, other=None, last=None):\n"
    "        if size < 0:\n            raise SizeError(size)\n\n"
    "    def twice(self, a=17):\n        return a\n\n"
    "    def twice(self, a=18):\n        return a\n\n"
    "#define LIMIT 777\n  static constexpr int kStep = 31;\n  const int sum = kStep + 5;\n";

class MakeQa : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/texts/prose");
    write("texts/prose/a.txt", kProse);
    write("texts/malta.txt", kTable);
    write("texts/reader.py", kCode);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << content;
  }
  MakeQaFiles texts() const { return list_texts({folder_ + "/texts"}); }
  MadeQa make(const MakeQaOptions& options = {}) const { return make_qa(texts(), options); }
  // Reads the questions as eval qa does; reading checks the places of the answers.
  std::vector<QaQuestion> read(const MadeQa& made) {
    write("q.jsonl", made.lines);
    return read_qa(folder_ + "/q.jsonl", folder_ + "/texts");
  }
  std::vector<QaQuestion> read(const std::string& kind, int64_t per_text = 20) {
    return read(make({.kinds = {kind}, .per_text = per_text}));
  }

  std::string folder_;
};

// The questions as "question|answer", sorted.
std::set<std::string> pairs(const std::vector<QaQuestion>& questions) {
  std::set<std::string> out;
  for (const QaQuestion& q : questions) out.insert(q.question + "|" + q.answers.front());
  return out;
}

SourceText source(const std::string& text, bool is_code = false) {
  return {"a.txt", text, "", is_code};
}

void expect_answerable(const QaQuestion& q) {
  SCOPED_TRACE(q.id + ": " + q.question + " " + q.lead + " | " + q.answers.front());
  EXPECT_EQ(WordIndex(q.context->text).count(q.answers.front()), 1);
  for (const std::string& answer : q.answers) {
    EXPECT_EQ(contains_words(q.question, answer), 0);
    EXPECT_EQ(contains_words(q.lead, answer), 0);
  }
  EXPECT_FALSE(q.lead.empty());
}

TEST_F(MakeQa, QuestionsCanBeAnsweredFromTheirTexts) {
  const auto questions = read(make({.per_text = 3}));
  std::set<std::string> kinds;
  for (const QaQuestion& q : questions) {
    expect_answerable(q);
    kinds.insert(q.kind);
  }
  EXPECT_EQ(kinds,
            (std::set<std::string>{"code", "continue", "fact", "signature", "table", "unique"}));
}

TEST_F(MakeQa, EveryFactCanBeAnswered) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += fmt::format("Line {} of it. ", 100000 + i);
  for (uint64_t seed = 1; seed < 20; ++seed) {
    Random random(seed);
    const MadeContext made = make_facts(source(text), 28, random);
    EXPECT_GE(made.questions.size(), 22u) << "few names are drawn twice";
    const WordIndex index(made.changed);
    size_t before = 0;
    for (const MadeQuestion& question : made.questions) {
      EXPECT_TRUE(is_answerable(question, index)) << question.question;
      EXPECT_TRUE(
          std::string_view(made.changed).substr(question.at).starts_with(question.answers.front()));
      EXPECT_GT(question.at, before);
      before = question.at;
      EXPECT_EQ((question.question + question.prefix).find_first_of("{}"), std::string::npos);
    }
    EXPECT_GT(before, made.changed.size() * 9 / 10);
    EXPECT_LT(made.questions.front().at, made.changed.size() / 10);
  }
}

TEST_F(MakeQa, FactsStandBetweenSentences) {
  Random random(3);
  const std::string text = "One is here. Two is\nhere.\n\nThree is here. Four";
  const MadeContext made = make_facts(source(text), 3, random);
  std::string rest = made.changed;
  for (const char* part : {"One is here.", "Two is\nhere.", "\n\nThree is here.", "Four"}) {
    ASSERT_NE(rest.find(part), std::string::npos) << made.changed;
    rest = rest.substr(rest.find(part));
  }
}

TEST_F(MakeQa, FindsWhatStandsOnce) {
  std::filesystem::remove(folder_ + "/texts/malta.txt");
  std::filesystem::remove(folder_ + "/texts/reader.py");
  const auto found = pairs(read("unique"));
  const auto has = [&](const std::string& before, const std::string& answer) {
    return found.contains("Which words come after \"" + before + "\"?|" + answer);
  };
  EXPECT_TRUE(has("keeper wrote down a total of", "48213"));
  EXPECT_TRUE(has("had ever met the famous captain", "Ingrid Solberg"));
  EXPECT_TRUE(has("of them to remember the words", "never trust still water"));
  EXPECT_TRUE(has("say. The log names the function", "read_the_log"));
  EXPECT_EQ(found.size(), 4u) << "Visby and Brown are one word each"
                              << testing::PrintToString(found);
}

TEST_F(MakeQa, FindsValuesOfKeys) {
  const std::set<std::string> expected = {"What is the Coastline of Malta?|196.8 km",
                                          "What is the Capital of Malta?|Valletta",
                                          "What is the Languages of Malta?|Maltese and English"};
  EXPECT_EQ(pairs(read("table")), expected);
  Random random(1);
  const std::string text = kTable + std::string(60, '\n') + "\n";
  EXPECT_EQ(make_table(source(text), 9, random).questions.size(), 3u);
  std::string prose = text;
  for (int i = 0; i < 30; ++i) prose += "A line.\n";
  EXPECT_EQ(make_table(source(prose), 9, random).questions.size(), 0u);
}

TEST_F(MakeQa, FindsWhatCodeDefines) {
  const std::set<std::string> expected = {"What is the value of MAX_DEPTH?|64",
                                          "What is the base class of Reader?|BaseReader",
                                          "What is the default of size in read?|4096",
                                          "What is the default of mode in read?|\"strict\"",
                                          "Which exception does read raise?|SizeError",
                                          "What is the value of LIMIT?|777",
                                          "What is the value of kStep?|31"};
  EXPECT_EQ(pairs(read("code")), expected) << "None stands twice, and so does twice";
}

TEST_F(MakeQa, FindsParametersOfFunctions) {
  const auto questions = read("signature");
  ASSERT_EQ(questions.size(), 1u) << "one is defined twice";
  EXPECT_EQ(questions[0].question, "With which parameters is the function read defined?");
  EXPECT_EQ(questions[0].lead, "def read(self,");
  EXPECT_EQ(questions[0].answers.front(),
            "size: int = 4096, mode=\"strict\", *, other=None, last=None");
  write("texts/reader.py",
        "def few(a, b):\n    pass\n\ndef several_lines(first,\n        second, third, fourth):\n"
        "    pass\n\nasync def nested(values=(1, 2), text=\"),(\", names: dict[str, int] = {}):\n"
        "    pass\n");
  const auto others = read("signature");
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ(others[0].answers.front(), "values=(1, 2), text=\"),(\", names: dict[str, int] = {}");
}

// A definition of each sort above many lines, and below them what uses it.
std::string code_with_gaps() {
  std::string text =
      "DEFAULT_WAIT = 30\n\n\ndef check_range(low, high):\n    return low < high\n\n\n"
      "class Store:\n    def open_entry(self, path):\n        return path\n\n"
      "    def used_twice(self):\n        return 1\n\n    def told_before(self):\n"
      "        return 2\n\n";
  const auto add_lines = [&](int n) {
    for (int i = 0; i < n; ++i)
      text += fmt::format("    def f{}(self):\n        return {}\n\n", i, i);
  };
  add_lines(40);
  text +=
      "    def here(self, path):\n        # told_before stands in this comment\n"
      "        a = self.open_entry(path)  \n        b = self.told_before()\n        return a\n\n";
  add_lines(40);
  text +=
      "    def there(self):\n        a = self.used_twice()\n        b = self.used_twice()\n"
      "        if check_range(1, 2):\n            wait(DEFAULT_WAIT)\n        return a\n\n";
  add_lines(40);
  return text;
}

TEST_F(MakeQa, FindsGapsInCode) {
  const std::string text = code_with_gaps();
  write("texts/reader.py", text);
  const auto questions = read("middle");
  std::set<std::string> found;
  size_t last = text.size();
  for (const QaQuestion& q : questions) {
    SCOPED_TRACE(q.id);
    const std::string& before = q.context->text;
    const std::string& answer = q.answers.at(0);
    found.insert(answer);
    EXPECT_TRUE(q.question.empty());
    EXPECT_EQ(q.metric, QaMetric::begins);
    EXPECT_EQ(text.substr(0, before.size()), before);
    EXPECT_LT(before.size(), last) << "the longest first";
    last = before.size();
    EXPECT_EQ(text.substr(before.size(), answer.size()), answer);
    EXPECT_EQ(text.substr(before.size() - 3, q.gap.name.size()), q.gap.name)
        << "its first letters are shown";
    const size_t end = text.find('\n', before.size());
    EXPECT_EQ(text.substr(end, q.gap.suffix.size()), q.gap.suffix);
    EXPECT_GT(q.gap.suffix.size(), 1400u);
    EXPECT_EQ(q.gap.suffix.back(), '\n');
    EXPECT_EQ(before.find(q.gap.name), q.gap.defined);
    EXPECT_EQ(before.rfind(q.gap.name), q.gap.defined) << "only there";
    EXPECT_EQ(q.gap.suffix.find(q.gap.name), std::string::npos);
    EXPECT_LT(q.gap.defined, q.gap.rest);
    EXPECT_LT(q.gap.rest + 400, before.size());
  }
  EXPECT_EQ(found, (std::set<std::string>{"n_entry", "ck_range", "AULT_WAIT"}))
      << "told_before and used_twice stand near the gap";
  EXPECT_EQ(read("middle", 2).size(), 2u);
  EXPECT_EQ(make({.kinds = {"middle"}, .per_text = 1, .seed = 5}).lines,
            make({.kinds = {"middle"}, .per_text = 1, .seed = 5}).lines);
  EXPECT_EQ(make().lines.find("\"middle\""), std::string::npos) << "only by name";
}

TEST_F(MakeQa, FindsSentencesToContinue) {
  const auto questions = read("continue");
  std::set<std::string> found;
  for (const QaQuestion& q : questions) {
    found.insert(q.lead + "|" + q.answers.front());
    EXPECT_EQ(q.metric, QaMetric::contains) << "what follows the five words does not count";
  }
  EXPECT_TRUE(
      found.contains("Nobody in the village had ever met|the famous captain Ingrid Solberg"))
      << testing::PrintToString(found);
  EXPECT_TRUE(found.contains("For the rest of that week nobody spoke,|as there was nothing left"));
  for (const std::string& each : found) EXPECT_FALSE(each.starts_with("Or so")) << "the last one";
}

TEST_F(MakeQa, TheSeedDecides) {
  EXPECT_EQ(make().lines, make().lines);
  EXPECT_NE(make().lines, make({.seed = 2}).lines);
  const std::string all = make().lines;
  std::filesystem::remove(folder_ + "/texts/reader.py");
  EXPECT_TRUE(all.starts_with(make().lines)) << "other texts keep their questions";
}

TEST_F(MakeQa, LongTextsAreCutAtSentences) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += fmt::format("This is sentence number {}. ", 1000 + i);
  Random random(1);
  std::set<size_t> begins;
  MakeQaOptions options;
  options.n_bytes = 2000;
  for (int i = 0; i < 20; ++i) {
    const TextPart part = cut_text(text, false, options, random);
    EXPECT_LE(part.end - part.begin, 2000u);
    EXPECT_GT(part.end - part.begin, 1900u);
    EXPECT_TRUE(std::string_view(text).substr(part.begin).starts_with("This"));
    EXPECT_EQ(text[part.end - 1], '.');
    begins.insert(part.begin);
  }
  EXPECT_GT(begins.size(), 10u);
  options.n_tokens = 300;
  options.count_tokens = [](std::string_view part) {
    return static_cast<int64_t>(answer_words(part).size());
  };
  const TextPart part = cut_text(text, false, options, random);
  EXPECT_EQ(options.count_tokens(text.substr(part.begin, part.end - part.begin)), 300);
  EXPECT_EQ(cut_text("Short.", false, options, random).end, 6u);
}

TEST_F(MakeQa, CutTextsAreReadBack) {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += fmt::format("Caf\u00e9 {} was opened by the people of the town in {}. ", i, 10000 + i);
  }
  write("texts/long.txt", text);
  const MadeQa made = make({.kinds = {"unique", "fact"}, .per_text = 5, .n_bytes = 3000});
  EXPECT_EQ(made.n_cut, 1);
  for (const QaQuestion& q : read(made)) {
    expect_answerable(q);
    EXPECT_LT(q.context->text.size(), 4000u);
  }
}

TEST_F(MakeQa, SaysWhatItCountsAndLeavesOut) {
  write("texts/binary.bin", std::string("a\0b", 3));
  write("texts/.hidden", "x");
  const MadeQa made = make();
  EXPECT_EQ(made.skipped, std::vector<std::string>{"binary.bin"});
  EXPECT_NE(make_qa_table(made).find("| table | 2 | 1 |"), std::string::npos)
      << make_qa_table(made);
  const std::string line = made.lines.substr(0, made.lines.find('\n'));
  const Json json = Json::parse(line);
  EXPECT_EQ(json.at("source"), "malta.txt");
  EXPECT_EQ(json.at("kind"), "fact");
  EXPECT_EQ(json.at("questions").at(0).at("id"), "malta.txt:fact-1");
  EXPECT_GT(json.at("questions").at(1).at("depth").get<double>(), 0);
  test::expect_error(ErrorCode::kUsage, {"nothing to ask"}, [&] {
    make_qa(list_texts({folder_ + "/texts/malta.txt"}), {.kinds = {"code"}});
  });
  test::expect_error(ErrorCode::kRuntime, {"none.txt"}, [&] { list_texts({"none.txt"}); });
  std::filesystem::create_directories(folder_ + "/empty");
  test::expect_error(ErrorCode::kUsage, {"empty", "no files"},
                     [&] { list_texts({folder_ + "/empty"}); });
}

TEST_F(MakeQa, NamesAreBelowTheFolderOfAll) {
  const MakeQaFiles files =
      list_texts({folder_ + "/texts/prose/a.txt", folder_ + "/texts/malta.txt"});
  ASSERT_EQ(files.files.size(), 2u);
  EXPECT_EQ(files.files[0].name, "malta.txt");
  EXPECT_EQ(files.files[1].name, "prose/a.txt");
  EXPECT_EQ(files.folder, std::filesystem::canonical(folder_ + "/texts").string());
  EXPECT_EQ(texts().files.size(), 3u);
}

TEST(Sentences, EndWhereReadersSeeIt) {
  const std::string text =
      "Mr. Brown, e.g. at 5.30, left. \"Why?\" he asked.\n\nA title\n\n1. One. Two";
  std::vector<std::string> found;
  for (const Sentence& s : split_sentences(text, false)) {
    found.push_back(text.substr(s.begin, s.end - s.begin));
  }
  const std::vector<std::string> expected = {"Mr. Brown, e.g. at 5.30, left.", "\"Why?\" he asked.",
                                             "A title", "1. One.", "Two"};
  EXPECT_EQ(found, expected);
  EXPECT_EQ(split_sentences("a.\nb\n  c", true).size(), 3u);
  EXPECT_EQ(split_sentences(" \n ", false).size(), 0u);
  for (const Sentence& s : split_sentences(std::string(5000, 'x'), false)) {
    EXPECT_LE(s.end - s.begin, 400u);
  }
}

}  // namespace
}  // namespace snapkv::eval
