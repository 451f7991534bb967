// SPDX-License-Identifier: MIT
// Models some of whose layers have no rows but a state that can be cut only where it was set aside:
// prompts that begin alike, files, batches. family_test.cpp has what every family must do.
#include <gtest/gtest.h>

#include <filesystem>

#include "snapkv/prefill.h"
#include "tests/engine/session_support.h"
#include "tests/support/expect_error.h"
#include "tests/support/family_models.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace hybrid_tests {

constexpr int32_t kEndOfMessage = 2;  // </s>

std::vector<int32_t> text(int64_t n, uint32_t seed) { return generated_ids(n, kFamilyVocab, seed); }

std::vector<int32_t> joined(std::vector<int32_t> a, std::span<const int32_t> b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

PrefillPrompt prompt_for(Session& session, std::vector<int32_t> tokens) {
  PrefillPrompt prompt;
  prompt.sessions = {&session};
  prompt.tokens = std::move(tokens);
  return prompt;
}

void read_all(Prefill& prefill) {
  while (!prefill.step()) {
  }
}

/// What a session keeps of a prompt for those that begin alike.
std::shared_ptr<const KvPrefix> read_prefix(Session& session, std::vector<int32_t> tokens) {
  PrefillPrompt prompt = prompt_for(session, std::move(tokens));
  prompt.makes_prefix = true;
  Prefill prefill(std::move(prompt));
  read_all(prefill);
  return prefill.take_prefix();
}

/// A family's model with such layers.
class HybridTest : public testing::TestWithParam<const char*> {
 protected:
  static std::shared_ptr<const Model> hybrid() { return load_model(GetParam()); }

  static std::shared_ptr<const KvPrefix> prefix_of(std::vector<int32_t> tokens, int64_t chunk = 512,
                                                   std::shared_ptr<const KvPrefix> old = nullptr,
                                                   int64_t n_old = 0) {
    SessionOptions options = full_options();
    options.chunk = chunk;
    Session session(hybrid(), options);
    PrefillPrompt prompt = prompt_for(session, std::move(tokens));
    prompt.makes_prefix = true;
    prompt.options.prefix = std::move(old);
    prompt.options.n_from_prefix = n_old;
    Prefill prefill(std::move(prompt));
    read_all(prefill);
    return prefill.take_prefix();
  }

  /// The logits of a prompt that is read from the beginning.
  static std::vector<float> logits_of(const std::vector<int32_t>& tokens) {
    Session session(hybrid(), full_options());
    session.prefill(tokens);
    return copy(session.logits());
  }

  static void expect_goes_on(const std::shared_ptr<const KvPrefix>& prefix, int64_t n,
                             const std::vector<int32_t>& tokens) {
    Session session(hybrid(), full_options());
    session.prefill(tokens, {.prefix = prefix, .n_from_prefix = n});
    EXPECT_LT(max_difference(session.logits(), logits_of(tokens)), 3e-4) << "from token " << n;
  }
};

TEST_P(HybridTest, APromptGoesOnFromTheLastMark) {
  const std::vector<int32_t> first = text(300, 1);
  for (const int64_t chunk : {512, 100, 236, 7}) {
    SCOPED_TRACE(chunk);
    const auto prefix = prefix_of(first, chunk);
    EXPECT_EQ(prefix->last_cut(1000), 300);
    EXPECT_EQ(prefix->last_cut(299), 236);  // 64 tokens before the end
    EXPECT_EQ(prefix->last_cut(235), 0);
    expect_goes_on(prefix, 300, joined(first, text(50, 2)));
    expect_goes_on(prefix, 236, joined({first.begin(), first.begin() + 240}, text(50, 2)));
  }
  Session session(hybrid(), full_options());
  expect_error(ErrorCode::kUsage, {"n_from_prefix is 250", "after 236 tokens"}, [&] {
    session.prefill(joined(first, text(50, 2)), {.prefix = prefix_of(first), .n_from_prefix = 250});
  });
}

TEST_P(HybridTest, MarksAreSetAtTheEndsOfMessagesAndInLongTexts) {
  std::vector<int32_t> messages = text(600, 1);
  for (const int64_t end : {150, 190, 400}) messages[end - 1] = kEndOfMessage;
  const auto prefix = prefix_of(messages);
  EXPECT_EQ(prefix->last_cut(535), 400);
  EXPECT_EQ(prefix->last_cut(399), 190);
  EXPECT_EQ(prefix->last_cut(189), 0) << "150 is too close to the next one";
  expect_goes_on(prefix, 400, joined({messages.begin(), messages.begin() + 400}, text(90, 3)));
  const auto plain = prefix_of(text(4000, 4));
  EXPECT_EQ(plain->last_cut(3000), 4000 - 64 - 2048);
}

// The next turn's prefix shares what it can, and copies the rest with its marks.
TEST_P(HybridTest, APrefixGrowsWithAConversation) {
  const std::vector<int32_t> first = text(400, 1);
  const std::vector<int32_t> second = joined(first, text(200, 2));
  const auto grown = prefix_of(second, 512, prefix_of(first), 400);
  EXPECT_EQ(grown->last_cut(599), 536);
  EXPECT_EQ(grown->last_cut(535), 400);
  EXPECT_EQ(grown->last_cut(399), 336);
  expect_goes_on(grown, 336, joined({first.begin(), first.begin() + 350}, text(30, 3)));
  // less than seven eighths of the old rows are used, so these are copied
  std::vector<int32_t> other = text(400, 1);
  other[149] = kEndOfMessage;
  const auto old = prefix_of(other);
  ASSERT_EQ(old->last_cut(300), 150);
  const std::vector<int32_t> edited = joined({other.begin(), other.begin() + 150}, text(300, 5));
  const auto copied = prefix_of(edited, 512, old, 150);
  EXPECT_EQ(copied->last_cut(200), 150);
  expect_goes_on(copied, 150, joined({other.begin(), other.begin() + 160}, text(40, 6)));
  EXPECT_LE(copied->bytes(), KvPrefix::bytes_for(hybrid()->info(), full_options(), 450));
}

TEST_P(HybridTest, APrefixComesBackFromAFile) {
  const TempDir dir;
  const std::string path = dir / "prefix.kv";
  std::vector<int32_t> tokens = text(400, 1);
  tokens[199] = kEndOfMessage;
  prefix_of(tokens)->save(path, DType::f32);
  const auto loaded = KvPrefix::load(hybrid(), path);
  EXPECT_EQ(loaded->last_cut(1000), 400);
  EXPECT_EQ(loaded->last_cut(300), 200);
  expect_goes_on(loaded, 400, joined(tokens, text(40, 2)));
  expect_goes_on(loaded, 200, joined({tokens.begin(), tokens.begin() + 210}, text(40, 2)));
}

TEST_P(HybridTest, ASessionComesBackFromAFile) {
  const TempDir dir;
  expect_sessions_come_back(hybrid(), 150, dir / "session.kv");
}

// Prompts of one chunk and sequences of one step do not see each other's states.
TEST_P(HybridTest, SequencesAreComputedTogether) {
  const std::vector<int64_t> lengths = {1, 40, 2, 33};
  std::vector<std::unique_ptr<Session>> together, alone;
  std::vector<PrefillPrompt> prompts;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const std::vector<int32_t> tokens = text(lengths[i], 10 + static_cast<uint32_t>(i));
    alone.push_back(std::make_unique<Session>(hybrid(), full_options()));
    alone.back()->prefill(tokens);
    together.push_back(std::make_unique<Session>(hybrid(), full_options()));
    prompts.push_back(prompt_for(*together.back(), tokens));
  }
  Prefill prefill(std::move(prompts));
  read_all(prefill);
  std::vector<Session*> batch;
  for (size_t i = 0; i < lengths.size(); ++i) {
    batch.push_back(together[i].get());
    EXPECT_LT(max_difference(together[i]->logits(), alone[i]->logits()), 3e-4) << i;
  }
  for (int step = 0; step < 10; ++step) {
    const std::vector<int32_t> ids = text(std::ssize(batch), 50 + step);
    decode_batch(batch, ids);
    for (size_t i = 0; i < batch.size(); ++i) {
      alone[i]->decode(ids[i]);
      EXPECT_LT(max_difference(together[i]->logits(), alone[i]->logits()), 3e-4) << i;
    }
  }
}

