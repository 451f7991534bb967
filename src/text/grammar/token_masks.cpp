// SPDX-License-Identifier: MIT
#include "text/grammar/token_masks.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <span>

namespace snapkv::grammar {
namespace {

constexpr size_t kMaskBytes = size_t{32} << 20;  // 2000 masks for a vocabulary of 128k tokens
// Frames and nodes visited for one mask, about a second of work; no real grammar comes near it.
constexpr int64_t kMostWork = int64_t{1} << 25;
// Longer tokens are few, and each of their bytes may lead to a set that nothing else needs.
constexpr uint16_t kMostDecidedDepth = 12;
// With fewer nodes below a node, visiting them is less work than finding the reach of their kinds.
constexpr int32_t kManyBelow = 16;
// Results of decide(): tokens with any number of characters may follow, none may, or not known.
constexpr int32_t kAnyNumber = std::numeric_limits<int32_t>::max(), kNone = -1, kNotDecided = -2;

void set_bits(std::span<const int32_t> ids, std::vector<uint64_t>& bits) {
  for (const int32_t id : ids) bits[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64);
}

void clear_bits(std::span<const int32_t> ids, std::vector<uint64_t>& bits) {
  for (const int32_t id : ids) bits[static_cast<size_t>(id) / 64] &= ~(uint64_t{1} << (id % 64));
}

}  // namespace

TokenSet::TokenSet(const std::vector<uint64_t>& bits) {
  size_t n = 0;
  for (const uint64_t word : bits) n += static_cast<size_t>(std::popcount(word));
  if (n >= 2 * bits.size()) {
    bits_ = bits;
    return;
  }
  ids_.reserve(n);
  for (size_t i = 0; i < bits.size(); ++i) {
    for (uint64_t word = bits[i]; word != 0; word &= word - 1) {
      ids_.push_back(static_cast<int32_t>(i * 64) + std::countr_zero(word));
    }
  }
}

void TokenSet::add_to(std::vector<uint64_t>& bits) const {
  for (size_t i = 0; i < bits_.size(); ++i) bits[i] |= bits_[i];
  set_bits(ids_, bits);
}

TokenMasks::TokenMasks(const Automaton& automaton, const TokenTrie& trie, int64_t n_vocab)
    : trie_(trie),
      n_words_(static_cast<size_t>((n_vocab + 63) / 64)),
      sets_(automaton),
      path_(static_cast<size_t>(trie.depth()) + 1),
      masks_(kMaskBytes),
      inner_masks_(kMaskBytes) {
  all_tokens_.resize(n_words_);
  set_bits(trie_.ids(0, trie_.n_nodes()), all_tokens_);
}

void TokenMasks::add_allowed(int32_t set, std::vector<uint64_t>& bits) {
  if (const TokenSet* known = masks_.find(set)) return known->add_to(bits);
  sets_.allow_work(kMostWork);
  masks_.put(set, compute(set)).add_to(bits);
}

void TokenMasks::walk(int32_t begin, int32_t end, int32_t set, std::vector<int32_t>* ends) {
  runs_.clear();
  if (begin == end || sets_.frames(set).empty()) return;
  path_[trie_.node(begin).depth - 1u] = set;
  int64_t n_nodes = 0;
  for (int32_t i = begin; i < end; ++n_nodes) {
    const TokenTrie::Node& node = trie_.node(i);
    const int32_t before = path_[node.depth - 1u];
    const bool begins_more = node.byte >= TokenTrie::kFirstOfMore;
    int32_t most = begins_more ? decide(i, before, trie_.below(i).n_before - 1) : kNotDecided;
    if (most == kNotDecided) {
      const int32_t next = sets_.step(before, node.byte);
      if (next == StateSets::kDead) {
        i = node.end;
        continue;
      }
      path_[node.depth] = next;
      if (node.end == i + 1) {
        most = kAnyNumber;
      } else {
        if (ends != nullptr && sets_.is_complete(next)) ends->push_back(i);
        if (!begins_more) most = decide(i, next, trie_.below(i).n_before);
      }
      if (most < 0) add_run({i, i + 1, kAnyNumber});
    }
    if (most >= 0) add_run({i, node.end, most});
    i = most == kNotDecided ? i + 1 : node.end;
  }
  sets_.spend_work(n_nodes);
}

int32_t TokenMasks::decide(int32_t i, int32_t set, int32_t n_before) {
  const TokenTrie::Node& node = trie_.node(i);
  const TokenTrie::Below& below = trie_.below(i);
  if (node.depth > kMostDecidedDepth || (below.kinds & kinds::bit(kinds::kIllFormed)) != 0) {
    return kNotDecided;
  }
  const StateSets::Open& open = sets_.open(set);
  if ((below.kinds & open.possible) == 0) return kNone;
  const auto most_within = [&](const StateSets::Reach& reach) {
    if ((below.kinds & ~reach.kinds) != 0) return kNotDecided;
    if (below.n_characters <= reach.n_characters) return kAnyNumber;
    return reach.ends_there ? n_before + reach.n_characters : kNotDecided;
  };
  const int32_t most = most_within(open.reach);
  if (most != kNotDecided || node.end - i < kManyBelow) return most;
  return most_within(sets_.reach(set, below.kinds));
}

void TokenMasks::add_run(const Run& run) {
  const bool continues = !runs_.empty() && runs_.back().end == run.begin &&
                         runs_.back().most_characters == run.most_characters;
  if (continues) {
    runs_.back().end = run.end;
  } else {
    runs_.push_back(run);
  }
}

TokenSet TokenMasks::compute(int32_t set) {
  std::vector<uint64_t> bits(n_words_);
  for (const auto& [frames, returns] : groups_of(set)) {
    const InnerMask& inner = inner_mask(frames);
    inner.tokens.add_to(bits);
    if (returns.empty() || inner.ends.empty()) continue;
    const int32_t outer = sets_.resumed(returns);
    for (const int32_t end : inner.ends) {
      walk(end + 1, trie_.node(end).end, outer, nullptr);
      for (const Run& run : runs_) add_tokens(run, bits);
    }
  }
  return TokenSet(bits);
}

const TokenMasks::InnerMask& TokenMasks::inner_mask(int32_t set) {
  if (const InnerMask* known = inner_masks_.find(set)) return *known;
  std::vector<int32_t> ends;
  walk(1, trie_.n_nodes(), set, &ends);
  return inner_masks_.put(set, {TokenSet(bits_of_runs()), std::move(ends)});
}

void TokenMasks::add_tokens(const Run& run, std::vector<uint64_t>& bits) const {
  const std::span<const int32_t> ids = trie_.ids(run.begin, run.end);
  const std::span<const uint16_t> n_characters = trie_.n_characters(run.begin, run.end);
  for (size_t i = 0; i < ids.size(); ++i) {
    const uint64_t is_allowed = n_characters[i] <= run.most_characters ? 1 : 0;
    bits[static_cast<size_t>(ids[i]) / 64] |= is_allowed << (ids[i] % 64);
  }
}

// If most tokens are allowed, clearing the others is less work.
std::vector<uint64_t> TokenMasks::bits_of_runs() const {
  size_t n_tokens = 0;
  for (const Run& run : runs_) n_tokens += trie_.ids(run.begin, run.end).size();
  if (n_tokens < trie_.ids(0, trie_.n_nodes()).size() / 2) {
    std::vector<uint64_t> bits(n_words_);
    for (const Run& run : runs_) add_tokens(run, bits);
    return bits;
  }
  std::vector<uint64_t> bits = all_tokens_;
  int32_t before = 0;
  for (const Run& run : runs_) {
    clear_bits(trie_.ids(before, run.begin), bits);
    before = run.end;
    if (run.most_characters == kAnyNumber) continue;
    clear_bits(trie_.ids(run.begin, run.end), bits);
    add_tokens(run, bits);
  }
  clear_bits(trie_.ids(before, trie_.n_nodes()), bits);
  return bits;
}

TokenMasks::Groups TokenMasks::groups_of(int32_t set) {
  const Automaton& automaton = sets_.automaton();
  const auto is_short = [&](int32_t f) {
    return automaton.rule(automaton.state(sets_.frame(f).state).rule).is_short;
  };
  std::map<int32_t, std::vector<int32_t>> frames;  // key: the frame they return to
  std::vector<int32_t> path;
  for (const int32_t top :
       std::vector<int32_t>(sets_.frames(set).begin(), sets_.frames(set).end())) {
    path.assign(1, top);
    while (is_short(path.back()) && sets_.frame(path.back()).below != StateSets::kBottom) {
      path.push_back(sets_.frame(path.back()).below);
    }
    const int32_t below = sets_.frame(path.back()).below;
    int32_t rebased = StateSets::kBottom;
    for (; !path.empty(); path.pop_back()) {
      rebased = sets_.frame_of(sets_.frame(path.back()).state, rebased);
    }
    frames[below].push_back(rebased);
  }
  Groups groups;
  for (auto& [below, rebased] : frames) {
    std::vector<int32_t>& returns = groups[sets_.set_of(rebased, false)];
    if (below != StateSets::kBottom) returns.push_back(below);
  }
  return groups;
}

}  // namespace snapkv::grammar
