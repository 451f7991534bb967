// SPDX-License-Identifier: MIT
// Sources of answers in the scheduler: the sentences that a client's texts give to an answer.
#include <gtest/gtest.h>

#include "chat/document.h"
#include "snapkv/prefill.h"
#include "tests/server/scheduler_support.h"

namespace snapkv::server {
namespace {

constexpr const char* kQuestion =
    "Question: What is the secret number of Rome?\nAnswer: The secret number of Rome is";

TEST(SchedulerSources, NameTheSentenceInCharactersOfItsText) {
  std::string document = "Größe und Maß: ";
  for (int i = 0; i < 30; ++i) document += "The cold wind blew from the sea, and the baker slept. ";
  const int64_t begin = std::ssize(document) - 3;  // three letters take two bytes each
  const std::string fact = "The secret number of Rome is 48213.";
  document += fact;
  for (int i = 0; i < 20; ++i) document += " The green field lay beside the river, and it rained.";
  const std::string other = "The lamp was bright. The boat was old and slow.";
  for (const Reuse reuse : {Reuse::off, Reuse::refresh}) {
    Scheduler scheduler(model(), options_of(reuse));
    Request request = request_of(other + "\n\n" + document + "\n\n" + kQuestion, 7);
    request.session.kv.params["kernel_size"] = int64_t{15};
    request.citable = {{3, other}, {5, document}, {6, "this is not in the prompt"}};
    for (int round = 0; round < 2; ++round) {  // the second time the prompt is reused
      const Result result = wait_for(*scheduler.submit(request));
      ASSERT_FALSE(result.failure) << result.failure->message;
      ASSERT_NE(result.texts[0].find("48213"), std::string::npos) << result.texts[0];
      ASSERT_EQ(result.ends[0].sources.size(), 1U);
      const CitedPassage& source = result.ends[0].sources[0];
      EXPECT_EQ(source.index, 5);
      EXPECT_EQ(source.text, fact);
      EXPECT_EQ(source.begin, begin);
      EXPECT_EQ(source.end, begin + std::ssize(fact));
      EXPECT_GT(source.attention, 0.1);
    }
    request.citable.clear();
    EXPECT_TRUE(wait_for(*scheduler.submit(request)).ends[0].sources.empty());
    expect_nothing_runs(scheduler);
  }
}

TEST(SchedulerSources, AreSentencesOfAStoredDocument) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "The cold wind blew from the sea, and the baker slept. ";
  const std::string fact = "The secret number of Rome is 48213.";
  const int64_t begin = std::ssize(text);
  text += fact;
  for (int i = 0; i < 20; ++i) text += " The green field lay beside the river, and it rained.";
  const std::string path = testing::TempDir() + "/cited.kv";
  Scheduler scheduler(model(), options_of(Reuse::refresh));
  Request stored = request_of(text + "\n\n", 0);
  stored.keeps_all = true;
  ASSERT_FALSE(
      wait_for(*scheduler.make_snapshot(stored, path, chat::document_notes({}, "", ""))).failure);
  Request request = request_of(kQuestion, 7);
  request.session.kv.params["kernel_size"] = int64_t{15};
  request.document = scheduler.documents().open(path);
  request.prompt.tokens = model()->tokenize(kQuestion, /*add_bos=*/false);
  request.citable = {
      {kSnapshotText, chat::document_text(*model(), {}, request.document->rows->tokens())}};
  const Result result = wait_for(*scheduler.submit(request));
  ASSERT_FALSE(result.failure) << result.failure->message;
  ASSERT_NE(result.texts[0].find("48213"), std::string::npos) << result.texts[0];
  ASSERT_EQ(result.ends[0].sources.size(), 1U);
  EXPECT_EQ(result.ends[0].sources[0].index, kSnapshotText);
  EXPECT_EQ(result.ends[0].sources[0].text, fact);
  EXPECT_EQ(result.ends[0].sources[0].begin, begin);
}

}  // namespace
}  // namespace snapkv::server
