// SPDX-License-Identifier: MIT
#include "text/grammar/token_trie.h"

#include <algorithm>
#include <string_view>

namespace snapkv::grammar {

TokenTrie::TokenTrie(const std::vector<std::string>& pieces) {
  const auto piece = [&](int32_t id) -> std::string_view { return pieces[id]; };
  for (int32_t id = 0; id < std::ssize(pieces); ++id) {
    if (!piece(id).empty() && piece(id).size() <= kMostBytes) ids_.push_back(id);
  }
  // std::char_traits<char> compares bytes as unsigned.
  std::sort(ids_.begin(), ids_.end(), [&](int32_t a, int32_t b) {
    const int order = piece(a).compare(piece(b));
    return order != 0 ? order < 0 : a < b;
  });
  nodes_.push_back({});
  std::vector<int32_t> path = {0};  // nodes from the root to the previous token, by depth
  std::string_view before;
  for (size_t i = 0; i < ids_.size(); ++i) {
    const std::string_view bytes = piece(ids_[i]);
    const auto parted = std::mismatch(before.begin(), before.end(), bytes.begin(), bytes.end());
    const auto n_shared = static_cast<size_t>(parted.first - before.begin());
    const auto next = static_cast<int32_t>(nodes_.size());
    for (; path.size() > n_shared + 1; path.pop_back()) {
      nodes_[path.back()].end = next;
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
  for (const int32_t open : path) nodes_[open].end = end;
  nodes_.push_back({end, static_cast<int32_t>(ids_.size()), 0, 0});
  find_below();
  count_characters();
}

namespace {

void add_character(TokenTrie::Below& below, int kind, const TokenTrie::Below& after) {
  below.kinds |= kinds::bit(kind) | after.kinds;
  below.n_characters = std::max(below.n_characters, 1 + after.n_characters);
}

}  // namespace

void TokenTrie::count_characters() {
  n_characters_.resize(ids_.size());
  std::vector<int32_t> counts(static_cast<size_t>(depth_) + 1);  // by depth
  for (int32_t i = 1; i < n_nodes(); ++i) {
    const Node& at = node(i);
    const bool begins = (at.byte & 0xc0) != 0x80;
    const int32_t n = counts[at.depth] = counts[at.depth - 1u] + (begins ? 1 : 0);
    below_[i].n_before = n;
    for (int32_t t = at.tokens; t < node(i + 1).tokens; ++t) {
      n_characters_[t] = static_cast<uint16_t>(n);
    }
  }
}

void TokenTrie::find_below() {
  below_.resize(nodes_.size());
  for (int32_t i = n_nodes(); i-- > 0;) {  // children come after their parents
    Below& below = below_[i];
    for (int32_t child = i + 1; child < node(i).end; child = node(child).end) {
      const uint8_t byte = node(child).byte;
      if (byte < 0x80) {
        add_character(below, kinds::kOfAscii[byte], this->below(child));
        continue;
      }
      const Below texts = beginning_with(child);
      below.kinds |= texts.kinds;
      below.n_characters = std::max(below.n_characters, texts.n_characters);
      if (byte >= kFirstOfMore) below_[child] = texts;
    }
  }
}

TokenTrie::Below TokenTrie::beginning_with(int32_t i) const {
  const uint8_t byte = node(i).byte;
  const auto& all = kinds::beyond_ascii();
  const auto found = std::find_if(all.begin(), all.end(), [&](const kinds::SpelledKind& spelled) {
    const ByteSpan first = spelled.spelling.spans[0];
    return first.low <= byte && byte <= first.high;
  });
  Below texts;
  if (found == all.end()) {
    add_character(texts, kinds::kIllFormed, {});
  } else {
    const ByteSequence& spelling = found->spelling;
    add_character(texts, found->kind, {});
    add_rest(i, std::span(spelling.spans).first(spelling.length).subspan(1), texts);
  }
  return texts;
}

void TokenTrie::add_rest(int32_t i, std::span<const ByteSpan> rest, Below& below) const {
  for (int32_t child = i + 1; child < node(i).end; child = node(child).end) {
    const uint8_t byte = node(child).byte;
    if (byte < rest[0].low || byte > rest[0].high) {
      add_character(below, kinds::kIllFormed, {});
    } else if (rest.size() > 1) {
      add_rest(child, rest.subspan(1), below);
    } else {
      const Below& after = this->below(child);
      below.kinds |= after.kinds;
      below.n_characters = std::max(below.n_characters, 1 + after.n_characters);
    }
  }
}

}  // namespace snapkv::grammar
