// SPDX-License-Identifier: MIT
// The queue between other threads and the scheduler's: what it refuses, and where tasks run.
#include "server/scheduler/queue.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace snapkv::server {
namespace {

constexpr size_t kFree = 100;

std::unique_ptr<Job> job_of(int n = 1) {
  auto job = std::make_unique<Job>();
  job->request.n = n;
  return job;
}

/// Whether the queue takes a job; if not, sets why.
bool takes(RequestQueue& queue, size_t needed = 1, Refused::Kind* why = nullptr) {
  try {
    queue.add(job_of(), needed);
    return true;
  } catch (const Refused& e) {
    if (why != nullptr) *why = e.kind;
    return false;
  }
}

TEST(RequestQueue, RefusesTheFirstRequestTooMany) {
  RequestQueue queue({.n_parallel = 8, .max_queue = 3}, kFree);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(takes(queue)) << i << ": one begins at once, three wait";
  Refused::Kind why{};
  EXPECT_FALSE(takes(queue, 1, &why));
  EXPECT_EQ(why, Refused::Kind::queue_full);
  const Jobs jobs = queue.take();
  ASSERT_EQ(jobs.size(), 4u);
  int64_t id = 0;
  for (const auto& job : jobs) EXPECT_EQ(job->id, ++id);
  EXPECT_EQ(queue.next_id(), 5);
  queue.publish({.n_requests = 4}, {.n_waiting = 3, .is_reading = true, .idle = false});
  EXPECT_FALSE(takes(queue)) << "three still wait";
  queue.publish({.n_requests = 4}, {.n_waiting = 2, .is_reading = true, .idle = false});
  EXPECT_TRUE(takes(queue));
  EXPECT_EQ(queue.stats().n_requests, 4);
  EXPECT_EQ(queue.stats().n_refused, 2);
}

TEST(RequestQueue, WhereNoneMayWaitTakesWhatCanBegin) {
  RequestQueue queue({.n_parallel = 2, .max_queue = 0}, kFree);
  EXPECT_FALSE(takes(queue, kFree + 1)) << "not enough is free";
  EXPECT_TRUE(takes(queue, kFree));
  EXPECT_FALSE(takes(queue)) << "that one has not begun yet";
  queue.take();
  const auto publish = [&](const RequestQueue::Load& load) { queue.publish({}, load); };
  publish({.n_running = 1, .is_reading = true, .free_bytes = kFree});
  EXPECT_FALSE(takes(queue)) << "a prompt is being read";
  publish({.n_running = 2, .free_bytes = kFree});
  EXPECT_FALSE(takes(queue)) << "all answers are taken";
  publish({.n_running = 1, .free_bytes = kFree});
  EXPECT_THROW(queue.add(job_of(2), 1), Refused);
  EXPECT_TRUE(takes(queue));
}

TEST(RequestQueue, TakesNothingMoreOnceItDrains) {
  RequestQueue queue({.n_parallel = 2, .max_queue = 2}, kFree);
  EXPECT_TRUE(takes(queue));
  EXPECT_FALSE(queue.draining());
  queue.drain();
  EXPECT_TRUE(queue.draining());
  Refused::Kind why{};
  EXPECT_FALSE(takes(queue, 1, &why));
  EXPECT_EQ(why, Refused::Kind::draining);
  EXPECT_EQ(queue.take().size(), 1u) << "what has come before is computed";
  EXPECT_TRUE(queue.wait(true));
  queue.stop();
  EXPECT_FALSE(queue.wait(true));
}

TEST(RequestQueue, IsIdleWhileNothingWaitsOrRuns) {
  RequestQueue queue({.n_parallel = 2, .max_queue = 2}, kFree);
  EXPECT_TRUE(queue.idle());
  takes(queue);
  EXPECT_FALSE(queue.idle());
  queue.publish({}, {.idle = true});
  EXPECT_FALSE(queue.idle()) << "nobody has taken the request yet";
  queue.take();
  queue.publish({}, {.idle = false});
  EXPECT_FALSE(queue.idle());
  queue.publish({}, {.idle = true});
  EXPECT_TRUE(queue.idle());
}

TEST(RequestQueue, RunsTasksInTheSchedulersThread) {
  RequestQueue queue({.n_parallel = 1, .max_queue = 1}, kFree);
  std::jthread scheduler([&] {
    queue.begin();
    while (queue.wait(false)) queue.run_tasks();
  });
  const auto id = [] { return std::this_thread::get_id(); };
  EXPECT_EQ(queue.run(id), scheduler.get_id());
  EXPECT_EQ(queue.run([&] { return queue.run(id); }), scheduler.get_id()) << "a task of a task";
  EXPECT_THROW(queue.run([] { throw std::runtime_error("failed"); }), std::runtime_error);
  queue.stop();
}

TEST(RequestQueue, TasksThatComeTooLateAreRefused) {
  RequestQueue queue({.n_parallel = 1, .max_queue = 1}, kFree);
  bool ran = false;
  queue.add_task([&] { ran = true; });
  std::thread([&] {
    queue.begin();
    queue.end();
  }).join();
  EXPECT_TRUE(ran) << "it came in time";
  EXPECT_THROW(queue.run([] { return 1; }), Refused) << "nobody is there to run it";
}

}  // namespace
}  // namespace snapkv::server
