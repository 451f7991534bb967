// SPDX-License-Identifier: MIT
#include "text/token_matcher.h"

#include <algorithm>
#include <deque>

namespace snapkv {
namespace {

unsigned char from_end(std::string_view text, size_t i) {
  return static_cast<unsigned char>(text[text.size() - 1 - i]);
}

bool backwards_less(const TokenMatcher::Entry& a, const TokenMatcher::Entry& b) {
  return std::lexicographical_compare(
      a.text.rbegin(), a.text.rend(), b.text.rbegin(), b.text.rend(),
      [](char x, char y) { return static_cast<unsigned char>(x) < static_cast<unsigned char>(y); });
}

}  // namespace

TokenMatcher::TokenMatcher(std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end(), backwards_less);
  add_nodes(entries);
  link();
}

void TokenMatcher::add_nodes(const std::vector<Entry>& sorted) {
  // Entries [begin, end) share their last `depth` bytes and thus form one node.
  struct Range {
    size_t begin, end, depth;
  };
  std::deque<Range> ranges = {{0, sorted.size(), 0}};
  for (; !ranges.empty(); ranges.pop_front()) {
    auto [begin, end, depth] = ranges.front();
    Node node;
    node.first_edge = static_cast<uint32_t>(bytes_.size());
    node.length = static_cast<uint32_t>(depth);
    if (begin < end && sorted[begin].text.size() == depth) node.id = sorted[begin++].id;
    nodes_.push_back(node);
    while (begin < end) {
      const unsigned char byte = from_end(sorted[begin].text, depth);
      size_t last = begin + 1;
      while (last < end && from_end(sorted[last].text, depth) == byte) ++last;
      // Nodes are numbered in the order they leave the queue: all that are waiting come before.
      bytes_.push_back(byte);
      targets_.push_back(static_cast<int32_t>(nodes_.size() - 1 + ranges.size()));
      ranges.push_back({begin, last, depth + 1});
      begin = last;
    }
  }
  Node end;
  end.first_edge = static_cast<uint32_t>(bytes_.size());
  nodes_.push_back(end);
}

void TokenMatcher::link() {
  for (uint32_t e = 0; e < nodes_[1].first_edge; ++e) of_root_[bytes_[e]] = targets_[e];
  // Parents are linked before children, and shorter suffixes before longer ones.
  for (int32_t v = 0; v + 1 < static_cast<int32_t>(nodes_.size()); ++v) {
    Node& node = nodes_[v];
    const int32_t suffix = v == 0 ? -1 : nodes_[node.fail].found;
    node.found = node.id >= 0 ? v : suffix;
    if (node.id >= 0) {
      node.shorter = suffix;
      node.jump = suffix;
      if (suffix >= 0) {
        const Node& next = nodes_[suffix];
        node.level = next.level + 1;
        if (next.jump >= 0 &&
            next.level - nodes_[next.jump].level ==
                nodes_[next.jump].level -
                    (nodes_[next.jump].jump >= 0 ? nodes_[nodes_[next.jump].jump].level : 0)) {
          node.jump = nodes_[next.jump].jump;
        }
      }
    }
    for (uint32_t e = node.first_edge; e < nodes_[v + 1].first_edge; ++e) {
      int32_t from = node.fail;
      int32_t to = v == 0 ? 0 : child(from, bytes_[e]);
      while (to < 0 && from != 0) {
        from = nodes_[from].fail;
        to = child(from, bytes_[e]);
      }
      nodes_[targets_[e]].fail = std::max(to, 0);
    }
  }
}

int32_t TokenMatcher::child(int32_t node, unsigned char byte) const {
  if (node == 0) return of_root_[byte] > 0 ? of_root_[byte] : -1;
  const auto begin = bytes_.begin() + nodes_[node].first_edge;
  const auto end = bytes_.begin() + nodes_[node + 1].first_edge;
  const auto at = std::lower_bound(begin, end, byte);
  return at != end && *at == byte ? targets_[at - bytes_.begin()] : -1;
}

std::vector<TokenMatcher::Place> TokenMatcher::find(std::string_view text) const {
  std::vector<Place> places;
  if (nodes_.size() <= 2) return places;  // only the root and the end
  int32_t state = 0;
  for (size_t i = text.size(); i-- > 0;) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (state == 0) {
      state = of_root_[byte];
    } else {
      int32_t to = child(state, byte);
      while (to < 0 && state != 0) {
        state = nodes_[state].fail;
        to = child(state, byte);
      }
      state = std::max(to, 0);
    }
    if (nodes_[state].found >= 0) places.push_back({i, nodes_[state].found});
  }
  return places;
}

TokenMatcher::Found TokenMatcher::longest(int32_t node, size_t max_bytes) const {
  while (node >= 0 && nodes_[node].length > max_bytes) {
    const int32_t jump = nodes_[node].jump;
    node = jump >= 0 && nodes_[jump].length > max_bytes ? jump : nodes_[node].shorter;
  }
  if (node < 0) return {};
  return {nodes_[node].id, nodes_[node].length};
}

}  // namespace snapkv