// One prompt for several policies: each session has the state of its own.
TEST_P(HybridTest, SessionsThatShareAPromptGoOnAlone) {
  Session full(hybrid(), full_options()), snapkv(hybrid(), snapkv_options(60));
  Session* const both[] = {&full, &snapkv};
  prefill_many(both, text(150, 1));
  Session alone(hybrid(), full_options());
  alone.prefill(text(150, 1));
  for (const int32_t id : text(10, 2)) {
    full.decode(id);
    alone.decode(id);
    snapkv.decode(id + 1);
  }
  EXPECT_EQ(copy(full.logits()), copy(alone.logits()));
}

TEST_P(HybridTest, ACancelledTurnLeavesTheSessionAsItWas) {
  Session session(hybrid(), full_options()), other(hybrid(), full_options());
  for (Session* s : {&session, &other}) {
    s->prefill(text(50, 1));
    s->decode(7);
  }
  for (const int stop_at : {1, 3}) {
    int n = 0;
    expect_error(ErrorCode::kCancelled, {}, [&] {
      session.prefill(text(20, 2), {.progress = [&](const Progress&) { return ++n < stop_at; }});
    });
  }
  for (Session* s : {&session, &other}) s->prefill(text(20, 3));
  EXPECT_EQ(copy(session.logits()), copy(other.logits()));
}

