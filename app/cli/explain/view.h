// SPDX-License-Identifier: MIT
// The text of `snapkv explain`: SnapKV's five steps for one KV head, with the prompt's tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/explain/ranking.h"
#include "snapkv/engine.h"

namespace snapkv::cli {

/// Everything that is shown. All numbers are the engine's or, in `shown`, checked against its
/// choice.
struct Explanation {
  ModelInfo model;
  SessionOptions session;           ///< kv.budget is the budget in force
  std::string budget_reason;        ///< "a quarter of the prompt; --kv-budget sets it"; or empty
  std::string chosen_of;            ///< "all heads": chosen by peak_position(); empty: by the user
  std::vector<std::string> pieces;  ///< [L] bytes of each token
  HeadRanking shown;
  SessionStats stats;  ///< after prefill
};

struct ViewOptions {
  bool utf8 = true;
  bool colour = false;
  int width = 80;       ///< columns
  int64_t n_rows = 24;  ///< approximate number of tokens in the table of step 3
};

std::string show_explanation(const Explanation& e, const ViewOptions& view);
/// Explains, for a prompt that fits into the budget, why nothing is dropped.
std::string show_nothing_dropped(int64_t n_tokens, int64_t budget);

}  // namespace snapkv::cli
