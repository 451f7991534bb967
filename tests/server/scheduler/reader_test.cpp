// SPDX-License-Identifier: MIT
// The reader: prompts are read in steps, failures hit only those who cause them, and memory comes
// back.
#include "server/scheduler/reader.h"

#include <gtest/gtest.h>

#include "tests/server/scheduler/parts.h"

namespace snapkv::server {
namespace {

TEST(Reader, ReadsInSteps) {
  Parts parts;
  Request request = request_of(long_text(100));
  request.reports_progress = true;
  const auto client = parts.add(request);
  EXPECT_TRUE(parts.reader.begin(parts.admission.next({})).empty());
  EXPECT_TRUE(parts.reader.busy());
  EXPECT_EQ(parts.reader.jobs().size(), 1u);
  int n_steps = 0;
  Jobs read;
  while (parts.reader.busy()) {
    read = parts.reader.read_for(0).read;
    ++n_steps;
  }
  EXPECT_GT(n_steps, model()->info().n_layer);
  ASSERT_EQ(read.size(), 1u);
  EXPECT_TRUE(parts.reader.jobs().empty());
  const Job& job = *read.front();
  const int64_t n = std::ssize(request.prompt.tokens);
  EXPECT_EQ(job.sessions.at(0)->n_past(), n);
  EXPECT_EQ(parts.counts.n_prompt_tokens, n);
  EXPECT_EQ(parts.stored().bytes_running, job.memory.bytes().running) << "reading needs no more";
  std::optional<Update> update;
  int n_progress = 0;
  while ((update = client->next(0ms)) && std::holds_alternative<PromptProgress>(*update)) {
    EXPECT_EQ(std::get<PromptProgress>(*update).n_total, n);
    ++n_progress;
  }
  EXPECT_GT(n_progress, 0);
  ASSERT_TRUE(update && std::holds_alternative<PromptRead>(*update));
  EXPECT_EQ(std::get<PromptRead>(*update).n_tokens, n);
  EXPECT_EQ(std::get<PromptRead>(*update).kv.tokens_kept, 64);
}

TEST(Reader, GivesBackTheMemoryOfRowsThatArentKept) {
  for (const double least : {0.0, 0.3}) {
    Parts parts;
    Request request = request_of(long_text(100));
    request.session.kv = {.name = "snapkv-max", .budget = 200, .window_size = 8};
    request.session.kv.params = {{"least_attention", least}};
    request.n = 2;
    parts.add(request);
    const Jobs read = parts.read();
    ASSERT_EQ(read.size(), 1u);
    const Job& job = *read.front();
    const RequestPlan& plan = job.plan;
    ASSERT_EQ(job.sessions.size(), 2u);
    const size_t kept = job.sessions[0]->stats().kv_bytes + job.sessions[1]->stats().kv_bytes;
    const size_t running = parts.stored().bytes_running;
    EXPECT_EQ(job.memory.bytes().running, running);
    if (least == 0.0) {
      EXPECT_EQ(running, plan.running_bytes);
      continue;
    }
    EXPECT_LT(kept, plan.most_kept_bytes / 2);
    EXPECT_EQ(running, plan.running_bytes - plan.most_kept_bytes + kept);
  }
}

TEST(Reader, WhatFailsTogetherIsReadOneByOne) {
  Parts parts;
  Request bad = request_of("x");
  bad.prompt.tokens.push_back(1 << 30);  // no token of the model
  const auto failing = parts.add(bad), client = parts.add(request_of("y"));
  Admission::Group group = parts.admission.next({});
  ASSERT_EQ(group.jobs.size(), 2u);
  Jobs again = parts.reader.begin(std::move(group));
  EXPECT_FALSE(parts.reader.busy());
  ASSERT_EQ(again.size(), 2u);
  for (const auto& job : again) EXPECT_TRUE(job->alone && job->sessions.empty() && !job->failed);
  EXPECT_EQ(parts.stored().bytes_running, 0u);
  parts.admission.put_back(std::move(again));
  EXPECT_TRUE(parts.read().empty());
  EXPECT_EQ(next_failure(*failing)->kind, Failure::Kind::bad_request);
  EXPECT_EQ(parts.counts.n_failed, 1);
  EXPECT_EQ(parts.read().size(), 1u);
  EXPECT_FALSE(next_failure(*client));
}

TEST(Reader, StopsOnlyWhenAllHaveGone) {
  Parts parts;
  const auto one = parts.add(request_of("x")), other = parts.add(request_of("y"));
  EXPECT_TRUE(parts.reader.begin(parts.admission.next({})).empty());
  ASSERT_EQ(parts.reader.jobs().size(), 2u);
  one->cancel();
  parts.reader.drop_lost();
  EXPECT_TRUE(parts.reader.busy());
  other->cancel();
  parts.reader.drop_lost();
  EXPECT_FALSE(parts.reader.busy());
  EXPECT_EQ(next_failure(*one)->kind, Failure::Kind::cancelled);
  EXPECT_EQ(next_failure(*other)->kind, Failure::Kind::cancelled);
  EXPECT_EQ(parts.counts.n_cancelled, 2);
  EXPECT_EQ(parts.stored().bytes_running, 0u);
}

TEST(Reader, LeavesTheRowsOfAPromptInTheStore) {
  Parts parts(options_of(Reuse::refresh));
  parts.add(request_of(long_text(60)));
  EXPECT_TRUE(parts.reader.begin(parts.admission.next({})).empty());
  EXPECT_TRUE(parts.reader.holds_prefix()) << "that it makes";
  while (parts.reader.busy()) parts.reader.read_for(0);
  EXPECT_FALSE(parts.reader.holds_prefix());
  EXPECT_EQ(parts.stored().n_prefixes, 1);
  EXPECT_EQ(parts.stored().bytes_running, 0u);
  parts.add(request_of(long_text(60)));
  EXPECT_EQ(parts.read().size(), 1u);
  EXPECT_GT(parts.counts.n_reused_tokens, 100);
}

}  // namespace
}  // namespace snapkv::server
