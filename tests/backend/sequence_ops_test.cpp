// SPDX-License-Identifier: MIT
// As ops_test.cpp, for ops that pass along sequences with a state.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "backend/ops.h"
#include "tests/backend/op_test_util.h"

namespace snapkv::test {
namespace sequence_ops_tests {

constexpr Tolerance kExact{};
constexpr Tolerance kRounded{.abs = 1e-6, .rel = 1e-6};  // one f32 rounding of an f64 result
constexpr float kLn2 = 0.69314718f;

using Values = std::vector<float>;

class RefSequenceOps : public testing::Test {
 protected:
  std::unique_ptr<Backend> backend_ = make_ref();
};

TEST_F(RefSequenceOps, ShortConvSeesTheLastInputsOfItsSequence) {
  // rows b, c, x of two tokens, then of another sequence; y = b * x is 3, 2 and 4
  const TestTensor in({3, 3, 1}, Values{1, 2, 3, /**/ 2, 1, 1, /**/ 2, -1, 2});
  const TestTensor weight({1, 3}, Values{1, 10, 100}), out({3, 1});
  const TestTensor before({2, 2}, Values{5, 7, 0, 0}), after({2, 2});
  const SequenceRows rows[] = {{0, 2, before.view().at<void>(0), after.view().at<void>(0)},
                               {2, 3, before.view().at<void>(1), after.view().at<void>(1)}};
  ops::short_conv(*backend_, {in, weight, rows, out});
  EXPECT_TRUE(all_close(out.values(), {2 * (5 + 70 + 300), 7 + 30 + 200, -400}, kExact));
  EXPECT_TRUE(all_close(after.values(), {3, 2, 0, 4}, kExact));
}

TEST_F(RefSequenceOps, ShortConvWithoutGatesIsSiluOfTheSum) {
  const TestTensor in({2, 1, 1}, Values{kLn2, 0}), weight({1, 2}, Values{1, 1}), out({2, 1});
  const TestTensor before({1, 1}, Values{0}), after({1, 1});
  const SequenceRows rows[] = {{0, 2, before.view().at<void>(0), after.view().at<void>(0)}};
  ops::short_conv(*backend_, {in, weight, rows, out});  // 1 / (1 + exp(-ln 2)) = 2 / 3
  EXPECT_TRUE(all_close(out.values(), {kLn2 * 2 / 3, kLn2 * 2 / 3}, kRounded));
  EXPECT_TRUE(all_close(after.values(), {0}, kExact));
}

TEST_F(RefSequenceOps, SelectiveScanDecaysAndAdds) {
  // one head of one value, a state of 2; x, B (1, 2), C (1, 0.5)
  const TestTensor xbc({2, 5}, Values{3, 1, 2, 1, 0.5f, /**/ 0, 1, 2, 1, 0.5f});
  // softplus(0) = ln 2: the step; exp(-ln 2): the state is halved
  const TestTensor zero({2, 1}), rate({1}, Values{-1}), bias({1}), out({2, 1, 1});
  const TestTensor skip({1}, Values{10});
  const TestTensor before({1, 2}, Values{8, 4}), after({1, 2});
  const SequenceRows rows[] = {{0, 2, before.view().at<void>(0), after.view().at<void>(0)}};
  ops::selective_scan(*backend_, {.xbc = xbc,
                                  .step = zero,
                                  .rate = rate,
                                  .step_bias = bias,
                                  .skip = skip,
                                  .n_group = 1,
                                  .d_state = 2,
                                  .sequences = rows,
                                  .out = out});
  const float added = 3 * kLn2;  // (8, 4) becomes (4, 2) + added (1, 2), which is halved again
  EXPECT_TRUE(all_close(after.values(), {2 + added / 2, 1 + added}, kRounded));
  EXPECT_TRUE(all_close(out.values(), {30 + 5 + 2 * added, 2.5f + added}, kRounded));
}

TEST_F(RefSequenceOps, ChannelScanDecaysEachValueAtItsOwnPace) {
  // one channel with a state of 2: softplus(0) = ln 2, so that its values are halved and quartered
  const TestTensor x({2, 1}, Values{3, 0}), step({2, 1}), out({2, 1});
  const TestTensor b({2, 2}, Values{1, 2, 1, 2}), c({2, 2}, Values{1, 0.5f, 1, 0.5f});
  const TestTensor rate({2, 1}, Values{-1, -2}), skip({1}, Values{10});
  const TestTensor before({1, 2}, Values{8, 4}), after({1, 2});
  const SequenceRows rows[] = {{0, 2, before.view().at<void>(0), after.view().at<void>(0)}};
  ops::channel_scan(*backend_, {.x = x,
                                .step = step,
                                .b = b,
                                .c = c,
                                .rate = rate,
                                .skip = skip,
                                .sequences = rows,
                                .out = out});
  const float added = 3 * kLn2;  // (8, 4) becomes (4, 1) + added (1, 2), then (2, 0.25) + ...
  EXPECT_TRUE(all_close(after.values(), {2 + added / 2, 0.25f + added / 2}, kRounded));
  EXPECT_TRUE(all_close(out.values(), {30 + 4.5f + 2 * added, 2.125f + added * 0.75f}, kRounded));
}

/// Of one head with keys of 2 values and a value of 1, whose beta is sigmoid(0) = 1 / 2.
struct OneHead {
  TestTensor out, after;

