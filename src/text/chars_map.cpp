// SPDX-License-Identifier: MIT
#include "text/chars_map.h"

#include <optional>

#include "base/error.h"

namespace snapkv {
namespace {

uint32_t read_u32(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return value;
}

uint32_t base_of(uint32_t node) { return (node >> 10) << ((node & (1u << 9)) >> 6); }
uint32_t label_of(uint32_t node) { return node & ((1u << 31) | 0xff); }
bool has_replacement(uint32_t node) { return ((node >> 8) & 1) != 0; }
uint32_t value_of(uint32_t node) { return node & ((1u << 31) - 1); }

}  // namespace

CharsMap::CharsMap(std::string_view bytes, std::string origin) : origin_(std::move(origin)) {
  if (bytes.empty()) return;
  const size_t trie_bytes = bytes.size() < 4 ? 0 : read_u32(bytes, 0);
  if (bytes.size() < 4 || trie_bytes % 4 != 0 || trie_bytes == 0 ||
      trie_bytes >= bytes.size() - 4) {
    fail(ErrorCode::kBadModel,
         "{}: {} bytes, of which {} are said to be a trie; expected a multiple of 4 that leaves "
         "room for replacements",
         origin_, bytes.size(), trie_bytes);
  }
  trie_.reserve(trie_bytes / 4);
  for (size_t i = 0; i < trie_bytes; i += 4) trie_.push_back(read_u32(bytes, 4 + i));
  replacements_ = bytes.substr(4 + trie_bytes);
  if (replacements_.back() != '\0') {
    fail(ErrorCode::kBadModel, "{}: the last replacement does not end in a zero byte", origin_);
  }
}

uint32_t CharsMap::node(size_t index) const {
  if (index >= trie_.size()) {
    fail(ErrorCode::kBadModel, "{}: the trie of {} nodes leads to node {}", origin_, trie_.size(),
         index);
  }
  return trie_[index];
}

CharsMap::Replacement CharsMap::find(std::string_view text) const {
  if (trie_.empty()) return {};
  Replacement found;
  std::optional<uint32_t> place;
  uint32_t index = base_of(node(0));
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0) break;
    index ^= byte;
    const uint32_t here = node(index);
    if (label_of(here) != byte) break;
    index ^= base_of(here);
    if (has_replacement(here)) {
      found.length = i + 1;
      place = value_of(node(index));
    }
  }
  if (!place) return {};
  if (*place >= replacements_.size()) {
    fail(ErrorCode::kBadModel, "{}: the trie leads to byte {} of {} bytes of replacements", origin_,
         *place, replacements_.size());
  }
  found.text = replacements_.c_str() + *place;
  return found;
}

}  // namespace snapkv
