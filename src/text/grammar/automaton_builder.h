// SPDX-License-Identifier: MIT
// AutomatonBuilder: makes the states, edges and calls for the expressions of a grammar's rules.
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

  /// Throws Error{kUsage} if there would be too many states.
  AutomatonBuilder(const RuleSet& rules, const std::string& name);

  std::vector<State> states;
  std::vector<Automaton::RuleStart> rules;

 private:
  int32_t add_state();
  void count_part();
  void add_edge(int32_t from, ByteSpan bytes, int32_t target);
  /// Adds the states that read `expression`, starting from one state; returns the state they end
  /// in.
  int32_t add(const Expression& expression, int32_t from);
  int32_t add_choice(const Expression& expression, int32_t from);
  /// The same for one text of a choice. Texts with the same beginning share states, so that a list
  /// of thousands is read in only one way at a time.
  using SharedStates = std::map<std::pair<int32_t, uint8_t>, int32_t>;  // key: state and byte
  int32_t add_shared(std::string_view bytes, int32_t from, SharedStates& shared);
  int32_t add_repeat(const Expression& expression, int32_t from);
  int32_t add_characters(const CharSet& set, int32_t from);
  /// How the characters of a set are read; computed once, since repetitions contain many copies.
  struct Characters {
    std::vector<ByteSpan> bytes;  // the characters of one byte
    int32_t longer = kNoRule;     // the rule that reads the longer ones
  };
  static constexpr int32_t kNoRule = -1;
  const Characters& characters_of(const CharSet& set);
  /// Adds a rule that reads one character of several bytes; returns its number.
  int32_t rule_of(const std::vector<ByteSequence>& sequences);

  const std::string& name_;
  int32_t rule_ = 0;  // the rule being built
  size_t n_edges_ = 0;
  size_t n_parts_ = 0;
  std::map<std::vector<CharSet::Range>, Characters> characters_;
  std::map<std::vector<CharSet::Range>, int32_t> character_rules_;  // key: ranges beyond ASCII
};

}  // namespace snapkv::grammar
