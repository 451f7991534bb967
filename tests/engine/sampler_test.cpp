// SPDX-License-Identifier: MIT
// Sampler: hand-computed cases for every step, its documented order, determinism, and the
// distribution of draws compared with the expected one.
#include "snapkv/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "snapkv/error.h"

namespace snapkv {
namespace sampler_tests {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Everything is off except temperature 1.
SamplerConfig plain(int64_t seed = 0) {
  return {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .repeat_penalty = 1, .seed = seed};
}

std::vector<float> logits_of(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

std::map<int32_t, int> draw(const SamplerConfig& config, const std::vector<float>& logits, int n) {
  Sampler sampler(config);
  std::map<int32_t, int> counts;
  for (int i = 0; i < n; ++i) ++counts[sampler.sample(logits)];
  return counts;
}

std::set<int32_t> support(const SamplerConfig& config, const std::vector<float>& logits) {
  std::set<int32_t> ids;
  for (const auto& [id, n] : draw(config, logits, 4000)) ids.insert(id);
  return ids;
}

// Pearson's statistic for n draws and the expected probabilities.
double chi_square(const std::map<int32_t, int>& counts, const std::vector<double>& expected,
                  int n) {
  double sum = 0.0;
  for (size_t id = 0; id < expected.size(); ++id) {
    const auto found = counts.find(static_cast<int32_t>(id));
    const double seen = found == counts.end() ? 0.0 : found->second;
    sum += (seen - n * expected[id]) * (seen - n * expected[id]) / (n * expected[id]);
  }
  return sum;
}

ErrorCode code_of(const SamplerConfig& config) {
  try {
    Sampler sampler(config);
  } catch (const Error& e) {
    return e.code();
  }
  return ErrorCode{0};
}

TEST(Sampler, GreedyTakesTheHighestAndTiesGoToTheLowerId) {
  Sampler sampler({.temperature = 0});
  EXPECT_EQ(sampler.sample(std::vector<float>{-3, 1.5f, 1.25f, -7}), 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{0, 2, -1, 2, 2}), 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{-0.0f, 0.0f}), 0);
  EXPECT_EQ(sampler.sample(std::vector<float>{-5}), 0);
}

TEST(Sampler, OnlyFiniteLogitsTakePart) {
  for (const double temperature : {0.0, 1.0}) {
    SamplerConfig config = plain();
    config.temperature = temperature;
    Sampler sampler(config);
    EXPECT_EQ(sampler.sample(std::vector<float>{kNan, -1e30f, -kInf, kNan}), 1);
    EXPECT_EQ(sampler.sample(std::vector<float>{kInf, kNan, 3, -kInf}), 2);
    for (const std::vector<float>& bad : {std::vector<float>{}, {kNan, kNan}, {-kInf, kInf}}) {
      try {
        sampler.sample(bad);
        FAIL() << "accepted logits without a finite one";
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::kRuntime);
      }
    }
  }
}

TEST(Sampler, RejectsValuesOutOfRangeByName) {
  const auto bad = [](auto change) {
    SamplerConfig config;
    change(config);
    return code_of(config) == ErrorCode::kUsage;
  };
  EXPECT_TRUE(bad([](SamplerConfig& c) { c.temperature = -0.1; }));
  EXPECT_TRUE(bad([](SamplerConfig& c) { c.temperature = std::nan(""); }));
  EXPECT_TRUE(bad([](SamplerConfig& c) { c.top_k = -1; }));
  EXPECT_TRUE(bad([](SamplerConfig& c) { c.top_p = 1.01; }));
  EXPECT_TRUE(bad([](SamplerConfig& c) { c.top_p = std::nan(""); }));
  EXPECT_TRUE(bad([](SamplerConfig& c) { c.min_p = -0.5; }));
  EXPECT_TRUE(bad([](SamplerConfig& c) { c.repeat_penalty = 0; }));
  EXPECT_TRUE(bad([](SamplerConfig& c) { c.repeat_last_n = -2; }));
  EXPECT_EQ(code_of({}), ErrorCode{0});
  try {
    Sampler sampler({.top_p = 1.5});
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("top_p"), std::string::npos) << e.what();
  }
}

TEST(Sampler, DrawsTheSoftmax) {
  const std::vector<double> p = {0.05, 0.4, 0.1, 0.25, 0.2};
  constexpr int kDraws = 40000;
  for (const int64_t seed : {0, 1, 12345}) {
    // 4 degrees of freedom: above 23.5 once in 10,000 fair samples
    EXPECT_LT(chi_square(draw(plain(seed), logits_of(p), kDraws), p, kDraws), 23.5) << seed;
  }
}

TEST(Sampler, TemperatureSharpensAndFlattens) {
  const std::vector<double> p = {0.2, 0.5, 0.3};
  constexpr int kDraws = 40000;
  for (const double t : {0.5, 2.0}) {
    std::vector<double> expected;
    double total = 0.0;
    for (const double x : p) expected.push_back(std::pow(x, 1 / t));
    for (const double x : expected) total += x;
    for (double& x : expected) x /= total;
    SamplerConfig config = plain();
    config.temperature = t;
    // 2 degrees of freedom: above 18.4 once in 10,000
    EXPECT_LT(chi_square(draw(config, logits_of(p), kDraws), expected, kDraws), 18.4) << t;
  }
  SamplerConfig cold = plain();
  cold.temperature = 1e-6;  // every other weight underflows
  EXPECT_EQ(support(cold, logits_of(p)), (std::set<int32_t>{1}));
}

