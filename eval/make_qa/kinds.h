// SPDX-License-Identifier: MIT
// The kinds of questions that are made from a text by rule, each a function in a table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "eval/common/haystack.h"

namespace snapkv::eval {

/// A text, or the part of it, that questions are made about.
struct SourceText {
  std::string name;      ///< "prose/bridge.txt"
  std::string text;      ///< the text or part that the questions are about
  std::string title;     ///< the file's first line if it is a name, else empty
  bool is_code = false;  ///< by the file name's ending
};

/// The text after an answer that is cut out, and a name in this answer.
struct MadeGap {
  std::string suffix;  ///< empty: the question has no gap
  std::string name;
  size_t defined = 0;  ///< byte where the name stands for the first time
  size_t rest = 0;     ///< byte, the beginning of a line: from here to the gap the name is missing
};

struct MadeQuestion {
  size_t at = 0;         ///< byte in the context where the first answer is
  std::string question;  ///< empty if there is a gap
  std::string prefix;    ///< the beginning of the answer
  std::vector<std::string> answers;
  MadeGap gap = {};
};

struct MadeContext {
  std::string changed;  ///< the text with inserted sentences; empty if it is unchanged
  std::vector<MadeQuestion> questions;
};

struct MadeKind {
  const char* name;
  const char* about;
  /// Makes at most `n` questions at depths spread over the text; none if it has nothing of this
  /// kind.
  MadeContext (*make)(const SourceText& source, int64_t n, Random& random);
  /// Made only where it is asked for by name: not every model can answer it.
  bool by_name_only = false;
};

/// fact, unique, table, code, signature, continue, middle
std::span<const MadeKind> made_kinds();

/// Counts phrases in a text, compared as answers are (answer_words()).
class WordIndex {
 public:
  explicit WordIndex(std::string_view text);
  int64_t count(std::string_view phrase) const;

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string, std::vector<size_t>> places_;  // of each word in words_
};

/// Whether the first answer occurs exactly once in the text of `index`, and no answer occurs in the
/// question or prefix.
bool is_answerable(const MadeQuestion& question, const WordIndex& index);

/// Chooses `n` answerable questions from all that a text allows, each the nearest to a random
/// depth.
std::vector<MadeQuestion> choose_questions(const std::string& text, const WordIndex& index,
                                           std::vector<MadeQuestion> all, int64_t n,
                                           Random& random);

MadeContext make_facts(const SourceText& source, int64_t n, Random& random);
MadeContext make_unique(const SourceText& source, int64_t n, Random& random);
MadeContext make_table(const SourceText& source, int64_t n, Random& random);
MadeContext make_code(const SourceText& source, int64_t n, Random& random);
MadeContext make_signature(const SourceText& source, int64_t n, Random& random);
MadeContext make_continue(const SourceText& source, int64_t n, Random& random);
MadeContext make_middle(const SourceText& source, int64_t n, Random& random);

}  // namespace snapkv::eval
