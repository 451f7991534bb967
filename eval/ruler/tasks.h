// SPDX-License-Identifier: MIT
// The generators of the RULER tasks: text of any size for ruler.cpp, which finds the size that
// fits a length.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eval/common/haystack.h"
#include "eval/common/record_file.h"

namespace snapkv::eval {

/// A prompt is context + question + answer_prefix; RULER's `input` is the first two.
struct RulerText {
  std::string context;  ///< all before the question, ends with a newline
  std::string question;
  std::string answer_prefix;         ///< begins the answer, the model continues it
  std::vector<std::string> outputs;  ///< the right answers
  Json details = Json::object();     ///< what was drawn
};

/// One sample of a task.
struct RulerSample {
  uint64_t seed = 0;
  int64_t length = 0;    ///< tokens of prompt and answer, at most
  std::string haystack;  ///< the user's text; empty: generated sentences
  /// Tokens of a text, for the parts that have a length of their own.
  std::function<int64_t(const std::string&)> count_tokens;
  /// Tokens of a prompt, with those of a chat template around it.
  std::function<int64_t(const RulerText&)> count_prompt;
};

/// Makes the text with `size` units of filler (lines, words). The same size gives the same text.
using RulerMaker = std::function<RulerText(int64_t size)>;

struct RulerTask {
  std::string name;
  int64_t n_predict = 0;   ///< tokens of an answer, at most
  int64_t least_size = 0;  ///< units without which the task does not exist
  std::function<RulerMaker(const RulerSample&)> prepare;
};

/// One per file: needles (niah_*), variable tracking (vt), counted words (cwe, fwe).
std::vector<RulerTask> ruler_needle_tasks();
std::vector<RulerTask> ruler_variable_tasks();
std::vector<RulerTask> ruler_count_tasks();

/// The largest size from `least` on whose text is at most `length` tokens; 0 if there is none.
int64_t largest_size(int64_t least, int64_t length,
                     const std::function<int64_t(int64_t size)>& count_tokens);

/// The line that RULER repeats as noise.
extern const char* const kRulerNoise;

// ---------------------------------------------------------------- drawing

/// k different numbers of 0 to n - 1, in random order.
std::vector<size_t> draw_different(Random& random, size_t n, size_t k);

template <typename T>
void shuffle(std::vector<T>& list, Random& random) {
  for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random.below(i)]);
}

/// n letters from `first` ('a' or 'A') on.
std::string draw_letters(Random& random, size_t n, char first);

class RulerWords {
 public:
  RulerWords();
  /// "quiet-lantern"
  std::string pair(Random& random) const;
  /// n different words; more than the list has: different pairs. Throws kUsage when there are not
  /// as many pairs either. `are_pairs` says which.
  std::vector<std::string> draw(Random& random, size_t n, bool& are_pairs) const;

 private:
  std::string pair_at(size_t i) const;
  std::vector<std::string> adjectives_, nouns_, all_;
};
const RulerWords& ruler_words();

}  // namespace snapkv::eval
