// SPDX-License-Identifier: MIT
// The parser of GBNF, llama.cpp's notation for grammars.
#pragma once

#include <string>
#include <string_view>

#include "text/grammar/expression.h"

namespace snapkv::grammar {

/// Larger grammars are refused, so that no text takes much time or memory.
struct ParseLimits {
  size_t n_bytes = size_t{1} << 22;
  size_t n_rules = 20000;
  int nesting = 100;      // parentheses inside each other
  int repetition = 2000;  // {m,n}, as in llama.cpp
};

/// Throws Error{kUsage} "NAME: line L, column C: ..." with what was expected and found if the text
/// is not a grammar.
RuleSet parse_gbnf(std::string_view text, const std::string& name, const ParseLimits& limits = {});

}  // namespace snapkv::grammar