  OneHead(Backend& backend, const TestTensor& qkv, const TestTensor& decay, const TestTensor& bias)
      : out({qkv.view().shape[0], 1, 1}), after({1, 2}) {
    const int64_t n = qkv.view().shape[0];
    const TestTensor beta({n, 1}), rate({1}, Values{-1}), before({1, 2}, Values{10, 20});
    const SequenceRows rows[] = {{0, n, before.view().at<void>(0), after.view().at<void>(0)}};
    ops::delta_rule(backend, {.qkv = qkv,
                              .decay = decay,
                              .beta = beta,
                              .rate = rate,
                              .decay_bias = bias,
                              .n_head_k = 1,
                              .d_k = 2,
                              .eps = 0.0f,
                              .sequences = rows,
                              .out = out});
  }
};

TEST_F(RefSequenceOps, DeltaRuleForgetsAndCorrects) {
  // the key is (3, 4) / 5, the query (1, 0); softplus(0) = ln 2: the state is halved
  const TestTensor qkv({2, 5}, Values{2, 0, 3, 4, 10, /**/ 2, 0, 3, 4, 10});
  const OneHead head(*backend_, qkv, TestTensor({2, 1}), TestTensor({1}));
  // (5, 10) holds 11 for the key, so half of -1 is added to it: (4.7, 9.6); then (2.35, 4.8) holds
  // 5.25, and half of 4.75 is added: (3.775, 6.7)
  const float root = std::sqrt(0.5f);
  EXPECT_TRUE(all_close(head.out.values(), {4.7f * root, 3.775f * root}, kRounded));
  EXPECT_TRUE(all_close(head.after.values(), {3.775f, 6.7f}, kRounded));
}

TEST_F(RefSequenceOps, DeltaRuleForgetsEachChannelAtItsOwnPace) {
  // as above; softplus(0) = ln 2 halves the first row of the state, softplus(ln 3) = 2 ln 2
  // quarters the second one
  const TestTensor qkv({1, 5}, Values{2, 0, 3, 4, 10});
  const OneHead head(*backend_, qkv, TestTensor({1, 2}),
                     TestTensor({2}, Values{0, std::log(3.0f)}));
  // (5, 5) holds 7 for the key, so half of 3 is added to it: (5.9, 6.2)
  EXPECT_TRUE(all_close(head.out.values(), {5.9f * std::sqrt(0.5f)}, kRounded));
  EXPECT_TRUE(all_close(head.after.values(), {5.9f, 6.2f}, kRounded));
}

TEST_F(RefSequenceOps, TokenShiftMixesARowWithTheOneBefore) {
  const TestTensor x({3, 1}, Values{1, 3, 4}), mix({2, 1}, Values{0.5f, 1});
  const TestTensor half({3, 1}), before({2, 1}, Values{5, 8}), after({2, 1}), one({3, 1});
  const SequenceRows rows[] = {{0, 2, before.view().at<void>(0), after.view().at<void>(0)},
                               {2, 3, before.view().at<void>(1), after.view().at<void>(1)}};
  const Tensor outs[] = {half, one};
  ops::token_shift(*backend_, {.x = x, .mix = mix, .sequences = rows, .outs = outs});
  EXPECT_TRUE(all_close(half.values(), {3, 2, 6}, kExact));
  EXPECT_TRUE(all_close(one.values(), {5, 1, 8}, kExact));
  EXPECT_TRUE(all_close(after.values(), {3, 4}, kExact));
  const TestTensor more({3, 1}, Values{0.25f, 0, -0.5f}), none({3, 1});
  const Tensor added[] = {more, none};
  ops::token_shift(*backend_,
                   {.x = x, .mix = mix, .added = added, .sequences = rows, .outs = outs});
  EXPECT_TRUE(all_close(half.values(), {4, 2, 4}, kExact));
  EXPECT_TRUE(all_close(one.values(), {5, 1, 8}, kExact));
}

TEST_F(RefSequenceOps, BlendGoesAsFarAsTheGateSays) {
  const TestTensor x({1, 3}, Values{2, 2, 2}), y({1, 3}, Values{6, 6, 6});
  ops::blend(*backend_, x, y, TestTensor({1, 3}, Values{0, 100, -100}));
  EXPECT_TRUE(all_close(x.values(), {4, 6, 2}, kRounded));
}

/// A token of one head with a state of 2 x 2.
struct OneToken {
  TestTensor out{{1, 1, 2}}, after{{1, 4}}, shares{{1, 1}};

