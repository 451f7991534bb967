// SPDX-License-Identifier: MIT
// Replay: a piece of a prompt as the answer to a request to repeat it, which is read after the
// prompt, over all of its rows, for policies that ask which of them that needs
// (PolicyInfo::replays; KVzip, arXiv 2505.23416, section 3). Only the policy sees it: it leaves
// neither rows nor logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/model_spec.h"
#include "policy/policy.h"
#include "snapkv/engine.h"

namespace snapkv {

struct Replay {
  std::vector<int32_t> tokens;  // the request, then the piece
  int64_t begin = 0, end = 0;   // the piece: these tokens of the prompt
  int64_t first = 0;            // where its tokens begin among those of the run
};

/// The most tokens of a piece, as in the paper.
inline constexpr int64_t kReplayPiece = 2048;
/// The most tokens that the request before it has, in any vocabulary.
inline constexpr int64_t kMostRequest = 96;

/// Whether a policy asks for the replays of a prompt of n_tokens, the session's first one.
bool wants_replays(const ModelSpec& spec, const Policy& policy, int64_t n_tokens);

/// The replays of a prompt's pieces, in order, for a run that begins with the prompt.
std::vector<Replay> make_replays(const Model& model, std::span<const int32_t> prompt);

/// For dry runs, which need one that is as long as any of them.
Replay longest_replay(int64_t n_tokens);
/// The most tokens of all replays of a prompt.
int64_t most_replayed(int64_t n_tokens);

}  // namespace snapkv
