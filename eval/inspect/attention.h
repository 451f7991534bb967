// SPDX-License-Identifier: MIT
// AttentionGatherer: what the window, its tokens, some stretches before it and tokens that the user
// chose attend to, collected while a prompt is read. Used by inspect.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "eval/common/record_file.h"
#include "eval/inspect/maps.h"
#include "snapkv/engine.h"

namespace snapkv::eval {

class AttentionGatherer {
 public:
  /// Throws kUsage when a chosen range is empty or ends beyond the prompt.
  AttentionGatherer(const ModelInfo& info, const PolicyConfig& policy, const Columns& columns,
                    const Rows& rows, const std::vector<AttentionProbe::Range>& chosen);

  /// Valid while this object is; for one prefill.
  AttentionProbe probe();
  /// Tokens of the window: the policy's, at most the prompt.
  int64_t window() const { return window_; }

  /// [rows][columns]: the window's attention, the highest of each cell, in millionths.
  Json score_json() const { return scores_.to_json(); }
  /// Every group of tokens with what it attends to (web/src/data.ts: Spotlight).
  Json spotlights_json() const;

 private:
  struct Group {
    const char* name;
    AttentionProbe::Range range;
    std::vector<double> shares;  // [n_tokens], sum of the layers' means over queries and heads
  };
  void add_group(const char* name, int64_t begin, int64_t end);
  void add(const AttentionProbe::Report& report);
  Json spotlight(const char* name, int64_t layer, const AttentionProbe::Range& range,
                 std::span<const double> shares, int64_t n_top) const;

  int64_t n_layer_, n_group_;
  Columns columns_;
  int64_t window_;
  ScoreMap scores_;
  std::vector<Group> groups_;  // the window first
  std::vector<Json> layers_;   // of the window
};

}  // namespace snapkv::eval
