// SPDX-License-Identifier: MIT
// The table of one prompt answered with two caches: rows, bytes, compression, speed. Printed by the
// demo and by generate --compare.
#pragma once

#include <string>
#include <vector>

#include "snapkv/engine.h"

namespace snapkv::cli {

/// One prompt read into a session and answered.
struct CacheRun {
  SessionStats after_prefill;
  SessionStats at_end;
};

/// A row of the table, a cell for each cache.
struct CacheTableRow {
  std::string label, first, second;
};

/// What the caches kept and cost.
std::vector<CacheTableRow> cache_rows(const CacheRun& first, const CacheRun& second);

/// "SnapKV", "full cache", or the policy's own name.
std::string cache_name(const PolicyConfig& policy);

}  // namespace snapkv::cli
