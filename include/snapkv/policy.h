// SPDX-License-Identifier: MIT
// Which positions of a prompt's KV cache are kept: the policy and its parameters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace snapkv {

/// How votes are smoothed along the positions (SnapKV, arXiv 2404.14469, section 4.2).
enum class Pooling { max, avg };

/// How the query heads that share one KV head combine their votes (grouped-query attention).
enum class GroupReduce { mean, max };

/// A selection policy. Defaults are the paper's.
struct PolicyConfig {
  std::string name = "snapkv";  ///< policy_names() lists all; docs/policies.md describes them
  int64_t budget = 1024;        ///< rows kept per layer and KV head, the window included
  double ratio = 0.0;           ///< if > 0: keep this share of the prompt, (0, 1]; overrides budget
  int window_size = 32;         ///< queries that vote, W; their positions are always kept
  int kernel_size = 7;          ///< pooling width, odd
  Pooling pooling = Pooling::max;
  GroupReduce group = GroupReduce::mean;
  int sinks = -1;           ///< first rows always kept; -1: the policy's own (4 or 0)
  bool critical = false;    ///< half of the rows by attention times ||W_o v|| (CriticalKV)
  uint64_t seed = 0;        ///< random
  int chunk_length = 20;    ///< chunkkv: rows kept or dropped together
  int n_future = 512;       ///< expected-attention: coming positions that count
  double head_floor = 0.2;  ///< ada-snapkv: share of a head's budget that others can't take
  int pyramid_beta = 20;    ///< pyramidkv: the last layer keeps about budget / beta
};

/// Names that PolicyConfig::name accepts.
std::vector<std::string> policy_names();

/// Throws Error{kUsage} naming the field when the configuration can't work (unknown name, even
/// kernel, budget <= window + sinks, ratio outside [0, 1], ...).
void validate(const PolicyConfig& config);

}  // namespace snapkv
