// SPDX-License-Identifier: MIT
// SplitRules: how a pre-tokenizer of a GGUF file cuts a text into words, as llama.cpp does.
//
// The rules run one after another, each on the pieces that the rules before it made. The matches of
// a pattern become pieces, and so does the text between them.
//
// llama.cpp matches patterns on a shortened alphabet of one byte per character, and so do we: a
// class of characters is then a table of 256 bits, and classes mean the same as in llama.cpp.
//   ASCII               itself
//   other white space   0x0b
//   everything else     0x80 + 8 * s + Unicode's category, where s is 0, or 1 + the number of the
//                       pattern's set that contains the character
// So [^a-z] contains all letters outside ASCII, capital or small, and \s and \d are ASCII's, plus
// all white space.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/regex.h"

namespace snapkv {

/// One rule as the table of pre-tokenizers (pre_tokenizers.cpp) writes it.
struct SplitRule {
  enum class Kind {
    /// Regular expression with ASCII literals; \p{L} \p{M} \p{N} \p{P} \p{S}; \p{Lu} and \p{Ll},
    /// which contain A-Z or a-z and all letters outside ASCII; and, inside brackets, \x{HEX} and
    /// ranges of these, which form the brackets' set of characters. Any two sets of a pattern are
    /// either equal or disjoint.
    pattern,
    /// Cuts runs of numbers so that every piece but the first has three digits; the text before a
    /// run joins its first piece (`afmoe`).
    digit_groups,
    /// Cuts wherever the ASCII digits up to the end of their run are a multiple of three.
    thousands,
  };
  Kind kind = Kind::pattern;
  std::string_view pattern = {};
};

/// Ranges of code points, both ends included.
using CodePointSet = std::vector<std::pair<uint32_t, uint32_t>>;

class SplitRules {
 public:
  /// `origin` as for Regex.
  SplitRules(std::span<const SplitRule> rules, const std::string& origin);

  /// The lengths in bytes of the words of `text`, which is valid UTF-8; none is 0, and their sum is
  /// the text's length. Throws as Regex::Scanner::find does.
  std::vector<uint32_t> split(std::string_view text) const;

 private:
  struct Step {
    SplitRule::Kind kind;
    std::vector<Regex> regex;        // one for a pattern, none for the other kinds
    std::vector<CodePointSet> sets;  // the pattern's sets
  };
  std::vector<Step> steps_;
};

/// Turns a pattern of SplitRule::Kind::pattern into one on bytes and its sets. Aborts if the
/// pattern breaks the rules above: patterns are part of the program.
std::string expand_pattern(std::string_view pattern, std::vector<CodePointSet>& sets);

}  // namespace snapkv
