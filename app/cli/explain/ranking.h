// SPDX-License-Identifier: MIT
// SnapKV's vote, grouping, pooling and ranking for one KV head, as plain loops over what a probe of
// the window reported. Order and precision (f32) are the engine's, so that the kept positions must
// be equal.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "snapkv/policy.h"

namespace snapkv::cli {

/// The parameters of policy "snapkv", with defaults filled in; `budget` is in rows.
struct SnapKvRule {
  explicit SnapKvRule(const PolicyConfig& config);
  SnapKvRule() = default;

  int64_t budget = 0;
  int64_t window_size = 0;
  int64_t sinks = 0;
  int kernel_size = 1;
  bool max_pooling = true;  ///< else avg
  bool mean_group = true;   ///< else max
};

/// The ranking of one KV head of one layer. "Prefix": the L - W tokens before the window.
struct HeadRanking {
  int il = 0;
  int head = 0;                                 ///< KV head
  std::vector<std::vector<float>> query_votes;  ///< [n_group][L - W], step 2
  std::vector<float> votes;                     ///< [L - W], of the group
  std::vector<float> pooled;                    ///< [L - W], step 3
  std::vector<int32_t> kept;                    ///< positions in the prefix, ascending, step 4
  double prefix_share = 0;                      ///< share of the window's attention, 0 to 1
};

/// Ranks one head. `sums` [n_group, L]: the group's rows of AttentionProbe::Report::sums for the
/// window. Keeps rule.budget - W positions of the prefix; the budget must be below L.
HeadRanking rank_head(const SnapKvRule& rule, std::span<const float> sums, int64_t n_group,
                      int64_t n_tokens);

/// Returns the positions of the k highest scores, ascending; ties go to the lower position.
std::vector<int32_t> top_positions(std::span<const float> scores, int64_t k);

/// The first positions are attention sinks: many heads attend to them whatever the text is.
inline constexpr size_t kSinks = 4;

/// Where the highest group vote is in the prompt's first three quarters, but for the first
/// positions (which many heads attend to whatever the text): what a head looks at far back.
size_t peak_position(const HeadRanking& ranking);
/// The vote at peak_position().
inline float peak_vote(const HeadRanking& ranking) { return ranking.votes[peak_position(ranking)]; }

/// Returns prefix positions worth showing: those around peak_position() and the highest votes.
/// Ascending; n or a few more, because single tokens between two of them are included.
std::vector<int32_t> interesting_positions(const HeadRanking& ranking, int kernel_size, int64_t n);
/// Formats positions as "0-3, 17, 45-59"; after `most` ranges it only counts the rest.
std::string format_positions(const std::vector<int32_t>& positions, size_t most);

}  // namespace snapkv::cli
