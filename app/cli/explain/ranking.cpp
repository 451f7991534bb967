// SPDX-License-Identifier: MIT
#include "cli/explain/ranking.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <set>

namespace snapkv::cli {
namespace {

std::vector<float> reduce_group(const std::vector<std::vector<float>>& heads, bool is_mean) {
  std::vector<float> votes = heads.front();
  for (size_t h = 1; h < heads.size(); ++h) {
    for (size_t j = 0; j < votes.size(); ++j) {
      votes[j] = is_mean ? votes[j] + heads[h][j] : std::max(votes[j], heads[h][j]);
    }
  }
  if (!is_mean) return votes;
  const float factor = 1.0f / static_cast<float>(heads.size());
  for (float& v : votes) v *= factor;
  return votes;
}

std::vector<float> pool_votes(const std::vector<float>& votes, int kernel_size, bool is_max) {
  const int64_t n = std::ssize(votes), half = kernel_size / 2;
  std::vector<float> pooled;
  for (int64_t j = 0; j < n; ++j) {
    float max = -std::numeric_limits<float>::infinity(), sum = 0;
    for (int64_t i = std::max<int64_t>(0, j - half); i <= std::min(n - 1, j + half); ++i) {
      max = std::max(max, votes[i]);
      sum += votes[i];
    }
    pooled.push_back(is_max ? max : sum / static_cast<float>(kernel_size));
  }
  return pooled;
}

}  // namespace

std::vector<int32_t> top_positions(std::span<const float> scores, int64_t k) {
  std::vector<int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return scores[a] > scores[b]; });
  order.resize(static_cast<size_t>(std::min<int64_t>(k, std::ssize(order))));
  std::sort(order.begin(), order.end());
  return order;
}

SnapKvRule::SnapKvRule(const PolicyConfig& config)
    : budget(config.budget),
      window_size(policy_window(config)),
      sinks(std::get<int64_t>(policy_value(config, "sinks"))),
      kernel_size(static_cast<int>(std::get<int64_t>(policy_value(config, "kernel_size")))),
      max_pooling(std::get<std::string>(policy_value(config, "pooling")) == "max"),
      mean_group(std::get<std::string>(policy_value(config, "group")) == "mean") {}

HeadRanking rank_head(const SnapKvRule& rule, std::span<const float> sums, int64_t n_group,
                      int64_t n_tokens) {
  HeadRanking r;
  const auto n_prefix = static_cast<size_t>(n_tokens - rule.window_size);
  double prefix = 0, all = 0;
  for (int64_t h = 0; h < n_group; ++h) {
    const auto row = sums.subspan(static_cast<size_t>(h * n_tokens), static_cast<size_t>(n_tokens));
    r.query_votes.emplace_back(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(n_prefix));
    prefix = std::accumulate(r.query_votes.back().begin(), r.query_votes.back().end(), prefix);
    all = std::accumulate(row.begin(), row.end(), all);
  }
  r.prefix_share = prefix / all;
  r.votes = reduce_group(r.query_votes, rule.mean_group);
  r.pooled = pool_votes(r.votes, rule.kernel_size, rule.max_pooling);
  for (size_t j = 0; j < std::min<size_t>(rule.sinks, n_prefix); ++j) {
    r.pooled[j] = std::numeric_limits<float>::infinity();
  }
  r.kept = top_positions(r.pooled, rule.budget - rule.window_size);
  return r;
}

size_t peak_position(const HeadRanking& ranking) {
  const std::vector<float>& votes = ranking.votes;
  const size_t first = std::min(kSinks, votes.size() - 1);
  const size_t end = std::max(first + 1, votes.size() * 3 / 4);
  const auto highest = std::max_element(votes.begin() + static_cast<std::ptrdiff_t>(first),
                                        votes.begin() + static_cast<std::ptrdiff_t>(end));
  return static_cast<size_t>(highest - votes.begin());
}

std::vector<int32_t> interesting_positions(const HeadRanking& r, int kernel_size, int64_t n) {
  const auto n_prefix = static_cast<int32_t>(r.votes.size());
  std::set<int32_t> rows;
  const auto add = [&](int32_t j) {
    if (j >= 0 && j < n_prefix && std::ssize(rows) < n) rows.insert(j);
  };
  std::vector<int32_t> by_vote = top_positions(r.votes, n_prefix);
  std::stable_sort(by_vote.begin(), by_vote.end(),
                   [&](int32_t a, int32_t b) { return r.votes[a] > r.votes[b]; });
  // the peak with every position its kernel reaches, and one more on each side, which it does not
  // keep
  const int32_t reach = kernel_size / 2 + 1, peak = static_cast<int32_t>(peak_position(r));
  for (int32_t d = 0; d <= reach; ++d) add(peak - d), add(peak + d);
  for (const int32_t j : by_vote) {
    for (const int32_t d : {0, -1, 1}) add(j + d);
  }
  // a single token between two rows takes no more room than a line saying that it is left out
  for (auto it = rows.begin(); std::next(it) != rows.end(); ++it) {
    if (*std::next(it) == *it + 2) rows.insert(*it + 1);
  }
  return {rows.begin(), rows.end()};
}

std::string format_positions(const std::vector<int32_t>& positions, size_t most) {
  std::vector<std::string> ranges;
  for (size_t i = 0; i < positions.size();) {
    size_t end = i + 1;
    while (end < positions.size() && positions[end] == positions[end - 1] + 1) ++end;
    ranges.push_back(end - i == 1 ? fmt::format("{}", positions[i])
                                  : fmt::format("{}-{}", positions[i], positions[end - 1]));
    i = end;
  }
  std::string text;
  for (size_t i = 0; i < std::min(most, ranges.size()); ++i) {
    text += (i == 0 ? "" : ", ") + ranges[i];
  }
  if (ranges.size() > most) {
    const size_t n = ranges.size() - most;
    text += fmt::format(" and {} more range{}", n, n == 1 ? "" : "s");
  }
  return text;
}

}  // namespace snapkv::cli
