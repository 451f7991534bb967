// SPDX-License-Identifier: MIT
// Decode steps of several tokens, what is forgotten of them, and answers with guessed tokens: the
// same as one token at a time, whatever the model remembers.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "engine/decode/draft_length.h"
#include "engine/decode/lookup_draft.h"
#include "snapkv/generator.h"
#include "snapkv/grammar.h"
#include "tests/engine/session_support.h"
#include "tests/support/expect_error.h"
#include "tests/support/family_models.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace draft_tests {

std::vector<int32_t> text(int64_t n, uint32_t seed) { return generated_ids(n, kFamilyVocab, seed); }

SessionOptions with_drafts(SessionOptions options, int64_t most = 7) {
  options.draft = Draft::lookup;
  options.draft_max = options.draft_min = most;  // always, or small models' times would decide
  return options;
}

void decode_run(Session& session, const std::vector<int32_t>& tokens) {
  Session* const one = &session;
  const StepTokens run = tokens;
  decode_steps({&one, 1}, {&run, 1});
}

/// All rows' positions, layer by layer.
std::vector<std::vector<int32_t>> rows_of(const Session& session) {
  std::vector<std::vector<int32_t>> rows;
  const ModelInfo& info = session.model().info();
  for (int il = 0; il < info.n_layer; ++il) {
    for (int head = 0; head < info.layers[il].n_head_kv; ++head) {
      rows.push_back(session.cached_positions(il, head));
    }
  }
  return rows;
}

/// Whether some layer has a state whose size does not depend on the tokens.
bool has_recurrent_layers(const Model& model) {
  for (int il = 0; il < model.info().n_layer; ++il) {
    if (kv_layer_bytes(model.info(), DType::f32, il, 0) > 0) return true;
  }
  return false;
}

// ---------------------------------------------------------------- steps of several tokens

/// One model of each way in which layers remember: all rows, windows, chunks, rows of others, short
/// convolutions, matrix states, layers that are networks only, latent rows, experts, learned
/// positions.
class StepTest : public testing::TestWithParam<const char*> {
 protected:
  std::shared_ptr<const Model> model_ = load_model(GetParam());
};

TEST_P(StepTest, SeveralTokensAreReadAsOneAfterTheOther) {
  const std::vector<int32_t> prompt = text(60, 1), more = text(24, 2);
  Session one(model_, snapkv_options(40)), many(model_, snapkv_options(40));
  one.prefill(prompt);
  many.prefill(prompt);
  std::vector<std::vector<float>> expected;
  for (const int32_t token : more) {
    one.decode(token);
    expected.push_back(copy(one.logits()));
  }
  size_t n = 0;
  for (const size_t step : {1, 5, 16, 2}) {
    decode_run(many, {more.begin() + n, more.begin() + n + step});
    for (size_t i = 0; step > 1 && i < step; ++i) {
      EXPECT_LE(max_difference(many.step_logits(i), expected[n + i]), 1e-4) << n + i;
    }
    n += step;
    EXPECT_LE(max_difference(many.logits(), expected[n - 1]), 1e-4);
  }
  EXPECT_EQ(many.n_past(), one.n_past());
  EXPECT_EQ(many.stats().n_decoded, 24);
}

TEST_P(StepTest, ForgottenTokensLeaveNoTrace) {
  const std::vector<int32_t> prompt = text(60, 1), more = text(30, 2);
  Session kept(model_, snapkv_options(40)), plain(model_, snapkv_options(40));
  kept.prefill(prompt);
  plain.prefill(prompt);
  const bool all_or_none = has_recurrent_layers(*model_);
  size_t n = 0;  // tokens that stay
  for (const int64_t keep : {3, 1, 6, 2, 5}) {
    // those that stay, then wrong ones
    std::vector<int32_t> tokens(more.begin() + n, more.begin() + n + keep);
    for (const int32_t wrong : text(4, 77)) tokens.push_back(wrong);
    const std::vector<float> before = copy(kept.logits());
    const int64_t n_past = kept.n_past();
    decode_run(kept, tokens);
    const int64_t n_kept = kept.keep_decoded(keep);
    ASSERT_EQ(n_kept, all_or_none ? 0 : keep);
    EXPECT_EQ(kept.n_past(), n_past + n_kept);
    if (all_or_none) {
      EXPECT_EQ(copy(kept.logits()), before);
      decode_run(kept, {more.begin() + n, more.begin() + n + keep});
    }
    for (int64_t i = 0; i < keep; ++i) plain.decode(more[n + i]);
    n += keep;
    EXPECT_LE(max_difference(kept.logits(), plain.logits()), 1e-4);
    if (all_or_none) continue;
    EXPECT_EQ(rows_of(kept), rows_of(plain));
  }
  EXPECT_EQ(kept.stats().n_decoded, plain.stats().n_decoded);
  // and a further turn sees the same
  const std::vector<int32_t> turn = text(20, 3);
  kept.prefill(turn);
  plain.prefill(turn);
  EXPECT_LE(max_difference(kept.logits(), plain.logits()), 1e-4);
}

