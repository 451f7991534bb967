// SPDX-License-Identifier: MIT
// The scheduler's files: conversations of slots, and documents that questions follow.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/stop_check.h"
#include "chat/document.h"
#include "server/scheduler/request_plan.h"
#include "snapkv/prefill.h"
#include "tests/server/scheduler_support.h"
#include "tests/support/expect_error.h"

namespace snapkv::server {

using namespace chat;

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

TEST(Scheduler, AConversationThatCannotBeSavedGoesOn) {
  Scheduler scheduler(model(), options_of(Reuse::append));
  const Result one = wait_for(*scheduler.submit(request_of(long_text(200))));
  expect_nothing_runs(scheduler);
  const size_t bytes = scheduler.stats().bytes_kept;
  const int64_t id = scheduler.slots().at(0).id;
  test::expect_error(ErrorCode::kRuntime, {"none/such"},
                     [&] { scheduler.save_slot(id, ::testing::TempDir() + "none/such"); });
  ASSERT_EQ(scheduler.slots().size(), 1u);
  EXPECT_EQ(scheduler.slots()[0].id, id);
  EXPECT_EQ(scheduler.stats().bytes_kept, bytes);
  test::expect_error(ErrorCode::kRuntime, {"none/such"},
                     [&] { scheduler.restore_slot(::testing::TempDir() + "none/such"); });
  EXPECT_EQ(scheduler.stats().bytes_kept, bytes);
  const Result two =
      wait_for(*scheduler.submit(request_of(long_text(200) + one.texts[0] + " so?")));
  EXPECT_GT(two.read->n_reused, 500);
}

// Many threads save and restore conversations while other requests are answered.
TEST(Scheduler, SlotsAreSavedWhileOthersAreServed) {
  Scheduler scheduler(model(), options_of(Reuse::append));
  for (int i = 0; i < 3; ++i) {
    wait_for(*scheduler.submit(request_of(std::to_string(i) + long_text(60, i))));
  }
  expect_nothing_runs(scheduler);
  const std::vector<SlotInfo> kept = scheduler.slots();
  ASSERT_EQ(kept.size(), 3u);
  std::vector<std::jthread> threads;
  for (const SlotInfo& slot : kept) {
    threads.emplace_back([&scheduler, id = slot.id] {
      const std::string path = ::testing::TempDir() + "slot-" + std::to_string(id);
      for (int i = 0; i < 3; ++i) {
        scheduler.save_slot(id, path);
        scheduler.erase_slot(scheduler.restore_slot(path));
      }
    });
  }
  const Request other = request_of(long_text(80, 50), 40);
  EXPECT_EQ(wait_for(*scheduler.submit(other)).texts[0], alone(other));
  threads.clear();
  EXPECT_EQ(scheduler.slots().size(), 4u);
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
      R"({"text": "a", "tokens": [], "unread": [4294967297]})",
      R"({"text": "a", "tokens": [], "unread": []})",
      R"({"text": "a", "prompt_bytes": 2, "input": [], "tokens": [], "unread": []})",
      R"({"text": "a", "prompt_bytes": 1, "input": [[0, 2]], "tokens": [], "unread": []})",
      R"({"text": "a", "prompt_bytes": 1, "input": [5], "tokens": [], "unread": []})"};
  for (const std::string& notes : foreign) {
    session.save(path, notes);
    test::expect_error(ErrorCode::kBadModel, {path, "its notes"},
                       [&] { scheduler.restore_slot(path); });
  }
  EXPECT_TRUE(scheduler.slots().empty());
  EXPECT_EQ(scheduler.stats().bytes_kept, 0u);
  session.save(path,
               R"({"text": "a", "prompt_bytes": 1, "input": [], "tokens": [1], "unread": [5]})");
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

TEST(Scheduler, ProgressAndSlotsCountTheDocument) {
  Scheduler scheduler(model(), options_of());
  for (const bool keeps_all : {false, true}) {
    const std::string path = ::testing::TempDir() + "progress.kv";
    Request document = request_of(long_text(300));
    document.keeps_all = keeps_all;
    ASSERT_FALSE(wait_for(*scheduler.make_snapshot(document, path, kNotes)).failure);
    Request question = request_of("and so on, and on, and what is the next of these words?", -1);
    question.document = scheduler.documents().open(path);
    question.reports_progress = true;
    question.ignore_eos = true;
    const int64_t n = std::ssize(document.prompt.tokens) + std::ssize(question.prompt.tokens);
    const auto updates = scheduler.submit(question);
    std::optional<Update> update;
    std::optional<PromptProgress> progress;
    while ((update = updates->next(kPatience)) && !std::holds_alternative<PromptRead>(*update)) {
      if (const auto* each = std::get_if<PromptProgress>(&*update)) progress = *each;
    }
    ASSERT_TRUE(update && progress);
    EXPECT_EQ(progress->n_total, n);
    EXPECT_LT(progress->n_reused, n);
    EXPECT_EQ(progress->n_reused, std::get<PromptRead>(*update).n_reused);
    EXPECT_EQ(scheduler.slots().at(0).n_tokens, n);
    updates->cancel();
    expect_nothing_runs(scheduler);
  }
}

constexpr int kSlowWords = 300;

/// While it exists, a file takes 50 ms for each layer.
class SlowWriting {
  StopCheck pauses_{[] {
    std::this_thread::sleep_for(50ms);
    return false;
  }};
};

/// Begins a snapshot, which SlowWriting makes take much longer than a decode step.
std::shared_ptr<RequestUpdates> begin_snapshot(Scheduler& scheduler, const std::string& path) {
  Request document = request_of(long_text(kSlowWords));
  document.keeps_all = true;
  auto updates = scheduler.make_snapshot(document, path, kNotes);
  std::optional<Update> update;
  do {
    update = updates->next(kPatience);
  } while (update && !std::holds_alternative<PromptRead>(*update));
  EXPECT_TRUE(update);
  return updates;
}

/// The bytes of the snapshot that is being written, or 0.
size_t bytes_being_written(const Scheduler& scheduler) {
  for (const SlotInfo& slot : scheduler.slots()) {
    if (slot.state == SlotInfo::State::writing) return slot.bytes;
  }
  return 0;
}

TEST(Scheduler, AnswersFlowWhileASnapshotIsWritten) {
  const SlowWriting slow;
  const std::string path = ::testing::TempDir() + "slow.kv";
  Scheduler scheduler(model(), options_of());
  Request endless = request_of(long_text(10), -1);
  endless.ignore_eos = true;
  const auto stream = scheduler.submit(endless);
  const auto snapshot = begin_snapshot(scheduler, path);
  const size_t promised = bytes_being_written(scheduler);
  const int64_t n_before = scheduler.stats().n_decode_steps;
  for (int i = 0; i < 10'000 && scheduler.stats().n_decode_steps < n_before + 5; ++i) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_GT(bytes_being_written(scheduler), 0u) << "some rounds later it is not done yet";
  const Request document = request_of(long_text(kSlowWords));
  EXPECT_GT(promised, KvPrefix::bytes_for(model()->info(), document.session,
                                          std::ssize(document.prompt.tokens)));
  stream->cancel();
  wait_for(*stream);
  const bool is_idle = scheduler.idle();
  const bool is_writing = bytes_being_written(scheduler) > 0;
  EXPECT_FALSE(is_idle && is_writing);
  ASSERT_FALSE(wait_for(*snapshot).failure);
  expect_nothing_runs(scheduler);
  Request question = request_of("and so on?");
  question.prompt.tokens = model()->tokenize("and so on?", /*add_special=*/false);
  question.document = scheduler.documents().open(path);
  EXPECT_FALSE(wait_for(*scheduler.submit(question)).failure);
}

TEST(Scheduler, ASnapshotThatCannotBeWrittenFailsAlone) {
  Scheduler scheduler(model(), options_of());
  const Result failed = wait_for(*scheduler.make_snapshot(
      request_of(long_text(100)), ::testing::TempDir() + "none/such.kv", kNotes));
  ASSERT_TRUE(failed.failure);
  EXPECT_NE(failed.failure->message.find("none/such.kv"), std::string::npos);
  EXPECT_FALSE(wait_for(*scheduler.submit(request_of("x"))).failure);
  expect_nothing_runs(scheduler);
  EXPECT_EQ(scheduler.stats().n_failed, 1);
}

TEST(Scheduler, ASchedulerThatEndsLeavesWholeFilesOnly) {
  const SlowWriting slow;
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "ends";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  std::vector<std::shared_ptr<RequestUpdates>> generations;
  {
    Scheduler scheduler(model(), options_of());
    generations.push_back(begin_snapshot(scheduler, folder / "first.kv"));
    generations.push_back(begin_snapshot(scheduler, folder / "second.kv"));
  }
  int n_written = 0;
  for (const auto& updates : generations) {
    const Result result = wait_for(*updates);
    if (result.failure) {
      EXPECT_EQ(result.failure->kind, Failure::Kind::cancelled);
    } else {
      ++n_written;
    }
  }
  int n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_NO_THROW((void)describe_prefix(entry.path())) << entry.path();
    ++n_files;
  }
  EXPECT_EQ(n_files, n_written);
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
    const auto reading = scheduler.submit(request_of(long_text(900)));  // makes the question wait
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
