// SPDX-License-Identifier: MIT
// Expression: what a rule of a grammar says, as a tree. Made by the GBNF parser, read by the
// builder of the automaton.
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
    rule,        // the rule number `rule`
    sequence,    // `children`, one after the other; none: the empty text
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

/// What a grammar's text says. Every Expression::rule is an index into `rules`.
struct RuleSet {
  std::vector<Rule> rules;
  int root = 0;
};

}  // namespace snapkv::grammar
