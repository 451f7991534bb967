// SPDX-License-Identifier: MIT
// Admission: which of the waiting requests begin together, what they wait for, and what each takes
// over from what has been read.
#include "server/scheduler/admission.h"

#include <gtest/gtest.h>

#include "tests/server/scheduler/parts.h"

namespace snapkv::server {
namespace {

TEST(Admission, ReadsShortPromptsTogether) {
  Parts parts;
  for (int i = 0; i < 3; ++i) parts.add(request_of(long_text(3, i)));
  parts.add(request_of(long_text(60)));
  parts.add(request_of(long_text(3)));
  const Admission::Group group = parts.admission.next({});
  EXPECT_EQ(group.jobs.size(), 3u);
  ASSERT_EQ(group.prompts.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(group.prompts[i].tokens, request_of(long_text(3, static_cast<int>(i))).prompt.tokens);
  }
  EXPECT_EQ(parts.admission.waiting().size(), 2u) << "none overtakes the long one";
  const Admission::Group second = parts.admission.next({});
  EXPECT_EQ(second.jobs.size(), 1u) << "a long prompt is read alone";
  EXPECT_EQ(parts.admission.waiting().size(), 1u);
}

TEST(Admission, JobsThatFailedTogetherComeOneByOne) {
  Parts parts;
  Jobs again;
  for (int i = 0; i < 2; ++i) {
    again.push_back(parts.job(request_of(long_text(3, i))));
    again.back()->alone = true;
  }
  parts.add(request_of(long_text(3, 2)));
  parts.admission.put_back(std::move(again));
  for (const bool alone : {true, true, false}) {
    const Admission::Group group = parts.admission.next({});
    ASSERT_EQ(group.jobs.size(), 1u);
    EXPECT_EQ(group.jobs.front()->alone, alone);
  }
}

TEST(Admission, WaitsUntilAnAnswerMayBegin) {
  Parts parts;
  parts.add(request_of("x"));
  const int most = parts.options.n_parallel;
  EXPECT_TRUE(parts.admission.next({.n_answers = most, .frees_memory = true}).jobs.empty());
  EXPECT_EQ(parts.admission.waiting().size(), 1u);
  EXPECT_EQ(parts.stored().bytes_running, 0u);
  EXPECT_EQ(parts.admission.next({.n_answers = most - 1, .frees_memory = true}).jobs.size(), 1u);
}

TEST(Admission, WaitsForMemoryThatWillBeFree) {
  Parts parts;
  Reservation other;
  ASSERT_TRUE(parts.store.reserve(other, {.running = parts.options.kv_memory}));
  const auto client = parts.add(request_of("x"));
  EXPECT_TRUE(parts.admission.next({.frees_memory = true}).jobs.empty());
  EXPECT_EQ(parts.admission.waiting().size(), 1u);
  other.release();
  {
    const Admission::Group group = parts.admission.next({.frees_memory = true});
    ASSERT_EQ(group.jobs.size(), 1u);
    EXPECT_EQ(parts.stored().bytes_running, group.jobs.front()->plan.needed_bytes());
  }
  EXPECT_EQ(parts.stored().bytes_running, 0u) << "it ends with its job";
  ASSERT_TRUE(parts.store.reserve(other, {.running = parts.options.kv_memory}));
  const auto failing = parts.add(request_of("x"));
  EXPECT_TRUE(parts.admission.next({}).jobs.empty());
  EXPECT_TRUE(parts.admission.waiting().empty());
  const auto failure = next_failure(*failing);
  ASSERT_TRUE(failure) << "nothing will free any";
  EXPECT_EQ(failure->kind, Failure::Kind::does_not_fit);
  EXPECT_EQ(parts.counts.n_failed, 1);
}

TEST(Admission, BeginsWithTheRowsOfAPromptThatBeganAlike) {
  Parts parts(options_of(Reuse::refresh));
  const std::string text = long_text(60);
  const auto n_ctx = Session(model(), {}).n_ctx();
  parts.store.add_prefix(prefix_of(text), n_ctx);
  parts.add(request_of(text + long_text(8, 50)));
  {
    const Admission::Group group = parts.admission.next({});
    ASSERT_EQ(group.jobs.size(), 1u);
    const Job& job = *group.jobs.front();
    EXPECT_GT(job.n_reused, 100);
    EXPECT_EQ(group.prompts[0].options.n_from_prefix, job.n_reused);
    EXPECT_TRUE(group.prompts[0].options.prefix);
    EXPECT_EQ(group.prompts[0].tokens, job.request.prompt.tokens);
    EXPECT_TRUE(job.makes_prefix) << "a turn that goes on replaces the prefix";
    EXPECT_GT(job.memory.bytes().prefix, 0u);
  }
  Request whole = request_of(text);
  whole.reuses = false;
  parts.add(whole);
  Request observing = request_of(text);
  observing.session.kv.name = "h2o";
  parts.add(observing);
  for (int i = 0; i < 2; ++i) {
    const Admission::Group group = parts.admission.next({});
    ASSERT_EQ(group.jobs.size(), 1u);
    EXPECT_EQ(group.jobs.front()->n_reused, 0);
    EXPECT_FALSE(group.prompts[0].options.prefix);
  }
}

TEST(Admission, DropsThoseWhoHaveGone) {
  Parts parts;
  const auto gone = parts.add(request_of("x")), stays = parts.add(request_of("y"));
  Request late = request_of("z");
  late.timeout = 1e-9;
  const auto expired = parts.add(late);
  gone->cancel();
  parts.admission.drop_lost();
  ASSERT_EQ(parts.admission.waiting().size(), 1u);
  EXPECT_EQ(parts.admission.waiting().front()->client, stays);
  EXPECT_EQ(next_failure(*gone)->kind, Failure::Kind::cancelled);
  EXPECT_EQ(next_failure(*expired)->kind, Failure::Kind::timeout);
  EXPECT_FALSE(next_failure(*stays));
  EXPECT_EQ(parts.counts.n_cancelled, 1);
  EXPECT_EQ(parts.counts.n_failed, 1);
}

}  // namespace
}  // namespace snapkv::server
