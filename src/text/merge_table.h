// SPDX-License-Identifier: MIT
// MergeTable: the merges of a BPE vocabulary: which two symbols join, what they become, and the
// rank.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "text/symbol_merger.h"

namespace snapkv {

class MergeTable {
 public:
  explicit MergeTable(size_t n_merges = 0)
      : slots_(std::bit_ceil(std::max<size_t>(2 * n_merges, 16))),
        seed_(std::random_device{}() | 1u) {}

  /// Adds a merge. If the pair has one already, it is kept unless `replace`. The constructor was
  /// told the most merges that may be inserted.
  void insert(int32_t left, int32_t right, SymbolMerger::Joined joined, bool replace) {
    Slot& slot = slots_[place(key(left, right))];
    if (slot.key == kEmpty || replace) slot = {key(left, right), joined};
  }
  /// The merge of a pair; its rank is kNever if the pair does not join.
  SymbolMerger::Joined find(int32_t left, int32_t right) const {
    if (left < 0 || right < 0) return {};
    return slots_[place(key(left, right))].joined;
  }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  struct Slot {
    uint64_t key = kEmpty;
    SymbolMerger::Joined joined;
  };
  static uint64_t key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  }
  /// The slot of a key, or the empty slot where it belongs. The seed differs in every process, so
  /// that no file can be made to put all its pairs in one place.
  size_t place(uint64_t k) const {
    uint64_t h = (k ^ seed_) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 32) * (0xd6e8feb86659fd93u ^ seed_ << 1);
    size_t at = (h ^ h >> 29) & (slots_.size() - 1);
    while (slots_[at].key != k && slots_[at].key != kEmpty) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  std::vector<Slot> slots_;  // their number is a power of two; at most half of them are in use
  uint64_t seed_;
};

}  // namespace snapkv