  OneToken(Backend& backend, WkvRule rule, float decay, const Tensor& bonus) {
    const TestTensor r({1, 2}, Values{1, 1}), k({1, 2}, Values{3, 4}), v({1, 2}, Values{1, 2});
    const TestTensor decays({1, 2}, Values{decay, decay}), rate({1, 2});
    const TestTensor removal({2}, Values{1, 1}), replacement({2}, Values{0, 1});
    const TestTensor before({1, 4}, Values{8, 4, 2, 6});
    const SequenceRows rows[] = {{0, 1, before.view().at<void>(0), after.view().at<void>(0)}};
    Wkv w = {.rule = rule, .r = r, .decay = decays, .k = k, .v = v, .sequences = rows, .out = out};
    w.bonus = bonus;
    if (rule == WkvRule::rwkv7) {
      w.rate = rate;  // sigmoid(0) = 1 / 2
      w.removal = removal;
      w.replacement = replacement;
      w.shares = shares;
    }
    ops::wkv(backend, w);
  }
};

TEST_F(RefSequenceOps, WkvOfRwkv7RemovesAndReplaces) {
  // Nothing decays. The key is (3, 4) / 5, for which the state holds (6.4, 7.2): half of it goes.
  // What is added has the key (3, 4 / 2).
  const OneToken token(*backend_, WkvRule::rwkv7, -100.0f, TestTensor({2}, Values{1, 10}));
  EXPECT_TRUE(all_close(token.after.values(), {9.08f, 7.84f, 1.44f, 7.12f}, kRounded));
  EXPECT_TRUE(all_close(token.out.values(), {10.52f, 14.96f}, kRounded));
  EXPECT_TRUE(all_close(token.shares.values(), {23}, kRounded));
}

TEST_F(RefSequenceOps, WkvOfRwkv6ReadsTheStateBeforeTheToken) {
  // exp(-ln 2): the state is halved; the token's own part is (3 + 4 / 2) (1, 2)
  const OneToken token(*backend_, WkvRule::rwkv6, std::log(kLn2), TestTensor({2}, Values{1, 0.5f}));
  EXPECT_TRUE(all_close(token.out.values(), {15, 20}, kRounded));
  EXPECT_TRUE(all_close(token.after.values(), {7, 8, 5, 11}, kRounded));
}

TEST_F(RefSequenceOps, GatedWkvAddsAsMuchAsIsForgotten) {
  const OneToken token(*backend_, WkvRule::gated, std::log(kLn2), Tensor());
  EXPECT_TRUE(all_close(token.after.values(), {5.5f, 5, 3, 7}, kRounded));
  EXPECT_TRUE(
      all_close(token.out.values(), {8.5f * std::sqrt(0.5f), 12 * std::sqrt(0.5f)}, kRounded));
}

}  // namespace sequence_ops_tests
}  // namespace snapkv::test
