// SPDX-License-Identifier: MIT
#include "text/byte_trie.h"

#include <algorithm>

namespace snapkv {

// Level by level: a node is a range of the sorted entries, which begin with its bytes.
ByteTrie::ByteTrie(std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.id < b.id;
  });
  struct Range {
    size_t begin, end, depth;
  };
  std::vector<Range> ranges = {{0, entries.size(), 0}};
  for (size_t at = 0; at < ranges.size(); ++at) {
    auto [begin, end, depth] = ranges[at];
    Node node = {.first_edge = static_cast<uint32_t>(edges_.size())};
    for (; begin < end && entries[begin].bytes.size() == depth; ++begin) {
      node.id = entries[begin].id;
    }
    nodes_.push_back(node);
    while (begin < end) {
      const auto byte = static_cast<unsigned char>(entries[begin].bytes[depth]);
      size_t next = begin;
      while (next < end && static_cast<unsigned char>(entries[next].bytes[depth]) == byte) ++next;
      edges_.push_back({byte, static_cast<int32_t>(ranges.size())});
      ranges.push_back({begin, next, depth + 1});
      begin = next;
    }
  }
  nodes_.push_back({.first_edge = static_cast<uint32_t>(edges_.size())});
  of_root_.fill(-1);
  for (uint32_t i = nodes_[0].first_edge; i < nodes_[1].first_edge; ++i) {
    of_root_[edges_[i].byte] = edges_[i].node;
  }
}

int32_t ByteTrie::child(int32_t node, unsigned char byte) const {
  const auto begin = edges_.begin() + nodes_[node].first_edge;
  const auto end = edges_.begin() + nodes_[node + 1].first_edge;
  const auto at =
      std::lower_bound(begin, end, byte, [](const Edge& e, unsigned char b) { return e.byte < b; });
  return at != end && at->byte == byte ? at->node : -1;
}

}  // namespace snapkv
