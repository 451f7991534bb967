// SPDX-License-Identifier: MIT
// Where a text may be cut and where a sentence may be put between two others. Used by the kinds of
// questions and by make_qa.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace snapkv::eval {

/// What follows a sentence. `inside`: nothing does, a longer one was cut at white space.
enum class SentenceEnd { sentence, paragraph, line, inside };

struct Sentence {
  size_t begin = 0, end = 0;  ///< bytes, without white space around them
  SentenceEnd after = SentenceEnd::paragraph;
};

/// All of a text but white space. A sentence ends at ".", "!" or "?" before white space and what is
/// no small letter, not after abbreviations, and at an empty line; `by_lines` (code): with its
/// line. What has no end in 400 bytes is cut at the end of a line, else at white space.
std::vector<Sentence> split_sentences(std::string_view text, bool by_lines);

/// With one space for each run of white space, none around it.
std::string single_spaced(std::string_view text);

}  // namespace snapkv::eval