// With kv_refresh a turn sees every row again, and states go on from the turn before.
TEST_P(HybridTest, ATurnIsReadAsOnePromptWouldBe) {
  SessionOptions options = snapkv_options(60);
  options.kv_refresh = true;
  Session turns(hybrid(), options), whole(hybrid(), options);
  const std::vector<int32_t> first = text(150, 1), second = text(40, 2);
  turns.prefill(first);
  turns.prefill(second);
  whole.prefill(joined(first, second));
  EXPECT_LT(max_difference(turns.logits(), whole.logits()), 3e-4);
  EXPECT_EQ(turns.stats().kv_bytes_used, whole.stats().kv_bytes_used);
  for (const int32_t id : text(10, 3)) {
    turns.decode(id);
    whole.decode(id);
    EXPECT_LT(max_difference(turns.logits(), whole.logits()), 3e-4);
  }
}

// Where a layer has rows beside its state, decoding chooses from the rows again and the state
// stays.
TEST_P(HybridTest, RowsAreChosenAgainWhileDecoding) {
  SessionOptions options = snapkv_options(40);
  options.kv_decode_limit = 60;
  Session limited(hybrid(), options), full(hybrid(), full_options());
  limited.prefill(text(150, 1));
  full.prefill(text(150, 1));
  for (const int32_t id : text(90, 2)) {
    limited.decode(id);
    full.decode(id);
  }
  EXPECT_GE(limited.stats().n_recompressed, 3);
  const ModelInfo& info = hybrid()->info();
  size_t most = 0;
  for (int il = 0; il < info.n_layer; ++il) {
    const int64_t n_rows = info.layers[il].compressed ? 60 : 240;
    most += kv_layer_bytes(info, options.kv_type, il, n_rows);
  }
  EXPECT_LE(limited.stats().kv_bytes_used, most);
  EXPECT_LT(limited.stats().kv_bytes_used, full.stats().kv_bytes_used);
}

INSTANTIATE_TEST_SUITE_P(Models, HybridTest,
                         testing::Values("lfm2", "qwen35-draft", "nemotron_h", "falcon-h1",
                                         "kimi-linear-attn", "jamba-moe", "plamo2"),
                         [](const auto& param) { return std::string(param.param).substr(0, 4); });

