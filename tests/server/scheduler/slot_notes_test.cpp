// SPDX-License-Identifier: MIT
// The notes of conversations in files; server_scheduler_test has more that are refused.
#include "server/scheduler/slot_notes.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace snapkv::server {
namespace {

TEST(SlotNotes, ComeBackAsTheyWere) {
  KeptSession kept;
  kept.text = "a question, and its answer";
  kept.prompt_bytes = 11;
  kept.input = {{2, 10}};
  kept.tokens = {1, 2, 3};
  kept.unread = {4};
  KeptSession read;
  read_slot_notes(slot_notes(kept), 5, "a.kv", read);
  EXPECT_EQ(read.text, kept.text);
  EXPECT_EQ(read.prompt_bytes, kept.prompt_bytes);
  ASSERT_EQ(read.input.size(), 1u);
  EXPECT_EQ(read.input[0].begin, 2u);
  EXPECT_EQ(read.input[0].end, 10u);
  EXPECT_EQ(read.tokens, kept.tokens);
  EXPECT_EQ(read.unread, kept.unread);
  test::expect_error(ErrorCode::kBadModel, {"a.kv", "unread"},
                     [&] { read_slot_notes(slot_notes(kept), 4, "a.kv", read); });
  test::expect_error(ErrorCode::kBadModel, {"a.kv", "not saved by a server"},
                     [&] { read_slot_notes("{}", 5, "a.kv", read); });
}

}  // namespace
}  // namespace snapkv::server
