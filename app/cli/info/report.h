// SPDX-License-Identifier: MIT
// The report of `snapkv info`: what command.cpp found, as text (text.cpp) and as JSON (json.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "snapkv/engine.h"

namespace snapkv::cli {

/// Memory plans for one prompt: with everything kept, and with the chosen policy.
struct InfoPlans {
  int64_t n_tokens = 0;
  SessionOptions options;  // the policy's; --kv-memory determines the budget
  DType compute = DType::bf16;
  MemoryPlan full, kept;
  size_t free_memory = 0;
  int64_t longest_full = 0, longest_kept = 0;  // tokens of prompts that just fit into it
};

struct InfoReport {
  ModelDescription model;
  std::optional<InfoPlans> plans;  // empty if the model cannot run
  bool metadata = false, tensors = false;
};

/// A row of the memory table.
struct InfoPlanRow {
  const char* key;  // name in JSON
  const char* label;
  size_t full, kept;
};
std::vector<InfoPlanRow> plan_rows(const InfoPlans& plans);

/// Returns lines of at most `width` columns. `cut`: lists are cut to it too; otherwise they are
/// complete, for files and pipes.
std::string info_text(const InfoReport& report, int width, bool cut);
std::string info_json(const InfoReport& report);

}  // namespace snapkv::cli
