// SPDX-License-Identifier: MIT
// Expression: the right-hand side of a grammar rule, as a tree.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/grammar/char_set.h"

namespace snapkv::grammar {

struct Expression {
  enum class Kind : uint8_t {
    literal,     // `bytes`
    characters,  // one character of `set`
    rule,        // the rule with the number `rule`
    sequence,    // `children`, one after another; with no children, the empty text
    choice,      // one of `children`
    repeat,      // children[0], `least` to `most` times
  };
  static constexpr int kNoLimit = -1;

  Kind kind = Kind::sequence;
  std::string bytes;
  CharSet set;
  int rule = 0;
  int least = 0;
  int most = kNoLimit;
  std::vector<Expression> children;
};

struct Rule {
  std::string name;
  Expression body;
};

/// The rules that a grammar's text defines. Every Expression::rule is an index into `rules`.
struct RuleSet {
  std::vector<Rule> rules;
  int root = 0;
};

}  // namespace snapkv::grammar
