// SPDX-License-Identifier: MIT
// Calls that cannot be meant: null models and sessions, moved-from objects, sessions that their own
// callbacks call. Each gives kUsage with a message, and the session stays usable.
#include <gtest/gtest.h>

#include "snapkv/chat.h"
#include "snapkv/compress.h"
#include "snapkv/convert.h"
#include "snapkv/engine.h"
#include "snapkv/grammar.h"
#include "snapkv/prefill.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace misuse_tests {

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
  // The optimizer decides which of the two mistakes is named.
  expect_error(ErrorCode::kUsage, {}, [&] { compressor.gather({}, {}, {}, {}); });
  expect([&] { compressor.config(); });
}

// Prefilling a session inside its own callback used to count the prompt twice.
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

PrefillPrompt prompt_of(Session* session, PrefillOptions options = {}) {
  return {.sessions = {session}, .tokens = prompt(), .options = std::move(options)};
}

TEST(Misuse, Prefills) {
  Session session = make_session(), other = make_session();
  expect_error(ErrorCode::kUsage, {"session 0 of 2", "twice"}, [&] {
    Prefill({prompt_of(&session), prompt_of(&session)});
  });
  const std::vector<PrefillPrompt> with_null = {prompt_of(&session), prompt_of(nullptr)};
  expect_error(ErrorCode::kUsage, {"session 0", "null"}, [&] { Prefill::may_share(with_null); });
  Prefill first(prompt_of(&session));
  Prefill prefill = std::move(first);
  const auto expect_moved = [](const auto& call) {
    expect_error(ErrorCode::kUsage, {"moved from"}, call);
  };
  expect_moved([&] { first.step(); });
  expect_moved([&] { first.fraction(); });
  expect_moved([&] { first.take_prefix(); });
  while (!prefill.step()) {
  }
  expect_error(ErrorCode::kUsage, {"prompt 1", "1"}, [&] { prefill.take_prefix(1); });
  expect_error(ErrorCode::kUsage, {"nothing to read"}, [&] { prefill.step(); });
  EXPECT_EQ(session.n_past(), 60);

  Prefill* running = nullptr;
  int n_calls = 0;
  Prefill nested(prompt_of(&other, {.progress = [&](const Progress&) {
    expect_error(ErrorCode::kUsage, {"callback", "step()"}, [&] { running->step(); });
    return ++n_calls > 0;
  }}));
  running = &nested;
  while (!nested.step()) {
  }
  EXPECT_GT(n_calls, 0);
  EXPECT_EQ(other.n_past(), 60);
}

// A prompt continues without the session it was for.
TEST(Misuse, SessionsThatEndBeforeTheirPrompt) {
  auto session = std::make_unique<Session>(make_session());
  Prefill prefill(prompt_of(session.get()));
  prefill.step();
  session.reset();
  while (!prefill.step()) {
  }
  Session other = make_session();
  bool assigned = false;
  other.prefill(prompt(), {.progress = [&](const Progress&) {
                  if (!assigned) other = make_session();
                  assigned = true;
                  return true;
                }});
  EXPECT_EQ(other.n_past(), 0);
  other.prefill(prompt());
  EXPECT_EQ(other.n_past(), 60);
}

TEST(Misuse, GrammarsAndTemplates) {
  const auto vocabulary = std::make_shared<GrammarVocabulary>(std::vector<std::string>{"a", "b"},
                                                              std::vector<int32_t>{1});
  expect_error(ErrorCode::kUsage, {"vocabulary is null"},
               [] { GrammarMatcher(Grammar::json_value(), nullptr); });
  Grammar grammar = Grammar::json_value();
  const Grammar moved = std::move(grammar);
  const auto expect_moved = [](const auto& call) {
    expect_error(ErrorCode::kUsage, {"moved from"}, call);
  };
  expect_moved([&] { grammar.name(); });
  expect_moved([&] { grammar.source(); });
  expect_moved([&] { GrammarMatcher(grammar, vocabulary); });
  for (const int32_t id : {-1, 2}) {
    expect_error(ErrorCode::kUsage, {"end token " + std::to_string(id), "2 tokens"}, [&] {
      GrammarVocabulary({"a", "b"}, {id});
    });
  }
  ChatTemplate chat = ChatTemplate::built_in("chatml");
  const ChatTemplate moved_chat = std::move(chat);
  expect_moved([&] { chat.render("{}"); });
}

TEST(Misuse, NumbersOfModelsAndTypes) {
  const ModelInfo& info = load_model("tiny-f32")->info();
  for (const int64_t il : {int64_t{-1}, info.n_layer, INT64_MAX}) {
    expect_error(ErrorCode::kUsage, {"no layer " + std::to_string(il)},
                 [&] { info.full_rows(il, 100); });
  }
  expect_error(ErrorCode::kUsage, {"Model::info()"}, [] { ModelInfo().full_rows(0, 100); });
  const auto none = static_cast<DType>(77);
  expect_error(ErrorCode::kUsage, {"kv_type", "77"}, [&] { kv_bytes_per_token(info, none); });
  ModelInfo odd = info;
  odd.layers[0].head_dim = 24;
  expect_error(ErrorCode::kUsage, {"q8_0", "24"}, [&] { kv_bytes_per_token(odd, DType::q8_0); });
  expect_error(ErrorCode::kUsage, {"kv_type", "77"},
               [&] { KvPrefix::bytes_for(info, {.kv_type = none}, 10); });
  expect_error(ErrorCode::kUsage, {"type", "77"},
               [&] { convert_model({.from = "a", .to = "b", .type = none}); });
  odd = info;
  odd.n_head_kv = 0;
  expect_error(ErrorCode::kUsage, {"n_head_kv"},
               [&] { resolve_options({.kv_memory = size_t{1} << 30}, odd); });
}

// If a callback throws, the call ends and the session is free again.
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

}  // namespace misuse_tests
}  // namespace snapkv::test
