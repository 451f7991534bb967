// SPDX-License-Identifier: MIT
// Sampler: changes of logits before anything is drawn (grammar, bias, penalties by count), in cases
// computed by hand, and token_logprobs().
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "snapkv/grammar.h"
#include "snapkv/sampler.h"
#include "tests/support/expect_error.h"

namespace snapkv::test {
namespace sampler_adjust_tests {

constexpr double kInf = std::numeric_limits<double>::infinity();

SamplerConfig greedy() { return {.temperature = 0, .top_k = 0, .top_p = 1, .min_p = 0}; }

TEST(SamplerPenalties, PresenceCountsOnceAndFrequencyEachTime) {
  const std::vector<float> logits = {5.0f, 4.6f, 4.0f};
  const std::vector<int32_t> seen = {0, 0, 0, 1};
  SamplerConfig config = greedy();
  config.presence_penalty = 0.5;  // 4.5, 4.1, 4.0
  Sampler presence(config);
  presence.accept(seen);
  EXPECT_EQ(presence.sample(logits), 0);
  config.presence_penalty = 0;
  config.frequency_penalty = 0.5;  // 3.5, 4.1, 4.0
  Sampler frequency(config);
  frequency.accept(seen);
  EXPECT_EQ(frequency.sample(logits), 1);
  EXPECT_EQ(frequency.sample(logits), 2);  // 3.5, 3.6, 4.0: sampled tokens count
  config.presence_penalty = 0.5;           // 3.0, 3.6, 4.0
  Sampler both(config);
  both.accept(seen);
  EXPECT_EQ(both.sample(logits), 2);
}

TEST(SamplerPenalties, NegativeOnesAttract) {
  SamplerConfig config = greedy();
  config.frequency_penalty = -1.0;
  Sampler sampler(config);
  sampler.accept(std::vector<int32_t>{1, 1});
  EXPECT_EQ(sampler.sample(std::vector<float>{3.0f, 1.5f}), 1);  // 3.0, 3.5
}

TEST(SamplerPenalties, LookBackAsFarAsTheRepetitionPenalty) {
  SamplerConfig config = greedy();
  config.presence_penalty = 2.0;
  config.repeat_last_n = 2;
  Sampler sampler(config);
  sampler.accept(std::vector<int32_t>{0, 1, 1});  // 0 is too far back
  EXPECT_EQ(sampler.sample(std::vector<float>{3.0f, 4.0f}), 0);
  config.repeat_last_n = 0;
  Sampler off(config);
  off.accept(std::vector<int32_t>{1, 1, 1});
  EXPECT_EQ(off.sample(std::vector<float>{3.0f, 4.0f}), 1);
}

// As in llama.cpp, the repetition penalty first scales the logit, then the others are subtracted.
TEST(SamplerPenalties, RepetitionComesFirst) {
  SamplerConfig config = greedy();
  config.repeat_penalty = 2.0;
  config.presence_penalty = 1.0;
  Sampler sampler(config);
  sampler.accept(std::vector<int32_t>{0});
  EXPECT_EQ(sampler.sample(std::vector<float>{4.0f, 1.2f}), 1);  // 4 / 2 - 1 = 1, not (4 - 1) / 2
}

// A penalty below 1 favours a token; it must not ban it if the division exceeds f32.
TEST(SamplerPenalties, LeaveNoInfinity) {
  SamplerConfig config = greedy();
  config.repeat_penalty = 0.001;
  Sampler sampler(config);
  sampler.accept(std::vector<int32_t>{0});
  EXPECT_EQ(sampler.sample(std::vector<float>{1e36f, 1.0f}), 0);
  EXPECT_EQ(sampler.sample(std::vector<float>{1e36f}), 0);
  config.repeat_penalty = 1000;
  Sampler other(config);
  other.accept(std::vector<int32_t>{0});
  EXPECT_EQ(other.sample(std::vector<float>{-1e36f}), 0);
}

TEST(SamplerBias, IsAddedAndBans) {
  SamplerConfig config = greedy();
  config.logit_bias = {{2, 1.5}, {2, 1.0}, {0, -kInf}, {900, 5.0}};
  const std::vector<float> logits = {9.0f, 3.0f, 1.0f};
  EXPECT_EQ(Sampler(config).sample(logits), 2);  // -inf, 3.0, 3.5
  config.logit_bias = {{0, -kInf}, {1, -kInf}, {2, -kInf}};
  expect_error(ErrorCode::kRuntime, {"logit_bias", "none of the 3"},
               [&] { Sampler(config).sample(logits); });
}

TEST(SamplerBias, ComesBeforeThePenalties) {
  SamplerConfig config = greedy();
  config.logit_bias = {{0, 2.0}};
  config.repeat_penalty = 2.0;
  Sampler sampler(config);
  sampler.accept(std::vector<int32_t>{0});
  EXPECT_EQ(sampler.sample(std::vector<float>{2.0f, 2.5f}), 1);  // (2 + 2) / 2, not 2 / 2 + 2
}

TEST(SamplerConfigChecks, NamesTheNewFields) {
  const auto refused = [](const char* field, auto&& change) {
    SamplerConfig config;
    change(config);
    expect_error(ErrorCode::kUsage, {field}, [&] { Sampler sampler(config); });
  };
  refused("presence_penalty", [](SamplerConfig& c) { c.presence_penalty = 2.01; });
  refused("presence_penalty", [](SamplerConfig& c) { c.presence_penalty = std::nan(""); });
  refused("frequency_penalty", [](SamplerConfig& c) { c.frequency_penalty = -2.01; });
  refused("logit_bias", [](SamplerConfig& c) { c.logit_bias = {{-1, 1.0}}; });
  refused("logit_bias", [](SamplerConfig& c) { c.logit_bias = {{1, 100.5}}; });
  refused("logit_bias", [](SamplerConfig& c) { c.logit_bias = {{1, kInf}}; });
  refused("logit_bias", [](SamplerConfig& c) { c.logit_bias = {{1, std::nan("")}}; });
}

// Tokens "a", "b", "ab", end.
std::shared_ptr<const GrammarVocabulary> small_vocabulary() {
  return std::make_shared<const GrammarVocabulary>(std::vector<std::string>{"a", "b", "ab", ""},
                                                   std::vector<int32_t>{3});
}

TEST(SamplerGrammar, OnlyAllowedTokensAreDrawnAndTheGrammarFollows) {
  for (const double temperature : {0.0, 1.5}) {
    SamplerConfig config = {.temperature = temperature, .top_k = 40, .seed = 5};
    Sampler sampler(config);
    EXPECT_EQ(sampler.grammar(), nullptr);
    sampler.set_grammar(GrammarMatcher(Grammar::parse("root ::= \"bab\""), small_vocabulary()));
    const std::vector<float> logits = {1.0f, -8.0f, 0.5f, 9.0f, 20.0f};  // one more than tokens
    EXPECT_EQ(sampler.sample(logits), 1);
    const int32_t second = sampler.sample(logits);
    EXPECT_TRUE(second == 0 || second == 2) << second;
    if (second == 0) {
      EXPECT_EQ(sampler.sample(logits), 1);
    }
    EXPECT_TRUE(sampler.grammar()->is_complete());
    EXPECT_EQ(sampler.sample(logits), 3);
    expect_error(ErrorCode::kRuntime, {"no token is left", "grammar"},
                 [&] { sampler.sample(logits); });
  }
}

// Tokens are drawn with the softmax over the allowed tokens.
TEST(SamplerGrammar, ProbabilitiesAreThoseOfTheAllowedTokens) {
  const GrammarMatcher matcher(Grammar::parse("root ::= \"a\" \"b\"?"), small_vocabulary());
  const std::vector<float> logits = {std::log(1.0f), 7.0f, std::log(3.0f), 7.0f};
  int n_first = 0;
  for (int64_t seed = 0; seed < 4000; ++seed) {
    Sampler sampler({.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = seed});
    sampler.set_grammar(matcher);
    n_first += sampler.sample(logits) == 0 ? 1 : 0;
  }
  EXPECT_NEAR(n_first, 1000, 110);  // four standard deviations
}

TEST(TokenLogprobs, AreTheLogsOfTheSoftmax) {
  const std::vector<float> logits = {1.0f, 3.0f, 2.0f, 3.0f, -INFINITY, NAN};
  const TokenLogprobs result = token_logprobs(logits, 2, 3);
  const double total = std::exp(1.0) + 2 * std::exp(3.0) + std::exp(2.0);
  EXPECT_EQ(result.chosen.id, 2);
  EXPECT_NEAR(result.chosen.logprob, std::log(std::exp(2.0) / total), 1e-12);
  ASSERT_EQ(result.top.size(), 3u);
  EXPECT_EQ(result.top[0].id, 1);
  EXPECT_EQ(result.top[1].id, 3);
  EXPECT_EQ(result.top[2].id, 2);
  EXPECT_NEAR(result.top[0].logprob, std::log(std::exp(3.0) / total), 1e-12);
  EXPECT_EQ(token_logprobs(logits, 4, 0).chosen.logprob, -kInf);
  EXPECT_EQ(token_logprobs(logits, 5, 100).top.size(), 4u);
  double sum = 0;
  for (const TokenLogprob& top : token_logprobs(logits, 0, 100).top) sum += std::exp(top.logprob);
  EXPECT_NEAR(sum, 1.0, 1e-12);
}

TEST(TokenLogprobs, LargeLogitsAndBadArguments) {
  const std::vector<float> large = {3e38f, -3e38f};
  EXPECT_EQ(token_logprobs(large, 0, 0).chosen.logprob, 0.0);
  EXPECT_LT(token_logprobs(large, 1, 0).chosen.logprob, -1e38);
  expect_error(ErrorCode::kUsage, {"token 2", "2 that have logits"},
               [&] { token_logprobs(large, 2, 0); });
  expect_error(ErrorCode::kUsage, {"token -1"}, [&] { token_logprobs(large, -1, 0); });
  expect_error(ErrorCode::kUsage, {"n_top"}, [&] { token_logprobs(large, 0, -1); });
  expect_error(ErrorCode::kRuntime, {"finite"},
               [] { token_logprobs(std::vector<float>{NAN}, 0, 1); });
}

}  // namespace sampler_adjust_tests
}  // namespace snapkv::test
