// SPDX-License-Identifier: MIT
#include "text/grammar/automaton.h"

#include <algorithm>

#include "base/error.h"
#include "text/grammar/automaton_builder.h"

namespace snapkv::grammar {
namespace {

using States = std::vector<AutomatonBuilder::State>;
using Rules = std::vector<Automaton::RuleStart>;

// A rule is short if its texts have at most this many bytes. An escape in a JSON string has six.
constexpr int kMostShortBytes = 8;

// Finds the rules that match the empty text: the least fixed point, propagated through callers.
std::vector<bool> empty_rules(const States& states, const Rules& rules) {
  std::vector<bool> reached(states.size()), empty(rules.size());
  std::vector<std::vector<int32_t>> waiting(rules.size());  // targets of calls, by called rule
  std::vector<int32_t> work;
  const auto reach = [&](int32_t s) {
    if (reached[s]) return;
    reached[s] = true;
    work.push_back(s);
  };
  for (const Automaton::RuleStart& rule : rules) reach(rule.start);
  while (!work.empty()) {
    const AutomatonBuilder::State& state = states[work.back()];
    work.pop_back();
    for (const int32_t target : state.steps) reach(target);
    for (const Automaton::Call& call : state.calls) {
      if (empty[call.rule]) {
        reach(call.target);
      } else {
        waiting[call.rule].push_back(call.target);
      }
    }
    if (!state.is_final || empty[state.rule]) continue;
    empty[state.rule] = true;
    for (const int32_t target : waiting[state.rule]) reach(target);
  }
  return empty;
}

// The rules that each rule may call before it has read a byte.
std::vector<std::vector<int32_t>> first_calls(const States& states, const Rules& rules) {
  const std::vector<bool> empty = empty_rules(states, rules);
  std::vector<std::vector<int32_t>> calls(rules.size());
  std::vector<bool> reached(states.size());  // each state belongs to one rule
  std::vector<int32_t> work;
  for (size_t r = 0; r < rules.size(); ++r) {
    work.assign(1, rules[r].start);
    while (!work.empty()) {
      const auto s = static_cast<size_t>(work.back());
      work.pop_back();
      if (reached[s]) continue;
      reached[s] = true;
      work.insert(work.end(), states[s].steps.begin(), states[s].steps.end());
      for (const Automaton::Call& call : states[s].calls) {
        calls[r].push_back(call.rule);
        if (empty[call.rule]) work.push_back(call.target);
      }
    }
    std::sort(calls[r].begin(), calls[r].end());
    calls[r].erase(std::unique(calls[r].begin(), calls[r].end()), calls[r].end());
  }
  return calls;
}

// A rule that begins with itself could be called without end. This searches depth first, without
// recursion.
void refuse_left_recursion(const States& states, const Rules& rules, const std::string& name) {
  const std::vector<std::vector<int32_t>> calls = first_calls(states, rules);
  enum class Mark : uint8_t { fresh, open, done };
  std::vector<Mark> marks(rules.size(), Mark::fresh);
  std::vector<std::pair<int32_t, size_t>> path;  // a rule, and its next call
  for (size_t r = 0; r < rules.size(); ++r) {
    if (marks[r] != Mark::fresh) continue;
    marks[r] = Mark::open;
    path.emplace_back(static_cast<int32_t>(r), 0);
    while (!path.empty()) {
      const auto rule = static_cast<size_t>(path.back().first);
      if (path.back().second == calls[rule].size()) {
        marks[rule] = Mark::done;
        path.pop_back();
        continue;
      }
      const int32_t called = calls[rule][path.back().second++];
      Mark& mark = marks[called];
      if (mark == Mark::open) {
        fail(ErrorCode::kUsage, "{}: left recursion: the rule {} begins with itself", name,
             rules[called].name);
      }
      if (mark == Mark::fresh) {
        mark = Mark::open;
        path.emplace_back(called, 0);
      }
    }
  }
}

// The length in bytes of the longest text from a state to the end of its rule, up to kLong.
class Lengths {
 public:
  Lengths(const States& states, const Rules& rules)
      : states_(states), rules_(rules), known_(states.size(), kUnknown) {}
  bool is_short(int32_t rule) { return longest(rules_[rule].start, 0) <= kMostShortBytes; }

