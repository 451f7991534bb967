// SPDX-License-Identifier: MIT
// PrefillRun: computes prompts step by step as their plans say. Holds the loop over layers and
// chunks and the memory for it.
#pragma once

#include <memory>
#include <vector>

#include "base/timer.h"
#include "engine/prefill/hidden_states.h"
#include "engine/prefill/prefill_segment.h"

namespace snapkv {

class PrefillRun {
 public:
  using Segments = std::vector<std::unique_ptr<PrefillSegment>>;

  /// All sessions share the model and the KV type. Several segments are computed as one chunk.
  PrefillRun(Segments segments, PrefillTimes& times);

  /// Computes one chunk of one layer; returns true when the logits are ready.
  bool step();
  double fraction() const;
  /// Hands the result to the sessions.
  void commit();
  PrefillSegment& segment(size_t i) { return *segments_[i]; }

 private:
  void begin();
  void begin_layer();
  int64_t end_of_text(int64_t token) const;
  void run_chunk(int64_t begin, int64_t end);
  void end_layer();
  void release_layer();
  /// After work that took `seconds`; `planned_bytes` of memory may not have been touched yet.
  void move_weights(double seconds, size_t planned_bytes);
  /// More of the logits; false while there are some left for another step.
  bool compute_logits();
  /// Those of tokens [n_out_, n_out_ + rows) of the segment's last n_logits.
  void compute_logits(PrefillSegment& segment, const Buffer& storage, int64_t rows);
  void report() const;

  Segments segments_;
  PrefillTimes& times_;
  Session::Impl& first_;
  Backend& backend_;
  const Architecture& architecture_;
  const PrefillPlan& plan_;  // the first segment's; holds for all in what they share
  int64_t n_tokens_ = 0;     // of all segments
  int64_t n_computed_ = 0;   // and their replays
  int64_t chunk_ = 0;
  LinearRunner linear_;
  Timer timer_;  // started with the prompt, for progress

  bool begun_ = false;
  int il_ = 0;
  int64_t n_done_ = 0;  // tokens of layer il_ that are done
  // after the last layer
  size_t out_segment_ = 0;
  int64_t out_row_ = 0;  // where its tokens begin
  int64_t n_out_ = 0;    // of its logits that are wanted
  ActivationBuffer buffers_;
  HiddenStates hidden_;
  std::vector<int32_t> tokens_, pos_;    // of all segments, if there are several
  std::vector<SequenceRows> sequences_;  // of the current chunk
  std::vector<float> reported_;          // [rows, n_vocab], for PrefillOptions::on_logits
};

}  // namespace snapkv