TEST(Sampler, TopKKeepsTheKBestTiesToTheLowerId) {
  SamplerConfig config = plain();
  config.top_k = 2;
  EXPECT_EQ(support(config, {0, 1, 2, 1, -1}), (std::set<int32_t>{1, 2}));
  config.top_k = 1;
  EXPECT_EQ(support(config, {0, 3, 3, 1}), (std::set<int32_t>{1}));
  config.top_k = 99;  // more than there are tokens
  EXPECT_EQ(support(config, {0, 0, 0}), (std::set<int32_t>{0, 1, 2}));
}

TEST(Sampler, TopPKeepsTheShortestPrefixThatReachesIt) {
  const std::vector<float> logits = logits_of({0.1, 0.5, 0.15, 0.25});
  SamplerConfig config = plain();
  config.top_p = 0.45;  // 0.5 alone reaches it
  EXPECT_EQ(support(config, logits), (std::set<int32_t>{1}));
  config.top_p = 0.6;  // 0.5, 0.75
  EXPECT_EQ(support(config, logits), (std::set<int32_t>{1, 3}));
  config.top_p = 0.8;  // 0.5, 0.75, 0.9
  EXPECT_EQ(support(config, logits), (std::set<int32_t>{1, 2, 3}));
  config.top_p = 0;  // at least one
  EXPECT_EQ(support(config, logits), (std::set<int32_t>{1}));
}

TEST(Sampler, TopPOfALargeFlatVocabularySortsAllItNeeds) {
  // 1000 tokens of 1/1000 each: the nucleus of 0.3 is the first 300 ids, or one more by rounding.
  SamplerConfig config = plain();
  config.top_p = 0.3;
  const std::set<int32_t> ids = support(config, std::vector<float>(1000, 1.0f));
  EXPECT_LE(*ids.rbegin(), 300);
  EXPECT_GT(ids.size(), 290u);
}

TEST(Sampler, TypicalPKeepsWhatIsNearestToTheExpectedSurprise) {
  // ln(p / 0.5) has the mean -0.515; its distances are 0.515, 0.178, 0.689 and 1.095
  const std::vector<float> logits = logits_of({0.5, 0.25, 0.15, 0.1});
  SamplerConfig config = plain();
  config.typical_p = 0.2;  // 0.25, and not the likeliest
  EXPECT_EQ(support(config, logits), (std::set<int32_t>{1}));
  config.min_p = 0.9;  // of the best one that is left
  EXPECT_EQ(support(config, logits), (std::set<int32_t>{1}));
  config.min_p = 0;
  config.typical_p = 0.5;  // 0.25, 0.75
  EXPECT_EQ(support(config, logits), (std::set<int32_t>{0, 1}));
  config.top_p = 0.6;  // of the two: 2/3 is the likelier one's
  EXPECT_EQ(support(config, logits), (std::set<int32_t>{0}));
  config.top_p = 1;
  config.typical_p = 0.8;  // 0.25, 0.75, 0.9
  EXPECT_EQ(support(config, logits), (std::set<int32_t>{0, 1, 2}));
  config.typical_p = 0;  // at least one
  EXPECT_EQ(support(config, logits), (std::set<int32_t>{1}));
  // equal ones: the lower ids
  config.typical_p = 0.4;
  EXPECT_EQ(support(config, std::vector<float>(4, 1.0f)), (std::set<int32_t>{0, 1}));
}

TEST(Sampler, MinPIsRelativeToTheBest) {
  const std::vector<float> logits = logits_of({0.02, 0.6, 0.1, 0.28});
  SamplerConfig config = plain();
  config.min_p = 0.1;  // 0.06
  EXPECT_EQ(support(config, logits), (std::set<int32_t>{1, 2, 3}));
  config.min_p = 0.2;  // 0.12
  EXPECT_EQ(support(config, logits), (std::set<int32_t>{1, 3}));
  config.min_p = 1;
  EXPECT_EQ(support(config, logits), (std::set<int32_t>{1}));
}

TEST(Sampler, FiltersComeBeforeTemperature) {
  // At temperature 10 all four are nearly equal; the filters see the original 0.6 and keep one.
  const std::vector<float> logits = logits_of({0.6, 0.2, 0.1, 0.1});
  SamplerConfig config = plain();
  config.temperature = 10;
  config.top_p = 0.55;
  EXPECT_EQ(support(config, logits), (std::set<int32_t>{0}));
  config.top_p = 1;
  config.min_p = 0.5;
  EXPECT_EQ(support(config, logits), (std::set<int32_t>{0}));
}

