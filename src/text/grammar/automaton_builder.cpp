// SPDX-License-Identifier: MIT
#include "text/grammar/automaton_builder.h"

#include <algorithm>

#include "base/error.h"

namespace snapkv::grammar {
namespace {

// 262,144 states are enough for the strings of a few hundred fields with lengths up to hundreds,
// and take less than 100 MB while the automaton is made.
constexpr size_t kMostStates = size_t{1} << 18;
constexpr size_t kMostEdges = size_t{1} << 20;
constexpr size_t kMostParts = size_t{1} << 20;

}  // namespace

AutomatonBuilder::AutomatonBuilder(const RuleSet& grammar, const std::string& name) : name_(name) {
  for (const Rule& rule : grammar.rules) rules.push_back({rule.name, 0, false});
  for (size_t i = 0; i < grammar.rules.size(); ++i) {
    rule_ = static_cast<int32_t>(i);
    const int32_t start = add_state();
    rules[i].start = start;
    const int32_t end = add(grammar.rules[i].body, start);
    states[end].is_final = true;
  }
}

int32_t AutomatonBuilder::add_state() {
  if (states.size() >= kMostStates) {
    fail(ErrorCode::kUsage,
         "{}: too large, in rule {}: more than {} states with all repetitions written out", name_,
         rules[rule_].name, kMostStates);
  }
  states.push_back({{}, {}, {}, rule_, false});
  return static_cast<int32_t>(states.size()) - 1;
}

void AutomatonBuilder::add_edge(int32_t from, ByteSpan bytes, int32_t target) {
  if (++n_edges_ > kMostEdges) {
    fail(ErrorCode::kUsage, "{}: too large, in rule {}: more than {} ranges of characters", name_,
         rules[rule_].name, kMostEdges);
  }
  states[from].edges.push_back({bytes, target});
}

void AutomatonBuilder::count_part() {
  if (++n_parts_ <= kMostParts) return;  // repetitions of empty expressions make no states
  fail(ErrorCode::kUsage,
       "{}: too large, in rule {}: more than {} parts with all repetitions written out", name_,
       rules[rule_].name, kMostParts);
}

int32_t AutomatonBuilder::add(const Expression& expression, int32_t from) {
  count_part();
  switch (expression.kind) {
    case Expression::Kind::literal:
      for (const char c : expression.bytes) {
        const int32_t to = add_state();
        add_edge(from, {static_cast<uint8_t>(c), static_cast<uint8_t>(c)}, to);
        from = to;
      }
      return from;
    case Expression::Kind::characters:
      return add_characters(expression.set, from);
    case Expression::Kind::rule: {
      const int32_t to = add_state();
      states[from].calls.push_back({expression.rule, to});
      return to;
    }
    case Expression::Kind::sequence:
      for (const Expression& child : expression.children) from = add(child, from);
      return from;
    case Expression::Kind::choice:
      return add_choice(expression, from);
    case Expression::Kind::repeat:
      return add_repeat(expression, from);
  }
  return from;
}

int32_t AutomatonBuilder::add_choice(const Expression& expression, int32_t from) {
  const int32_t end = add_state();
  SharedStates shared;
  for (const Expression& child : expression.children) {
    const bool is_literal = child.kind == Expression::Kind::literal;
    const int32_t last = is_literal ? add_shared(child.bytes, from, shared) : add(child, from);
    states[last].steps.push_back(end);
  }
  return end;
}

int32_t AutomatonBuilder::add_shared(std::string_view bytes, int32_t from, SharedStates& shared) {
  count_part();
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    const auto [place, is_new] = shared.try_emplace({from, byte});
    if (is_new) {
      place->second = add_state();
      add_edge(from, {byte, byte}, place->second);
    }
    from = place->second;
  }
  return from;
}

int32_t AutomatonBuilder::add_repeat(const Expression& expression, int32_t from) {
  const Expression& item = expression.children.front();
  for (int i = 0; i < expression.least; ++i) from = add(item, from);
  if (expression.most == Expression::kNoLimit) {
    const int32_t loop = add_state();  // a new state, since other branches may begin at `from`
    states[from].steps.push_back(loop);
    const int32_t last = add(item, loop);
    states[last].steps.push_back(loop);
    return loop;
  }
  const int32_t end = add_state();
  for (int i = expression.least; i < expression.most; ++i) {
    states[from].steps.push_back(end);
    from = add(item, from);
  }
  states[from].steps.push_back(end);
  return end;
}

int32_t AutomatonBuilder::add_characters(const CharSet& set, int32_t from) {
  const int32_t to = add_state();
  const Characters& characters = characters_of(set);
  for (const ByteSpan bytes : characters.bytes) add_edge(from, bytes, to);
  if (characters.longer != kNoRule) {
    states[from].calls.push_back({characters.longer, to});
  }
  return to;
}

const AutomatonBuilder::Characters& AutomatonBuilder::characters_of(const CharSet& set) {
  const auto [place, is_new] = characters_.try_emplace(set.ranges());
  Characters& found = place->second;
  if (!is_new) return found;
  std::vector<ByteSequence> longer;
  for (const ByteSequence& sequence : set.byte_sequences()) {
    if (sequence.length == 1) {
      found.bytes.push_back(sequence.spans[0]);
    } else {
      longer.push_back(sequence);
    }
  }
  if (longer.empty()) return found;
  std::vector<CharSet::Range> key;
  for (const CharSet::Range& range : set.ranges()) {
    if (range.second > 0x7f) key.emplace_back(std::max(range.first, 0x80u), range.second);
  }
  auto known = character_rules_.find(key);
  if (known == character_rules_.end()) {
    known = character_rules_.emplace(std::move(key), rule_of(longer)).first;
  }
  found.longer = known->second;
  return found;
}

int32_t AutomatonBuilder::rule_of(const std::vector<ByteSequence>& sequences) {
  const int32_t caller = rule_;
  rule_ = static_cast<int32_t>(rules.size());
  rules.push_back({rules[caller].name, 0, false});
  const int32_t start = add_state(), end = add_state();
  rules.back().start = start;
  states[end].is_final = true;
  // The rest of a sequence -> the state that reads it.
  std::map<std::vector<ByteSpan>, int32_t> rests;
  for (const ByteSequence& sequence : sequences) {
    std::vector<ByteSpan> rest;
    int32_t target = end;
    for (size_t i = sequence.length - 1; i > 0; --i) {
      const ByteSpan span = sequence.spans[i];
      rest.insert(rest.begin(), span);
      const auto [at, is_new] = rests.try_emplace(rest, 0);
      if (is_new) {
        at->second = add_state();
        add_edge(at->second, span, target);
      }
      target = at->second;
    }
    add_edge(start, sequence.spans[0], target);
  }
  rule_ = caller;
  return static_cast<int32_t>(states[start].rule);
}

}  // namespace snapkv::grammar
