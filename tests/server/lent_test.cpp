// SPDX-License-Identifier: MIT
// Caches in memory that a server is lent: documents, and prompts that another server has read.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "chat/document.h"
#include "server/read_prompt.h"
#include "snapkv/lent_file.h"
#include "snapkv/prefill.h"
#include "tests/server/scheduler_support.h"
#include "tests/support/expect_error.h"

namespace snapkv::server {
namespace {

/// A file's bytes where a server may read them, and how long it does.
struct LentBytes {
  explicit LentBytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    const std::vector<char> read((std::istreambuf_iterator<char>(in)), {});
    memory.resize(read.size() + 64);
    const size_t begin = -reinterpret_cast<uintptr_t>(memory.data()) % 64;
    bytes = std::span(memory).subspan(begin, read.size());
    std::memcpy(bytes.data(), read.data(), read.size());
  }
  LentFile file(const std::string& name = "lent") const {
    return {.name = name, .bytes = bytes, .owner = owner};
  }

  std::vector<std::byte> memory;
  std::span<std::byte> bytes;
  std::shared_ptr<int> owner = std::make_shared<int>(0);
};

/// A prompt as another scheduler has read and saved it.
LentBytes read_elsewhere(Request request) {
  const std::string path = ::testing::TempDir() + "elsewhere.prompt";
  Scheduler other(model(), options_of());
  request.max_tokens = 0;
  request.n = 1;
  const std::string notes = prompt_notes(request.prompt.tokens);
  const Result saved = wait_for(*other.make_snapshot(std::move(request), path, notes));
  EXPECT_FALSE(saved.failure) << saved.failure->message;
  return LentBytes(path);
}

TEST(LentPrompt, IsAnsweredAsIfItHadBeenReadHere) {
  Request request = request_of(long_text(200));
  const std::string expected = alone(request);
  const LentBytes lent = read_elsewhere(request);
  Scheduler scheduler(model(), options_of());
  scheduler.documents().lend("one", lent.file());
  request.read = scheduler.documents().lent_prompt("one");
  ASSERT_NE(request.read, nullptr);
  for (const int n : {1, 3}) {
    request.n = n;
    const Result result = wait_for(*scheduler.submit(request), n);
    ASSERT_FALSE(result.failure) << result.failure->message;
    EXPECT_EQ(result.texts, std::vector<std::string>(n, expected));
    EXPECT_EQ(result.read->n_reused, std::ssize(request.prompt.tokens));
    EXPECT_EQ(result.ends[0].n_generated, request.max_tokens);
  }
  EXPECT_EQ(scheduler.stats().n_prompt_tokens, 0);
  expect_nothing_runs(scheduler);
}

TEST(LentPrompt, TakesTurnsWithPromptsThatAreReadHere) {
  const Request here = request_of(long_text(150, 3));
  Request there = request_of(long_text(200));
  const LentBytes lent = read_elsewhere(there);
  const std::string expected_here = alone(here), expected_there = alone(there);
  Scheduler scheduler(model(), options_of());
  scheduler.documents().lend("one", lent.file());
  there.read = scheduler.documents().lent_prompt("one");
  std::vector<std::shared_ptr<RequestUpdates>> updates;
  for (int i = 0; i < 6; ++i) updates.push_back(scheduler.submit(i % 2 == 0 ? here : there));
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(wait_for(*updates[i]).texts[0], i % 2 == 0 ? expected_here : expected_there) << i;
  }
  expect_nothing_runs(scheduler);
}

