// SPDX-License-Identifier: MIT
// The work that a test must compute and the bytes it must read, from the model's sizes: the
// roofline formulas of docs/bench.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "snapkv/engine.h"

namespace snapkv::cli {

/// Counts floating-point operations; a multiplication and an addition count as two. Work that the
/// engine skips is not counted: masked scores, and in the last layer everything but the keys and
/// values of tokens whose output is not needed.
class ModelCost {
 public:
  explicit ModelCost(const ModelDescription& model);

  /// Matrix products of a prompt of n_tokens, the last n_window of which vote.
  double prefill_linear_flops(int64_t n_tokens, int64_t n_window) const;
  /// Attention of a prompt of n_tokens that follows n_rows rows per head.
  double prefill_attention_flops(int64_t n_tokens, double n_rows) const;
  /// Bytes moved for a prompt of n_tokens: every weight once, and each of its keys and values.
  double prefill_bytes(int64_t n_tokens, DType kv_type) const;
  /// Matrix products of one decode step of n_seq sequences.
  double decode_linear_flops(int64_t n_seq) const;
  /// Attention of one decode step of sequences that together have n_rows rows per head on average.
  double decode_attention_flops(double n_rows) const;
  /// Weights that a decode step of one sequence reads: all but an embedding that is not the output
  /// matrix too, and of experts those of one token.
  size_t decode_weight_bytes() const { return decode_weight_bytes_; }

  /// Average rows per head over all layers, from SessionStats::kv_bytes_used.
  double rows(size_t kv_bytes_used, DType kv_type) const;
  /// Bytes of keys and values in kv_bytes_used, without their positions.
  double kv_bytes_read(size_t kv_bytes_used, DType kv_type) const;

 private:
  // multiply-adds per token of one layer, the mean over all of them
  double wq_ = 0, wkv_ = 0, wo_ = 0, ffn_ = 0;
  double head_ = 0;  // output matrix
  double n_qv_ = 0;  // n_head * (head_dim + value_dim): multiply-adds per pair of query and key
  double n_layer_ = 0, n_head_kv_ = 0;
  double n_attending_ = 0;            // layers with attention
  std::vector<LayerInfo> attending_;  // the layers with attention
  LayerInfo layer_ = {};              // one with attention: its widths
  size_t weight_bytes_ = 0, decode_weight_bytes_ = 0;
};

}  // namespace snapkv::cli
