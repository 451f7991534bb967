// SPDX-License-Identifier: MIT
// The scheduler: every answer is what its request alone would get, whatever else is computed; what
// was read is not read again; memory is promised before it is used and comes back.
#include "server/scheduler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "server/document.h"
#include "server/request_plan.h"
#include "snapkv/prefill.h"
#include "snapkv/text_stream.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv::server {
namespace {

using namespace std::chrono_literals;

/// Everything that came back of one request.
struct Result {
  std::vector<std::string> texts;
  std::vector<AnswerEnd> ends;  // [n], by choice
  std::optional<PromptRead> read;
  std::optional<Failure> failure;
  int n_progress = 0;
};

Result wait_for(Generation& generation, int n = 1) {
  Result result;
  result.texts.resize(static_cast<size_t>(n));
  result.ends.resize(static_cast<size_t>(n));
  for (int n_ended = 0; n_ended < n && !result.failure;) {
    std::optional<Update> update = generation.next(60s);
    if (!update) {
      ADD_FAILURE() << "nothing came for a minute";
      return result;
    }
    if (const auto* read = std::get_if<PromptRead>(&*update)) result.read = *read;
    if (std::get_if<PromptProgress>(&*update) != nullptr) ++result.n_progress;
    if (const auto* part = std::get_if<AnswerPart>(&*update)) {
      result.texts[static_cast<size_t>(part->choice)] += part->text;
    }
    if (const auto* end = std::get_if<AnswerEnd>(&*update)) {
      result.ends[static_cast<size_t>(end->choice)] = *end;
      ++n_ended;
    }
    if (const auto* failure = std::get_if<Failure>(&*update)) result.failure = *failure;
  }
  return result;
}

std::shared_ptr<const Model> model() { return test::load_model("needle"); }

SchedulerOptions options_of(Reuse reuse = Reuse::off) {
  SchedulerOptions options;
  options.session.chunk = 64;
  options.reuse = reuse;
  options.kv_memory = size_t{512} << 20;
  options.prefix_cache = reuse == Reuse::refresh ? size_t{128} << 20 : 0;
  return options;
}

std::string long_text(int n_words, int seed = 0) {
  std::string text;
  for (int i = 0; i < n_words; ++i) text += "word" + std::to_string((i * 7 + seed) % 97) + " ";
  return text;
}

Request request_of(const std::string& text, int64_t max_tokens = 12) {
  Request request;
  request.id = "test";
  request.prompt.chat.text = text;
  request.prompt.tokens = model()->tokenize(request.prompt.chat);
  request.session.kv.budget = 64;
  request.session.kv.window_size = 16;
  request.sampler.temperature = 0;
  request.max_tokens = max_tokens;
  return request;
}

/// The request's answer, of a session that has read its prompt.
std::string written(Session& session, const Request& request) {
  Sampler sampler(request.sampler);
  sampler.accept(request.prompt.tokens);
  TextStream stream(request.stops);
  std::string text;
  for (int64_t i = 0; i < request.max_tokens && !stream.stopped(); ++i) {
    const int32_t id = sampler.sample(session.logits());
    if (model()->is_end_of_generation(id)) break;
    text += stream.push(model()->piece(id));
    session.decode(id);
  }
  return text + stream.finish();
}

/// The same answer from a session of its own.
std::string alone(const Request& request) {
  Session session(model(), request.session);
  session.prefill(request.prompt.tokens);
  return written(session, request);
}

void expect_nothing_runs(const Scheduler& scheduler) {
  for (int i = 0; i < 500 && !scheduler.idle(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(scheduler.idle());
  EXPECT_EQ(scheduler.stats().bytes_running, 0u);
}

Refused::Kind refusal(Scheduler& scheduler, const Request& request,
                      std::string* message = nullptr) {
  try {
    scheduler.submit(request);
  } catch (const Refused& e) {
    if (message != nullptr) *message = e.what();
    return e.kind;
  }
  ADD_FAILURE() << "not refused";
  return {};
}

TEST(Scheduler, AnAnswerIsThatOfASession) {
  Scheduler scheduler(model(), options_of());
  const Request request = request_of(long_text(200));
  const Result result = wait_for(*scheduler.submit(request));
  ASSERT_FALSE(result.failure);
  EXPECT_EQ(result.texts[0], alone(request));
  EXPECT_EQ(result.ends[0].n_generated, 12);
  EXPECT_EQ(result.ends[0].reason, FinishReason::length);
  ASSERT_TRUE(result.read);
  EXPECT_EQ(result.read->n_tokens, std::ssize(request.prompt.tokens));
  EXPECT_EQ(result.read->kv.policy, "snapkv");
  EXPECT_EQ(result.read->kv.tokens_before, result.read->n_tokens);
  EXPECT_EQ(result.read->kv.tokens_kept, 64);
  EXPECT_LT(result.read->kv.bytes_after, result.read->kv.bytes_before);
  EXPECT_TRUE(result.read->kv.positions.empty());
  expect_nothing_runs(scheduler);
  EXPECT_EQ(scheduler.stats().n_generated_tokens, 12);
}

TEST(Scheduler, ManyAtOnceGetTheirOwnAnswers) {
  for (const Reuse reuse : {Reuse::off, Reuse::refresh, Reuse::append}) {
    Scheduler scheduler(model(), options_of(reuse));
    std::vector<Request> requests;
    for (int i = 0; i < 24; ++i) {
      Request request = request_of(long_text(i % 3 == 0 ? 3 : 40 + 9 * i, i), 6 + i);
      if (i % 4 == 1) request.session.kv.name = "streaming-llm";
      if (i % 4 == 2) request.session.kv.name = "full";
      requests.push_back(std::move(request));
    }
    std::vector<std::shared_ptr<Generation>> generations;
    for (const Request& request : requests) generations.push_back(scheduler.submit(request));
    for (size_t i = 0; i < requests.size(); ++i) {
      const Result result = wait_for(*generations[i]);
      ASSERT_FALSE(result.failure) << result.failure->message;
      EXPECT_EQ(result.texts[0], alone(requests[i])) << i;
    }
    expect_nothing_runs(scheduler);
  }
}

TEST(Scheduler, SeveralAnswersToOnePrompt) {
  Scheduler scheduler(model(), options_of());
  Request request = request_of(long_text(120));
  request.sampler.temperature = 1;
  request.sampler.seed = 5;
  request.n = 3;
  const Result result = wait_for(*scheduler.submit(request), 3);
  ASSERT_FALSE(result.failure);
  for (int i = 0; i < 3; ++i) {
    Request one = request;
    one.n = 1;
    one.sampler.seed = 5 + static_cast<uint64_t>(i);
    EXPECT_EQ(result.texts[static_cast<size_t>(i)], alone(one)) << i;
  }
  EXPECT_NE(result.texts[0], result.texts[1]);
}

TEST(Scheduler, StopsAtStopStrings) {
  Scheduler scheduler(model(), options_of());
  Request request = request_of(long_text(60), 30);
  const std::string whole = alone(request);
  request.stops = {whole.substr(whole.size() / 2, 3)};
  const Result result = wait_for(*scheduler.submit(request));
  EXPECT_EQ(result.texts[0], alone(request));
  EXPECT_EQ(result.ends[0].reason, FinishReason::stop);
  EXPECT_EQ(result.ends[0].stop, request.stops[0]);
}

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

TEST(Scheduler, AConversationGoesOnFromItsCompressedCache) {
  Scheduler scheduler(model(), options_of(Reuse::append));
  const Request first = request_of(long_text(300));
  const Result one = wait_for(*scheduler.submit(first));
  const Request second = request_of(long_text(300) + one.texts[0] + " and what then?");
  const Result two = wait_for(*scheduler.submit(second));
  ASSERT_FALSE(two.failure);
  EXPECT_GT(two.read->n_reused, 800);
  EXPECT_LT(two.read->n_tokens - two.read->n_reused, 40);
  ASSERT_EQ(scheduler.slots().size(), 1u);  // the same conversation
  EXPECT_EQ(scheduler.slots()[0].state, SlotInfo::State::kept);

  Request other = second;  // another budget: not this conversation
  other.session.kv.budget = 100;
  EXPECT_EQ(wait_for(*scheduler.submit(other)).read->n_reused, 0);
}

TEST(Scheduler, KeptConversationsCanBeSavedErasedAndRestored) {
  const std::string path = ::testing::TempDir() + "conversation.kv";
  Scheduler scheduler(model(), options_of(Reuse::append));
  const Result one = wait_for(*scheduler.submit(request_of(long_text(200))));
  expect_nothing_runs(scheduler);
  const int64_t id = scheduler.slots().at(0).id;
  scheduler.save_slot(id, path);
  scheduler.erase_slot(id);
  EXPECT_TRUE(scheduler.slots().empty());
  test::expect_error(ErrorCode::kUsage, {"slot " + std::to_string(id)},
                     [&] { scheduler.save_slot(id, path); });
  EXPECT_NE(scheduler.restore_slot(path), id);
  const Result two =
      wait_for(*scheduler.submit(request_of(long_text(200) + one.texts[0] + " so?")));
  EXPECT_GT(two.read->n_reused, 500);
}

TEST(Scheduler, RefusesSlotsOfOtherMakes) {
  const std::string path = ::testing::TempDir() + "foreign.kv";
  Scheduler scheduler(model(), options_of(Reuse::append));
  Session session(model(), request_of("x").session);
  session.prefill(model()->tokenize("a text"));
  const std::string deep(300'000, '[');
  const std::vector<std::string> foreign = {
      "notes",
      "{}",
      deep,
      R"({"text": 1, "tokens": [], "unread": []})",
      R"({"text": "a", "tokens": 5, "unread": []})",
      R"({"text": "a", "tokens": ["b"], "unread": []})",
      R"({"text": "a", "tokens": [-1], "unread": []})",
      R"({"text": "a", "tokens": [], "unread": [4294967297]})"};
  for (const std::string& notes : foreign) {
    session.save(path, notes);
    test::expect_error(ErrorCode::kBadModel, {path, "its notes"},
                       [&] { scheduler.restore_slot(path); });
  }
  EXPECT_TRUE(scheduler.slots().empty());
  EXPECT_EQ(scheduler.stats().bytes_kept, 0u);
  session.save(path, R"({"text": "a", "tokens": [1], "unread": [5]})");
  EXPECT_GT(scheduler.restore_slot(path), 0);
}

const std::string kNotes = document_notes({}, "", "");

TEST(Scheduler, AQuestionGoesOnFromASnapshot) {
  const std::string path = ::testing::TempDir() + "document.kv";
  Scheduler scheduler(model(), options_of());
  const Request document = request_of(long_text(300));
  const Result made = wait_for(*scheduler.make_snapshot(document, path, kNotes));
  ASSERT_FALSE(made.failure);
  EXPECT_EQ(describe_session(path).notes, kNotes);
  Request question = request_of("and so on?");
  question.prompt.tokens = model()->tokenize("and so on?", /*add_special=*/false);
  question.document = scheduler.documents().open(path);
  const Result result = wait_for(*scheduler.submit(question));
  ASSERT_FALSE(result.failure) << result.failure->message;
  EXPECT_EQ(result.read->n_reused, std::ssize(document.prompt.tokens));

  Session session(model(), document.session);
  session.prefill(document.prompt.tokens);
  session.prefill(question.prompt.tokens, {.compress = false});
  EXPECT_EQ(result.texts[0], written(session, question));
}

TEST(Scheduler, AQuestionSelectsFromADocumentThatIsStoredWhole) {
  const std::string path = ::testing::TempDir() + "whole.kv";
  Scheduler scheduler(model(), options_of());
  Request document = request_of(long_text(300));
  document.keeps_all = true;
  ASSERT_FALSE(wait_for(*scheduler.make_snapshot(document, path, kNotes)).failure);
  EXPECT_EQ(describe_prefix(path).tokens, document.prompt.tokens);
  Request question = request_of("and so on, and on, and what is the next of these words?");
  question.prompt.tokens = model()->tokenize(question.prompt.chat.text, /*add_special=*/false);
  question.document = scheduler.documents().open(path);
  const Result result = wait_for(*scheduler.submit(question));
  ASSERT_FALSE(result.failure) << result.failure->message;
  EXPECT_EQ(result.read->n_reused, std::ssize(document.prompt.tokens));
  EXPECT_EQ(result.read->kv.tokens_kept, 64);

  Session session(model(), question.session);
  std::vector<int32_t> all = document.prompt.tokens;
  all.insert(all.end(), question.prompt.tokens.begin(), question.prompt.tokens.end());
  session.prefill(all, {.prefix = KvPrefix::load(model(), path),
                        .n_from_prefix = std::ssize(document.prompt.tokens)});
  EXPECT_EQ(result.texts[0], written(session, question));
  expect_nothing_runs(scheduler);
}

TEST(Scheduler, DocumentsCountAsPartOfThePrompt) {
  const std::string path = ::testing::TempDir() + "counted.kv";
  SchedulerOptions options = options_of();
  options.session.n_ctx = 2000;
  for (const bool keeps_all : {false, true}) {
    Request document = request_of(long_text(300));
    document.keeps_all = keeps_all;
    {
      Scheduler scheduler(model(), options);
      ASSERT_FALSE(wait_for(*scheduler.make_snapshot(document, path, kNotes)).failure);
    }
    Request question = request_of(long_text(10), 4);
    options.session.n_ctx = std::ssize(document.prompt.tokens) + 20;
    Scheduler scheduler(model(), options);
    question.document = scheduler.documents().open(path);
    try {
      scheduler.submit(question);
      ADD_FAILURE() << "more than the context holds";
    } catch (const Refused& e) {
      EXPECT_EQ(e.kind, Refused::Kind::context_exceeded) << e.what();
    }
    const RequestPlan alone = plan_request(*model(), request_of(long_text(10), 4));
    question.session.n_ctx = 2000;
    const RequestPlan plan = plan_request(*model(), question);
    EXPECT_GT(plan.running_bytes + plan.reading_bytes, alone.running_bytes + alone.reading_bytes);
    options.session.n_ctx = 2000;
  }
}

TEST(Scheduler, ALayerThatIsDecodedIsPartOfThePlan) {
  Scheduler scheduler(model(), options_of());
  Request document = request_of(long_text(300));
  document.keeps_all = true;
  size_t plain = 0;
  for (const int level : {0, 3}) {
    const std::string path = ::testing::TempDir() + "level-" + std::to_string(level) + ".kv";
    document.zstd_level = level;
    ASSERT_FALSE(wait_for(*scheduler.make_snapshot(document, path, kNotes)).failure);
    Request question = request_of("and so on?");
    question.document = scheduler.documents().open(path);
    const size_t bytes = plan_request(*model(), question).reading_bytes;
    const size_t layer = question.document->rows->bytes() / model()->info().n_layer;
    if (level == 0) plain = bytes;
    EXPECT_EQ(bytes, plain + (level > 0 ? layer : 0));
  }
}

TEST(Scheduler, ADocumentThatVanishesStaysForTheRequestsThatNamedIt) {
  const std::string path = ::testing::TempDir() + "vanishes.kv";
  Scheduler scheduler(model(), options_of());
  for (const bool keeps_all : {false, true}) {
    Request document = request_of(long_text(300));
    document.keeps_all = keeps_all;
    ASSERT_FALSE(wait_for(*scheduler.make_snapshot(document, path, kNotes)).failure);
    Request question = request_of("and so on?");
    question.document = scheduler.documents().open(path);
    const Result before = wait_for(*scheduler.submit(question));
    const auto reading = scheduler.submit(request_of(long_text(900)));  // the question has to wait
    const auto waiting = scheduler.submit(question);
    std::filesystem::remove(path);
    EXPECT_FALSE(wait_for(*reading).failure);
    const Result after = wait_for(*waiting);
    ASSERT_FALSE(after.failure) << after.failure->message;
    EXPECT_EQ(after.texts, before.texts);
  }
  expect_nothing_runs(scheduler);
}

TEST(Scheduler, AConversationAfterADocumentIsNotTakenForOneWithout) {
  const std::string path = ::testing::TempDir() + "append.kv";
  Scheduler scheduler(model(), options_of(Reuse::append));
  ASSERT_FALSE(
      wait_for(*scheduler.make_snapshot(request_of(long_text(300)), path, kNotes)).failure);
  Request question = request_of(long_text(60, 3));
  question.document = scheduler.documents().open(path);
  const Result answer = wait_for(*scheduler.submit(question));
  ASSERT_FALSE(answer.failure);
  const Request further = request_of(long_text(60, 3) + answer.texts[0] + " so?");
  const Result result = wait_for(*scheduler.submit(further));
  ASSERT_FALSE(result.failure);
  EXPECT_EQ(result.read->n_reused, 0);
  EXPECT_EQ(result.texts[0], alone(further));
}

TEST(Scheduler, AnswersFlowWhileALongPromptIsRead) {
  Scheduler scheduler(model(), options_of());
  Request slow = request_of(long_text(50), 400);
  slow.ignore_eos = true;
  const auto stream = scheduler.submit(slow);
  while (!std::holds_alternative<AnswerPart>(*stream->next(60s))) {
  }
  const auto begin = std::chrono::steady_clock::now();
  Request prompt = request_of(long_text(900), 1);
  prompt.reports_progress = true;
  const auto reading = scheduler.submit(prompt);
  int n_parts = 0;
  std::atomic<bool> is_read = false;
  std::jthread reader([&] {
    wait_for(*reading);
    is_read = true;
  });
  while (true) {
    const std::optional<Update> update = stream->next(60s);
    ASSERT_TRUE(update);
    if (std::holds_alternative<AnswerEnd>(*update)) break;
    if (std::holds_alternative<AnswerPart>(*update) && !is_read) ++n_parts;
  }
  reader.join();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_GT(n_parts, 20);
  EXPECT_LT(scheduler.stats().longest_gap_seconds, seconds / 4);
}

TEST(Scheduler, CancelledRequestsEndAndTheirMemoryComesBack) {
  Scheduler scheduler(model(), options_of());
  const auto reading = scheduler.submit(request_of(long_text(2000)));
  const auto waiting = scheduler.submit(request_of(long_text(100)));
  std::this_thread::sleep_for(20ms);
  waiting->cancel();
  reading->cancel();
  for (const auto& generation : {reading, waiting}) {
    const Result result = wait_for(*generation);
    ASSERT_TRUE(result.failure);
    EXPECT_EQ(result.failure->kind, Failure::Kind::cancelled);
  }
  Request endless = request_of(long_text(50), -1);
  endless.ignore_eos = true;
  const auto answering = scheduler.submit(endless);
  while (!std::holds_alternative<AnswerPart>(*answering->next(60s))) {
  }
  answering->cancel();
  EXPECT_TRUE(wait_for(*answering).failure);
  expect_nothing_runs(scheduler);
  EXPECT_EQ(scheduler.stats().n_cancelled, 3);
}

TEST(Scheduler, ARequestEndsWhenItsTimeIsOver) {
  Scheduler scheduler(model(), options_of());
  Request endless = request_of(long_text(50), -1);
  endless.ignore_eos = true;
  endless.timeout = 0.2;
  const Result result = wait_for(*scheduler.submit(endless));
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, Failure::Kind::timeout);
  expect_nothing_runs(scheduler);
}

TEST(Scheduler, RefusesWhatItCanNeverServe) {
  SchedulerOptions options = options_of();
  options.session.n_ctx = 2000;
  options.kv_memory = size_t{12} << 20;
  options.max_queue = 2;
  Scheduler scheduler(model(), options);
  std::string message;
  EXPECT_EQ(refusal(scheduler, request_of(long_text(1000)), &message),
            Refused::Kind::context_exceeded);
  EXPECT_NE(message.find("2000"), std::string::npos) << message;
  Request many = request_of(long_text(300), 400);
  many.session.kv.name = "full";
  many.n = 20;
  EXPECT_EQ(refusal(scheduler, many, &message), Refused::Kind::never_fits);
  EXPECT_NE(message.find("longest prompt"), std::string::npos) << message;
  Request empty = request_of("x");
  empty.prompt.tokens.clear();
  EXPECT_EQ(refusal(scheduler, empty), Refused::Kind::bad_request);
  Request bad = request_of("x");
  bad.session.kv.budget = 3;  // the window alone has 16
  EXPECT_EQ(refusal(scheduler, bad), Refused::Kind::bad_request);
  scheduler.drain();
  EXPECT_EQ(refusal(scheduler, request_of("x")), Refused::Kind::draining);
}

TEST(Scheduler, WhatDoesNotFitNowWaits) {
  SchedulerOptions options = options_of(Reuse::append);
  options.kv_memory = size_t{16} << 20;
  Scheduler scheduler(model(), options);
  std::vector<std::shared_ptr<Generation>> generations;
  std::vector<Request> requests;
  for (int i = 0; i < 12; ++i) {
    Request request = request_of(long_text(200, i), 40);
    request.session.kv.name = "full";
    requests.push_back(request);
    generations.push_back(scheduler.submit(request));
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    const Result result = wait_for(*generations[i]);
    ASSERT_FALSE(result.failure) << result.failure->message;
    EXPECT_EQ(result.texts[0], alone(requests[i]));
    const SchedulerStats stats = scheduler.stats();
    EXPECT_LE(stats.bytes_running + stats.bytes_kept + stats.bytes_prefixes, stats.bytes_limit);
  }
}

TEST(Scheduler, MoreThanMayWaitAreRefused) {
  SchedulerOptions options = options_of();
  options.max_queue = 3;
  Scheduler scheduler(model(), options);
  int n_refused = 0;
  std::vector<std::shared_ptr<Generation>> generations;
  for (int i = 0; i < 10; ++i) {
    try {
      generations.push_back(scheduler.submit(request_of(long_text(400, i), 1)));
    } catch (const Refused& e) {
      EXPECT_EQ(e.kind, Refused::Kind::queue_full);
      EXPECT_GT(e.retry_after, 0);
      ++n_refused;
    }
  }
  EXPECT_GT(n_refused, 0);
  for (const auto& generation : generations) EXPECT_FALSE(wait_for(*generation).failure);
  EXPECT_EQ(scheduler.stats().n_refused, n_refused);
}

TEST(Scheduler, AnswersFollowAGrammar) {
  Scheduler scheduler(model(), options_of());
  Request request = request_of(long_text(30), 50);
  request.grammar = std::make_shared<const Grammar>(Grammar::parse(R"(root ::= ("ab" | "cd"){3})"));
  const Result result = wait_for(*scheduler.submit(request));
  ASSERT_FALSE(result.failure) << result.failure->message;
  EXPECT_EQ(result.texts[0].size(), 6u) << result.texts[0];
  EXPECT_EQ(result.texts[0].find_first_not_of("abcd"), std::string::npos);
  EXPECT_EQ(result.ends[0].reason, FinishReason::stop);

  std::string many = "root ::= ";
  for (int i = 0; i < 20000; ++i) many += "\"a\"? ";
  request.grammar = std::make_shared<const Grammar>(Grammar::parse(many));
  try {
    scheduler.submit(request);
    ADD_FAILURE() << "no error";
  } catch (const Refused& e) {
    EXPECT_EQ(e.kind, Refused::Kind::bad_request);
    EXPECT_NE(std::string(e.what()).find("too ambiguous"), std::string::npos) << e.what();
  }
}

TEST(Scheduler, ReportsLogprobsAndPositions) {
  Scheduler scheduler(model(), options_of());
  Request request = request_of(long_text(100), 5);
  request.top_logprobs = 2;
  request.kv_report = KvReportLevel::positions;
  const auto generation = scheduler.submit(request);
  int n_tokens = 0;
  while (true) {
    const std::optional<Update> update = generation->next(60s);
    ASSERT_TRUE(update);
    if (std::holds_alternative<AnswerEnd>(*update)) break;
    if (const auto* read = std::get_if<PromptRead>(&*update)) {
      ASSERT_EQ(std::ssize(read->kv.positions), model()->info().n_layer);
      EXPECT_EQ(read->kv.positions[0][0].size(), 64u);
    }
    const auto* part = std::get_if<AnswerPart>(&*update);
    if (part == nullptr) continue;
    for (const AnswerPart::Token& token : part->tokens) {
      ++n_tokens;
      ASSERT_EQ(token.top.size(), 2u);
      EXPECT_EQ(token.chosen.id, token.top[0].id);  // greedy
      EXPECT_DOUBLE_EQ(token.chosen.logprob, token.top[0].logprob);
      EXPECT_LE(token.top[1].logprob, token.top[0].logprob);
      EXPECT_LE(token.top[0].logprob, 0);
    }
  }
  EXPECT_EQ(n_tokens, 5);
}

}  // namespace
}  // namespace snapkv::server
