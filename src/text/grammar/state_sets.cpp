// SPDX-License-Identifier: MIT
#include "text/grammar/state_sets.h"

#include <algorithm>

#include "base/error.h"

namespace snapkv::grammar {
namespace {

uint64_t key_of(int32_t state, int32_t below) {
  return uint64_t{static_cast<uint32_t>(state)} << 32 | static_cast<uint32_t>(below);
}

uint64_t hash_of(const std::vector<int32_t>& frames, bool is_complete) {
  uint64_t hash = is_complete ? 1 : 0;
  for (const int32_t frame : frames) {
    hash = (hash ^ static_cast<uint32_t>(frame)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

StateSets::StateSets(const Automaton& automaton) : automaton_(automaton) {
  frames_.push_back({});
  set_of({}, false);  // kDead
  allow_work(int64_t{1} << 20);
  begin();
  visit(automaton_.rule(automaton_.root()).start, kBottom);
  initial_ = finish();
}

int32_t StateSets::frame_of(int32_t state, int32_t below) {
  const uint64_t key = key_of(state, below);
  if (const auto known = frame_numbers_.find(key); known != frame_numbers_.end()) {
    return known->second;
  }
  if (frames_.size() >= kMostFrames) {
    fail(ErrorCode::kRuntime, "the grammar has too many ways to go on from here (more than {})",
         kMostFrames);
  }
  const auto number = static_cast<int32_t>(frames_.size());
  frames_.push_back({state, below, frame(below).depth + 1});
  frame_numbers_.emplace(key, number);
  return number;
}

int32_t StateSets::set_of(std::vector<int32_t> frames, bool is_complete) {
  std::sort(frames.begin(), frames.end());
  const uint64_t hash = hash_of(frames, is_complete);
  const auto [begin, end] = set_numbers_.equal_range(hash);
  for (auto at = begin; at != end; ++at) {
    const Set& set = sets_[static_cast<size_t>(at->second)];
    if (set.is_complete == is_complete && set.frames == frames) return at->second;
  }
  if (sets_.size() >= kMostSets) {
    fail(ErrorCode::kRuntime, "the grammar has too many ways to go on from here (more than {})",
         kMostSets);
  }
  const auto number = static_cast<int32_t>(sets_.size());
  sets_.push_back({std::move(frames), is_complete, nullptr});
  set_numbers_.emplace(hash, number);
  return number;
}

int32_t StateSets::resumed(int32_t f) {
  begin();
  visit(frame(f).state, frame(f).below);
  return finish();
}

int32_t StateSets::compute_step(int32_t set, uint8_t byte) {
  begin();
  for (const int32_t f : frames(set)) {
    const Frame top = frame(f);
    for (const Automaton::Edge& edge : automaton_.edges(top.state)) {
      if (edge.bytes.low <= byte && byte <= edge.bytes.high) visit(edge.target, top.below);
    }
  }
  const int32_t result = finish();
  std::unique_ptr<Next>& next = sets_[static_cast<size_t>(set)].next;
  if (next == nullptr) {
    next = std::make_unique<Next>();
    next->fill(-1);
  }
  (*next)[byte] = result;
  return result;
}

void StateSets::begin() {
  visited_.clear();
  tops_.clear();
  complete_ = false;
}

void StateSets::visit(int32_t state, int32_t below) {
  pending_.assign(1, {state, below});
  while (!pending_.empty()) {
    const auto [s, b] = pending_.back();
    pending_.pop_back();
    if (visited_.insert(key_of(s, b)).second) visit_one(s, b);
  }
}

void StateSets::visit_one(int32_t s, int32_t below) {
  if (visited_.size() > kMostWays || --work_left_ < 0) {
    pending_.clear();
    fail(ErrorCode::kRuntime, "the grammar is too ambiguous: more than {}",
         visited_.size() > kMostWays ? fmt::format("{} ways to read the text so far", kMostWays)
                                     : "a second's work for one token");
  }
  if (!automaton_.edges(s).empty()) tops_.push_back(frame_of(s, below));
  for (const int32_t target : automaton_.steps(s)) pending_.emplace_back(target, below);
  for (const Automaton::Call& call : automaton_.calls(s)) {
    // where nothing follows the call, the rule returns to where this one does: lists that are
    // written as recursion at their ends don't grow the stack
    const bool returns = automaton_.state(call.target).only_returns;
    if (!returns && frame(below).depth >= kMostDepth) continue;
    pending_.emplace_back(automaton_.rule(call.rule).start,
                          returns ? below : frame_of(call.target, below));
  }
  if (!automaton_.state(s).is_final) return;
  if (below == kBottom) {
    complete_ = true;
  } else {
    pending_.emplace_back(frame(below).state, frame(below).below);
  }
}

int32_t StateSets::finish() { return set_of(tops_, complete_); }

}  // namespace snapkv::grammar
