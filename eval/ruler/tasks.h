// SPDX-License-Identifier: MIT
// The generators of the RULER tasks: they make text of any size; ruler.cpp finds the size that fits
// a length.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eval/common/haystack.h"
#include "eval/common/record_file.h"

namespace snapkv::eval {

/// A prompt is context + question + answer_prefix; RULER calls the first two `input`.
struct RulerText {
  std::string context;  ///< everything before the question; ends with a newline
  std::string question;
  std::string answer_prefix;         ///< the beginning of the answer, which the model continues
  std::vector<std::string> outputs;  ///< the right answers
  Json details = Json::object();     ///< what was drawn
};

/// One sample of a task.
struct RulerSample {
  uint64_t seed = 0;
  int64_t length = 0;    ///< tokens of prompt and answer, at most
  std::string haystack;  ///< the user's text; empty: generated sentences
  /// Counts the tokens of a text, for parts that have their own length.
  std::function<int64_t(const std::string&)> count_tokens;
  /// Counts the tokens of a prompt, including a chat template around it.
  std::function<int64_t(const RulerText&)> count_prompt;
};

/// Makes a text with `size` units of filler (lines, words). Equal sizes give equal texts.
using RulerMaker = std::function<RulerText(int64_t size)>;

struct RulerTask {
  std::string name;
  int64_t n_predict = 0;   ///< tokens of an answer, at most
  int64_t least_size = 0;  ///< the fewest units with which the task is possible
  std::function<RulerMaker(const RulerSample&)> prepare;
};

/// One per file: needles (niah_*), variable tracking (vt), counted words (cwe, fwe).
std::vector<RulerTask> ruler_needle_tasks();
std::vector<RulerTask> ruler_variable_tasks();
std::vector<RulerTask> ruler_count_tasks();

/// The largest size, at least `least`, whose text has at most `length` tokens; 0 if there is none.
int64_t largest_size(int64_t least, int64_t length,
                     const std::function<int64_t(int64_t size)>& count_tokens);

/// The line that RULER repeats as noise.
extern const char* const kRulerNoise;

// ---------------------------------------------------------------- drawing

/// Draws k different numbers from 0 to n - 1, in random order.
std::vector<size_t> draw_different(Random& random, size_t n, size_t k);

template <typename T>
void shuffle(std::vector<T>& list, Random& random) {
  for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random.below(i)]);
}

/// Draws n letters from the 26 that begin at `first` ('a' or 'A').
std::string draw_letters(Random& random, size_t n, char first);

class RulerWords {
 public:
  RulerWords();
  /// "quiet-lantern"
  std::string pair(Random& random) const;
  /// Draws n different words, or, if the list has fewer, different pairs, which `are_pairs` tells.
  /// Throws kUsage if there are not enough pairs either.
  std::vector<std::string> draw(Random& random, size_t n, bool& are_pairs) const;

 private:
  std::string pair_at(size_t i) const;
  std::vector<std::string> adjectives_, nouns_, all_;
};
const RulerWords& ruler_words();

}  // namespace snapkv::eval