 private:
  static constexpr int kUnknown = -2, kOpen = -1, kLong = kMostShortBytes + 1;
  static constexpr int kMostNesting = 200;  // levels of recursion; beyond them a rule is long

  int longest(int32_t s, int nesting) {
    int& known = known_[s];
    if (known == kOpen || nesting > kMostNesting) return kLong;  // a loop
    if (known != kUnknown) return known;
    known = kOpen;
    const AutomatonBuilder::State& state = states_[s];
    int most = 0;
    for (const Automaton::Edge& e : state.edges)
      most = std::max(most, 1 + longest(e.target, nesting + 1));
    for (const int32_t target : state.steps) most = std::max(most, longest(target, nesting + 1));
    for (const Automaton::Call& call : state.calls) {
      const int inside = longest(rules_[call.rule].start, nesting + 1);
      most = std::max(
          most, inside > kMostShortBytes ? kLong : inside + longest(call.target, nesting + 1));
    }
    return known_[s] = std::min(most, kLong);
  }

  const States& states_;
  const Rules& rules_;
  std::vector<int> known_;  // by state
};

// Finds the states that read nothing and from which every path leads to the rule's end.
std::vector<bool> returning_states(const States& states) {
  // Repeats from the last state to the first until nothing changes; steps mostly lead to later
  // states.
  std::vector<bool> returns(states.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = states.size(); i-- > 0;) {
      const AutomatonBuilder::State& state = states[i];
      if (returns[i] || !state.edges.empty() || !state.calls.empty()) continue;
      const bool all = std::all_of(state.steps.begin(), state.steps.end(),
                                   [&](int32_t target) { return returns[target]; });
      if (!all || (state.steps.empty() && !state.is_final)) continue;
      returns[i] = changed = true;
    }
  }
  return returns;
}

}  // namespace

Automaton::Automaton(const RuleSet& grammar, const std::string& name) : root_(grammar.root) {
  AutomatonBuilder builder(grammar, name);
  refuse_left_recursion(builder.states, builder.rules, name);
  rules_ = std::move(builder.rules);
  Lengths lengths(builder.states, rules_);
  for (int32_t r = 0; r < n_rules(); ++r) {
    rules_[r].is_short = lengths.is_short(r);
  }
  const std::vector<bool> returns = returning_states(builder.states);
  states_.reserve(builder.states.size() + 1);
  const auto add_state = [&](int32_t rule, bool is_final, bool only_returns) {
    states_.push_back({static_cast<int32_t>(edges_.size()), static_cast<int32_t>(calls_.size()),
                       static_cast<int32_t>(steps_.size()), rule, is_final, only_returns});
  };
  for (size_t i = 0; i < builder.states.size(); ++i) {
    AutomatonBuilder::State& state = builder.states[i];
    add_state(state.rule, state.is_final, returns[i]);
    edges_.insert(edges_.end(), state.edges.begin(), state.edges.end());
    calls_.insert(calls_.end(), state.calls.begin(), state.calls.end());
    steps_.insert(steps_.end(), state.steps.begin(), state.steps.end());
  }
  add_state(0, false, false);
  find_intervals();
}

void Automaton::find_intervals() {
  std::array<bool, 257> begins = {};
  for (const Edge& edge : edges_) begins[edge.bytes.low] = begins[edge.bytes.high + 1u] = true;
  for (size_t byte = 1; byte < intervals_.size(); ++byte) {
    intervals_[byte] = static_cast<uint8_t>(intervals_[byte - 1] + (begins[byte] ? 1 : 0));
  }
}

}  // namespace snapkv::grammar
