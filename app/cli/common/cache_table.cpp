// SPDX-License-Identifier: MIT
#include "cli/common/cache_table.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/common/units.h"

namespace snapkv::cli {

std::vector<CacheTableRow> cache_rows(const CacheRun& first, const CacheRun& second) {
  constexpr int64_t kFew = 32;  // tokens, whose time is mostly that of the first ones
  const bool has_few = std::min(first.at_end.n_decoded, second.at_end.n_decoded) < kFew;
  const auto row = [&](const char* label, auto text) {
    return CacheTableRow{label, text(first), text(second)};
  };
  return {
      row("rows kept, each head",
          [](const CacheRun& run) {
            std::vector<int64_t> counts;
            for (const auto& layer : run.after_prefill.layers) {
              counts.insert(counts.end(), layer.n_kept.begin(), layer.n_kept.end());
            }
            return format_range(counts);
          }),
      row("KV cache after the text",
          [](const CacheRun& run) { return format_bytes(run.after_prefill.kv_bytes_used); }),
      row("compression",
          [](const CacheRun& run) {
            return fmt::format("{:.1f}x", run.after_prefill.compression());
          }),
      row("KV cache at most",
          [](const CacheRun& run) { return format_bytes(run.after_prefill.kv_bytes_peak); }),
      row("prefill",
          [](const CacheRun& run) {
            return format_rate(run.at_end.n_prompt, run.at_end.prefill_seconds);
          }),
      row(has_few ? "decode, of few tokens" : "decode",
          [](const CacheRun& run) {
            return format_rate(run.at_end.n_decoded, run.at_end.decode_seconds);
          }),
  };
}

std::string cache_name(const PolicyConfig& policy) {
  if (policy.name == "full") return "full cache";
  return policy.name.starts_with("snapkv") ? "SnapKV" : policy.name;
}

}  // namespace snapkv::cli
