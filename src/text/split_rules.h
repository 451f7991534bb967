// SPDX-License-Identifier: MIT
// SplitRules: how a pre-tokenizer of a GGUF file cuts a text into words, as llama.cpp does it.
//
// Rules run one after the other, each on the pieces that the ones before it made. A pattern's
// matches become pieces, and so does what lies between them.
//
// llama.cpp matches patterns on a shortened alphabet of one byte per character, and so do we: then
// a class of characters is a table of 256 bits, and classes mean what they mean there.
//   ASCII               itself
//   other white space   0x0b
//   all others          0x80 + 8 * (1 + the number of the pattern's set that has it, or 0)
//                       + Unicode's category
// So [^a-z] holds all letters that are not ASCII, capital or small, and \s, \d are ASCII's with all
// white space.
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
    /// which hold A-Z or a-z and all letters that are not ASCII; and inside brackets \x{HEX} and
    /// ranges of these, which make the brackets' set of characters. Sets of one pattern are equal
    /// or have no character in common.
    pattern,
    /// Runs of numbers, cut so that all pieces but the first have three digits; what comes before a
    /// run joins its first piece (`afmoe`).
    digit_groups,
    /// A cut wherever a multiple of three ASCII digits, and then no further one, follows.
    thousands,
  };
  Kind kind = Kind::pattern;
  std::string_view pattern = {};
};

/// Ranges of code points, both ends included.
using CodePointSet = std::vector<std::pair<uint32_t, uint32_t>>;

class SplitRules {
 public:
  /// `origin` as Regex's.
  SplitRules(std::span<const SplitRule> rules, const std::string& origin);

  /// Lengths in bytes of the words of `text`, which is valid UTF-8; none is 0, their sum is the
  /// text's. Throws as Regex::Scanner::find.
  std::vector<uint32_t> split(std::string_view text) const;

 private:
  struct Step {
    SplitRule::Kind kind;
    std::vector<Regex> regex;        // one, or none for other kinds
    std::vector<CodePointSet> sets;  // of the pattern
  };
  std::vector<Step> steps_;
};

/// A pattern of SplitRule::Kind::pattern as bytes, and its sets. Aborts on one that breaks the
/// rules above: patterns are the program's own.
std::string expand_pattern(std::string_view pattern, std::vector<CodePointSet>& sets);

}  // namespace snapkv
