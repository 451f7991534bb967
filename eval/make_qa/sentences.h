// SPDX-License-Identifier: MIT
// Where a text may be cut, and where a sentence may be inserted between two others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace snapkv::eval {

/// The kind of text after a sentence. `inside`: a longer sentence was cut at white space and goes
/// on.
enum class SentenceEnd { sentence, paragraph, line, inside };

struct Sentence {
  size_t begin = 0, end = 0;  ///< bytes, without surrounding white space
  SentenceEnd after = SentenceEnd::paragraph;
};

/// Splits a text into sentences that cover all of it but white space. A sentence ends at ".", "!"
/// or "?" before white space and anything but a small letter, except after abbreviations, and at an
/// empty line; with `by_lines` (code), it ends with its line. If there is no end within 400 bytes,
/// it is cut at the end of a line, or else at white space.
std::vector<Sentence> split_sentences(std::string_view text, bool by_lines);

/// The text with a single space for each run of white space and none at its ends.
std::string single_spaced(std::string_view text);

}  // namespace snapkv::eval
