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

TEST(ConnectionPool, RefusesAConnectionWhereThereIsNoThread) {
  int n_left = 2;
  ConnectionPool pool(100, [&](std::function<void()> run) {
    if (n_left-- <= 0) {
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    }
    return std::thread(std::move(run));
  });
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  std::atomic<int> n_served = 0, n_refused = 0;
  const auto serve = [&] {
    if (ConnectionPool::refusing()) {
      ++n_refused;
    } else {
      ended.wait();
      ++n_served;
    }
  };
  for (int i = 0; i < 5; ++i) pool.enqueue(serve);
  EXPECT_EQ(n_refused, 3);
  end.set_value();
  while (n_served < 2) std::this_thread::yield();
  // The existing threads go on.
  for (int i = 0; i < 100 && n_served == 2; ++i) {
    pool.enqueue(serve);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GT(n_served, 2);
  pool.shutdown();
}

TEST(ConnectionPool, AConnectionThatThrowsEndsAlone) {
  ConnectionPool pool(1);
  pool.enqueue([] { throw std::bad_alloc(); });
  std::atomic<bool> is_served = false;
  while (!is_served) {  // refused until the thread is free again
    pool.enqueue([&] {
      if (!ConnectionPool::refusing()) is_served = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  pool.shutdown();
}

}  // namespace
}  // namespace snapkv::test