TEST_P(StepTest, ABatchHasStepsOfItsOwn) {
  const std::vector<int32_t> a = text(50, 1), b = text(33, 4), more = text(12, 2);
  Session one(model_, full_options()), other(model_, snapkv_options(30)),
      alone(model_, full_options()), other_alone(model_, snapkv_options(30));
  one.prefill(a);
  alone.prefill(a);
  other.prefill(b);
  other_alone.prefill(b);
  Session* const batch[] = {&one, &other};
  const StepTokens steps[] = {StepTokens(more).first(5), StepTokens(more).subspan(5, 1)};
  decode_steps(batch, steps);
  for (int i = 0; i < 5; ++i) alone.decode(more[i]);
  other_alone.decode(more[5]);
  EXPECT_LE(max_difference(one.logits(), alone.logits()), 1e-4);
  EXPECT_LE(max_difference(other.logits(), other_alone.logits()), 1e-4);
  EXPECT_EQ(one.stats().last_step.n_tokens, 6);
  EXPECT_EQ(one.stats().last_step.n_sessions, 2);
}

TEST_P(StepTest, AnswersWithGuessesAreTheSame) {
  const std::vector<int32_t> prompt = text(60, 1);
  const auto answer = [&](const SessionOptions& options, const std::vector<int32_t>& before) {
    Session session(model_, options);
    session.prefill(prompt);
    Sampler sampler({.temperature = 0});
    sampler.accept(before);
    sampler.accept(prompt);
    Generator generator(session, sampler, {.max_tokens = 60, .ignore_eos = true});
    while (generator.step()) {
    }
    EXPECT_EQ(generator.n_accepted() > 10, !before.empty());
    EXPECT_LE(generator.n_unread(), 1 + options.draft_max);
    return generator.ids();
  };
  const std::vector<int32_t> plain = answer(snapkv_options(40), {});
  std::vector<int32_t> before = plain;
  for (size_t i = 4; i < before.size(); i += 1 + i % 9) before[i] = (before[i] + 1) % kFamilyVocab;
  EXPECT_EQ(answer(with_drafts(snapkv_options(40)), before), plain);
}

