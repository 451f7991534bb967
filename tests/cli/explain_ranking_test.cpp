// SPDX-License-Identifier: MIT
// The calculations and the drawing of `explain`, compared with results worked out by hand.
#include <gtest/gtest.h>

#include <limits>

#include "cli/common/plain_text.h"
#include "cli/explain/ranking.h"

namespace snapkv::cli {
namespace explain_ranking_tests {

TEST(ExplainRanking, GroupsPoolsAndRanks) {
  // 8 tokens, the last 2 of which are the window; two query heads.
  const std::vector<float> sums = {0.2f, 0, 0, 0.8f, 0, 0,    0.7f, 0.3f,  //
                                   0,    0, 0, 0.4f, 0, 0.4f, 0.2f, 1.0f};
  SnapKvRule rule;
  rule.window_size = 2;
  rule.kernel_size = 3;
  rule.budget = 5;
  HeadRanking r = rank_head(rule, sums, 2, 8);
  EXPECT_EQ(r.votes, (std::vector<float>{0.1f, 0, 0, 0.6f, 0, 0.2f}));
  EXPECT_EQ(r.pooled, (std::vector<float>{0.1f, 0.1f, 0.6f, 0.6f, 0.6f, 0.2f}));
  EXPECT_EQ(r.kept, (std::vector<int32_t>{2, 3, 4}));
  EXPECT_NEAR(r.prefix_share, 1.8 / 4, 1e-6);
  rule.budget = 4;  // a tie of three for two places: the lower positions win
  EXPECT_EQ(rank_head(rule, sums, 2, 8).kept, (std::vector<int32_t>{2, 3}));
  rule.mean_group = false;
  EXPECT_EQ(rank_head(rule, sums, 2, 8).votes, (std::vector<float>{0.2f, 0, 0, 0.8f, 0, 0.4f}));
  rule.max_pooling = false;  // beyond the edges zeros count
  EXPECT_FLOAT_EQ(rank_head(rule, sums, 2, 8).pooled[0], 0.2f / 3);
  rule.sinks = 1;
  EXPECT_EQ(rank_head(rule, sums, 2, 8).kept.front(), 0);
}

TEST(ExplainRanking, PositionsAndRows) {
  EXPECT_EQ(format_positions({0, 1, 2, 5, 7, 8}, 9), "0-2, 5, 7-8");
  EXPECT_EQ(format_positions({0, 1, 2, 5, 7, 8}, 1), "0-2 and 2 more ranges");
  EXPECT_EQ(format_positions({}, 1), "");
  HeadRanking r;
  r.votes.assign(100, 0.0f);
  r.votes[50] = 2;
  r.votes[53] = 1;
  EXPECT_EQ(interesting_positions(r, 3, 5), (std::vector<int32_t>{48, 49, 50, 51, 52}));
  EXPECT_EQ(interesting_positions(r, 1, 4), (std::vector<int32_t>{49, 50, 51, 52, 53}));
  r.votes.assign(3, 1.0f);
  EXPECT_EQ(interesting_positions(r, 7, 10), (std::vector<int32_t>{0, 1, 2}));
}

TEST(PlainText, IsSafeForATerminal) {
  EXPECT_EQ(printable("a\x1b[2J\nb\x7f"), "a\\x1b[2J\\nb\\x7f");
  EXPECT_EQ(printable("a\nb", true), "a\nb");
  EXPECT_EQ(printable("\xe2\x82\xac\xe2\x82"), "\xe2\x82\xac\\xe2\\x82");
  EXPECT_EQ(printable("\xc2\x9b"
                      "1m\xed\xa0\x80"),
            "\\xc2\\x9b1m\\xed\\xa0\\x80");
  EXPECT_EQ(fit("\xc3\xa4\xc3\xb6\xc3\xbc", 4, "."), "\xc3\xa4\xc3\xb6\xc3\xbc ");
  EXPECT_EQ(fit("\xc3\xa4\xc3\xb6\xc3\xbc", 2, "."), "\xc3\xa4.");
  const std::string wide = "\xe6\xbc\xa2\xe5\xad\x97";  // two characters, each two columns wide
  EXPECT_EQ(n_columns(wide), 4u);
  EXPECT_EQ(fit(wide, 5, "."), wide + " ");
  EXPECT_EQ(fit(wide, 3, "."), wide.substr(0, 3) + ".");
  EXPECT_EQ(fit(wide + wide, 6, "."), wide + ". ");
}

TEST(PlainText, LinesAreBrokenAtBlanks) {
  EXPECT_EQ(wrapped("one two three four\nfive", 10), "one two\n    three\n    four\nfive");
  EXPECT_EQ(wrapped("  kept  words", 20), "  kept  words");
  EXPECT_EQ(wrapped("a wordthatistoolong b", 6), "a\n    wordthatistoolong\n    b");
  EXPECT_EQ(wrapped("\x1b[1mone\x1b[0m two", 7), "\x1b[1mone\x1b[0m two");
  EXPECT_EQ(wrapped("\xc3\xa4\xc3\xb6 \xc3\xbc", 4), "\xc3\xa4\xc3\xb6 \xc3\xbc");
}

TEST(PlainText, BarsHaveTheirWidth) {
  EXPECT_EQ(Drawing(false).bar(0.5, 4), "##  ");
  EXPECT_EQ(Drawing(false).bar(7, 4), "####");
  EXPECT_EQ(Drawing(true).bar(0.53125, 4), "██▏ ");
  EXPECT_EQ(Drawing(true).bar(-1, 2), "  ");
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Drawing(false).profile(std::vector<float>{0, 1, inf, 0.5f}, 1.0), " @@=");
}

}  // namespace explain_ranking_tests
}  // namespace snapkv::cli
