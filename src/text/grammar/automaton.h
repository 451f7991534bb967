// SPDX-License-Identifier: MIT
// Automaton: a grammar as a pushdown automaton over bytes. Each rule is a nondeterministic
// automaton whose states have edges that read a byte, calls of other rules, and steps that read
// nothing. It is made once per grammar; StateSets runs it.
//
// A call names the state to which it returns. A position in the grammar is thus a stack of states:
// the current state, and below it the states at which the surrounding rules continue.
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
    int32_t target = 0;  // where the text continues after the rule
  };
  /// Indices into the edges, calls and steps of all states; a state's ranges end where the next
  /// state's begin.
  struct State {
    int32_t edges = 0;
    int32_t calls = 0;
    int32_t steps = 0;
    int32_t rule = 0;
    bool is_final = false;      // the rule may end here
    bool only_returns = false;  // and nothing else is possible here
  };
  struct RuleStart {
    std::string name;
    int32_t start = 0;
    /// Every text of the rule is only a few bytes long, so that a token may well reach beyond it.
    /// Masks are therefore computed for the rule around it (TokenMasks).
    bool is_short = false;
  };

  /// Throws Error{kUsage} for left recursion, naming the rule, and for a grammar that is too large.
  Automaton(const RuleSet& rules, const std::string& name);

  std::span<const Edge> edges(int32_t s) const { return range(edges_, &State::edges, s); }
  std::span<const Call> calls(int32_t s) const { return range(calls_, &State::calls, s); }
  std::span<const int32_t> steps(int32_t s) const { return range(steps_, &State::steps, s); }
  const State& state(int32_t s) const { return states_[s]; }
  const RuleStart& rule(int32_t r) const { return rules_[r]; }
  int32_t n_states() const { return static_cast<int32_t>(states_.size()) - 1; }
  int32_t n_rules() const { return static_cast<int32_t>(rules_.size()); }
  int32_t root() const { return root_; }
  /// The number of a byte's interval. In every state, all bytes of an interval are read by the same
  /// edges. Intervals are numbered from 0 in the order of their bytes.
  uint8_t interval(uint8_t byte) const { return intervals_[byte]; }
  int n_intervals() const { return intervals_.back() + 1; }

 private:
  template <typename T>
  std::span<const T> range(const std::vector<T>& all, int32_t State::*first, int32_t s) const {
    const State* const at = &states_[s];
    return {all.data() + at[0].*first, all.data() + at[1].*first};
  }

  void find_intervals();

  std::vector<State> states_;  // an extra one marks where the last one's ranges end
  std::vector<Edge> edges_;
  std::vector<Call> calls_;
  std::vector<int32_t> steps_;
  std::vector<RuleStart> rules_;  // the grammar's rules, then the rules of sets of characters
  int32_t root_ = 0;
  std::array<uint8_t, 256> intervals_ = {};
};

}  // namespace snapkv::grammar