TEST(Sampler, TopPSeesOnlyWhatTopKLeft) {
  // After top-k 2, the two have weights 0.4 / 0.7 = 0.57 and 0.43: top_p 0.5 keeps one; without
  // top-k, it keeps two.
  const std::vector<float> logits = logits_of({0.4, 0.3, 0.2, 0.1});
  SamplerConfig config = plain();
  config.top_p = 0.5;
  EXPECT_EQ(support(config, logits), (std::set<int32_t>{0, 1}));
  config.top_k = 2;
  EXPECT_EQ(support(config, logits), (std::set<int32_t>{0}));
}

TEST(Sampler, PenaltyDividesPositiveAndMultipliesNegativeLogits) {
  Sampler sampler({.temperature = 0, .repeat_penalty = 2});
  sampler.accept(std::vector<int32_t>{0, 0});                       // once or twice: the same
  EXPECT_EQ(sampler.sample(std::vector<float>{4, 1.9f, -1}), 0);    // 2 > 1.9
  EXPECT_EQ(sampler.sample(std::vector<float>{4, 2.1f, -1}), 1);    // 2 < 2.1
  EXPECT_EQ(sampler.sample(std::vector<float>{-1, -3, -1.5f}), 2);  // -2, -6, -1.5
}

TEST(Sampler, PenaltyLooksBackTheLastNTokens) {
  const std::vector<float> logits = {4, 3};
  Sampler two({.temperature = 0, .repeat_penalty = 2, .repeat_last_n = 2});
  two.accept(std::vector<int32_t>{0, 5, 6});  // 0 is out; ids beyond the vocabulary do no harm
  EXPECT_EQ(two.sample(logits), 0);           // history 6 0
  EXPECT_EQ(two.sample(logits), 1);           // 2 < 3; history 0 1
  EXPECT_EQ(two.sample(logits), 0);           // 2 > 1.5
  Sampler off({.temperature = 0, .repeat_penalty = 2, .repeat_last_n = 0});
  off.accept(std::vector<int32_t>{0});
  EXPECT_EQ(off.sample(logits), 0);
  Sampler all({.temperature = 0, .repeat_penalty = 2, .repeat_last_n = -1});
  all.accept(std::vector<int32_t>{0});
  for (int i = 0; i < 200; ++i) all.accept(std::vector<int32_t>{7});
  EXPECT_EQ(all.sample(logits), 1);
}

TEST(Sampler, SameSeedSameTokensOtherSeedOthers) {
  std::vector<float> logits(500);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = std::sin(static_cast<float>(i) * 0.7f) * 2;
  }
  const auto sequence = [&](int64_t seed) {
    SamplerConfig config;
    config.seed = seed;
    Sampler sampler(config);
    std::vector<int32_t> ids;
    for (int i = 0; i < 50; ++i) ids.push_back(sampler.sample(logits));
    return ids;
  };
  EXPECT_EQ(sequence(7), sequence(7));
  EXPECT_NE(sequence(7), sequence(8));
  EXPECT_NE(sequence(0), sequence(1));
  EXPECT_EQ(sequence(-7), sequence(-7));
}

TEST(Sampler, ARandomSeedIsAnotherOneForEachSampler) {
  const std::vector<float> logits(500, 1.0f);
  const auto sequence = [&] {
    Sampler sampler(plain(SamplerConfig::kRandomSeed));
    std::vector<int32_t> ids;
    for (int i = 0; i < 50; ++i) ids.push_back(sampler.sample(logits));
    return ids;
  };
  EXPECT_NE(sequence(), sequence());
  EXPECT_EQ(drawn_seed(-3), -3);
  const int64_t drawn = drawn_seed(SamplerConfig::kRandomSeed);
  EXPECT_GE(drawn, 0);
  EXPECT_LT(drawn, int64_t{1} << 31);
}

TEST(Sampler, DrawsAreTheRecordedOnes) {
  // floor(1000 u) of xoshiro256++ seeded by splitmix64(42). This must never change, on any machine:
  // a seed in a bug report must still work.
  Sampler sampler(plain(42));
  const std::vector<float> logits(1000, 0.0f);
  std::vector<int32_t> ids;
  for (int i = 0; i < 6; ++i) ids.push_back(sampler.sample(logits));
  EXPECT_EQ(ids, (std::vector<int32_t>{814, 318, 983, 701, 793, 588}));
}

TEST(Sampler, LogitsOfAnySizeAndMagnitude) {
  SamplerConfig config;
  config.top_k = 0;
  EXPECT_EQ(support(config, {3e38f, -3e38f, 0}), (std::set<int32_t>{0}));
  EXPECT_EQ(support(plain(), {-3e38f, -3e38f}), (std::set<int32_t>{0, 1}));
  EXPECT_EQ(support(config, {1e-30f}), (std::set<int32_t>{0}));
}

TEST(Sampler, MovesKeepTheState) {
  Sampler a(plain(3));
  Sampler b(plain(3));
  const std::vector<float> logits(100, 0.0f);
  a.sample(logits);
  b.sample(logits);
  Sampler moved(std::move(a));
  EXPECT_EQ(moved.sample(logits), b.sample(logits));
}

}  // namespace sampler_tests
}  // namespace snapkv
