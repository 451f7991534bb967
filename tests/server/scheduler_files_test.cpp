// SPDX-License-Identifier: MIT
// What the scheduler keeps in files: conversations of slots, and documents that questions follow.
#include <gtest/gtest.h>

#include <filesystem>

#include "server/document.h"
#include "server/request_plan.h"
#include "snapkv/prefill.h"
#include "tests/server/scheduler_support.h"
#include "tests/support/expect_error.h"

namespace snapkv::server {
namespace {

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

}  // namespace
}  // namespace snapkv::server
