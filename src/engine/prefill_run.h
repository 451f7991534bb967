// SPDX-License-Identifier: MIT
// PrefillRun: computes one prompt as its plan says: the loop over layers and chunks, and the memory
// that it needs. Used by prefill.cpp.
#pragma once

#include <vector>

#include "base/timer.h"
#include "engine/attention_probe.h"
#include "engine/prefill_attention.h"
#include "engine/prefill_plan.h"

namespace snapkv {

class PrefillRun {
 public:
  /// All targets share the model, the KV type and, if there are several, an empty past.
  PrefillRun(PrefillTargets& targets, const PrefillPlan& plan, const PrefillOptions& options);

  void run();
  /// Hands the result to the sessions.
  void commit();

 private:
  void allocate();
  void fill_scratch(int il);
  void run_layer(int il);
  void run_chunk(int il, int64_t begin, int64_t end, int64_t first_q, int64_t first_out);
  void keep_rows(int il);
  void compute_logits();
  void report(int il, int64_t n_done);

  PrefillTargets& targets_;
  const PrefillPlan& plan_;
  const PrefillOptions& options_;
  Session::Impl& first_;
  Backend& backend_;
  Architecture& architecture_;

  LinearRunner linear_;
  std::unique_ptr<ProbeObserver> probe_;  // if one is set
  PrefillTimes times_;
  PrefillAttentionStep attention_;
  Timer timer_;  // since the prompt began, for progress

  ActivationBuffer buffers_;
  HiddenStates hidden_;
  Buffer window_buffer_;
  Tensor q_window_;           // [n_window, n_head, head_dim] f32, n_window the most of all targets
  std::vector<int32_t> pos_;  // [n_tokens]
  KvLayer scratch_;
  size_t scratch_bytes_ = 0;
  std::vector<float> logits_;  // [n_logits, n_vocab]
};

}  // namespace snapkv
