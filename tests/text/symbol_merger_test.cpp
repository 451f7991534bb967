// SPDX-License-Identifier: MIT
// SymbolMerger: the same result as the loop of the definition, for short words, long ones, and long
// ones that use buckets; and linear time.
#include "text/symbol_merger.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/cpu_timer.h"
#include "text/merge_table.h"

namespace snapkv {
namespace {

using Joined = SymbolMerger::Joined;
using Pairs = std::map<std::pair<int32_t, int32_t>, Joined>;

/// The definition: join the pair of the lowest rank, and the leftmost of these, until no pair
/// joins.
std::vector<int32_t> plain(std::vector<int32_t> symbols, const Pairs& pairs) {
  for (;;) {
    size_t best = symbols.size();
    Joined joined;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto at = pairs.find({symbols[i], symbols[i + 1]});
      if (at != pairs.end() && at->second.rank < joined.rank) {
        joined = at->second;
        best = i;
      }
    }
    if (best == symbols.size()) return symbols;
    symbols[best] = joined.symbol;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

std::vector<int32_t> merged(SymbolMerger& merger, const std::vector<int32_t>& symbols,
                            const MergeTable& table, uint32_t n_ranks) {
  merger.clear();
  for (size_t i = 0; i < symbols.size(); ++i) merger.append(symbols[i], i);
  merger.run(symbols.size(), n_ranks,
             [&](const SymbolMerger::Symbol& a, const SymbolMerger::Symbol& b, size_t) {
               return table.find(a.symbol, b.symbol);
             });
  std::vector<int32_t> out;
  size_t done = 0;
  merger.for_each(symbols.size(), [&](int32_t symbol, size_t begin, size_t end) {
    EXPECT_EQ(begin, done);
    EXPECT_GT(end, begin);
    done = end;
    out.push_back(symbol);
  });
  EXPECT_EQ(done, symbols.size());
  return out;
}

struct Rules {
  Pairs pairs;
  MergeTable table{64};
  uint32_t n_ranks = 0;
};

/// Arbitrary merges, including some whose parts come later than their result.
Rules random_rules(std::mt19937& random, bool equal_ranks) {
  Rules rules;
  const auto n = 1 + random() % 40;
  for (uint32_t i = 0; i < n; ++i) {
    const auto a = static_cast<int32_t>(random() % 12), b = static_cast<int32_t>(random() % 12);
    const Joined joined = {equal_ranks ? static_cast<uint32_t>(random() % 5) : i,
                           static_cast<int32_t>(random() % 20)};
    if (rules.pairs.emplace(std::pair{a, b}, joined).second)
      rules.table.insert(a, b, joined, false);
  }
  rules.n_ranks = static_cast<uint32_t>(n);
  return rules;
}

TEST(SymbolMergerTest, ShortAndMediumWords) {
  std::mt19937 random(3);
  SymbolMerger merger;
  for (int round = 0; round < 4000; ++round) {
    const Rules rules = random_rules(random, round % 2 == 0);
    std::vector<int32_t> symbols(random() % (round % 10 == 0 ? 400 : 40));
    for (int32_t& s : symbols) s = static_cast<int32_t>(random() % 12);
    ASSERT_EQ(merged(merger, symbols, rules.table, rules.n_ranks), plain(symbols, rules.pairs));
  }
}

TEST(SymbolMergerTest, LongWordsWithBuckets) {
  std::mt19937 random(4);
  SymbolMerger merger;
  for (int round = 0; round < 8; ++round) {
    const Rules rules = random_rules(random, round % 2 == 0);
    std::vector<int32_t> symbols(17'000);
    for (int32_t& s : symbols) s = static_cast<int32_t>(random() % 12);
    // Symbols that join with nothing split the text into pieces that can be checked one by one.
    for (size_t i = 0; i < symbols.size(); i += 500) symbols[i] = 1000;
    std::vector<int32_t> expected;
    for (size_t i = 0; i < symbols.size(); i += 500) {
      const auto begin = symbols.begin() + static_cast<std::ptrdiff_t>(i);
      const auto part = plain({begin, begin + 500}, rules.pairs);
      expected.insert(expected.end(), part.begin(), part.end());
    }
    ASSERT_EQ(merged(merger, symbols, rules.table, rules.n_ranks), expected);
  }
}

TEST(SymbolMergerTest, TimeIsLinear) {
  MergeTable table(20);
  uint32_t rank = 0;
  for (int32_t i = 0; i < 20; ++i) table.insert(i, i, {rank++, i + 1}, false);
  SymbolMerger merger;
  const std::vector<int32_t> symbols(3'000'000, 0);
  const CpuTimer timer;
  EXPECT_LT(merged(merger, symbols, table, rank).size(), 20u);
  EXPECT_LT(timer.seconds(), 60) << "quadratic would be 10^13 steps";
}

TEST(MergeTableTest, TheFirstOfAPairStaysUnlessItIsReplaced) {
  MergeTable table(4);
  table.insert(1, 2, {7, 3}, false);
  table.insert(1, 2, {8, 4}, false);
  EXPECT_EQ(table.find(1, 2).rank, 7u);
  table.insert(1, 2, {9, 5}, true);
  EXPECT_EQ(table.find(1, 2).symbol, 5);
  EXPECT_EQ(table.find(2, 1).rank, SymbolMerger::kNever);
  EXPECT_EQ(table.find(-1, 2).rank, SymbolMerger::kNever);
}

}  // namespace
}  // namespace snapkv
