// SPDX-License-Identifier: MIT
// The writer: answers go on side by side, end alone, and leave their conversations in the store.
#include "server/scheduler/writer.h"

#include <gtest/gtest.h>

#include "tests/server/scheduler/parts.h"

namespace snapkv::server {
namespace {

TEST(Writer, WritesEachAnswerAsASessionWould) {
  Parts parts;
  const Request one = request_of(long_text(30), 4), other = request_of(long_text(60, 5), 9);
  const auto first = parts.add(one), second = parts.add(other);
  for (int i = 0; i < 2; ++i) parts.writer.begin(parts.read());
  EXPECT_EQ(parts.writer.jobs().size(), 2u);
  int n_steps = 0;
  while (!parts.writer.jobs().empty()) {
    EXPECT_TRUE(parts.writer.step(false));
    ++n_steps;
  }
  EXPECT_EQ(n_steps, 8) << "one for each token after the first";
  EXPECT_EQ(parts.counts.n_decode_steps, 8);
  EXPECT_EQ(parts.counts.n_generated_tokens, 4 + 9);
  EXPECT_EQ(wait_for(*first).texts[0], alone(one));
  EXPECT_EQ(wait_for(*second).texts[0], alone(other));
  EXPECT_EQ(parts.stored().bytes_running, 0u);
  EXPECT_EQ(parts.stored().n_kept, 0) << "only Reuse::append goes on from compressed caches";
}

TEST(Writer, WritesTheSameAnswerWithGuessesInFewerSteps) {
  Parts parts;
  Request request = request_of(long_text(30), 12);
  request.ignore_eos = true;
  const std::string answer = alone(request);
  // the answer stands in the prompt, so that it can be guessed
  request = request_of(long_text(30) + answer + long_text(30), 12);
  request.ignore_eos = true;
  const std::string plain = alone(request);
  request.session.draft = Draft::lookup;
  request.session.draft_min = 4;
  const auto guessed = parts.add(request), other = parts.add(request_of(long_text(60, 5), 9));
  for (int i = 0; i < 2; ++i) parts.writer.begin(parts.read());
  while (!parts.writer.jobs().empty()) EXPECT_TRUE(parts.writer.step(false));
  const Result result = wait_for(*guessed);
  EXPECT_EQ(result.texts[0], plain);
  EXPECT_EQ(wait_for(*other).texts[0], alone(request_of(long_text(60, 5), 9)));
  EXPECT_EQ(parts.counts.n_generated_tokens, 12 + 9);
  EXPECT_GT(result.ends[0].n_drafted, 0);
  EXPECT_LE(result.ends[0].n_accepted, result.ends[0].n_drafted);
  EXPECT_EQ(parts.counts.n_drafted_tokens, result.ends[0].n_drafted);
  EXPECT_EQ(parts.counts.n_accepted_tokens, result.ends[0].n_accepted);
  EXPECT_EQ(parts.counts.n_decode_steps, std::max<int64_t>(8, 11 - result.ends[0].n_accepted));
}

TEST(Writer, WritesTheFullCachesAnswersWhereKeptRowsGuess) {
  Parts parts;
  std::vector<std::string> expected;
  std::vector<std::shared_ptr<RequestUpdates>> clients;
  for (int i = 0; i < 3; ++i) {
    Request request = request_of(long_text(150 + 40 * i, i), 12 + i);
    request.ignore_eos = true;
    request.session.kv.name = "full";
    expected.push_back(alone(request));
    if (i < 2) {  // and one that has no kept rows beside them
      request.session.kv = {.name = "snapkv", .budget = 48, .window_size = 16};
      request.session.draft = Draft::self;
      request.session.draft_min = 3;
    }
    clients.push_back(parts.add(request));
  }
  for (int i = 0; i < 3; ++i) parts.writer.begin(parts.read());
  while (!parts.writer.jobs().empty()) EXPECT_TRUE(parts.writer.step(false));
  for (int i = 0; i < 3; ++i) {
    const Result result = wait_for(*clients[i]);
    EXPECT_EQ(result.texts[0], expected[i]) << i;
    EXPECT_EQ(result.ends[0].n_drafted > 0, i < 2);
  }
  EXPECT_EQ(parts.stored().bytes_running, 0U);
}

TEST(Writer, WaitsForMemoryThatComesBackAndEndsWhenNoneDoes) {
  Parts parts;
  Request endless = request_of(long_text(10), -1);
  endless.ignore_eos = true;
  const auto client = parts.add(endless);
  Jobs read = parts.read();
  ASSERT_EQ(read.size(), 1u);
  read.front()->paid_tokens = 2;
  parts.writer.begin(std::move(read));
  EXPECT_TRUE(parts.writer.step(false)) << "the second token is paid for";
  Reservation others;
  ASSERT_TRUE(parts.store.reserve(others, {.running = parts.store.free_for_requests()}));
  EXPECT_FALSE(parts.writer.step(true));
  ASSERT_EQ(parts.writer.jobs().size(), 1u) << "it waits";
  others.release();
  EXPECT_TRUE(parts.writer.step(true));
  EXPECT_GT(parts.writer.jobs().front()->paid_tokens, 2);
  parts.writer.jobs().front()->paid_tokens = 3;
  ASSERT_TRUE(parts.store.reserve(others, {.running = parts.store.free_for_requests()}));
  EXPECT_FALSE(parts.writer.step(false));
  EXPECT_TRUE(parts.writer.jobs().empty());
  const Result result = wait_for(*client);
  EXPECT_EQ(result.ends[0].reason, FinishReason::length);
  EXPECT_EQ(result.ends[0].n_generated, 3);
}

TEST(Writer, KeepsConversationsThatMayGoOn) {
  Parts parts(options_of(Reuse::append));
  Request stranger = request_of(long_text(30), 3);
  stranger.reuses = false;
  const Request request = request_of(long_text(40), 3);
  for (const Request& each : {stranger, request}) {
    parts.add(each);
    parts.writer.begin(parts.read());
    while (!parts.writer.jobs().empty()) parts.writer.step(false);
  }
  EXPECT_EQ(parts.stored().n_kept, 1);
  EXPECT_GT(parts.stored().bytes_kept, 0u);
  const std::string answer = alone(request);
  const auto next = parts.job(request_of(long_text(40) + answer + " so?"));
  const auto more = parts.store.take(*model(), next->request);
  ASSERT_TRUE(more);
  EXPECT_EQ(more->kept.text, long_text(40) + answer);
  EXPECT_EQ(parts.stored().bytes_kept, 0u);
}

TEST(Writer, DropsThoseWhoHaveGone) {
  Parts parts;
  const auto gone = parts.add(request_of("x")), stays = parts.add(request_of("y"));
  parts.writer.begin(parts.read());
  ASSERT_EQ(parts.writer.jobs().size(), 2u);
  gone->cancel();
  parts.writer.drop_lost();
  EXPECT_EQ(parts.writer.jobs().size(), 1u);
  EXPECT_EQ(wait_for(*gone).failure->kind, Failure::Kind::cancelled);
  while (!parts.writer.jobs().empty()) parts.writer.step(false);
  EXPECT_FALSE(wait_for(*stays).failure);
}

}  // namespace
}  // namespace snapkv::server
