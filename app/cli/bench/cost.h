// SPDX-License-Identifier: MIT
// What a test has to compute and to read, from the model's sizes: the roofline formulas of
// docs/performance.md. Used by bench/run.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "snapkv/engine.h"

namespace snapkv::cli {

/// Floating-point operations, a multiplication and an addition counting as two. What the engine
/// leaves out is not counted: masked scores, and in the last layer everything but keys and values
/// of tokens whose output nobody reads.
class ModelCost {
 public:
  explicit ModelCost(const ModelDescription& model);

  /// Matrix products of a prompt of n_tokens, of which the last n_window vote.
  double prefill_linear_flops(int64_t n_tokens, int64_t n_window) const;
  /// Attention of a prompt of n_tokens after n_rows rows per head.
  double prefill_attention_flops(int64_t n_tokens, double n_rows) const;
  /// Bytes of a prompt of n_tokens: every weight once, and each of its keys and values.
  double prefill_bytes(int64_t n_tokens, DType kv_type) const;
  /// Matrix products of one decode step of n_seq sequences.
  double decode_linear_flops(int64_t n_seq) const;
  /// Attention of one decode step of sequences that together have n_rows rows in the mean head.
  double decode_attention_flops(double n_rows) const;
  /// Weights that a decode step of one sequence reads: all but an embedding that is not the output
  /// matrix too, and of experts those of one token.
  size_t decode_weight_bytes() const { return decode_weight_bytes_; }

  /// Rows in the mean head of all layers, from SessionStats::kv_bytes_used.
  double rows(size_t kv_bytes_used, DType kv_type) const;
  /// Bytes of keys and values, without their positions, of kv_bytes_used.
  double kv_bytes_read(size_t kv_bytes_used, DType kv_type) const;

 private:
  // of one layer, multiply-adds per token
  double wq_ = 0, wkv_ = 0, wo_ = 0, ffn_ = 0;
  double head_ = 0;  // of the output matrix
  double n_q_ = 0;   // n_head * head_dim
  double n_layer_ = 0, n_head_kv_ = 0;
  std::vector<int64_t> windows_;  // [n_layer], 0: full attention
  int64_t head_dim_ = 0;
  size_t weight_bytes_ = 0, decode_weight_bytes_ = 0;
};

}  // namespace snapkv::cli
