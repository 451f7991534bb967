// SPDX-License-Identifier: MIT
#include "long_documents/bm25.h"

#include <gtest/gtest.h>

#include <cmath>

namespace snapkv::long_documents {
namespace {

TEST(Bm25, ScoresAreTheFormulas) {
  const Bm25 index({{"a", "b", "a"}, {"b"}, {"c", "d"}});
  EXPECT_EQ(index.n_passages(), 3u);
  EXPECT_EQ(index.n_with("b"), 2u);
  EXPECT_EQ(index.n_with("x"), 0u);
  // by hand: N = 3, the average length 2; "a" is twice in a passage of 3 words
  const double idf_a = std::log(1 + (3 - 1 + 0.5) / (1 + 0.5));
  const double idf_b = std::log(1 + (3 - 2 + 0.5) / (2 + 0.5));
  const auto part = [](double f, double length) {
    return f * 2.2 / (f + 1.2 * (0.25 + 0.75 * length / 2));
  };
  const std::vector<double> scores = index.scores({"a", "b", "x"});
  ASSERT_EQ(scores.size(), 3u);
  EXPECT_NEAR(scores[0], idf_a * part(2, 3) + idf_b * part(1, 3), 1e-12);
  EXPECT_NEAR(scores[1], idf_b * part(1, 1), 1e-12);
  EXPECT_EQ(scores[2], 0);
  EXPECT_NEAR(index.scores({"b", "b"})[1], 2 * idf_b * part(1, 1), 1e-12);
}

TEST(Bm25, AWordThatAllHaveDoesNotCountAgainstThem) {
  const Bm25 index({{"a"}, {"a"}, {"a"}});
  for (const double score : index.scores({"a"})) EXPECT_GT(score, 0);
}

TEST(Bm25, MayBeEmpty) {
  const Bm25 nothing({});
  EXPECT_TRUE(nothing.scores({"a"}).empty());
  const Bm25 no_words({{}, {}});
  EXPECT_EQ(no_words.scores({"a"}), (std::vector<double>{0, 0}));
}

}  // namespace
}  // namespace snapkv::long_documents
