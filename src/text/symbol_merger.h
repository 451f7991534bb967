// SPDX-License-Identifier: MIT
// SymbolMerger: joins neighbouring symbols of a word until no pair can be joined, always the pair
// of the lowest rank, the leftmost of these first. Byte pair encoding and SentencePiece's variant
// of it have this in common.
//
// Time is O(n log n) in the word's length for any vocabulary. A word of megabytes (a text without
// spaces) would spend it waiting for memory if one heap held all pairs, so they are sorted by rank
// into buckets, and each bucket is worked through from left to right.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace snapkv {

class SymbolMerger {
 public:
  /// The result of joining two symbols.
  struct Joined {
    uint32_t rank = kNever;
    int32_t symbol = -1;
  };
  static constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();

  struct Symbol {
    int32_t symbol = -1;
    uint32_t begin = 0;  // its first byte in the word
    int32_t prev = -1;
    int32_t next = -1;
    uint32_t rank = kNever;  // of the pair of this symbol and the next
    int32_t joined = -1;     // the symbol that the pair becomes
  };

  /// Begins the next word.
  void clear() { symbols_.clear(); }
  void append(int32_t symbol, size_t begin) {
    symbols_.push_back({symbol, static_cast<uint32_t>(begin), -1, -1, kNever, -1});
  }
  size_t size() const { return symbols_.size(); }

  /// Joins the symbols of a word of `bytes` bytes. `join(a, b, end)` returns what the symbols a and
  /// b become, where b ends at byte `end` of the word. Ranks are below `n_ranks`.
  template <typename Join>
  void run(size_t bytes, uint32_t n_ranks, Join&& join);

  /// Calls emit(symbol, begin, end) for each symbol that is left.
  template <typename Emit>
  void for_each(size_t bytes, Emit&& emit) const {
    for (int32_t i = symbols_.empty() ? -1 : 0; i >= 0; i = symbols_[i].next) {
      emit(symbols_[i].symbol, symbols_[i].begin, end_of(symbols_[i], bytes));
    }
  }

 private:
  static constexpr size_t kFewSymbols = 24;
  static constexpr size_t kManySymbols = 1 << 14;

  size_t end_of(const Symbol& s, size_t bytes) const {
    return s.next >= 0 ? symbols_[s.next].begin : bytes;
  }
  template <typename Join>
  void rank_pair(int32_t left, size_t bytes, Join& join) {
    Symbol& a = symbols_[left];
    Joined joined;
    if (a.next >= 0) joined = join(a, symbols_[a.next], end_of(symbols_[a.next], bytes));
    a.rank = joined.rank;
    a.joined = joined.symbol;
  }
  /// Joins symbol `left` with the next one, and ranks the two pairs that it then belongs to.
  template <typename Join>
  void merge(int32_t left, size_t bytes, Join& join) {
    Symbol& a = symbols_[left];
    Symbol& b = symbols_[a.next];
    a.symbol = a.joined;
    b.rank = kNever;
    a.next = b.next;
    if (a.next >= 0) symbols_[a.next].prev = left;
    rank_pair(left, bytes, join);
    if (a.prev >= 0) rank_pair(a.prev, bytes, join);
  }

  template <typename Join>
  void run_few(size_t bytes, Join& join);
  template <typename Join>
  void run_many(size_t bytes, uint32_t n_ranks, Join& join);

  /// A pair as a heap entry; a greater entry is joined later.
  static uint64_t entry(uint32_t rank, int32_t left) {
    return static_cast<uint64_t>(rank) << 32 | static_cast<uint32_t>(left);
  }
  void push_heap(uint64_t e) {
    heap_.push_back(e);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  uint64_t pop_heap() {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const uint64_t e = heap_.back();
    heap_.pop_back();
    return e;
  }
  /// Queues the pair at `left`; a pair of a higher rank than `current` waits in its bucket.
  void queue(int32_t left, uint32_t current) {
    const uint32_t rank = symbols_[left].rank;
    if (rank == kNever) return;
    if (rank <= current) {
      push_heap(entry(rank, left));
      return;
    }
    if (buckets_[rank].empty()) {
      waiting_.push_back(rank);
      std::push_heap(waiting_.begin(), waiting_.end(), std::greater<>());
    }
    buckets_[rank].push_back(left);
  }

  std::vector<Symbol> symbols_;
  std::vector<uint64_t> heap_;
  std::vector<std::vector<int32_t>> buckets_;  // [n_ranks], only for words of many symbols
  std::vector<uint32_t> waiting_;              // heap of the ranks whose buckets are not empty
};

template <typename Join>
void SymbolMerger::run(size_t bytes, uint32_t n_ranks, Join&& join) {
  const auto n = static_cast<int32_t>(symbols_.size());
  for (int32_t i = 0; i < n; ++i) {
    symbols_[i].prev = i - 1;
    symbols_[i].next = i + 1 < n ? i + 1 : -1;
  }
  for (int32_t i = 0; i < n; ++i) rank_pair(i, bytes, join);
  if (symbols_.size() <= kFewSymbols) {
    run_few(bytes, join);
  } else {
    run_many(bytes, n_ranks, join);
  }
}

template <typename Join>
void SymbolMerger::run_few(size_t bytes, Join& join) {
  for (;;) {
    int32_t best = -1;
    uint32_t rank = kNever;
    for (int32_t i = symbols_.empty() ? -1 : 0; i >= 0; i = symbols_[i].next) {
      if (symbols_[i].rank < rank) {
        rank = symbols_[i].rank;
        best = i;
      }
    }
    if (best < 0) return;
    merge(best, bytes, join);
  }
}

template <typename Join>
void SymbolMerger::run_many(size_t bytes, uint32_t n_ranks, Join& join) {
  const bool use_buckets = symbols_.size() >= kManySymbols;
  if (use_buckets && buckets_.size() < n_ranks) buckets_.resize(n_ranks);
  // Without buckets, no pair ranks above `current`, so all of them go to the heap.
  uint32_t current = use_buckets ? 0 : kNever;
  for (int32_t i = 0; i < static_cast<int32_t>(symbols_.size()); ++i) queue(i, current);
  std::vector<int32_t> bucket;
  size_t done = 0;  // entries of the bucket
  for (;;) {
    uint64_t next = std::numeric_limits<uint64_t>::max();
    if (done < bucket.size()) next = entry(current, bucket[done]);
    if (!heap_.empty() && heap_.front() <= next) {
      next = pop_heap();
    } else if (done < bucket.size()) {
      ++done;
    } else if (!waiting_.empty()) {
      std::pop_heap(waiting_.begin(), waiting_.end(), std::greater<>());
      current = waiting_.back();
      waiting_.pop_back();
      bucket.clear();
      bucket.swap(buckets_[current]);
      std::sort(bucket.begin(), bucket.end());
      done = 0;
      continue;
    } else {
      return;
    }
    const auto left = static_cast<int32_t>(next & 0xffffffffu);
    if (symbols_[left].rank != next >> 32) continue;  // a symbol of the pair was joined meanwhile
    merge(left, bytes, join);
    queue(left, current);
    if (symbols_[left].prev >= 0) queue(symbols_[left].prev, current);
  }
}

}  // namespace snapkv
