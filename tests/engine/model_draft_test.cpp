// SPDX-License-Identifier: MIT
// A smaller model that guesses: answers are those without guesses, however wrong they are, and of
// whatever kinds the two models are.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "engine/core/draft_reader.h"
#include "snapkv/generator.h"
#include "tests/engine/session_support.h"
#include "tests/support/expect_error.h"
#include "tests/support/family_models.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace model_draft_tests {

std::shared_ptr<const Model> with_draft(const std::string& model, const std::string& draft) {
  return Model::load({.path = model_path(model),
                      .device = "cpu",
                      .compute = Compute::f32,
                      .n_threads = 2,
                      .draft_model = model_path(draft)});
}

SessionOptions model_drafts(SessionOptions options, int64_t least = 5) {
  options.draft = Draft::model;
  options.draft_min = least;  // or small models' times would decide
  return options;
}

struct Written {
  std::vector<int32_t> ids;
  int64_t n_drafted = 0, n_accepted = 0;
};

Written write(Session& session, const std::vector<int32_t>& prompt, int64_t n,
              const SamplerConfig& sampling = {.temperature = 0}) {
  session.prefill(prompt);
  Sampler sampler(sampling);
  Generator generator(session, sampler, {.max_tokens = n, .ignore_eos = true});
  while (generator.step()) {
  }
  return {generator.ids(), generator.n_drafted(), generator.n_accepted()};
}

/// The model that checks, and the one that guesses.
class ModelDraftKindTest
    : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(ModelDraftKindTest, AnswersAreThoseWithoutGuesses) {
  const auto& [name, draft] = GetParam();
  const auto model = with_draft(name, draft);
  const std::vector<int32_t> prompt = generated_ids(70, kFamilyVocab, 1);
  const std::vector<int32_t> turn = generated_ids(25, kFamilyVocab, 3);
  Session plain(load_model(name), snapkv_options(24, 8));
  Session drafted(model, model_drafts(snapkv_options(24, 8)));
  int64_t n_drafted = 0;
  for (const auto& text : {prompt, turn}) {
    const Written expected = write(plain, text, 40), written = write(drafted, text, 40);
    EXPECT_EQ(written.ids, expected.ids);
    EXPECT_EQ(drafted.n_past(), plain.n_past());
    n_drafted += written.n_drafted;
  }
  EXPECT_GT(n_drafted, 30);
  EXPECT_GT(drafted.stats().draft_bytes, 0U);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ModelDraftKindTest,
                         testing::Values(std::pair("llama-linear", "qwen35"),
                                         std::pair("qwen35", "llama-linear"),
                                         std::pair("lfm2", "nemotron_h"),
                                         std::pair("gemma4-e", "llama-linear"),
                                         std::pair("deepseek2", "falcon-h1"),
                                         std::pair("gpt-oss", "qwen3moe")));

class ModelDraftTest : public testing::Test {
 protected:
  const std::vector<int32_t> prompt_ = generated_ids(200, kVocab, 9);
  /// The same model, whose guesses are right unless another token was sampled.
  std::shared_ptr<const Model> model_ = with_draft("tiny-f32", "tiny-f32");
};

TEST_F(ModelDraftTest, GuessesOfTheSameModelAreRight) {
  for (const SamplerConfig& sampling :
       {SamplerConfig{.temperature = 0}, SamplerConfig{.temperature = 0.3, .top_k = 3, .seed = 4}}) {
    Session plain(model_, snapkv_options(250)), drafted(model_, model_drafts(snapkv_options(250)));
    const Written expected = write(plain, prompt_, 100, sampling);
    const Written written = write(drafted, prompt_, 100, sampling);
    EXPECT_EQ(written.ids, expected.ids);
    EXPECT_GT(written.n_drafted, 40);
    const double right = static_cast<double>(written.n_accepted) / written.n_drafted;
    EXPECT_GT(right, sampling.temperature == 0 ? 0.9 : 0.2);
  }
}

TEST_F(ModelDraftTest, ItReadsTheEndOfLongTexts) {
  SessionOptions options = model_drafts(snapkv_options(100));
  options.draft_ctx = 256;
  Session plain(model_, snapkv_options(100)), drafted(model_, options);
  const std::vector<int32_t> prompt = generated_ids(900, kVocab, 11);
  // more than its context again, so that it begins again while the answer is written
  EXPECT_EQ(write(drafted, prompt, 300).ids, write(plain, prompt, 300).ids);
  EXPECT_LE(drafted.stats().draft_bytes,
            2 * kv_bytes_per_token(model_->draft_model()->info(), DType::f16) * 512);
}

