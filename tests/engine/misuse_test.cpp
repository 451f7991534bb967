// SPDX-License-Identifier: MIT
// Calls that can't be meant: null models and sessions, objects that were moved from, sessions that
// their own callbacks call. Each is kUsage with a message, and the session goes on.
#include <gtest/gtest.h>

#include "snapkv/compress.h"
#include "snapkv/engine.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace {

Session make_session() {
  return Session(load_model("tiny-f32"), {.kv = {.budget = 40, .window_size = 8}});
}

const std::vector<int32_t>& prompt() {
  static const std::vector<int32_t> ids = generated_ids(60, 256, 1);
  return ids;
}

TEST(Misuse, NullModelsAndSessions) {
  expect_error(ErrorCode::kUsage, {"model", "null"}, [] { Session session(nullptr, {}); });
  Session session = make_session();
  Session* with_null[] = {&session, nullptr};
  expect_error(ErrorCode::kUsage, {"prefill", "session 1", "null"},
               [&] { prefill_many(with_null, prompt()); });
  session.prefill(prompt());
  expect_error(ErrorCode::kUsage, {"decode", "session 1", "null"}, [&] {
    decode_batch(with_null, std::vector<int32_t>{7, 7});
  });
  expect_error(ErrorCode::kUsage, {}, [] { prefill_many({}, prompt()); });
  expect_error(ErrorCode::kUsage, {}, [] { decode_batch({}, {}); });
  Session* twice[] = {&session, &session};
  expect_error(ErrorCode::kUsage, {"twice"}, [&] {
    decode_batch(twice, std::vector<int32_t>{7, 7});
  });
  session.decode(7);
  EXPECT_EQ(session.n_past(), 61);
}

TEST(Misuse, ObjectsThatWereMovedFrom) {
  Session session = make_session();
  const Session moved = std::move(session);
  const auto expect = [](const auto& call) {
    expect_error(ErrorCode::kUsage, {"moved from"}, call);
  };
  expect([&] { session.prefill(prompt()); });
  expect([&] { session.decode(7); });
  expect([&] { session.logits(); });
  expect([&] { session.prefill_logits(0); });
  expect([&] { session.n_past(); });
  expect([&] { session.n_ctx(); });
  expect([&] { session.stats(); });
  expect([&] { session.options(); });
  expect([&] { session.model(); });
  expect([&] { session.cached_positions(0, 0); });
  expect([&] { session.reset(); });
  session = make_session();
  EXPECT_EQ(session.n_past(), 0);

  Sampler sampler({});
  const Sampler moved_sampler = std::move(sampler);
  expect([&] { sampler.sample(std::vector<float>{1.0f}); });
  expect([&] { sampler.accept(prompt()); });
  Compressor compressor({});
  const Compressor moved_compressor = std::move(compressor);
  expect([&] { compressor.select({}); });
  // which of two mistakes is named is up to the optimizer
  expect_error(ErrorCode::kUsage, {}, [&] { compressor.gather({}, {}, {}, {}); });
  expect([&] { compressor.config(); });
}

// Prefilling a session inside its own callback counted the prompt twice.
TEST(Misuse, CallbacksCannotCallTheirOwnSession) {
  Session session = make_session(), other = make_session();
  int n_calls = 0;
  const auto expect_in_use = [&](const auto& call) {
    expect_error(ErrorCode::kUsage, {"session 0", "in use", "callback"}, call);
    ++n_calls;
  };
  AttentionProbe probe;
  probe.ranges = {{50, 60}};
  probe.report = [&](const AttentionProbe::Report&) {
    expect_in_use([&] { session.prefill(prompt()); });
    expect_in_use([&] { session.reset(); });
  };
  const PrefillOptions options = {.progress =
                                      [&](const Progress&) {
                                        expect_in_use([&] { session.prefill(prompt()); });
                                        expect_in_use([&] { session.decode(7); });
                                        if (other.n_past() == 0)
                                          other.prefill(prompt());  // another session is free
                                        return true;
                                      },
                                  .probe = &probe};
  session.prefill(prompt(), options);
  EXPECT_GT(n_calls, 8);
  EXPECT_EQ(session.n_past(), 60);
  EXPECT_EQ(other.n_past(), 60);
  Session twin = make_session();
  twin.prefill(prompt());
  EXPECT_TRUE(std::equal(twin.logits().begin(), twin.logits().end(), session.logits().begin()));
  session.decode(7);
  EXPECT_EQ(session.n_past(), 61);
}

// What a callback throws ends the call, and the session is free again.
TEST(Misuse, SessionsAreFreeAfterAnError) {
  Session session = make_session();
  for (int i = 0; i < 2; ++i) {
    expect_error(ErrorCode::kCancelled, {}, [&] {
      session.prefill(prompt(), {.progress = [](const Progress&) { return false; }});
    });
    EXPECT_THROW(session.prefill(prompt(), {.progress = [](const Progress&) -> bool {
                                   throw std::runtime_error("mine");
                                 }}),
                 std::runtime_error);
  }
  session.prefill(prompt());
  EXPECT_EQ(session.n_past(), 60);
}

TEST(Misuse, TokensThatAreNone) {
  const auto model = load_model("needle");
  for (const int32_t id : {-1, 1024, INT32_MAX, INT32_MIN}) {
    Session session(model, {});
    expect_error(ErrorCode::kUsage, {std::to_string(id)}, [&] {
      session.prefill(std::vector<int32_t>{5, id});
    });
    session.prefill(std::vector<int32_t>{5});
    expect_error(ErrorCode::kUsage, {std::to_string(id)}, [&] { session.decode(id); });
    expect_error(ErrorCode::kUsage, {std::to_string(id)}, [&] { model->piece(id); });
    expect_error(ErrorCode::kUsage, {std::to_string(id)},
                 [&] { model->detokenize(std::vector<int32_t>{id}); });
    EXPECT_FALSE(model->is_end_of_generation(id));
  }
}

}  // namespace
}  // namespace snapkv::test
