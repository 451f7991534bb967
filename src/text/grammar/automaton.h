// SPDX-License-Identifier: MIT
// Automaton: a grammar as a pushdown automaton over bytes. Each rule is a nondeterministic
// automaton whose states have edges for bytes, calls of other rules, and steps that read nothing.
// Made once per grammar; what runs it is StateSets.
//
// Every call returns to the state that it names, so where a text stands in the grammar is a stack
// of states: the innermost one, and what is left to do in the rules around it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/grammar/expression.h"

namespace snapkv::grammar {

class Automaton {
 public:
  struct Edge {
    ByteSpan bytes;
    int32_t target = 0;
  };
  struct Call {
    int32_t rule = 0;
    int32_t target = 0;  // where the text goes on after the rule
  };
  /// Indices into the edges, calls and steps of all states; a state's end is the next one's begin.
  struct State {
    int32_t edges = 0;
    int32_t calls = 0;
    int32_t steps = 0;
    int32_t rule = 0;
    bool is_final = false;      // the rule may end here
    bool only_returns = false;  // nothing but that is possible here
  };
  struct RuleStart {
    std::string name;
    int32_t start = 0;
    /// All its texts are a few bytes, so that a token may well reach beyond it: masks are computed
    /// for the rule around it instead (TokenMasks).
    bool is_short = false;
  };

  /// Throws Error{kUsage} for left recursion, naming the rule, and for grammars that are too large.
  Automaton(const RuleSet& rules, const std::string& name);

  std::span<const Edge> edges(int32_t s) const { return range(edges_, &State::edges, s); }
  std::span<const Call> calls(int32_t s) const { return range(calls_, &State::calls, s); }
  std::span<const int32_t> steps(int32_t s) const { return range(steps_, &State::steps, s); }
  const State& state(int32_t s) const { return states_[static_cast<size_t>(s)]; }
  const RuleStart& rule(int32_t r) const { return rules_[static_cast<size_t>(r)]; }
  int32_t n_states() const { return static_cast<int32_t>(states_.size()) - 1; }
  int32_t n_rules() const { return static_cast<int32_t>(rules_.size()); }
  int32_t root() const { return root_; }
  /// Bytes of the same interval are read by the same edges, whatever the state. Numbered from 0 in
  /// the bytes' order.
  uint8_t interval(uint8_t byte) const { return intervals_[byte]; }
  int n_intervals() const { return intervals_.back() + 1; }

 private:
  template <typename T>
  std::span<const T> range(const std::vector<T>& all, int32_t State::*first, int32_t s) const {
    const State* const at = &states_[static_cast<size_t>(s)];
    return {all.data() + at[0].*first, all.data() + at[1].*first};
  }

  void find_intervals();

  std::vector<State> states_;  // and one more, where the last one's ranges end
  std::vector<Edge> edges_;
  std::vector<Call> calls_;
  std::vector<int32_t> steps_;
  std::vector<RuleStart> rules_;  // the grammar's, then those of sets of characters
  int32_t root_ = 0;
  std::array<uint8_t, 256> intervals_ = {};
};

}  // namespace snapkv::grammar
