// SPDX-License-Identifier: MIT
// The metrics of eval/, compared with values computed by hand.
#include "eval/common/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "eval/common/porter_stemmer.h"
#include "tests/support/expect_error.h"

namespace snapkv::eval {
namespace {

constexpr double kTiny = 1e-9;

TEST(Metrics, StemsOfPortersPaper) {
  // Each is the example of a rule in the paper, with the result of all steps.
  const std::pair<const char*, const char*> examples[] = {{"caresses", "caress"},
                                                          {"ponies", "poni"},
                                                          {"cats", "cat"},
                                                          {"feed", "feed"},
                                                          {"agreed", "agre"},
                                                          {"plastered", "plaster"},
                                                          {"motoring", "motor"},
                                                          {"sing", "sing"},
                                                          {"hopping", "hop"},
                                                          {"falling", "fall"},
                                                          {"filing", "file"},
                                                          {"happy", "happi"},
                                                          {"sky", "sky"},
                                                          {"relational", "relat"},
                                                          {"hopeful", "hope"},
                                                          {"adoption", "adopt"},
                                                          {"replacement", "replac"},
                                                          {"probate", "probat"},
                                                          {"rate", "rate"},
                                                          {"controll", "control"},
                                                          {"oscillators", "oscil"},
                                                          {"sandwiches", "sandwich"}};
  for (const auto& [word, stem] : examples) EXPECT_EQ(porter_stem(word), stem) << word;
}

TEST(Metrics, Rouge1) {
  // Answer: eat, sandwich (the stem of sandwiches), in, the, park: 5. Reference: eat, a, sandwich,
  // in, dolor, park: 6. Common: eat, sandwich, in, park: 4. P = 4/5, R = 4/6,
  // F = 2 P R / (P + R) = 8/11.
  EXPECT_NEAR(rouge_1("Eat sandwiches in the park!", "eat a sandwich in Dolores Park"), 8.0 / 11,
              kTiny);
  // "the" counts once: P = 1/3, R = 1/2, F = 2/5.
  EXPECT_NEAR(rouge_1("the the the", "the cat"), 0.4, kTiny);
  EXPECT_EQ(rouge_1("", "cat"), 0);
}

TEST(Metrics, RougeL) {
  // Lin 2004, with the reference "police killed the gunman". "police kill the gunman": the LCS is 3
  // of 4 and 4 words: 3/4. "the gunman kill police": the LCS is "the gunman": 2/4.
  EXPECT_NEAR(rouge_l("police kill the gunman", "police killed the gunman"), 0.75, kTiny);
  EXPECT_NEAR(rouge_l("the gunman kill police", "police killed the gunman"), 0.5, kTiny);
}

TEST(Metrics, RougeLOfSummaries) {
  // Results of rouge 1.0.1, Rouge().get_scores([answer], [reference])[0]["rouge-l"]["f"], which
  // adds 1e-8 to the denominator.
  const std::tuple<const char*, const char*, double> examples[] = {
      {"police kill the gunman", "police killed the gunman", 0.749999995},
      {"the gunman kill police", "police killed the gunman", 0.499999995},
      {"The cat sat. A dog ran away. The cat slept.", "A dog slept. The cat ran.", 0.857142852},
      {"w1 w2 w6 w7 w8. w1 w3 w8 w9 w5.", "w1 w2 w3 w4 w5", 0.615384611},
      {"the the the the", "the cat", 0.666666662},
      {"One two three. ", "one two three.", 0.571428567},
      {"a b c a b", "b a c", 0.666666662},
      {"", "x", 0},
      {"...", "x", 0},
      {"x. ", "x. ", 0.999999995},
      {"\u00dcn\u00efcode caf\u00e9 est. la", "caf\u00e9 est la \u00dcn\u00efcode.", 0.749999995},
      {"a b. c d. a c", "c a. d b. c", 0.999999995}};
  for (const auto& [answer, reference, score] : examples) {
    EXPECT_NEAR(rouge_l_summary(answer, reference), score, 1e-7) << answer;
  }
}

TEST(Metrics, QaF1) {
  EXPECT_EQ(qa_f1("The Eiffel Tower.", "eiffel tower"), 1);
  // Answer: in, paris, france (3). Reference: paris (1). P = 1/3, R = 1, F = 1/2.
  EXPECT_NEAR(qa_f1("in Paris, France", "Paris"), 0.5, kTiny);
}

TEST(Metrics, Classification) {
  const std::vector<std::string> classes = {"Date", "Number", "Other number"};
  EXPECT_EQ(classification("It is a Date", "Date", classes), 1);
  EXPECT_EQ(classification("Date or Number", "Date", classes), 0.5);  // two found, one right
  EXPECT_EQ(classification("Number", "Date", classes), 0);
}

TEST(Metrics, NumberShare) {
  EXPECT_NEAR(number_share("Paragraph 3, not 13 or 4", "3"), 1.0 / 3, kTiny);
  EXPECT_EQ(number_share("none", "3"), 0);
}

TEST(Metrics, CodeSimilarity) {
  // The comment and the fence are skipped. "x = 1" and "x = 2" have "x = " in common: 2 * 4 / 10.
  EXPECT_NEAR(code_similarity("\n# set x\n```\nx = 1\ny = 2", "x = 2"), 0.8, kTiny);
  EXPECT_EQ(code_similarity("// only a comment", "x = 2"), 0);
  EXPECT_EQ(code_similarity("", ""), 1);
  // Characters count, not bytes: 1 of 2 and 2.
  EXPECT_NEAR(code_similarity("\u00e9x", "\u00e8x"), 0.5, kTiny);
}

TEST(Metrics, FoundShare) {
  EXPECT_EQ(found_share("ALPHA and beta", std::vector<std::string>{"alpha", "gamma"}), 0.5);
}

TEST(Metrics, Wilson) {
  // 8 of 10: the centre is (0.8 + z2/20) / (1 + z2/10) = 0.992073 / 1.384146 = 0.716740, and the
  // half width is 1.959964 sqrt(0.016 + 0.0096036) / 1.384146 = 0.226577.
  const Interval interval = wilson(0.8, 10);
  EXPECT_NEAR(interval.low, 0.490162, 1e-5);
  EXPECT_NEAR(interval.high, 0.943318, 1e-5);
  // 0 of 10 still leaves z2 / (10 + z2) = 0.277533.
  EXPECT_NEAR(wilson(0, 10).high, 0.277533, 1e-5);
  EXPECT_EQ(wilson(0, 10).low, 0);
  EXPECT_EQ(wilson(0, 0).high, 1);
}

TEST(Metrics, KlDivergence) {
  // p = (1/2, 1/2), q = (1/4, 3/4): ln 2 / 2 + ln(2/3) / 2 = 0.143841
  const std::vector<float> p = {0, 0}, q = {0, std::log(3.0f)};
  EXPECT_NEAR(kl_divergence(log_softmax(p), log_softmax(q)), 0.143841, 1e-6);
  EXPECT_EQ(kl_divergence(log_softmax(q), log_softmax(q)), 0);
}

TEST(Metrics, NeverScoreWhatIsNotANumber) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float bad : {kNan, kInf, -kInf}) {
    const std::vector<float> logits = {1.0f, bad, 2.0f};
    test::expect_error(ErrorCode::kRuntime, {"1 of 3 logits", "token 1"},
                       [&] { log_softmax(logits); });
    const std::vector<double> one = {-1.0, bad}, other = {-1.0, -1.0};
    if (bad != -kInf) {  // a probability of 0 on the left adds nothing to the sum
      test::expect_error(ErrorCode::kRuntime, {"divergence"}, [&] { kl_divergence(one, other); });
    }
    test::expect_error(ErrorCode::kRuntime, {"divergence"}, [&] { kl_divergence(other, one); });
    test::expect_error(ErrorCode::kRuntime, {"5 scores"}, [&] { wilson(bad, 5); });
  }
  for (const double bad : {-1e-9, 1.0 + 1e-9, double{kNan}}) {
    test::expect_error(ErrorCode::kRuntime, {"item 7"}, [&] { checked_score(bad, "item 7"); });
  }
  EXPECT_EQ(checked_score(1, "x"), 1);
}

}  // namespace
}  // namespace snapkv::eval
