// SPDX-License-Identifier: MIT
// PrefillAttentionStep: stores a chunk's keys and values in the scratch layer and attends to all
// rows up to that chunk. It keeps the queries of the prompt's last tokens, and shows every query to
// policies that observe and to the probe.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "engine/core/chosen_attention.h"
#include "engine/prefill/attention_probe.h"
#include "engine/prefill/prefill_target.h"
#include "engine/prefill/prefill_times.h"

namespace snapkv {

class PrefillAttentionStep final : public AttentionStep {
 public:
  /// `probe` may be nullptr. `n_ctx`: the sessions' context.
  /// `share`: SparseAttention::share.
  PrefillAttentionStep(Backend& backend, const Architecture& architecture, PrefillTargets& targets,
                       ProbeObserver* probe, int64_t n_ctx, float share, PrefillTimes& times)
      : backend_(backend),
        architecture_(architecture),
        targets_(targets),
        probe_(probe),
        n_ctx_(n_ctx),
        share_(share),
        times_(times) {}

  /// A chunk of a layer.
  struct Chunk {
    RowState* rows = nullptr;      // the scratch layer
    int64_t n_ahead = 0;           // rows there are already of the chunk's tokens and later ones
    std::span<const int32_t> pos;  // of the chunk's tokens
    Tensor q_window = {};
    /// The row of q_window for the chunk's first token. Queries whose row would be negative are not
    /// kept.
    int64_t window_row = 0;
    int64_t n_dense = 0;  // SparseAttention::n_dense
    QueryChunk::Replay replay = {};
  };
  /// Prepares the next chunk of layer il.
  void begin(int il, const Chunk& chunk);
  void attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out) override {
    attend_to_chosen({}, q, k, v, out);
  }
  void attend_to_chosen(const RowChoice& choice, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Tensor& out) override;
  /// Adds the layer's time to the sums. Call it when the backend has finished the layer.
  void end_layer();

 private:
  void run_attention(const Tensor& q, std::span<const int32_t> n_past, const Tensor& out);
  void run_chosen(const RowChoice& choice, const Tensor& q, int64_t n_past, const Tensor& out);
  void run_in_chunks(const Tensor& q, std::span<const int32_t> n_past, const Tensor& out);
  void keep_window(const Tensor& q, int64_t n);
  void show(const Tensor& q, std::span<const int32_t> n_rows);

  Backend& backend_;
  const Architecture& architecture_;
  PrefillTargets& targets_;
  ProbeObserver* probe_;
  const int64_t n_ctx_;
  const float share_;
  PrefillTimes& times_;
  int il_ = 0;
  size_t reader_ = 0;  // QueryChunk::reader
  Chunk chunk_;
  ChosenAttention chosen_;
  Buffer chosen_out_;  // [n, n_head, value_dim] f32, where activations have another type
  std::vector<std::pair<Backend::Mark, Backend::Mark>> intervals_;  // of this layer
};

}  // namespace snapkv
