// SPDX-License-Identifier: MIT
// Generator: tokens, text and every way in which an answer ends, alone and in a batch.
#include "snapkv/generator.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace generator_tests {

constexpr int64_t kVocab = 512;  // of the tiny models

class GeneratorTest : public ::testing::Test {
 protected:
  static SessionOptions options(int64_t n_ctx = 0) {
    SessionOptions o;
    o.kv = {.name = "full"};
    o.kv_type = DType::f32;
    o.n_ctx = n_ctx;
    return o;
  }
  /// A session that has read a prompt of 40 tokens.
  Session read(int64_t n_ctx = 0) const {
    Session session(model_, options(n_ctx));
    session.prefill(generated_ids(40, kVocab, 1));
    return session;
  }
  /// The greedy answer by Session alone.
  std::vector<int32_t> greedy_ids(int64_t n) const {
    Session session = read();
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < n; ++i) {
      const auto logits = session.logits();
      ids.push_back(
          static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
      session.decode(ids.back());
    }
    return ids;
  }
  std::string text_of(const std::vector<int32_t>& ids) const {
    TextStream stream;
    std::string text;
    for (const int32_t id : ids) text += stream.push(model_->piece(id));
    return text + stream.finish();
  }
  /// Runs an answer to its end; returns its text.
  static std::string run(Generator& generator) {
    std::string text;
    while (generator.step()) text += generator.token().text;
    return text + generator.rest();
  }

  std::shared_ptr<const Model> model_ = load_model("tiny-f32", Compute::f32, 2, "cpu");
  Sampler greedy_ = Sampler({.temperature = 0});
};

TEST_F(GeneratorTest, WritesTheGreedyAnswer) {
  Session session = read();
  Generator generator(session, greedy_, {.max_tokens = 12, .ignore_eos = true});
  const std::string text = run(generator);
  EXPECT_EQ(generator.ids(), greedy_ids(12));
  EXPECT_EQ(text, text_of(generator.ids()));
  EXPECT_EQ(generator.stop_reason(), StopReason::length);
  EXPECT_EQ(generator.n_unread(), 1);  // the last token was chosen only
  EXPECT_FALSE(generator.step());
  EXPECT_EQ(generator.ids().size(), 12u);
}

TEST_F(GeneratorTest, EndsAtAStopString) {
  const std::string whole = text_of(greedy_ids(12));
  const auto ascii = std::adjacent_find(whole.begin() + 3, whole.end(), [](char a, char b) {
    return a > ' ' && a < 127 && b > ' ' && b < 127;
  });
  ASSERT_NE(ascii, whole.end());
  const std::string stop(ascii, ascii + 2);
  Session session = read();
  Generator generator(session, greedy_, {.max_tokens = 12, .stops = {stop}, .ignore_eos = true});
  EXPECT_EQ(run(generator), whole.substr(0, whole.find(stop)));
  EXPECT_EQ(generator.stop_reason(), StopReason::stop);
  EXPECT_EQ(generator.stop_string(), stop);
}

TEST_F(GeneratorTest, EndsWhereItsCallerFindsTheEnd) {
  Session session = read();
  int n = 0;
  Generator generator(session, greedy_,
                      {.is_end = [&n](std::string_view) { return ++n == 3; }, .ignore_eos = true});
  run(generator);
  EXPECT_EQ(generator.ids().size(), 3u);
  EXPECT_EQ(generator.stop_reason(), StopReason::stop);
  EXPECT_EQ(generator.stop_string(), "");
}

TEST_F(GeneratorTest, EndsWithTheModelsOwnToken) {
  std::vector<int32_t> end;
  for (int32_t id = 0; id < kVocab; ++id) {
    if (model_->is_end_of_generation(id)) end.push_back(id);
  }
  ASSERT_FALSE(end.empty());
  Sampler always_end({.temperature = 0, .logit_bias = {{.id = end[0], .bias = 100.0}}});
  Session session = read();
  Generator generator(session, always_end);
  EXPECT_FALSE(generator.choose());
  EXPECT_EQ(generator.stop_reason(), StopReason::eos);
  EXPECT_TRUE(generator.ids().empty());
  Sampler again({.temperature = 0, .logit_bias = {{.id = end[0], .bias = 100.0}}});
  Generator ignoring(session, again, {.max_tokens = 2, .ignore_eos = true});
  run(ignoring);
  EXPECT_EQ(ignoring.ids().size(), 2u);
}

TEST_F(GeneratorTest, EndsWhereTheContextIsFull) {
  Session session = read(/*n_ctx=*/45);
  Generator generator(session, greedy_, {.ignore_eos = true});
  run(generator);
  EXPECT_EQ(generator.stop_reason(), StopReason::context);
  EXPECT_EQ(session.n_past(), 45);
  EXPECT_EQ(generator.ids().size(), 6u);  // the last one is chosen, and cannot be read
}

TEST_F(GeneratorTest, EndsWhenItIsCancelledOrStopped) {
  Session session = read();
  bool cancelled = false;
  Generator generator(session, greedy_,
                      {.ignore_eos = true, .cancelled = [&] { return cancelled; }});
  EXPECT_TRUE(generator.step());
  cancelled = true;
  EXPECT_FALSE(generator.step());
  EXPECT_EQ(generator.stop_reason(), StopReason::cancelled);
  generator.stop(StopReason::length);  // it has ended already
  EXPECT_EQ(generator.stop_reason(), StopReason::cancelled);
}

TEST_F(GeneratorTest, WritesNothingWithALimitOfZero) {
  Session session = read();
  Generator generator(session, greedy_, {.max_tokens = 0});
  EXPECT_EQ(run(generator), "");
  EXPECT_EQ(generator.stop_reason(), StopReason::length);
}

TEST_F(GeneratorTest, ReportsTheModelsOwnProbabilities) {
  Session session = read();
  const TokenLogprobs expected = token_logprobs(session.logits(), greedy_ids(1)[0], 3);
  Generator generator(session, greedy_, {.ignore_eos = true, .top_logprobs = 3});
  ASSERT_TRUE(generator.choose());
  ASSERT_TRUE(generator.token().logprobs.has_value());
  EXPECT_EQ(generator.token().logprobs->chosen.logprob, expected.chosen.logprob);
  EXPECT_EQ(generator.token().logprobs->top.size(), 3u);
}

TEST_F(GeneratorTest, AnswersOfABatchAreThoseOfEachAlone) {
  Session first = read(), second = read();
  Sampler other({.temperature = 0});
  Generator a(first, greedy_, {.max_tokens = 6, .ignore_eos = true});
  Generator b(second, other, {.max_tokens = 6, .ignore_eos = true});
  while (!a.done()) {
    a.choose();
    b.choose();
    if (a.done()) break;
    std::vector<Session*> sessions = {&first, &second};
    const std::vector<int32_t> next = {a.next_token(), b.next_token()};
    decode_batch(sessions, next);
    EXPECT_EQ(a.n_unread(), 0);
  }
  EXPECT_EQ(a.ids(), greedy_ids(6));
  EXPECT_EQ(b.ids(), a.ids());
}

TEST_F(GeneratorTest, RefusesAnEmptyStopString) {
  Session session = read();
  expect_error(ErrorCode::kUsage, {"stop"}, [&] { Generator(session, greedy_, {.stops = {""}}); });
}

}  // namespace generator_tests
}  // namespace snapkv::test