TEST_P(StepTest, AnswersOfABatchGuessLess) {
  const std::vector<int32_t> prompt = text(60, 1);
  constexpr int kAnswers = 5;
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<std::unique_ptr<Sampler>> samplers;
  std::vector<std::unique_ptr<Generator>> answers;
  for (int i = 0; i < kAnswers; ++i) {
    sessions.push_back(std::make_unique<Session>(model_, with_drafts(snapkv_options(40))));
    sessions.back()->prefill(prompt);
    samplers.push_back(std::make_unique<Sampler>(SamplerConfig{.temperature = 0}));
    samplers.back()->accept(prompt);
    answers.push_back(std::make_unique<Generator>(*sessions.back(), *samplers.back(),
                                                  GeneratorOptions{.ignore_eos = true}));
  }
  for (int step = 0; step < 30; ++step) {
    std::vector<Session*> batch;
    std::vector<StepTokens> tokens;
    size_t n = 0;
    for (int i = 0; i < kAnswers; ++i) {
      while (!answers[i]->must_read()) ASSERT_TRUE(answers[i]->choose());
      batch.push_back(sessions[i].get());
      tokens.push_back(answers[i]->next_tokens());
      n += tokens.back().size();
    }
    ASSERT_LE(n, 16u);
    decode_steps(batch, tokens);
  }
  for (int i = 1; i < kAnswers; ++i) {
    const size_t n = std::min(answers[i]->ids().size(), answers[0]->ids().size());
    EXPECT_TRUE(std::equal(answers[i]->ids().begin(), answers[i]->ids().begin() + n,
                           answers[0]->ids().begin()));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, StepTest,
                         testing::Values("llama-linear", "gemma3", "llama4-chunks", "gemma4-e",
                                         "lfm2", "qwen35", "nemotron_h", "falcon-h1", "deepseek2",
                                         "kimi-linear", "qwen3moe", "gpt-oss", "gpt2"));

// ---------------------------------------------------------------- options of sessions

class DraftTest : public testing::Test {
 protected:
  /// What an answer was, and how many tokens were guessed and right.
  struct Answer {
    std::vector<int32_t> ids;
    int64_t n_drafted = 0, n_accepted = 0;
    std::vector<std::vector<int32_t>> rows;
    int64_t n_past = 0;
  };
  /// `before`: a text in which guesses are looked up, besides the prompt.
  Answer answer(const SessionOptions& options, const SamplerConfig& sampling,
                const std::vector<int32_t>& before) const {
    Session session(model_, options);
    session.prefill(prompt_);
    Sampler sampler(sampling);
    sampler.accept(before);
    sampler.accept(prompt_);
    Generator generator(session, sampler, {.max_tokens = 120, .ignore_eos = true});
    while (generator.step()) {
    }
    EXPECT_EQ(generator.n_unread(), 1);
    return {generator.ids(), generator.n_drafted(), generator.n_accepted(), rows_of(session),
            session.n_past()};
  }
  /// The answer with some of its tokens changed, so that guesses are right, and now and then wrong.
  static std::vector<int32_t> nearly(std::vector<int32_t> ids) {
    for (size_t i = 5; i < ids.size(); i += 1 + i % 17) ids[i] = (ids[i] + 1) % kVocab;
    return ids;
  }
  void expect_same(const SessionOptions& options, const SamplerConfig& sampling) const {
    const Answer plain = answer(options, sampling, {});
    const std::vector<int32_t> before = nearly(plain.ids);
    // penalties don't look so far back
    ASSERT_EQ(answer(options, sampling, before).ids, plain.ids);
    const Answer drafted = answer(with_drafts(options), sampling, before);
    EXPECT_EQ(drafted.ids, plain.ids);
    EXPECT_EQ(drafted.rows, plain.rows);
    EXPECT_EQ(drafted.n_past, plain.n_past);
    EXPECT_EQ(plain.n_drafted, 0);
    EXPECT_GT(drafted.n_accepted, 20);
    EXPECT_GT(drafted.n_drafted, drafted.n_accepted);
  }

  const std::vector<int32_t> prompt_ = generated_ids(96, kVocab, 9);
  std::shared_ptr<const Model> model_ = load_model("tiny-f32", Compute::f32, 2, "cpu");
};

TEST_F(DraftTest, AnswersAreTheSame) {
  expect_same(full_options(), {.temperature = 0});
  expect_same(snapkv_options(40), {.temperature = 0});
  expect_same(snapkv_options(40), {.temperature = 0.6, .top_k = 3, .seed = 4});
  expect_same(of_type(snapkv_options(40), DType::f16), {.temperature = 0, .repeat_penalty = 1.1});
}

TEST_F(DraftTest, AnswersWithADecodeLimitAreTheSame) {
  SessionOptions options = snapkv_options(40);
  options.kv_decode_limit = 50;
  expect_same(options, {.temperature = 0});
  options.kv_decode_limit = 42;  // less than a step's guesses
  expect_same(options, {.temperature = 0});
  options.kv_refresh = true;
  expect_same(options, {.temperature = 0});
}

TEST_F(DraftTest, TracedAnswersAttendToTheSame) {
  const std::vector<int32_t> before = nearly(answer(full_options(), {.temperature = 0}, {}).ids);
  const auto attention = [&](const SessionOptions& options) {
    Session session(model_, options);
    session.prefill(prompt_);
    session.trace_answer();
    Sampler sampler({.temperature = 0});
    sampler.accept(before);
    sampler.accept(prompt_);
    Generator generator(session, sampler, {.max_tokens = 60, .ignore_eos = true});
    while (generator.step()) {
    }
    return session.answer_attention();
  };
  const std::vector<float> plain = attention(full_options());
  EXPECT_LE(max_difference(attention(with_drafts(full_options())), plain), 1e-5);
}

TEST_F(DraftTest, AnAnswerThatIsLeftLeavesOnlyWhatItSaid) {
  Session session(model_, with_drafts(full_options()));
  session.prefill(prompt_);
  Sampler sampler({.temperature = 0});
  sampler.accept(nearly(answer(full_options(), {.temperature = 0}, {}).ids));
  sampler.accept(prompt_);
  int64_t n_said = 0;
  for (int n = 1; n < 40; ++n) {
    std::optional<Generator> generator(std::in_place, session, sampler,
                                       GeneratorOptions{.ignore_eos = true});
    for (int i = 0; i < n; ++i) ASSERT_TRUE(generator->step());
    const int32_t last = generator->next_token();
    if (n % 2 == 0) generator->stop(StopReason::cancelled);
    generator.reset();
    // the last token is unread, or was guessed and read
    n_said += n;
    ASSERT_LE(session.n_past(), 96 + n_said);
    ASSERT_GE(session.n_past(), 96 + n_said - 1);
    if (session.n_past() < 96 + n_said) session.decode(last);
  }
}

TEST_F(DraftTest, GuessesThatAGrammarForbidsAreForgotten) {
  const auto vocabulary = std::make_shared<const GrammarVocabulary>(model_->tokenizer());
  const std::vector<int32_t> before = answer(full_options(), {.temperature = 0}, {}).ids;
  const auto run = [&](const SessionOptions& options) {
    Session session(model_, options);
    session.prefill(prompt_);
    Sampler sampler({.temperature = 0});
    sampler.accept(before);
    sampler.accept(prompt_);
    sampler.set_grammar(GrammarMatcher(Grammar::parse("root ::= [a-c] [a-z ]{40}"), vocabulary));
    Generator generator(session, sampler, {.max_tokens = 60});
    while (generator.step()) {
    }
    return std::pair(generator.ids(), rows_of(session));
  };
  EXPECT_EQ(run(with_drafts(full_options())), run(full_options()));
}

TEST_F(DraftTest, StepsThatDoNotFitAreRefused) {
  SessionOptions options = full_options();
  options.n_ctx = 50;
  Session session(model_, options);
  EXPECT_EQ(session.decode_room(), 0);
  session.prefill(generated_ids(40, kVocab, 1));
  EXPECT_EQ(session.decode_room(), 10);
  expect_error(ErrorCode::kContextExceeded, {"50"},
               [&] { decode_run(session, generated_ids(11, kVocab, 2)); });
  expect_error(ErrorCode::kUsage, {"no token"}, [&] { decode_run(session, {}); });
  EXPECT_EQ(session.n_past(), 40);
  decode_run(session, generated_ids(4, kVocab, 2));
  expect_error(ErrorCode::kUsage, {"keep_decoded(5)"}, [&] { session.keep_decoded(5); });
  expect_error(ErrorCode::kUsage, {"step_logits(4)"}, [&] { session.step_logits(4); });
  EXPECT_EQ(session.keep_decoded(0), 0);
  EXPECT_EQ(session.n_past(), 40);
  session.decode(3);
  expect_error(ErrorCode::kUsage, {"keep_decoded(1)"}, [&] { session.keep_decoded(1); });
  Session wide(model_, full_options());
  wide.prefill(generated_ids(40, kVocab, 1));
  EXPECT_EQ(wide.decode_room(), kMostStepTokens);
  expect_error(ErrorCode::kUsage, {"room for 16"},
               [&] { decode_run(wide, generated_ids(kMostStepTokens + 1, kVocab, 2)); });
}

TEST_F(DraftTest, MoreGuessesThanTheMostAreRefused) {
  SessionOptions options = with_drafts(full_options(), 4);
  options.draft_min = 5;
  expect_error(ErrorCode::kUsage, {"draft_min", "5", "draft_max", "4"},
               [&] { Session session(model_, options); });
}

TEST_F(DraftTest, ThePlanCountsTheStepsMemory) {
  const size_t plain = model_->plan(full_options(), 100).total();
  const size_t drafted = model_->plan(with_drafts(full_options()), 100).total();
  // logits on the device, on the host, and those that are kept
  EXPECT_GE(drafted, plain + 2 * 7 * kVocab * sizeof(float));
}

// ---------------------------------------------------------------- guesses

std::vector<int32_t> guess(const std::vector<int32_t>& tokens, int64_t most = 4) {
  LookupDraft lookup;
  lookup.update(tokens);
  const LookupDraft::Guess found = lookup.guess(most);
  return {found.tokens.begin(), found.tokens.end()};
}

TEST(LookupDraftTest, ContinuesWhereTheTextStoodBefore) {
  EXPECT_EQ(guess({1, 2, 3, 4, 5, 6, 9, 1, 2}), (std::vector<int32_t>{3, 4, 5, 6}));
  EXPECT_EQ(guess({1, 2, 3, 4, 5, 6, 9, 1, 2}, 2), (std::vector<int32_t>{3, 4}));
  EXPECT_EQ(guess({1, 2, 3, 4, 5}), (std::vector<int32_t>{}));
  EXPECT_EQ(guess({}), (std::vector<int32_t>{}));
  EXPECT_EQ(guess({1, 2, 3, 9, 3}), (std::vector<int32_t>{}));  // one token says too little
}

TEST(LookupDraftTest, PrefersTheLongerRunThenTheLaterOne) {
  // 3 4 stood before 5 last, but 1 2 3 4 before 7
  EXPECT_EQ(guess({1, 2, 3, 4, 7, 8, 3, 4, 5, 6, 1, 2, 3, 4}, 2), (std::vector<int32_t>{7, 8}));
  EXPECT_EQ(guess({3, 4, 7, 3, 4, 5, 8, 3, 4}, 1), (std::vector<int32_t>{5}));
}

TEST(LookupDraftTest, FindsWhatASearchFinds) {
  const std::vector<int32_t> tokens = generated_ids(3000, 12, 5);  // few tokens: many runs
  LookupDraft lookup;
  for (size_t n = 1; n < tokens.size(); n += 7) {
    const std::span<const int32_t> seen = std::span(tokens).first(n);
    lookup.update(seen);
    const LookupDraft::Guess found = lookup.guess(3);
    // the last place where as many tokens of the end stood before, counted in powers of two
    int64_t best = -1;
    for (const int64_t length : {16, 8, 4, 2}) {
      for (int64_t end = std::ssize(seen) - 1; end >= length && best < 0; --end) {
        if (std::equal(seen.end() - length, seen.end(), seen.begin() + end - length)) best = end;
      }
      if (best >= 0) break;
    }
    if (best < 0) {
      EXPECT_TRUE(found.tokens.empty());
      continue;
    }
    ASSERT_FALSE(found.tokens.empty());
    const auto expected = seen.subspan(best, std::min<size_t>(3, seen.size() - best));
    EXPECT_TRUE(
        std::equal(expected.begin(), expected.end(), found.tokens.begin(), found.tokens.end()))
        << n;
  }
}

/// Seconds of all steps, of which each token after the first adds `slope` of one, when a share of
/// the guesses is right; beside one token at a time. `disturbed`: the first step with guesses,
/// which does not count, takes so much longer.
double time_ratio(double slope, double right, double found = 1.0, double disturbed = 0.0,
                  int64_t most_tokens = 2000) {
  DraftLength length;
  const std::vector<int32_t> random = generated_ids(40000, 1000, 3);
  size_t r = 0;
  const auto is_true = [&](double share) { return random[r++] < 1000 * share; };
  double seconds = 0;
  int64_t n_tokens = 0;
  while (n_tokens < most_tokens) {
    const int64_t n = length.choose(is_true(found) ? 7 : 0, 4, 0);
    int64_t n_right = 0;
    while (n_right < n && is_true(right)) ++n_right;
    const double step = 1.0 + slope * static_cast<double>(n);
    length.learn(1 + n, step + (n > 0 ? disturbed : 0.0), n, n_right);
    if (n > 0) disturbed = 0.0;
    seconds += step;
    n_tokens += 1 + n_right;
  }
  return static_cast<double>(n_tokens) / seconds;
}

TEST(DraftLengthTest, RightGuessesPayAndWrongOnesCostLittle) {
  EXPECT_GT(time_ratio(0.1, 0.95), 3.0);
  EXPECT_GT(time_ratio(0.25, 0.8), 1.3);
  for (const double slope : {0.05, 0.25, 0.5, 1.0}) {
    for (const double right : {0.0, 0.1, 0.3, 0.5}) {
      EXPECT_GT(time_ratio(slope, right), 0.97) << slope << " " << right;
      EXPECT_GT(time_ratio(slope, right, 0.3), 0.97) << slope << " " << right;
    }
  }
}

TEST(DraftLengthTest, GoesOnAfterAStepThatWasDisturbed) {
  for (const double disturbed : {3.0, 10.0, 50.0}) {
    EXPECT_GT(time_ratio(0.1, 1.0, 1.0, disturbed, 300), 2.8) << disturbed;
  }
}

}  // namespace draft_tests
}  // namespace snapkv::test
