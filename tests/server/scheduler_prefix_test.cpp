// SPDX-License-Identifier: MIT
// Prompts with the same beginning (Reuse::refresh): what the scheduler keeps of them, and that this
// harms no request.
#include <gtest/gtest.h>

#include "server/scheduler/request_plan.h"
#include "snapkv/prefill.h"
#include "tests/server/scheduler_support.h"

namespace snapkv::server {
namespace {

TEST(Scheduler, ReadsASharedBeginningOnce) {
  Scheduler scheduler(model(), options_of(Reuse::refresh));
  const std::string document = long_text(300);
  const Request first = request_of(document + "first question?");
  const Request second = request_of(document + "another one, which is a little longer?");
  const Result one = wait_for(*scheduler.submit(first));
  const Result two = wait_for(*scheduler.submit(second));
  const Result again = wait_for(*scheduler.submit(first));
  EXPECT_EQ(one.read->n_reused, 0);
  EXPECT_GT(two.read->n_reused, 800);
  EXPECT_EQ(two.read->kv.reused_tokens, two.read->n_reused);
  EXPECT_EQ(two.read->kv.tokens_before, std::ssize(second.prompt.tokens));
  EXPECT_GT(again.read->n_reused, 800);
  EXPECT_EQ(one.texts[0], alone(first));
  EXPECT_EQ(two.texts[0], alone(second));
  EXPECT_EQ(again.texts[0], alone(first));
  EXPECT_EQ(scheduler.stats().n_prefixes, 1);
  EXPECT_GT(scheduler.stats().bytes_prefixes, 0u);
}

TEST(Scheduler, ReadsOnlyWhatIsNewInEachTurn) {
  Scheduler scheduler(model(), options_of(Reuse::refresh));
  std::string text = "It began here. ";  // the blank at its end becomes part of the next token
  for (int i = 0; i < 200; ++i) text += "The wind blew over the old harbour. ";
  int64_t n_before = 0;
  for (int turn = 0; turn < 5; ++turn) {  // about 2% of the prompt are new each time
    const Request request = request_of(text, 2);
    const Result result = wait_for(*scheduler.submit(request));
    EXPECT_GE(result.read->n_reused, n_before - 1);
    EXPECT_EQ(scheduler.stats().n_prefixes, 1);
    n_before = std::ssize(request.prompt.tokens);
    for (int i = 0; i < 4; ++i) text += "A boat came back with fish. ";
  }
}

TEST(Scheduler, APolicyThatObservesReadsItsWholePrompt) {
  Scheduler scheduler(model(), options_of(Reuse::refresh));
  Request request = request_of(long_text(100));
  request.session.kv.name = "h2o";
  for (int i = 0; i < 2; ++i) {
    const Result result = wait_for(*scheduler.submit(request));
    EXPECT_EQ(result.read->n_reused, 0);
    EXPECT_EQ(result.texts[0], alone(request));
  }
}

TEST(Scheduler, PrefixesStayWithinTheirBytes) {
  SchedulerOptions options = options_of(Reuse::refresh);
  const Request request = request_of(long_text(100));
  const size_t one =
      KvPrefix::bytes_for(model()->info(), request.session, std::ssize(request.prompt.tokens));
  options.prefix_cache = 5 * one / 2;
  Scheduler scheduler(model(), options);
  for (int i = 0; i < 6; ++i) {
    wait_for(*scheduler.submit(request_of("x" + std::to_string(i) + long_text(98, i))));
    EXPECT_LE(scheduler.stats().bytes_prefixes, options.prefix_cache);
  }
  EXPECT_EQ(scheduler.stats().n_prefixes, 2);
}

TEST(Scheduler, KeepsPrefixesByDefault) {
  SchedulerOptions options;
  options.session.chunk = 64;
  options.kv_memory = size_t{64} << 20;
  for (const bool off : {false, true}) {
    if (off) options.prefix_cache = 0;
    Scheduler scheduler(model(), options);
    EXPECT_EQ(scheduler.options().prefix_cache, off ? 0 : options.kv_memory / 8);
    const Request request = request_of(long_text(100));
    wait_for(*scheduler.submit(request));
    const Result again = wait_for(*scheduler.submit(request));
    EXPECT_EQ(again.texts[0], alone(request));
    if (off) {
      EXPECT_EQ(again.read->n_reused, 0);
    } else {
      EXPECT_EQ(again.read->n_reused, std::ssize(request.prompt.tokens) - 16);
    }
  }
}

TEST(Scheduler, WhatIsKeptKeepsNoRequestWaiting) {
  Request large = request_of(long_text(600));
  large.session.kv.name = "full";
  large.session.chunk = 64;
  large.session.decode_reserve = large.max_tokens;
  const RequestPlan plan = plan_request(*model(), large);
  SchedulerOptions options;
  options.session.chunk = 64;
  options.kv_memory = plan.running_bytes + plan.reading_bytes;  // `large` takes all of it
  options.prefix_cache = options.kv_memory / 2;
  Scheduler scheduler(model(), options);
  for (int i = 0; i < 4; ++i) {
    wait_for(*scheduler.submit(request_of(std::to_string(i) + long_text(60, i))));
  }
  expect_nothing_runs(scheduler);
  EXPECT_GT(scheduler.stats().n_prefixes, 1);
  const Result result = wait_for(*scheduler.submit(large));
  ASSERT_FALSE(result.failure) << result.failure->message;
  EXPECT_EQ(result.texts[0], alone(large));
  EXPECT_EQ(scheduler.stats().n_prefixes, 0);
}

// While a prompt is read, the rows that it leaves for others take memory that an answer without a
// limit could use.
TEST(Scheduler, WhatWillBeKeptCutsNoAnswer) {
  SchedulerOptions options;
  options.session.chunk = 64;
  options.session.n_ctx = 4000;
  Request endless = request_of(long_text(10), -1);
  endless.ignore_eos = true;
  endless.session.chunk = 64;
  endless.session.n_ctx = 4000;
  Request prompt = request_of(long_text(900), 1);
  prompt.session = endless.session;
  prompt.session.decode_reserve = 1;
  const RequestPlan answer = plan_request(*model(), endless);
  const RequestPlan read = plan_request(*model(), prompt);
  ASSERT_GT(read.prefix_bytes, static_cast<size_t>(kPaidTokens) * token_bytes(*model(), endless));
  // There is room for the answer's next tokens, but not while the prompt's rows are also held.
  options.kv_memory =
      answer.running_bytes + read.running_bytes + read.reading_bytes + read.prefix_bytes;
  options.prefix_cache = read.prefix_bytes;
  Scheduler scheduler(model(), options);
  const auto stream = scheduler.submit(endless);
  std::shared_ptr<RequestUpdates> reading;
  for (int64_t n = 0; n < kPaidTokens + 10;) {
    const auto update = stream->next(kPatience);
    ASSERT_TRUE(update && !std::holds_alternative<AnswerEnd>(*update)) << n;
    if (std::holds_alternative<AnswerPart>(*update) && ++n == kPaidTokens - 50) {
      reading = scheduler.submit(prompt);
    }
  }
  stream->cancel();
  EXPECT_FALSE(wait_for(*reading).failure);
}

}  // namespace
}  // namespace snapkv::server
