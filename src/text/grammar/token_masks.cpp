// SPDX-License-Identifier: MIT
#include "text/grammar/token_masks.h"

#include <algorithm>

namespace snapkv::grammar {
namespace {

constexpr size_t kMaskBytes = size_t{32} << 20;  // 2000 masks of a vocabulary with 128k tokens
// Frames and nodes visited for one mask, a second or so: no real grammar comes near it.
constexpr int64_t kMostWork = int64_t{1} << 25;

}  // namespace

TokenSet::TokenSet(std::vector<int32_t> ids, size_t n_words) : ids_(std::move(ids)) {
  if (ids_.size() < 2 * n_words) {
    ids_.shrink_to_fit();
    return;
  }
  bits_.resize(n_words);
  for (const int32_t id : ids_) bits_[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64);
  ids_ = {};
}

void TokenSet::add_to(std::vector<uint64_t>& bits) const {
  for (size_t i = 0; i < bits_.size(); ++i) bits[i] |= bits_[i];
  for (const int32_t id : ids_) bits[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64);
}

TokenMasks::TokenMasks(const Automaton& automaton, const TokenTrie& trie, int64_t n_vocab)
    : trie_(trie),
      n_words_(static_cast<size_t>((n_vocab + 63) / 64)),
      sets_(automaton),
      path_(static_cast<size_t>(trie.depth()) + 1),
      masks_(kMaskBytes),
      inner_masks_(kMaskBytes) {}

void TokenMasks::add_allowed(int32_t set, std::vector<uint64_t>& bits) {
  if (const TokenSet* known = masks_.find(set)) return known->add_to(bits);
  sets_.allow_work(kMostWork);
  masks_.put(set, compute(set)).add_to(bits);
}

template <typename Visit>
void TokenMasks::walk(int32_t begin, int32_t end, int32_t set, Visit&& visit) {
  if (begin == end || sets_.frames(set).empty()) return;
  path_[trie_.node(begin).depth - 1u] = set;
  int64_t n_nodes = 0;
  for (int32_t i = begin; i < end; ++n_nodes) {
    const TokenTrie::Node& node = trie_.node(i);
    const int32_t next = sets_.step(path_[node.depth - 1u], node.byte);
    if (next == StateSets::kDead) {
      i = node.end;
      continue;
    }
    path_[node.depth] = next;
    visit(i, next);
    ++i;
  }
  sets_.spend_work(n_nodes);
}

TokenSet TokenMasks::compute(int32_t set) {
  std::vector<uint64_t> bits(n_words_);
  std::vector<int32_t> ids;  // of what is beyond the inner rules
  for (const Group& group : groups_of(set)) {
    const InnerMask& inner = inner_mask(sets_.set_of(group.frames, false));
    inner.tokens.add_to(bits);
    if (group.below == StateSets::kBottom) continue;
    const int32_t outer = sets_.resumed(group.below);
    for (const int32_t end : inner.ends) {
      walk(end + 1, trie_.node(end).end, outer, [&](int32_t node, int32_t) {
        for (const int32_t id : trie_.ids(node)) {
          bits[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64);
        }
      });
    }
  }
  for (size_t i = 0; i < n_words_; ++i) {
    for (uint64_t word = bits[i]; word != 0; word &= word - 1) {
      ids.push_back(static_cast<int32_t>(i * 64) + std::countr_zero(word));
    }
  }
  return TokenSet(std::move(ids), n_words_);
}

const TokenMasks::InnerMask& TokenMasks::inner_mask(int32_t set) {
  if (const InnerMask* known = inner_masks_.find(set)) return *known;
  std::vector<int32_t> ids, ends;
  walk(1, trie_.n_nodes(), set, [&](int32_t node, int32_t next) {
    const auto here = trie_.ids(node);
    ids.insert(ids.end(), here.begin(), here.end());
    if (sets_.is_complete(next) && trie_.node(node).end > node + 1) ends.push_back(node);
  });
  return inner_masks_.put(set, {TokenSet(std::move(ids), n_words_), std::move(ends)});
}

std::vector<TokenMasks::Group> TokenMasks::groups_of(int32_t set) {
  const Automaton& automaton = sets_.automaton();
  const auto is_short = [&](int32_t f) {
    return automaton.rule(automaton.state(sets_.frame(f).state).rule).is_short;
  };
  std::vector<Group> groups;
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
    const auto group = std::find_if(groups.begin(), groups.end(),
                                    [&](const Group& g) { return g.below == below; });
    if (group == groups.end()) {
      groups.push_back({below, {rebased}});
    } else {
      group->frames.push_back(rebased);
    }
  }
  return groups;
}

}  // namespace snapkv::grammar
