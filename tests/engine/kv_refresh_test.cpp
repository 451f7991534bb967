// SPDX-License-Identifier: MIT
// SessionOptions::kv_refresh: a later turn sees and selects from every row of the conversation, as
// if nothing had been dropped before, while decoding reads only the kept rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "snapkv/engine.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv {
namespace kv_refresh_tests {

using test::expect_error;

std::vector<int32_t> tokens(int n, uint32_t seed) { return test::generated_ids(n, 1024, seed); }

SessionOptions refreshed(int64_t budget, bool refresh = true) {
  SessionOptions options;
  options.kv.budget = budget;
  options.kv.window_size = 8;
  options.kv.params["kernel_size"] = 3;
  options.kv_refresh = refresh;
  options.kv_type = DType::f32;
  options.chunk = 32;
  return options;
}

std::vector<int32_t> joined(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  std::vector<int32_t> all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

void expect_same_rows(const Session& a, const Session& b) {
  const ModelInfo& info = a.model().info();
  for (int il = 0; il < info.n_layer; ++il) {
    for (int h = 0; h < info.n_head_kv; ++h) {
      EXPECT_EQ(a.cached_positions(il, h), b.cached_positions(il, h)) << il << " " << h;
    }
  }
}

void expect_close(std::span<const float> a, std::span<const float> b, float tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << i;
}

TEST(KvRefresh, ATurnIsReadAsOnePromptWouldBe) {
  const auto model = test::load_model("needle");
  const std::vector<int32_t> first = tokens(150, 1), second = tokens(40, 2);
  Session turns(model, refreshed(32)), whole(model, refreshed(32));
  turns.prefill(first);
  turns.prefill(second);
  whole.prefill(joined(first, second));
  // The same rows see the same rows; only products of other sizes may be rounded differently.
  expect_close(turns.logits(), whole.logits(), 2e-3f);
  expect_same_rows(turns, whole);
  Session append(model, refreshed(32, false));
  append.prefill(first);
  append.prefill(second);
  const auto differs = [&] {
    for (size_t i = 0; i < whole.logits().size(); ++i) {
      if (std::abs(append.logits()[i] - whole.logits()[i]) > 0.05f) return true;
    }
    return false;
  };
  EXPECT_TRUE(differs()) << "a turn over what was kept sees less";
}

TEST(KvRefresh, DecodedTokensAreRememberedAndDecodingReadsOnlyWhatIsKept) {
  const auto model = test::load_model("needle");
  Session session(model, refreshed(32));
  session.prefill(tokens(100, 1));
  for (const int32_t id : tokens(5, 3)) session.decode(id);
  EXPECT_EQ(session.cached_positions(0, 0).size(), 37u);
  session.prefill(tokens(20, 2));
  EXPECT_EQ(session.n_past(), 125);
  for (int il = 0; il < model->info().n_layer; ++il) {
    const std::vector<int32_t> kept = session.cached_positions(il, 0);
    EXPECT_EQ(kept.size(), 32u);
    EXPECT_EQ(kept.back(), 124);
    EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
  }
  // The history has every row of every layer, in the cache's type.
  const ModelInfo& info = model->info();
  const size_t row = 2 * info.head_dim * sizeof(float) + sizeof(int32_t);
  EXPECT_GE(session.stats().history_bytes, 125 * row * info.n_head_kv * info.n_layer);
  session.reset();
  EXPECT_EQ(session.stats().history_bytes, 0u);
}

TEST(KvRefresh, SelectsFromRowsThatAnEarlierTurnDropped) {
  const auto model = test::load_model("needle");
  const std::string filler = "The sailor bought a loaf of bread. The baker went to the well. ";
  std::string text;
  for (int i = 0; i < 20; ++i) text += filler;
  text += "\nThe secret number of Rome is 48213.\n";
  for (int i = 0; i < 20; ++i) text += filler;
  text += "\nThe secret number of Doha is 70952.\n";
  for (int i = 0; i < 20; ++i) text += filler;
  const auto ask = [](const std::string& name) {
    return "\nQuestion: What is the secret number of " + name + "?\nAnswer: The secret number of " +
           name + " is";
  };
  SessionOptions options = refreshed(64);
  options.kv.window_size = 16;
  options.kv.params["kernel_size"] = 15;
  options.kv_type = DType::f16;
  Session session(model, options);
  const auto answer = [&] {
    std::string out;
    for (int i = 0; i < 6; ++i) {
      const auto logits = session.logits();
      const auto id =
          static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
      out += model->piece(id);
      session.decode(id);
    }
    return out;
  };
  session.prefill(model->tokenize(text + ask("Rome")));
  EXPECT_EQ(answer(), " 48213");
  session.prefill(model->tokenize(".\n" + ask("Doha"), false));
  EXPECT_EQ(answer(), " 70952");
  session.prefill(model->tokenize(".\n" + ask("Rome"), false));
  EXPECT_EQ(answer(), " 48213");
}

TEST(KvRefresh, FilesHoldTheSameRowsAsMemory) {
  const auto model = test::load_model("needle");
  SessionOptions spilled = refreshed(32);
  spilled.spill_dir = ::testing::TempDir();
  Session file(model, spilled), memory(model, refreshed(32));
  for (Session* session : {&file, &memory}) {
    session->prefill(tokens(100, 1));
    for (const int32_t id : tokens(3, 3)) session->decode(id);
    session->prefill(tokens(30, 2));
    session->prefill(tokens(1200, 4));  // the file grows
    session->prefill(tokens(10, 5));
  }
  EXPECT_TRUE(std::equal(file.logits().begin(), file.logits().end(), memory.logits().begin()));
  expect_same_rows(file, memory);
}

TEST(KvRefresh, ACancelledTurnLeavesTheConversationAsItWas) {
  const auto model = test::load_model("needle");
  Session session(model, refreshed(32)), undisturbed(model, refreshed(32));
  for (Session* s : {&session, &undisturbed}) {
    s->prefill(tokens(100, 1));
    for (const int32_t id : tokens(3, 3)) s->decode(id);
  }
  for (const double fraction : {0.1, 0.5, 0.9}) {
    const ProgressFn stop = [&](const Progress& p) { return p.fraction < fraction; };
    expect_error(ErrorCode::kCancelled, {},
                 [&] { session.prefill(tokens(60, 7), {.progress = stop}); });
  }
  for (Session* s : {&session, &undisturbed}) s->prefill(tokens(20, 2));
  EXPECT_TRUE(
      std::equal(session.logits().begin(), session.logits().end(), undisturbed.logits().begin()));
  expect_same_rows(session, undisturbed);
}

TEST(KvRefresh, RemembersWhatTheDecodeLimitDrops) {
  const auto model = test::load_model("needle");
  SessionOptions limited = refreshed(32);
  limited.kv_decode_limit = 40;
  Session session(model, limited);
  session.prefill(tokens(100, 1));
  for (const int32_t id : tokens(30, 3)) session.decode(id);
  EXPECT_GT(session.stats().n_recompressed, 0);
  session.prefill(tokens(10, 2), {.compress = false});
  std::vector<int32_t> all(140);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(session.cached_positions(0, 0), all) << "nothing of the conversation is lost";
}

TEST(KvRefresh, TheDecodeLimitChoosesFromAllRows) {
  const auto model = test::load_model("needle");
  const std::vector<int32_t> prompt = tokens(150, 1), answer = tokens(9, 2);
  const auto first_layer = [](const Session& session) {
    std::vector<std::vector<int32_t>> rows;
    for (int h = 0; h < session.model().info().n_head_kv; ++h) {
      rows.push_back(session.cached_positions(0, h));
    }
    return rows;
  };
  for (const DType type : {DType::f32, DType::q8_0}) {
    for (const std::string& dir : {std::string(), std::string(::testing::TempDir())}) {
      SessionOptions options = refreshed(32);
      options.kv_type = type;
      options.spill_dir = dir;
      // The first layer's queries do not depend on what attention sees, so that it keeps the rows
      // of a prompt that ends here.
      Session whole(model, options);
      whole.prefill(joined(prompt, {answer.begin(), answer.begin() + 8}));
      std::vector<std::vector<int32_t>> expected = first_layer(whole);
      for (auto& rows : expected) rows.push_back(158);
      options.kv_decode_limit = 40;
      Session session(model, options);
      session.prefill(prompt);
      for (const int32_t id : answer) session.decode(id);
      EXPECT_EQ(session.stats().n_recompressed, 1);
      EXPECT_EQ(first_layer(session), expected);
      options.kv_refresh = false;
      Session append(model, options);
      append.prefill(prompt);
      for (const int32_t id : answer) append.decode(id);
      EXPECT_NE(first_layer(append), expected) << "what the prompt's end left out is gone";
    }
  }
}

TEST(KvRefresh, AnAnswerFindsWhatItsOwnWordsAskFor) {
  const auto model = test::load_model("needle");
  const std::string filler = "The sailor bought a loaf of bread. The baker went to the well. ";
  std::string text;
  for (const char* fact :
       {"The secret number of Rome is 48213.", "The secret number of Doha is 70952."}) {
    for (int i = 0; i < 20; ++i) text += filler;
    text += std::string("\n") + fact + "\n";
  }
  for (int i = 0; i < 20; ++i) text += filler;
  text += "\nQuestion: What is the secret number of Rome?\nAnswer: The secret number of Rome is";
  const std::vector<int32_t> more = model->tokenize(
      " 48213.\nQuestion: What is the secret number of Doha?\nAnswer: The secret number of Doha is",
      false, false);
  const auto answer = [&](bool refresh) {
    SessionOptions options = refreshed(64, refresh);
    options.kv.window_size = 16;
    options.kv.params["kernel_size"] = 15;
    options.kv_decode_limit = 64 + std::ssize(more);
    Session session(model, options);
    session.prefill(model->tokenize(text));
    for (const int32_t id : more) session.decode(id);
    std::vector<int32_t> ids;
    for (int i = 0; i < 6; ++i) {
      const auto logits = session.logits();
      ids.push_back(
          static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
      session.decode(ids.back());
    }
    return model->detokenize(ids);
  };
  EXPECT_EQ(answer(false).find("70952"), std::string::npos);
  EXPECT_NE(answer(true).find("70952"), std::string::npos) << answer(true);
}

TEST(KvRefresh, EveryPolicyAndManyConfigurationsAtOnce) {
  const auto model = test::load_model("needle");
  for (const std::string& policy : policy_names()) {
    SCOPED_TRACE(policy);
    SessionOptions options = refreshed(40);
    options.kv = {.name = policy, .budget = 40, .window_size = 8};
    if (policy_info(policy).shares_layers) {
      expect_error(ErrorCode::kUsage, {"kv_refresh", policy, "once"},
                   [&] { Session(model, options); });
      continue;
    }
    Session one(model, options), other(model, refreshed(24));
    Session* both[] = {&one, &other};
    prefill_many(both, tokens(90, 1));
    one.prefill(tokens(30, 2));
    EXPECT_EQ(one.n_past(), 120);
    if (policy == "full") {
      EXPECT_EQ(one.stats().history_bytes, 0u) << "the cache is complete";
    } else {
      EXPECT_GT(one.stats().history_bytes, 0u);
    }
  }
}

TEST(KvRefresh, IsPartOfThePlan) {
  const auto model = test::load_model("needle");
  SessionOptions options = refreshed(32);
  const MemoryPlan with = plan_memory(model->info(), options, 4000);
  options.kv_refresh = false;
  const MemoryPlan without = plan_memory(model->info(), options, 4000);
  EXPECT_EQ(without.kv_history, 0u);
  EXPECT_GE(with.kv_history, with.kv_full);
  EXPECT_EQ(with.total() - with.kv_history, without.total());
  options.kv_refresh = true;
  options.spill_dir = ::testing::TempDir();
  EXPECT_LT(plan_memory(model->info(), options, 4000).kv_history, with.kv_history / 2);
  options.spill_dir.clear();
  options.memory_limit = without.total() - without.weights;
  Session session(model, options);
  expect_error(ErrorCode::kDoesNotFit, {"KV kept for later turns"},
               [&] { session.prefill(tokens(4000, 1)); });
}

}  // namespace kv_refresh_tests
}  // namespace snapkv
