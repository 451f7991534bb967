// SPDX-License-Identifier: MIT
// What `snapkv info` says, as text (text.cpp) and as JSON (json.cpp), from what command.cpp found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "snapkv/engine.h"

namespace snapkv::cli {

/// Plans for one prompt: everything kept, and the chosen policy.
struct InfoPlans {
  int64_t n_tokens = 0;
  SessionOptions options;  // of the policy, its budget as --kv-memory makes it
  DType compute = DType::bf16;
  MemoryPlan full, kept;
  size_t free_memory = 0;
  int64_t longest_full = 0, longest_kept = 0;  // prompts that fit into it, in tokens
};

struct InfoReport {
  ModelDescription model;
  std::optional<InfoPlans> plans;  // of a model whose sizes are known
  bool metadata = false, tensors = false;
};

/// A line of the table of memory.
struct InfoPlanRow {
  const char* key;  // in JSON
  const char* label;
  size_t full, kept;
};
std::vector<InfoPlanRow> plan_rows(const InfoPlans& plans);

/// Lines of at most `width` columns. `cut`: lists are cut to it too; otherwise they are whole, for
/// files and pipes.
std::string info_text(const InfoReport& report, int width, bool cut);
std::string info_json(const InfoReport& report);

}  // namespace snapkv::cli
