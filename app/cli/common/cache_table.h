// SPDX-License-Identifier: MIT
// A table that compares two caches on the same prompt: rows, bytes, compression, speed.
#pragma once

#include <string>
#include <vector>

#include "snapkv/engine.h"

namespace snapkv::cli {

/// The statistics of one prompt that was read into a session and answered.
struct CacheRun {
  SessionStats after_prefill;
  SessionStats at_end;
};

/// A row of the table, a cell for each cache.
struct CacheTableRow {
  std::string label, first, second;
};

/// Rows of the table: what each cache kept and what it cost.
std::vector<CacheTableRow> cache_rows(const CacheRun& first, const CacheRun& second);

/// "SnapKV", "full cache", or the policy's own name.
std::string cache_name(const PolicyConfig& policy);

}  // namespace snapkv::cli