TEST(LentPrompt, OfAnotherPromptOrOtherOptionsIsRefused) {
  const Request request = request_of(long_text(100));
  const LentBytes lent = read_elsewhere(request);
  Scheduler scheduler(model(), options_of());
  scheduler.documents().lend("one", lent.file());
  Request longer = request_of(long_text(101)), other = request;
  longer.read = other.read = scheduler.documents().lent_prompt("one");
  other.prompt.tokens[5] = other.prompt.tokens[6];
  std::string message;
  EXPECT_EQ(refusal(scheduler, longer, &message), Refused::Kind::bad_request);
  EXPECT_NE(message.find("tokens, and the request's prompt"), std::string::npos) << message;
  EXPECT_EQ(refusal(scheduler, other, &message), Refused::Kind::bad_request);
  EXPECT_NE(message.find("another prompt"), std::string::npos) << message;
  Request smaller = request;
  smaller.read = longer.read;
  smaller.session.kv.budget = 32;
  const Result result = wait_for(*scheduler.submit(smaller));
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, Failure::Kind::bad_request);
  EXPECT_NE(result.failure->message.find("budget"), std::string::npos) << result.failure->message;
  expect_nothing_runs(scheduler);
}

TEST(LentPrompt, IsGivenBackWhenNobodyUsesIt) {
  Request request = request_of(long_text(100));
  LentBytes lent = read_elsewhere(request);
  const std::weak_ptr<int> owner = lent.owner;
  Scheduler scheduler(model(), options_of());
  scheduler.documents().lend("one", lent.file());
  lent.owner.reset();
  request.read = scheduler.documents().lent_prompt("one");
  EXPECT_TRUE(scheduler.documents().withdraw("one"));
  EXPECT_FALSE(scheduler.documents().withdraw("one"));
  EXPECT_EQ(scheduler.documents().lent_prompt("one"), nullptr);
  EXPECT_FALSE(owner.expired());  // the request has it
  const std::string expected = alone(request);
  EXPECT_EQ(wait_for(*scheduler.submit(std::move(request))).texts[0], expected);
  expect_nothing_runs(scheduler);
  request = {};
  for (int i = 0; i < 500 && !owner.expired(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(owner.expired());
}

TEST(LentDocument, IsReadWhereItIs) {
  const std::string path = ::testing::TempDir() + "lent.kv";
  chat::DocumentForm form;
  const auto notes = chat::document_notes(form, "", "");
  Request request = request_of(" so?");
  request.prompt.tokens = model()->tokenize(" so?", false);
  Scheduler scheduler(model(), options_of());
  {
    Request whole = request_of(long_text(200));
    whole.keeps_all = true;
    ASSERT_FALSE(wait_for(*scheduler.make_snapshot(std::move(whole), path, notes)).failure);
  }
  request.document = scheduler.documents().open(path);
  const std::string expected = wait_for(*scheduler.submit(request)).texts[0];
  const LentBytes lent(path);
  std::filesystem::remove(path);
  scheduler.documents().lend("book", lent.file());
  request.document = scheduler.documents().lent_document("book");
  ASSERT_NE(request.document, nullptr);
  EXPECT_EQ(wait_for(*scheduler.submit(request)).texts[0], expected);
}

TEST(LentDocument, ThatIsDamagedIsNotKept) {
  LentBytes lent = read_elsewhere(request_of(long_text(50)));
  Scheduler scheduler(model(), options_of());
  DocumentStore& documents = scheduler.documents();
  LentFile cut = lent.file("cut");
  cut.bytes = lent.bytes.first(lent.bytes.size() - 1);
  test::expect_error(ErrorCode::kBadModel, {"cut"}, [&] { documents.lend("cut", cut); });
  cut.bytes = lent.bytes.subspan(1);
  test::expect_error(ErrorCode::kUsage, {"multiple of 64"}, [&] { documents.lend("cut", cut); });
  cut.bytes = {};
  test::expect_error(ErrorCode::kBadModel, {"cut"}, [&] { documents.lend("cut", cut); });
  lent.bytes[lent.bytes.size() / 2] ^= std::byte{1};
  test::expect_error(ErrorCode::kBadModel, {"lent"}, [&] { documents.lend("x", lent.file()); });
  EXPECT_EQ(documents.lent_prompt("cut"), nullptr);
  EXPECT_EQ(documents.lent_prompt("x"), nullptr);
}

}  // namespace
}  // namespace snapkv::server