TEST_F(ModelDraftTest, TextsThatDoNotGoOnAreReadAgain) {
  Session drafted(model_, model_drafts(snapkv_options(250)));
  write(drafted, prompt_, 20);
  drafted.reset();
  EXPECT_EQ(drafted.stats().draft_bytes, 0U);
  const std::vector<int32_t> other = generated_ids(150, kVocab, 12);
  Session plain(model_, snapkv_options(250));
  const Written written = write(drafted, other, 60);
  EXPECT_EQ(written.ids, write(plain, other, 60).ids);
  EXPECT_GT(written.n_accepted, written.n_drafted / 2);
}

TEST_F(ModelDraftTest, LoadedSessionsAreGuessedForToo) {
  const std::string path = testing::TempDir() + "model_draft.kv";
  Session saved(model_, model_drafts(snapkv_options(100)));
  saved.prefill(prompt_);
  saved.save(path);
  Session loaded(model_, model_drafts(snapkv_options(100))), plain(model_, snapkv_options(100));
  loaded.load(path);
  plain.load(path);
  const std::vector<int32_t> turn = generated_ids(40, kVocab, 13);
  const Written written = write(loaded, turn, 60);
  EXPECT_EQ(written.ids, write(plain, turn, 60).ids);
  EXPECT_GT(written.n_drafted, 20);
  std::filesystem::remove(path);
}

TEST_F(ModelDraftTest, AnswersOfABatchAreGuessedTogether) {
  constexpr int kAnswers = 4;
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<std::unique_ptr<Sampler>> samplers;
  std::vector<std::unique_ptr<Generator>> answers;
  std::vector<std::vector<int32_t>> expected;
  for (int i = 0; i < kAnswers; ++i) {
    const std::vector<int32_t> prompt = generated_ids(80 + 30 * i, kVocab, 20 + i);
    Session plain(model_, snapkv_options(300));
    expected.push_back(write(plain, prompt, 30 + 10 * i).ids);
    // one has its kept rows guess, and one nothing
    SessionOptions options = model_drafts(snapkv_options(300), 3);
    if (i == 1) options.draft = Draft::self;
    if (i == 2) options.draft = Draft::off;
    sessions.push_back(std::make_unique<Session>(model_, options));
    sessions.back()->prefill(prompt);
    samplers.push_back(std::make_unique<Sampler>(SamplerConfig{.temperature = 0}));
    answers.push_back(std::make_unique<Generator>(
        *sessions.back(), *samplers.back(),
        GeneratorOptions{.max_tokens = 30 + 10 * i, .ignore_eos = true}));
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
  for (const int i : {0, 1, 3}) EXPECT_GT(answers[i]->n_accepted(), 5) << i;
}

TEST_F(ModelDraftTest, ItsMemoryIsPlanned) {
  const SessionOptions options = model_drafts(snapkv_options(60));
  const MemoryPlan plan = model_->plan(options, 200);
  const ModelInfo& draft = model_->draft_model()->info();
  EXPECT_EQ(plan.weights, model_->info().weight_bytes + draft.weight_bytes);
  const int64_t n = draft_reader_tokens(draft, options);
  EXPECT_GT(plan.draft, kv_bytes_per_token(draft, DType::f16) * static_cast<size_t>(n));
  EXPECT_EQ(model_->plan(snapkv_options(60), 200).draft, 0U);
  SessionOptions limited = options;
  limited.memory_limit = plan.total() - plan.weights - 1;
  Session session(model_, limited);
  expect_error(ErrorCode::kDoesNotFit, {"model that guesses"}, [&] { session.prefill(prompt_); });
  limited.memory_limit += 1;
  Session fits(model_, limited);
  fits.prefill(prompt_);
  write(fits, generated_ids(20, kVocab, 14), 20);
  // what is there already is not planned again
  EXPECT_GT(fits.stats().draft_bytes, 0U);
}

TEST(ModelDraftErrors, WhatCannotGuessIsRefused) {
  const auto model = load_model("tiny-f32");
  expect_error(ErrorCode::kUsage, {"draft", "draft_model"},
               [&] { Session session(model, model_drafts(full_options())); });
  expect_error(ErrorCode::kUsage, {"draft_ctx", "255", "256"}, [&] {
    SessionOptions options = full_options();
    options.draft_ctx = 255;
    Session session(model, options);
  });
  expect_error(ErrorCode::kUsage,
               {model_path("needle"), "vocabulary", std::to_string(kVocab), "tokens"},
               [&] { with_draft("tiny-f32", "needle"); });
  expect_error(ErrorCode::kRuntime, {"no-such-file.gguf"}, [&] {
    Model::load({.path = model_path("tiny-f32"), .draft_model = "no-such-file.gguf"});
  });
}

}  // namespace model_draft_tests
}  // namespace snapkv::test
