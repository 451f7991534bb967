// SPDX-License-Identifier: MIT
// Regular expressions as GBNF: a schema's `pattern`, and those that describe a whole answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace snapkv::grammar {

/// Which lengths the strings of a pattern may have.
struct PatternLengths {
  int64_t least = 0;
  std::optional<int64_t> most = {};
};

/// The strings of JSON, without their quotes, whose text has a match of `pattern`: an expression
/// that may use the rule `char`. `place` begins messages. Throws Error{kUsage} for what is no
/// regular expression or not supported: look-around, references, word boundaries, properties of
/// Unicode. `left_out`: if not null, look-around and word boundaries are passed over, and it says
/// so.
std::string pattern_to_gbnf(std::string_view pattern, const std::string& place,
                            bool* left_out = nullptr);

/// The texts that match as a whole, not in JSON. `^` and `$` at their ends add nothing. Throws as
/// pattern_to_gbnf() does.
std::string whole_text_pattern_to_gbnf(std::string_view pattern, const std::string& place);

/// pattern_to_gbnf() with lengths, for patterns that are one class of characters with a number of
/// repetitions, ^[a-z]+$; nothing for others. Throws where no string has both.
std::optional<std::string> pattern_with_lengths(std::string_view pattern,
                                                const PatternLengths& lengths,
                                                const std::string& place);

}  // namespace snapkv::grammar
