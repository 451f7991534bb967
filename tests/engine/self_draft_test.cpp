// SPDX-License-Identifier: MIT
// Kept rows that guess, and all rows that check: answers are those of the full cache, whatever the
// policy has kept and however wrong its guesses are.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "engine/decode/guess_length.h"
#include "snapkv/generator.h"
#include "tests/engine/session_support.h"
#include "tests/support/expect_error.h"
#include "tests/support/family_models.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace self_draft_tests {

SessionOptions self_drafts(SessionOptions options, int64_t least = 5) {
  options.draft = Draft::self;
  options.draft_min = least;  // or small models' times would decide
  return options;
}

/// Writes an answer of n tokens; counts add up.
struct Writing {
  int64_t n_drafted = 0, n_accepted = 0;
  std::vector<int32_t> write(Session& session, int64_t n, const SamplerConfig& sampling) {
    Sampler sampler(sampling);
    Generator generator(session, sampler, {.max_tokens = n, .ignore_eos = true});
    while (generator.step()) {
    }
    n_drafted += generator.n_drafted();
    n_accepted += generator.n_accepted();
    return generator.ids();
  }
};

/// Models of each way in which layers remember.
class SelfDraftKindTest : public testing::TestWithParam<const char*> {
 protected:
  std::shared_ptr<const Model> model_ = load_model(GetParam());
};

TEST_P(SelfDraftKindTest, AnswersAreThoseOfTheFullCache) {
  const std::vector<int32_t> prompt = generated_ids(70, kFamilyVocab, 1);
  const std::vector<int32_t> turn = generated_ids(25, kFamilyVocab, 3);
  Session full(model_, full_options()), self(model_, self_drafts(snapkv_options(24, 8)));
  full.prefill(prompt);
  self.prefill(prompt);
  Writing plain, drafted;
  EXPECT_EQ(drafted.write(self, 40, {.temperature = 0}), plain.write(full, 40, {.temperature = 0}));
  // a later turn reads all rows too, those that guesses have left among them
  const auto read_turn = [&](Session& session) {
    session.prefill(turn);
    return copy(session.logits());
  };
  EXPECT_EQ(self.n_past(), full.n_past());
  EXPECT_LE(max_difference(read_turn(self), read_turn(full)), 1e-4);
  EXPECT_EQ(drafted.write(self, 40, {.temperature = 0}), plain.write(full, 40, {.temperature = 0}));
  EXPECT_GT(drafted.n_drafted, 30);
  EXPECT_GT(drafted.n_accepted, 0);
}

TEST_P(SelfDraftKindTest, GuessesLeaveNoTrace) {
  const std::vector<int32_t> prompt = generated_ids(70, kFamilyVocab, 1);
  const std::vector<int32_t> more = generated_ids(12, kFamilyVocab, 2);
  Session guessed(model_, self_drafts(snapkv_options(24, 8)));
  Session plain(model_, self_drafts(snapkv_options(24, 8)));
  guessed.prefill(prompt);
  plain.prefill(prompt);
  const auto rows_of = [&](const Session& session, int il) {
    const int64_t n = session.model().info().layers[il].n_head_kv;
    std::vector<std::vector<int32_t>> rows;
    for (int h = 0; h < n; ++h) rows.push_back(session.cached_positions(il, h));
    return rows;
  };
  for (const int32_t& token : more) {
    Session* const one = &guessed;
    const StepTokens step(&token, 1);
    const auto guesses = guess_tokens({&one, 1}, {&step, 1},
                                      [](size_t, auto all, int64_t) { return all.size() < 6; });
    ASSERT_EQ(guesses[0].size(), 6U);
    guessed.decode(token);
    plain.decode(token);
    ASSERT_EQ(copy(guessed.logits()), copy(plain.logits()));
  }
  for (int il = 0; il < model_->info().n_layer; ++il) {
    EXPECT_EQ(rows_of(guessed, il), rows_of(plain, il));
  }
  EXPECT_EQ(guessed.stats().n_decoded, 12);
}

INSTANTIATE_TEST_SUITE_P(Kinds, SelfDraftKindTest,
                         testing::Values("llama-linear", "gemma3", "llama4-chunks", "gemma4-e",
                                         "lfm2", "qwen35", "nemotron_h", "falcon-h1", "deepseek2",
                                         "kimi-linear", "qwen3moe", "gpt-oss"));

