// SPDX-License-Identifier: MIT
// AutomatonBuilder: states, edges and calls of the rules' expressions. Called by Automaton's
// constructor alone.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/grammar/automaton.h"

namespace snapkv::grammar {

class AutomatonBuilder {
 public:
  struct State {
    std::vector<Automaton::Edge> edges;
    std::vector<Automaton::Call> calls;
    std::vector<int32_t> steps;
    int32_t rule = 0;
    bool is_final = false;
  };

  /// Throws Error{kUsage} when there would be too many states.
  AutomatonBuilder(const RuleSet& rules, const std::string& name);

  std::vector<State> states;
  std::vector<Automaton::RuleStart> rules;

 private:
  int32_t add_state();
  void count_part();
  void add_edge(int32_t from, ByteSpan bytes, int32_t target);
  /// Adds what `expression` reads, from a state on; returns the state where it ends.
  int32_t add(const Expression& expression, int32_t from);
  int32_t add_choice(const Expression& expression, int32_t from);
  /// The same for one of several texts. Those that begin alike share states, so that a list of
  /// thousands is read in one way at a time.
  using SharedStates = std::map<std::pair<int32_t, uint8_t>, int32_t>;  // by state and byte
  int32_t add_shared(std::string_view bytes, int32_t from, SharedStates& shared);
  int32_t add_repeat(const Expression& expression, int32_t from);
  int32_t add_characters(const CharSet& set, int32_t from);
  /// How the characters of a set are read; found once, since repetitions have many copies of it.
  struct Characters {
    std::vector<ByteSpan> bytes;  // of the characters that have one
    int32_t longer = kNoRule;     // the rule that reads the others
  };
  static constexpr int32_t kNoRule = -1;
  const Characters& characters_of(const CharSet& set);
  /// The number of a rule that reads one character of more than one byte.
  int32_t rule_of(const std::vector<ByteSequence>& sequences);

  const std::string& name_;
  int32_t rule_ = 0;  // the one being built
  size_t n_edges_ = 0;
  size_t n_parts_ = 0;
  std::map<std::vector<CharSet::Range>, Characters> characters_;
  std::map<std::vector<CharSet::Range>, int32_t> character_rules_;  // by ranges beyond ASCII
};

}  // namespace snapkv::grammar
