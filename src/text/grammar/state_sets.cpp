// SPDX-License-Identifier: MIT
#include "text/grammar/state_sets.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"

namespace snapkv::grammar {
namespace {

uint64_t key_of(int32_t state, int32_t below) {
  return uint64_t{static_cast<uint32_t>(state)} << 32 | static_cast<uint32_t>(below);
}

uint64_t hash_of(uint64_t key) {
  const uint64_t hash = key * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 32;
}

uint64_t hash_of(std::span<const int32_t> frames, bool is_complete) {
  uint64_t hash = is_complete ? 1 : 0;
  for (const int32_t frame : frames) {
    hash = (hash ^ static_cast<uint32_t>(frame)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

StateSets::StateSets(const Automaton& automaton)
    : automaton_(automaton), frame_numbers_(1024, kBottom) {
  frames_.push_back({});
  set_of({}, false);  // kDead
  allow_work(int64_t{1} << 20);
  begin();
  visit(automaton_.rule(automaton_.root()).start, kBottom);
  initial_ = finish();
}

int32_t& StateSets::place_of_frame(int32_t state, int32_t below) {
  const size_t mask = frame_numbers_.size() - 1;
  for (size_t place = hash_of(key_of(state, below)) & mask;; place = (place + 1) & mask) {
    int32_t& number = frame_numbers_[place];
    if (number == kBottom) return number;
    if (frame(number).state == state && frame(number).below == below) return number;
  }
}

void StateSets::double_frame_numbers() {
  frame_numbers_ = std::vector<int32_t>(2 * frame_numbers_.size(), kBottom);
  for (int32_t f = 1; f < std::ssize(frames_); ++f) {
    place_of_frame(frame(f).state, frame(f).below) = f;
  }
}

int32_t StateSets::frame_of(int32_t state, int32_t below) {
  if (2 * frames_.size() >= frame_numbers_.size()) double_frame_numbers();
  int32_t& number = place_of_frame(state, below);
  if (number != kBottom) return number;
  if (frames_.size() >= kMostFrames) {
    fail(ErrorCode::kRuntime, "the grammar has too many ways to go on from here (more than {})",
         kMostFrames);
  }
  frames_.push_back({state, below, frame(below).depth + 1});
  return number = static_cast<int32_t>(frames_.size()) - 1;
}

int32_t StateSets::set_of(std::span<int32_t> frames, bool is_complete) {
  std::sort(frames.begin(), frames.end());
  const uint64_t hash = hash_of(frames, is_complete);
  const auto [begin, end] = set_numbers_.equal_range(hash);
  for (auto at = begin; at != end; ++at) {
    const Set& set = sets_[at->second];
    if (set.is_complete == is_complete && std::ranges::equal(set.frames, frames)) return at->second;
  }
  if (sets_.size() >= kMostSets) {
    fail(ErrorCode::kRuntime, "the grammar has too many ways to go on from here (more than {})",
         kMostSets);
  }
  const auto number = static_cast<int32_t>(sets_.size());
  sets_.push_back({{frames.begin(), frames.end()}, is_complete, nullptr, nullptr, nullptr, {}});
  set_numbers_.emplace(hash, number);
  return number;
}

int32_t StateSets::resumed(std::span<const int32_t> frames) {
  begin();
  for (const int32_t f : frames) visit(frame(f).state, frame(f).below);
  return finish();
}

int32_t StateSets::compute_step(int32_t set, uint8_t byte) {
  begin();
  ByteSpan alike = {0, 255};  // bytes that the same edges read, which lead to the same set
  for (const int32_t f : frames(set)) {
    const Frame top = frame(f);
    for (const Automaton::Edge& edge : automaton_.edges(top.state)) {
      if (byte < edge.bytes.low) {
        alike.high = std::min<uint8_t>(alike.high, edge.bytes.low - 1);
      } else if (byte > edge.bytes.high) {
        alike.low = std::max<uint8_t>(alike.low, edge.bytes.high + 1);
      } else {
        alike.low = std::max(alike.low, edge.bytes.low);
        alike.high = std::min(alike.high, edge.bytes.high);
        visit(edge.target, top.below);
      }
    }
  }
  const int32_t result = finish();
  std::unique_ptr<int32_t[]>& next = sets_[set].next;
  if (next == nullptr) {
    const auto n = static_cast<size_t>(automaton_.n_intervals());
    next = std::make_unique_for_overwrite<int32_t[]>(n);
    std::fill_n(next.get(), n, -1);
  }
  std::fill(&next[automaton_.interval(alike.low)], &next[automaton_.interval(alike.high)] + 1,
            result);
  return result;
}

template <typename Found>
void StateSets::step_through(int32_t set, std::span<const ByteSpan> spans, Found&& found) {
  int32_t before = -1;
  for (int byte = spans[0].low; byte <= spans[0].high; ++byte) {
    const int32_t next = step(set, static_cast<uint8_t>(byte));
    if (next == before) continue;
    before = next;
    if (spans.size() == 1) {
      found(next);
    } else if (next == kDead || is_complete(next)) {
      found(kDead);
    } else {
      step_through(next, spans.subspan(1), found);
    }
  }
}

StateSets::Targets StateSets::find_targets(int32_t set) {
  Targets found;
  CharacterKinds parts = 0;  // kinds with a character that is not allowed or completes the text
  const auto add = [&](int kind, int32_t target) {
    if (target == kDead || is_complete(target)) parts |= kinds::bit(kind);
    if (target == kDead) return;
    found.possible |= kinds::bit(kind);
    const auto known = std::find_if(found.of_kinds.begin(), found.of_kinds.end(),
                                    [&](const auto& other) { return other.set == target; });
    if (known == found.of_kinds.end()) {
      found.of_kinds.push_back({target, kinds::bit(kind)});
    } else {
      known->kinds |= kinds::bit(kind);
    }
  };
  for (int c = 0; c < 128; ++c) {
    add(kinds::kOfAscii[c], step(set, static_cast<uint8_t>(c)));
  }
  for (const auto& [spelling, kind] : kinds::beyond_ascii()) {
    step_through(set, std::span(spelling.spans).first(spelling.length),
                 [&, of = kind](int32_t target) { add(of, target); });
  }
  // The first bytes of a character may be allowed even where no whole character of its kind is.
  for (int lead = 0x80; lead < 0x100; ++lead) {
    if (step(set, static_cast<uint8_t>(lead)) != kDead) found.possible |= kinds::kBeyondAscii;
  }
  for (auto& target : found.of_kinds) found.all |= target.kinds &= ~parts;
  std::erase_if(found.of_kinds, [](const auto& target) { return target.kinds == 0; });
  return found;
}

const StateSets::Targets& StateSets::targets(int32_t set) {
  if (sets_[set].targets == nullptr) {
    auto found = std::make_unique<const Targets>(find_targets(set));  // this may reallocate sets_
    sets_[set].targets = std::move(found);
  }
  return *sets_[set].targets;
}

// The kinds after which the usual continuations are possible: not a backslash in a string.
CharacterKinds StateSets::kinds_that_go_on(int32_t set) {
  const Targets& first = targets(set);
  const auto most = std::max_element(
      first.of_kinds.begin(), first.of_kinds.end(),
      [](const auto& a, const auto& b) { return std::popcount(a.kinds) < std::popcount(b.kinds); });
  if (most == first.of_kinds.end()) return 0;
  const Targets& usual = targets(most->set);
  CharacterKinds kinds = first.all;
  for (const auto& target : first.of_kinds) {
    const Targets& next = targets(target.set);
    // Where a count is used up, nothing can continue; then no other kind must be able to either.
    const bool goes_on =
        usual.all != 0 ? (usual.all & ~next.all) == 0 : next.possible == usual.possible;
    if (!goes_on) kinds &= ~target.kinds;
  }
  return kinds;
}

const StateSets::Open& StateSets::find_open(int32_t set) {
  auto found = std::make_unique<const Open>(
      Open{find_reach(set, kinds_that_go_on(set)), targets(set).possible});
  std::unique_ptr<const Open>& open = sets_[set].open;
  open = std::move(found);
  return *open;
}

StateSets::Reach StateSets::reach(int32_t set, CharacterKinds kinds) {
  for (const Reach& known : sets_[set].reaches) {
    if (known.kinds == kinds) return known;
  }
  const Reach found = find_reach(set, kinds);
  sets_[set].reaches.push_back(found);
  return found;
}

// In an unlimited repetition, characters lead back to the same few sets; in a counted one, each
// leads to a new set.
StateSets::Reach StateSets::find_reach(int32_t set, CharacterKinds kinds) {
  constexpr int32_t kMostAhead = 24;
  constexpr size_t kMostSeen = 64;
  Reach reach = {kinds, 0, false};
  std::vector<int32_t> seen = {set}, here = {set}, next;
  while (kinds != 0 && reach.n_characters < kMostAhead && seen.size() < kMostSeen) {
    const bool all_go_on = std::all_of(here.begin(), here.end(),
                                       [&](int32_t s) { return (kinds & ~targets(s).all) == 0; });
    if (!all_go_on) {
      reach.ends_there = std::all_of(here.begin(), here.end(),
                                     [&](int32_t s) { return (kinds & targets(s).possible) == 0; });
      break;
    }
    next.clear();
    bool is_closed = true;
    for (const int32_t s : here) {
      for (const auto& target : targets(s).of_kinds) {
        if ((target.kinds & kinds) == 0) continue;
        if (std::find(next.begin(), next.end(), target.set) == next.end()) {
          next.push_back(target.set);
        }
        if (std::find(seen.begin(), seen.end(), target.set) != seen.end()) continue;
        is_closed = false;
        seen.push_back(target.set);
      }
    }
    ++reach.n_characters;
    if (is_closed) reach.n_characters = std::numeric_limits<int32_t>::max();
    here.swap(next);
    work_left_ -= static_cast<int64_t>(here.size() * seen.size());
    if (work_left_ < 0) fail_too_much_work();
  }
  return reach;
}

void StateSets::begin() {
  ++set_being_made_;
  visited_.clear();
  tops_.clear();
  complete_ = false;
}

void StateSets::visit(int32_t state, int32_t below) {
  pending_.assign(1, {state, below});
  while (!pending_.empty()) {
    const auto [s, b] = pending_.back();
    pending_.pop_back();
    if (is_new(key_of(s, b))) visit_one(s, b);
  }
}

bool StateSets::is_new(uint64_t key) {
  const auto insert = [&](uint64_t k) {
    size_t place = hash_of(k) & (many_visited_.size() - 1);
    while (many_visited_[place].set == set_being_made_) {
      if (many_visited_[place].key == k) return false;
      place = (place + 1) & (many_visited_.size() - 1);
    }
    many_visited_[place] = {k, set_being_made_};
    return true;
  };
  constexpr size_t kFew = 24;  // nearly always there are fewer, which are searched one by one
  if (visited_.size() < kFew) {
    if (std::find(visited_.begin(), visited_.end(), key) != visited_.end()) return false;
  } else {
    if (many_visited_.empty()) many_visited_.resize(4 * kMostWays);
    if (visited_.size() == kFew) std::ranges::for_each(visited_, [&](uint64_t k) { insert(k); });
    if (!insert(key)) return false;
  }
  visited_.push_back(key);
  return true;
}

void StateSets::fail_too_much_work() {
  fail(ErrorCode::kRuntime,
       "the grammar is too ambiguous: more than a second's work for one token");
}

void StateSets::visit_one(int32_t s, int32_t below) {
  if (visited_.size() > kMostWays || --work_left_ < 0) {
    pending_.clear();
    if (work_left_ < 0) fail_too_much_work();
    fail(ErrorCode::kRuntime,
         "the grammar is too ambiguous: more than {} ways to read the text so far", kMostWays);
  }
  if (!automaton_.edges(s).empty()) tops_.push_back(frame_of(s, below));
  for (const int32_t target : automaton_.steps(s)) pending_.emplace_back(target, below);
  for (const Automaton::Call& call : automaton_.calls(s)) {
    // If nothing follows the call, the called rule returns straight to where this one returns, so
    // that lists written as recursion at the end do not make the stack grow.
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
