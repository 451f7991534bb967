// SPDX-License-Identifier: MIT
// ConnectionPool: the threads of connections, also if the system cannot start any more.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <new>
#include <system_error>

#include "server/http/connection_pool.h"

namespace snapkv::test {
namespace {

using server::ConnectionPool;

constexpr ConnectionPool::Limits kMany{100, 100};

TEST(ConnectionPool, RefusesAConnectionWhereThereIsNoThread) {
  int n_left = 2;
  ConnectionPool pool(kMany, [&](std::function<void()> run) {
    if (n_left-- <= 0) {
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    }
    return std::thread(std::move(run));
  });
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  std::atomic<int> n_served = 0;
  const auto serve = [&] {
    ended.wait();
    ++n_served;
  };
  int n_refused = 0;
  for (int i = 0; i < 5; ++i) n_refused += pool.enqueue(serve, "a") ? 0 : 1;
  EXPECT_EQ(n_refused, 3);
  end.set_value();
  while (n_served < 2) std::this_thread::yield();
  // The existing threads go on.
  for (int i = 0; i < 100 && n_served == 2; ++i) {
    pool.enqueue(serve, "a");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GT(n_served, 2);
  pool.shutdown();
}

TEST(ConnectionPool, AConnectionThatThrowsEndsAlone) {
  ConnectionPool pool({1, 1});
  EXPECT_TRUE(pool.enqueue([] { throw std::bad_alloc(); }, "a"));
  std::atomic<bool> is_served = false;
  while (!is_served) {  // refused until the thread is free again
    pool.enqueue([&] { is_served = true; }, "a");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  pool.shutdown();
}

TEST(ConnectionPool, AnAddressHasNoMoreThanItsShare) {
  ConnectionPool pool({3, 2});
  std::promise<void> end;
  const auto wait = [ended = end.get_future().share()] { ended.wait(); };
  EXPECT_TRUE(pool.enqueue(wait, "a"));
  EXPECT_TRUE(pool.enqueue(wait, "a"));
  EXPECT_FALSE(pool.enqueue(wait, "a"));
  EXPECT_TRUE(pool.enqueue(wait, "b"));
  EXPECT_FALSE(pool.enqueue(wait, "c")) << "there are three in all";
  end.set_value();
  while (!pool.enqueue([] {}, "a")) std::this_thread::yield();
  pool.shutdown();
}

TEST(ConnectionPool, TheThreadsOfABurstEnd) {
  ConnectionPool pool({100, 100, std::chrono::milliseconds(20)});
  std::promise<void> end;
  const auto wait = [ended = end.get_future().share()] { ended.wait(); };
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(pool.enqueue(wait, "a"));
  EXPECT_EQ(pool.n_threads(), 50u);
  end.set_value();
  for (int i = 0; i < 3000 && pool.n_threads() > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(pool.n_threads(), 0u);
  std::promise<void> served;
  EXPECT_TRUE(pool.enqueue([&] { served.set_value(); }, "a"));
  served.get_future().wait();
  pool.shutdown();
}

}  // namespace
}  // namespace snapkv::test
