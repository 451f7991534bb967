// SPDX-License-Identifier: MIT
// RULER's counted words. cwe: a numbered list in which ten words are more frequent, after a worked
// example. fwe: coded words whose frequencies follow a zeta distribution
// (common_words_extraction.py and freq_words_extraction.py of RULER; the wording is RULER's).
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numbers>
#include <set>

#include "base/error.h"
#include "eval/ruler/tasks.h"

namespace snapkv::eval {
namespace {

// ---------------------------------------------------------------- cwe

constexpr size_t kCommon = 10;  // the more frequent words, which are asked for

struct ListShape {
  size_t n_words, n_common_repeats, n_other_repeats;
};

// "1. word 2. word ..."
std::string numbered(const std::vector<std::string>& words) {
  std::vector<std::string> entries;
  for (const std::string& word : words) {
    entries.push_back(fmt::format("{}. {}", entries.size() + 1, word));
  }
  return fmt::format("{}", fmt::join(entries, " "));
}

RulerText word_list(Random& random, const ListShape& shape) {
  bool are_pairs = false;
  const std::vector<std::string> words = ruler_words().draw(random, shape.n_words, are_pairs);
  std::vector<std::string> list;
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t n = i < kCommon ? shape.n_common_repeats : shape.n_other_repeats;
    list.insert(list.end(), n, words[i]);
  }
  shuffle(list, random);
  RulerText text;
  text.context = fmt::format(
      "Below is a numbered list of words. In these words, some appear more often than others. "
      "Memorize the ones that appear most often.\n{}\n",
      numbered(list));
  text.question = "Question: What are the 10 most common words in the above list?";
  text.answer_prefix = " Answer: The top 10 words that appear most often in the list are:";
  text.outputs.assign(words.begin(), words.begin() + kCommon);
  text.details = {{"words", are_pairs ? "pairs" : "list"},
                  {"n_words", shape.n_words},
                  {"common_repeats", shape.n_common_repeats},
                  {"other_repeats", shape.n_other_repeats}};
  return text;
}

constexpr int64_t kCwePredict = 120;
constexpr int64_t kLeastWords = 2 * static_cast<int64_t>(kCommon);
constexpr int64_t kLongList = 4096;  // tokens, from which on RULER repeats the words more often

RulerText common_words(uint64_t seed, bool is_long, int64_t n_words) {
  Random random(seed);
  const RulerText example = word_list(random, is_long ? ListShape{40, 10, 3} : ListShape{20, 3, 1});
  const auto n = static_cast<size_t>(n_words);
  RulerText text = word_list(random, is_long ? ListShape{n, 30, 3} : ListShape{n, 6, 1});
  text.context = fmt::format("{}{}{} {}\n{}", example.context, example.question,
                             example.answer_prefix, numbered(example.outputs), text.context);
  return text;
}

RulerMaker prepare_common(const RulerSample& sample) {
  bool is_long = sample.length >= kLongList;
  if (is_long) {  // if a vocabulary splits words, the shortest such list may not fit
    const RulerText least = common_words(sample.seed, true, kLeastWords);
    is_long = sample.count_prompt(least) + kCwePredict <= sample.length;
  }
  return [is_long, seed = sample.seed](int64_t size) { return common_words(seed, is_long, size); };
}

// ---------------------------------------------------------------- fwe

constexpr double kZeta2 = std::numbers::pi * std::numbers::pi / 6;  // zeta(2), since alpha is 2
constexpr size_t kCodedLetters = 6;
constexpr size_t kFrequent = 3;  // how many words are asked for
constexpr int64_t kFwePredict = 50;
// The smallest size at which the fourth most frequent word (the first is noise) is more frequent
// than the fifth: n / zeta(2) (1/16 - 1/25) > 1.
constexpr int64_t kLeastCoded = 100;

// `n` words from a vocabulary ordered by frequency: rank r appears n / (r^2 zeta(2)) times.
RulerText coded_text(uint64_t seed, size_t n_vocab, int64_t n) {
  Random random(seed);
  std::set<std::string> used;
  std::vector<std::string> vocab = {"..."};  // the most frequent word is noise
  while (vocab.size() < n_vocab) {
    std::string word = draw_letters(random, kCodedLetters, 'a');
    if (used.insert(word).second) vocab.push_back(std::move(word));
  }
  std::vector<std::string> words;
  Json counts = Json::array();
  for (size_t rank = 1; rank <= n_vocab; ++rank) {
    const double share = 1 / (static_cast<double>(rank * rank) * kZeta2);
    const auto count = static_cast<size_t>(std::floor(static_cast<double>(n) * share));
    words.insert(words.end(), count, vocab[rank - 1]);
    if (rank <= kFrequent + 2) counts.push_back(count);
  }
  shuffle(words, random);
  RulerText text;
  text.context = fmt::format(
      "Read the following coded text and track the frequency of each coded word. Find the three "
      "most frequently appeared coded words. {}\n",
      fmt::join(words, " "));
  text.question =
      "Question: Do not provide any explanation. Please ignore the dots '....'. What are the three "
      "most frequently appeared words in the above coded text?";
  text.answer_prefix =
      " Answer: According to the coded text above, the three most frequently appeared words are:";
  text.outputs.assign(vocab.begin() + 1, vocab.begin() + 1 + kFrequent);
  text.details = {{"counts", std::move(counts)}};
  return text;
}

RulerMaker prepare_frequent(const RulerSample& sample) {
  const int64_t n_vocab = (sample.length - kFwePredict) / 50;
  if (n_vocab < static_cast<int64_t>(kFrequent) + 2) {
    fail(ErrorCode::kUsage, "fwe needs a length of 300 tokens or more, it is {}", sample.length);
  }
  return [seed = sample.seed, n_vocab](int64_t size) {
    return coded_text(seed, static_cast<size_t>(n_vocab), size);
  };
}

}  // namespace

std::vector<RulerTask> ruler_count_tasks() {
  return {{"cwe", kCwePredict, kLeastWords, prepare_common},
          {"fwe", kFwePredict, kLeastCoded, prepare_frequent}};
}

}  // namespace snapkv::eval