TEST(HybridInfo, SaysWhichLayersHaveNoRows) {
  const auto model = load_model("lfm2");
  const ModelInfo& info = model->info();
  ASSERT_EQ(info.n_layer, 5);
  for (int il = 0; il < 5; ++il) {
    const bool attends = il == 1 || il == 3;
    EXPECT_EQ(info.layers[il].attention, attends ? AttentionKind::full : AttentionKind::none);
    EXPECT_EQ(info.layers[il].compressed, attends);
    EXPECT_EQ(info.layers[il].n_head_kv, attends ? 2 : 0);
    EXPECT_EQ(info.full_rows(il, 100), attends ? 100 : 0);
  }
  EXPECT_EQ(kv_layer_bytes(info, DType::f16, 0, 1), kv_layer_bytes(info, DType::f16, 0, 1000));
  EXPECT_EQ(kv_bytes_per_token(info, DType::f32), 2 * kv_layer_bytes(info, DType::f32, 1, 1));
  Session session(model, full_options());
  session.prefill(text(10, 1));
  expect_error(ErrorCode::kUsage, {"no layer 0"}, [&] { session.cached_positions(0, 0); });
}

/// Models in which no layer has rows.
class WithoutRowsTest : public testing::TestWithParam<const char*> {
 protected:
  std::shared_ptr<const Model> model_ = load_model(GetParam());
};

TEST_P(WithoutRowsTest, NoPolicyHasAnEffect) {
  EXPECT_EQ(model_->info().n_head, 0);
  EXPECT_EQ(model_->info().n_compressed(), 0);
  EXPECT_EQ(kv_bytes_per_token(model_->info(), DType::f16), 0u);
  Session full(model_, full_options());
  full.prefill(text(150, 1));
  full.decode(5);
  for (const std::string& policy : policy_names()) {
    SCOPED_TRACE(policy);
    SessionOptions options = full_options();
    options.kv = {.name = policy, .budget = 40};
    options.kv_memory = policy == "full" ? 0 : 1;
    Session session(model_, options);
    session.prefill(text(150, 1));
    session.decode(5);
    EXPECT_EQ(copy(session.logits()), copy(full.logits()));
    EXPECT_EQ(session.stats().kv_bytes, full.stats().kv_bytes);
  }
}

TEST_P(WithoutRowsTest, TheStateIsAsLargeAfterAnyNumberOfTokens) {
  Session few(model_, full_options()), many(model_, full_options());
  few.prefill(text(3, 1));
  many.prefill(text(900, 1));
  EXPECT_GT(few.stats().kv_bytes, 0u);
  EXPECT_EQ(few.stats().kv_bytes, many.stats().kv_bytes);
  EXPECT_EQ(many.stats().kv_bytes, many.stats().kv_bytes_full);
}

TEST_P(WithoutRowsTest, PromptsGoOnFromPrefixesAndFiles) {
  const std::vector<int32_t> first = text(300, 1), all = joined(first, text(50, 2));
  Session whole(model_, full_options());
  whole.prefill(all);

  Session reader(model_, full_options());
  const auto prefix = read_prefix(reader, first);
  EXPECT_EQ(prefix->last_cut(1000), 300);
  EXPECT_EQ(prefix->last_cut(299), 236);
  for (const int64_t n : {236, 300}) {
    Session session(model_, full_options());
    session.prefill(all, {.prefix = prefix, .n_from_prefix = n});
    EXPECT_LT(max_difference(session.logits(), whole.logits()), 3e-4) << "from token " << n;
  }

  const TempDir folder;
  reader.save(folder / "session");
  Session loaded(model_, full_options());
  loaded.load(folder / "session");
  loaded.prefill(text(50, 2));
  EXPECT_LT(max_difference(loaded.logits(), whole.logits()), 3e-4);
}

TEST_P(WithoutRowsTest, MarksAreSetAtTheEndsOfMessagesAndInLongTexts) {
  std::vector<int32_t> tokens = text(3000, 1);
  tokens[2699] = kEndOfMessage;
  Session session(model_, full_options());
  const auto prefix = read_prefix(session, std::move(tokens));
  EXPECT_EQ(prefix->last_cut(2900), 2700);
  EXPECT_EQ(prefix->last_cut(2699), 2700 - 2048);
}

INSTANTIATE_TEST_SUITE_P(Models, WithoutRowsTest,
                         testing::Values("mamba", "mamba2", "rwkv7", "arwkv7", "rwkv6",
                                         "rwkv6qwen2"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace hybrid_tests
}  // namespace snapkv::test
