// SPDX-License-Identifier: MIT
#include "text/grammar/token_trie.h"

#include <algorithm>
#include <string_view>

namespace snapkv::grammar {

TokenTrie::TokenTrie(const std::vector<std::string>& pieces) {
  const auto piece = [&](int32_t id) -> std::string_view {
    return pieces[static_cast<size_t>(id)];
  };
  for (int32_t id = 0; id < std::ssize(pieces); ++id) {
    if (!piece(id).empty() && piece(id).size() <= kMostBytes) ids_.push_back(id);
  }
  // std::char_traits<char> compares bytes as unsigned ones
  std::sort(ids_.begin(), ids_.end(), [&](int32_t a, int32_t b) {
    const int order = piece(a).compare(piece(b));
    return order != 0 ? order < 0 : a < b;
  });
  nodes_.push_back({});
  std::vector<int32_t> path = {0};  // nodes from the root to the token before, by depth
  std::string_view before;
  for (size_t i = 0; i < ids_.size(); ++i) {
    const std::string_view bytes = piece(ids_[i]);
    const auto parted = std::mismatch(before.begin(), before.end(), bytes.begin(), bytes.end());
    const auto n_shared = static_cast<size_t>(parted.first - before.begin());
    const auto next = static_cast<int32_t>(nodes_.size());
    for (; path.size() > n_shared + 1; path.pop_back()) {
      nodes_[static_cast<size_t>(path.back())].end = next;
    }
    for (size_t depth = n_shared; depth < bytes.size(); ++depth) {
      path.push_back(static_cast<int32_t>(nodes_.size()));
      nodes_.push_back({0, static_cast<int32_t>(i), static_cast<uint16_t>(depth + 1),
                        static_cast<uint8_t>(bytes[depth])});
    }
    depth_ = std::max(depth_, static_cast<int>(bytes.size()));
    before = bytes;
  }
  const auto end = static_cast<int32_t>(nodes_.size());
  for (const int32_t open : path) nodes_[static_cast<size_t>(open)].end = end;
  nodes_.push_back({end, static_cast<int32_t>(ids_.size()), 0, 0});
}

}  // namespace snapkv::grammar
