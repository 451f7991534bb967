// SPDX-License-Identifier: MIT
#include "base/per_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace snapkv {
namespace {

std::atomic<int> g_alive{0};

struct Counted {
  Counted() { ++g_alive; }
  ~Counted() { --g_alive; }
  int value = 0;
};

TEST(PerThread, EachThreadHasItsOwnUntilItEnds) {
  static auto& counted = *new PerThread<Counted>;
  EXPECT_EQ(g_alive, 0) << "none before a thread asks";
  counted.get().value = 1;
  std::vector<std::thread> threads;
  for (int i = 2; i < 6; ++i) {
    threads.emplace_back([i] {
      EXPECT_EQ(counted.get().value, 0);
      counted.get().value = i;
      EXPECT_EQ(counted.get().value, i);
      EXPECT_GE(g_alive, 2);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(g_alive, 1) << "those of threads that ended are gone";
  EXPECT_EQ(counted.get().value, 1);
}

TEST(PerThread, WhatCannotBeMadeIsTriedAgain) {
  static bool fails;
  struct Fails {
    Fails() {
      if (fails) throw std::bad_alloc();
    }
  };
  static auto& made = *new PerThread<Fails>;
  fails = true;
  EXPECT_THROW(made.get(), std::bad_alloc);
  fails = false;
  EXPECT_EQ(&made.get(), &made.get());
}

}  // namespace
}  // namespace snapkv
