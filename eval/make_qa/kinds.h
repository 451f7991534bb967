// SPDX-License-Identifier: MIT
// The kinds of questions that are made from a text by rule, each a function in a table. Used by
// make_qa.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "eval/common/haystack.h"

namespace snapkv::eval {

/// A text, or the part of one, that questions are made about.
struct SourceText {
  std::string name;      ///< "prose/bridge.txt"
  std::string text;      ///< what the questions are about
  std::string title;     ///< the file's first line, if that is a name; else empty
  bool is_code = false;  ///< by the name's ending
};

struct MadeQuestion {
  size_t at = 0;  ///< byte of the context where the first answer stands
  std::string question;
  std::string prefix;  ///< how the answer begins
  std::vector<std::string> answers;
};

struct MadeContext {
  std::string changed;  ///< the text with what was put into it; empty: it is as it was
  std::vector<MadeQuestion> questions;
};

struct MadeKind {
  const char* name;
  const char* about;
  /// At most `n` questions, at depths that are spread over the text; none where it has nothing of
  /// this kind.
  MadeContext (*make)(const SourceText& source, int64_t n, Random& random);
};

/// fact, unique, table, code, continue
std::span<const MadeKind> made_kinds();

/// Counts phrases in a text, as answers are compared (answer_words()).
class WordIndex {
 public:
  explicit WordIndex(std::string_view text);
  int64_t count(std::string_view phrase) const;

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string, std::vector<size_t>> places_;  // of words, by word
};

/// Whether the first answer stands once in the text of `index`, and none of them in question or
/// prefix.
bool is_answerable(const MadeQuestion& question, const WordIndex& index);

/// Of all that a text holds, `n` that are answerable, each the nearest to a drawn depth.
std::vector<MadeQuestion> choose_questions(const std::string& text, const WordIndex& index,
                                           std::vector<MadeQuestion> all, int64_t n,
                                           Random& random);

MadeContext make_facts(const SourceText& source, int64_t n, Random& random);
MadeContext make_unique(const SourceText& source, int64_t n, Random& random);
MadeContext make_table(const SourceText& source, int64_t n, Random& random);
MadeContext make_code(const SourceText& source, int64_t n, Random& random);
MadeContext make_continue(const SourceText& source, int64_t n, Random& random);

}  // namespace snapkv::eval
