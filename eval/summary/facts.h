// SPDX-License-Identifier: MIT
// Facts: the names, numbers and identifiers of a summary that stand in the text it is about, and
// those that do not. Found by their form alone, so that the same texts give the same counts.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace snapkv::eval {

/// Each once, in the summary's order, as words with a space between them.
struct NamedFacts {
  std::vector<std::string> facts;    ///< stand in the text
  std::vector<std::string> strange;  ///< do not, in whatever letter case
};

/// A text in which the facts of summaries are looked up. Words are runs of letters, digits, `_` and
/// bytes beyond ASCII; "1,862" is 1862, and "Ann's" is Ann. Facts are made of
///   - names: words with a capital that do not begin a sentence; or do, where the text has them as
///     names elsewhere: within a sentence with a capital, and not oftener without one;
///   - numbers of two digits or more;
///   - identifiers: words with `_`, with a capital or digit within, in backticks or before "()".
/// Neighbours are one fact where the text has them side by side, too: "Ann Lee", "May 3", "3.11",
/// `os.path`. Otherwise each word counts for itself. What ends another fact of the same summary is
/// not counted again: "Lee" beside "Ann Lee".
class FactText {
 public:
  explicit FactText(std::string_view text);
  NamedFacts named_in(std::string_view summary) const;

 private:
  struct WordCounts {
    int64_t as_name = 0;  // with a capital, not at a sentence's start
    int64_t lower = 0;    // without one; counted for the word in lower case
  };

  bool has(const std::string& words) const;
  bool has_in_any_case(const std::string& word) const;
  bool has_as_name(const std::string& word) const;

  std::string words_;  // " the words with a space around each "
  std::map<std::string, WordCounts, std::less<>> counts_;
};

}  // namespace snapkv::eval
