// SPDX-License-Identifier: MIT
// ChunkShares: decides which thread computes which chunk of an op that reads much memory once.
// Every thread begins with a run of neighbouring chunks, so that data fetched beyond the end of a
// chunk, by the processor or the kernels, is what the same thread reads next. A thread that has
// finished its run takes the last chunks of other runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>

namespace snapkv::cpu {

class ChunkShares {
 public:
  /// The rest of one thread's run, on a cache line of its own.
  struct alignas(64) Share {
    std::atomic<uint64_t> range;  // first chunk in the upper 32 bits, end in the lower ones
  };

  /// Divides the chunks 0 ... n_chunks - 1, fewer than 2^31, among n_threads runs whose lengths
  /// differ by at most one. `shares` is the caller's memory, [n_threads], uninitialized.
  ChunkShares(Share* shares, int n_threads, int64_t n_chunks)
      : shares_(shares), n_threads_(n_threads) {
    for (int i = 0; i < n_threads; ++i) {
      new (shares + i) Share{};
      shares[i].range.store(pack(n_chunks * i / n_threads, n_chunks * (i + 1) / n_threads),
                            std::memory_order_relaxed);
    }
  }

  /// The next chunk for this thread, 0 to n_threads - 1, or -1 if every chunk is taken. Threads may
  /// call it concurrently; each chunk is returned once.
  int64_t take(int thread) {
    const int64_t own = take_from(shares_[thread], true);
    if (own >= 0) return own;
    while (Share* fullest = most_left()) {
      const int64_t chunk = take_from(*fullest, false);
      if (chunk >= 0) return chunk;
    }
    return -1;
  }

  /// The chunk that take() would return for this thread if no other thread took it first, or -1 if
  /// its own run is finished.
  int64_t peek(int thread) const {
    const uint64_t range = shares_[thread].range.load(std::memory_order_relaxed);
    return first(range) < end(range) ? first(range) : -1;
  }

 private:
  static uint64_t pack(int64_t first, int64_t end) {
    return static_cast<uint64_t>(first) << 32 | static_cast<uint64_t>(end);
  }
  static int64_t first(uint64_t range) { return static_cast<int64_t>(range >> 32); }
  static int64_t end(uint64_t range) { return static_cast<int64_t>(range & 0xffffffffu); }

  /// Takes the first or the last chunk of a run; -1 if there is none.
  static int64_t take_from(Share& share, bool from_front) {
    uint64_t range = share.range.load(std::memory_order_relaxed);
    while (first(range) < end(range)) {
      const uint64_t rest =
          from_front ? pack(first(range) + 1, end(range)) : pack(first(range), end(range) - 1);
      if (share.range.compare_exchange_weak(range, rest, std::memory_order_relaxed)) {
        return from_front ? first(range) : end(range) - 1;
      }
    }
    return -1;
  }

  /// The run with the most chunks left; null if all are finished.
  Share* most_left() const {
    Share* fullest = nullptr;
    int64_t most = 0;
    for (int i = 0; i < n_threads_; ++i) {
      const uint64_t range = shares_[i].range.load(std::memory_order_relaxed);
      if (end(range) - first(range) <= most) continue;
      most = end(range) - first(range);
      fullest = shares_ + i;
    }
    return fullest;
  }

  Share* const shares_;  // [n_threads]
  const int n_threads_;
};

}  // namespace snapkv::cpu
