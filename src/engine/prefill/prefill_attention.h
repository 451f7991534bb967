// SPDX-License-Identifier: MIT
// PrefillAttentionStep: stores a chunk's keys and values in the scratch layer and attends to all
// rows up to that chunk. It keeps the queries of the prompt's last tokens, and shows every query to
// policies that observe and to the probe.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/prefill/attention_probe.h"
#include "engine/prefill/prefill_target.h"
#include "engine/prefill/prefill_times.h"

namespace snapkv {

using PrefillTargets = std::vector<std::unique_ptr<PrefillTarget>>;

class PrefillAttentionStep final : public AttentionStep {
 public:
  /// `probe` may be nullptr. `n_ctx`: the sessions' context.
  PrefillAttentionStep(Backend& backend, const Architecture& architecture, PrefillTargets& targets,
                       ProbeObserver* probe, int64_t n_ctx, PrefillTimes& times)
      : backend_(backend),
        architecture_(architecture),
        targets_(targets),
        probe_(probe),
        n_ctx_(n_ctx),
        times_(times) {}

  /// Prepares the next chunk of layer il: the scratch layer, the positions of the chunk's tokens,
  /// and the row of q_window for its first token. Queries whose row would be negative are not kept.
  void begin(int il, RowState& scratch, std::span<const int32_t> pos, const Tensor& q_window,
             int64_t window_row);
  void attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out) override;
  /// Adds the layer's time to the sums. Call it when the backend has finished the layer.
  void end_layer();

 private:
  void keep_window(const Tensor& q, int64_t n);
  void show(const Tensor& q);

  Backend& backend_;
  const Architecture& architecture_;
  PrefillTargets& targets_;
  ProbeObserver* probe_;
  const int64_t n_ctx_;
  PrefillTimes& times_;
  int il_ = 0;
  RowState* scratch_ = nullptr;
  std::span<const int32_t> pos_;
  Tensor q_window_;
  int64_t window_row_ = 0;
  std::vector<std::pair<Backend::Mark, Backend::Mark>> intervals_;  // of this layer
};

}  // namespace snapkv
