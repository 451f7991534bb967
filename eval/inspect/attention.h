// SPDX-License-Identifier: MIT
// AttentionGatherer: collects, while a prompt is read, what its tokens attend to: the window, each
// of the window's tokens, some stretches before it, and tokens that the user chose.
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
  /// Throws kUsage if a chosen range is empty or ends beyond the prompt.
  AttentionGatherer(const ModelInfo& info, const PolicyConfig& policy, const Columns& columns,
                    const Rows& rows, const std::vector<AttentionProbe::Range>& chosen);

  /// For one prefill; valid as long as this object.
  AttentionProbe probe();
  /// Tokens in the window: the policy's number, at most the prompt's.
  int64_t window() const { return window_; }

  /// [rows][columns]: the window's attention, the highest value of each cell, in millionths.
  Json score_json() const { return scores_.to_json(); }
  /// Every group of tokens, with what it attends to (web/src/data.ts: Spotlight).
  Json spotlights_json() const;

 private:
  struct Group {
    const char* name;
    AttentionProbe::Range range;
    std::vector<double> shares;  // [n_tokens], summed over layers: means over queries and heads
  };
  void add_group(const char* name, int64_t begin, int64_t end);
  void add(const AttentionProbe::Report& report);
  Json spotlight(const char* name, int64_t layer, const AttentionProbe::Range& range,
                 std::span<const double> shares, int64_t n_top) const;

  int64_t n_layer_, n_attending_;
  std::vector<LayerInfo> model_layers_;
  Columns columns_;
  int64_t window_;
  ScoreMap scores_;
  std::vector<Group> groups_;  // the window is the first
  std::vector<Json> layers_;   // the window's spotlights by layer
};

}  // namespace snapkv::eval
