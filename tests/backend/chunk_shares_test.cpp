// SPDX-License-Identifier: MIT
// ChunkShares: gives out every chunk once, a thread's own run from its beginning, others' from
// their end.
#include "backend/cpu/target/chunk_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace snapkv::test {
namespace {

using cpu::ChunkShares;

class Shares {
 public:
  Shares(int n_threads, int64_t n_chunks)
      : memory_(static_cast<size_t>(n_threads)), shares_(memory_.data(), n_threads, n_chunks) {}
  ChunkShares* operator->() { return &shares_; }

 private:
  std::vector<ChunkShares::Share> memory_;
  ChunkShares shares_;
};

std::vector<int64_t> take_all(Shares& shares, int thread) {
  std::vector<int64_t> taken;
  for (int64_t c; (c = shares->take(thread)) >= 0;) taken.push_back(c);
  return taken;
}

TEST(ChunkShares, AThreadTakesItsOwnRunInOrder) {
  Shares shares(3, 9);
  for (int i = 0; i < 3; ++i) {
    for (int thread = 0; thread < 3; ++thread) {
      EXPECT_EQ(shares->peek(thread), 3 * thread + i);
      EXPECT_EQ(shares->take(thread), 3 * thread + i);
    }
  }
  for (int thread = 0; thread < 3; ++thread) {
    EXPECT_EQ(shares->peek(thread), -1);
    EXPECT_EQ(shares->take(thread), -1);
  }
}

TEST(ChunkShares, AThreadThatHasFinishedTakesTheLastOfTheLongestRun) {
  Shares shares(3, 9);
  shares->take(2);  // leaves 0 1 2, 3 4 5 and 7 8
  shares->take(1);  // leaves 0 1 2, 4 5 and 7 8
  EXPECT_EQ(take_all(shares, 2), (std::vector<int64_t>{7, 8, 2, 1, 5, 0, 4}));
  EXPECT_EQ(shares->take(0), -1);
}

TEST(ChunkShares, RunsDifferInLengthByOneAtMost) {
  for (const int64_t n_chunks : {64, 65, 1000003}) {
    for (const int n_threads : {1, 2, 7, 64}) {
      Shares shares(n_threads, n_chunks);
      EXPECT_EQ(shares->peek(0), 0);
      for (int thread = 0; thread < n_threads; ++thread) {
        const int64_t end = thread + 1 < n_threads ? shares->peek(thread + 1) : n_chunks;
        EXPECT_GE(end - shares->peek(thread), n_chunks / n_threads);
        EXPECT_LE(end - shares->peek(thread), n_chunks / n_threads + 1);
      }
    }
  }
}

TEST(ChunkShares, OneThreadOfManyTakesAll) {
  for (const int64_t n_chunks : {0, 1, 5, 64}) {
    Shares shares(7, n_chunks);
    std::vector<int> times(static_cast<size_t>(n_chunks));
    for (const int64_t c : take_all(shares, 3)) ++times.at(static_cast<size_t>(c));
    for (const int n : times) EXPECT_EQ(n, 1);
  }
}

TEST(ChunkShares, ThreadsTakeEveryChunkOnce) {
  constexpr int kThreads = 8;
  constexpr int64_t kChunks = 20001;
  for (int round = 0; round < 20; ++round) {
    Shares shares(kThreads, kChunks);
    std::vector<std::vector<int64_t>> taken(kThreads);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] { taken[static_cast<size_t>(i)] = take_all(shares, i); });
    }
    for (std::thread& t : threads) t.join();
    std::vector<int> times(kChunks);
    for (const auto& chunks : taken) {
      for (const int64_t c : chunks) ++times.at(static_cast<size_t>(c));
    }
    EXPECT_EQ(std::count(times.begin(), times.end(), 1), kChunks);
  }
}

}  // namespace
}  // namespace snapkv::test