class SelfDraftTest : public testing::Test {
 protected:
  /// Both answers, of a prompt and of a turn after it.
  void expect_same(const SessionOptions& full_cache, const SessionOptions& kept,
                   const SamplerConfig& sampling) const {
    Session full(model_, full_cache), self(model_, self_drafts(kept));
    Writing plain, drafted;
    for (Session* const session : {&full, &self}) session->prefill(prompt_);
    const auto expected = plain.write(full, 100, sampling);
    EXPECT_EQ(drafted.write(self, 100, sampling), expected);
    for (Session* const session : {&full, &self}) session->prefill(turn_);
    EXPECT_EQ(drafted.write(self, 60, sampling), plain.write(full, 60, sampling));
    EXPECT_GT(drafted.n_drafted, drafted.n_accepted);
    EXPECT_GT(drafted.n_accepted, 0);
  }

  const std::vector<int32_t> prompt_ = generated_ids(200, kVocab, 9);
  const std::vector<int32_t> turn_ = generated_ids(30, kVocab, 10);
  std::shared_ptr<const Model> model_ = load_model("tiny-f32", Compute::f32, 2, "cpu");
};

TEST_F(SelfDraftTest, AnswersAreThoseOfTheFullCacheInEveryType) {
  const SamplerConfig greedy = {.temperature = 0};
  expect_same(full_options(), snapkv_options(60), greedy);
  expect_same(full_options(), snapkv_options(60), {.temperature = 0.6, .top_k = 3, .seed = 4});
  expect_same(full_options(), snapkv_options(500), {.temperature = 0.9, .top_k = 3, .seed = 5});
  for (const DType type : {DType::f16, DType::bf16, DType::q8_0}) {
    // what is read again in another form does not round alike
    Session full(model_, of_type(full_options(), type));
    Session self(model_, self_drafts(of_type(snapkv_options(60), type)));
    full.prefill(prompt_);
    self.prefill(prompt_);
    Writing plain, drafted;
    EXPECT_EQ(drafted.write(self, 100, greedy), plain.write(full, 100, greedy));
  }
}

TEST_F(SelfDraftTest, KeptRowsMayBeChosenAgain) {
  SessionOptions kept = snapkv_options(60);
  kept.kv_decode_limit = 80;
  expect_same(full_options(), kept, {.temperature = 0});
  Session self(model_, self_drafts(kept));
  self.prefill(prompt_);
  Writing().write(self, 100, {.temperature = 0});
  EXPECT_LE(self.cached_positions(0, 0).size(), 80U);
  EXPECT_GT(self.stats().n_recompressed, 3);
}

TEST_F(SelfDraftTest, RowsInFilesCheckGuesses) {
  SessionOptions kept = snapkv_options(60);
  kept.spill_dir = testing::TempDir();
  expect_same(full_options(), kept, {.temperature = 0});
}

TEST_F(SelfDraftTest, AnswersOfABatchGuessTogether) {
  constexpr int kAnswers = 4;
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<std::unique_ptr<Sampler>> samplers;
  std::vector<std::unique_ptr<Generator>> answers;
  std::vector<std::vector<int32_t>> expected;
  for (int i = 0; i < kAnswers; ++i) {
    const std::vector<int32_t> prompt = generated_ids(80 + 30 * i, kVocab, 20 + i);
    Session full(model_, full_options());
    full.prefill(prompt);
    const int64_t n = 30 + 10 * i;
    expected.push_back(Writing().write(full, n, {.temperature = 0}));
    // one of them has no kept rows that guess
    const SessionOptions options = i == 2 ? full_options() : self_drafts(snapkv_options(40), i);
    sessions.push_back(std::make_unique<Session>(model_, options));
    sessions.back()->prefill(prompt);
    samplers.push_back(std::make_unique<Sampler>(SamplerConfig{.temperature = 0}));
    answers.push_back(std::make_unique<Generator>(
        *sessions.back(), *samplers.back(), GeneratorOptions{.max_tokens = n, .ignore_eos = true}));
  }
  for (;;) {
    std::vector<Session*> batch;
    std::vector<Generator*> unfinished;
    for (int i = 0; i < kAnswers; ++i) {
      while (!answers[i]->must_read() && answers[i]->choose()) {
      }
      if (answers[i]->done()) continue;
      batch.push_back(sessions[i].get());
      unfinished.push_back(answers[i].get());
    }
    if (batch.empty()) break;
    Generator::guess(unfinished);
    std::vector<StepTokens> steps;
    for (Generator* const answer : unfinished) steps.push_back(answer->next_tokens());
    decode_steps(batch, steps);
  }
  for (int i = 0; i < kAnswers; ++i) EXPECT_EQ(answers[i]->ids(), expected[i]) << i;
  EXPECT_GT(answers[3]->n_drafted(), answers[3]->n_accepted());
  EXPECT_EQ(answers[2]->n_drafted(), 0);
}

