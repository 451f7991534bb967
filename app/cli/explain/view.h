// SPDX-License-Identifier: MIT
// The text of `snapkv explain`: SnapKV's five steps for one KV head, with the prompt's tokens.
// Made by explain/command.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/explain/ranking.h"
#include "snapkv/engine.h"

namespace snapkv::cli {

/// Everything shown. All numbers are the engine's or, in `shown`, checked against its choice.
struct Explanation {
  ModelInfo model;
  SessionOptions session;           ///< kv.budget is the one in force
  std::string budget_reason;        ///< "a quarter of the prompt; --kv-budget chooses"; or empty
  std::string chosen_of;            ///< "all heads": by peak_position(); empty: by the user
  std::vector<std::string> pieces;  ///< [L] the tokens' bytes
  HeadRanking shown;
  SessionStats stats;  ///< after prefill
};

struct ViewOptions {
  bool utf8 = true;
  bool colour = false;
  int width = 80;       ///< columns
  int64_t n_rows = 24;  ///< tokens in the table of step 3, about
};

std::string show_explanation(const Explanation& e, const ViewOptions& view);
/// For a prompt that fits into the budget: why nothing happens.
std::string show_nothing_dropped(int64_t n_tokens, int64_t budget);

}  // namespace snapkv::cli