TEST_F(SelfDraftTest, WhatTheAnswerAttendsToIsTracedOverAllRows) {
  const auto attention = [&](const SessionOptions& options) {
    Session session(model_, options);
    session.prefill(prompt_);
    session.trace_answer();
    Writing().write(session, 50, {.temperature = 0});
    return session.answer_attention();
  };
  EXPECT_LE(max_difference(attention(self_drafts(snapkv_options(60))), attention(full_options())),
            1e-5);
}

TEST_F(SelfDraftTest, AllRowsAreCountedAndPlanned) {
  const SessionOptions options = self_drafts(snapkv_options(60));
  Session session(model_, options);
  session.prefill(prompt_);
  EXPECT_GE(session.stats().history_bytes, kv_bytes_per_token(model_->info(), DType::f32) * 200);
  const MemoryPlan plan = model_->plan(options, 200);
  EXPECT_EQ(plan.kv_history, session.stats().history_bytes);
  EXPECT_EQ(model_->plan(snapkv_options(60), 200).kv_history, 0U);
  session.reset();
  EXPECT_EQ(session.stats().history_bytes, 0U);
}

TEST_F(SelfDraftTest, WhatItCannotDoIsRefused) {
  expect_error(ErrorCode::kUsage, {"draft", "self", "full"},
               [&] { Session session(model_, self_drafts(full_options())); });
  const std::string path = testing::TempDir() + "self_draft.kv";
  Session self(model_, self_drafts(snapkv_options(60))), other(model_, snapkv_options(60));
  self.prefill(prompt_);
  expect_error(ErrorCode::kUsage, {"draft", "uncompressed"}, [&] { self.save(path); });
  other.prefill(prompt_);
  other.save(path);
  Session loaded(model_, self_drafts(snapkv_options(60)));
  expect_error(ErrorCode::kUsage, {path, "draft"}, [&] { loaded.load(path); });
  const int32_t token = 3;
  const StepTokens step(&token, 1), nothing;
  Session* one = &other;
  const auto never = [](size_t, std::span<const GuessedToken>, int64_t) { return false; };
  expect_error(ErrorCode::kUsage, {"session 0", "draft", "self"}, [&] {
    guess_tokens({&one, 1}, {&step, 1}, never);
  });
  one = &self;
  expect_error(ErrorCode::kUsage, {"guess_tokens", "no token"}, [&] {
    guess_tokens({&one, 1}, {&nothing, 1}, never);
  });
  EXPECT_TRUE(guess_tokens({&one, 1}, {&step, 1}, never)[0].empty());
}

// ---------------------------------------------------------------- how many

/// Tokens per second of an answer, beside those without guesses. A guess costs `guess` of a step
/// that reads all rows, each checked token `slope` of it, and `right` of the guesses are right.
double speedup(double guess, double slope, double right, double probability) {
  GuessLength length;
  StepTime checking;
  const std::vector<int32_t> random = generated_ids(60000, 1000, 3);
  size_t r = 0;
  double seconds = 0, n_tokens = 0;
  while (n_tokens < 2000) {
    std::vector<GuessedToken> guesses;
    while (std::ssize(guesses) < 7 && length.more(guesses, 1, 1, checking)) {
      guesses.push_back({1, static_cast<float>(probability)});
      length.learn_cost(1, guess);
    }
    int64_t n_right = 0;
    while (n_right < std::ssize(guesses) && random[r++] < 1000 * right) ++n_right;
    const double step = 1 + slope * static_cast<double>(guesses.size());
    checking.add(1.0 + static_cast<double>(guesses.size()), step);
    length.learn(guesses, n_right, guess * static_cast<double>(guesses.size()), 1, step, checking);
    seconds += step + guess * static_cast<double>(guesses.size());
    n_tokens += 1.0 + static_cast<double>(n_right);
  }
  return n_tokens / seconds;
}

TEST(GuessLengthTest, GuessesWhereTheyPay) {
  EXPECT_GT(speedup(0.25, 0.05, 0.95, 0.96), 2.1);  // 2.4 with seven guesses each time
  EXPECT_GT(speedup(0.45, 0.1, 0.95, 0.96), 1.35);
  EXPECT_GT(speedup(0.45, 0.1, 0.8, 0.6), 1.1);
}

TEST(GuessLengthTest, LosesLittleWhereTheyDoNot) {
  EXPECT_GT(speedup(0.9, 0.1, 0.95, 0.99), 0.98);
  EXPECT_GT(speedup(0.5, 0.1, 0.3, 0.9), 0.97);
  EXPECT_GT(speedup(0.5, 0.1, 0.0, 0.999), 0.97);
}

}  // namespace self_draft_tests
}  // namespace snapkv::test
