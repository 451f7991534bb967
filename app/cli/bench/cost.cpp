// SPDX-License-Identifier: MIT
#include "cli/bench/cost.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace snapkv::cli {
namespace {

// Bytes of one head's row of keys and values; its position is extra (cache/kv_layer.h).
double kv_row_bytes(DType kv_type, const LayerInfo& layer) {
  const int64_t value = layer.value_in_key ? 0 : row_bytes(kv_type, layer.value_dim);
  return static_cast<double>(row_bytes(kv_type, layer.head_dim) + value);
}
double stored_row_bytes(DType kv_type, const LayerInfo& layer) {
  return kv_row_bytes(kv_type, layer) + sizeof(int32_t);
}

/// Pairs of n queries, after n_rows others, and the keys of their chunks of the text.
double pairs_in_chunks(double chunk, double n_rows, double n) {
  const auto up_to = [chunk](double x) {
    const double whole = std::floor(x / chunk), rest = x - whole * chunk;
    return whole * chunk * (chunk + 1) / 2 + rest * (rest + 1) / 2;
  };
  return up_to(n_rows + n) - up_to(n_rows);
}

}  // namespace

ModelCost::ModelCost(const ModelDescription& model) {
  const ModelInfo& m = model.info;
  const auto n_embd = static_cast<double>(m.n_embd);
  for (const LayerInfo& layer : m.layers) {
    if (layer.head_dim == m.head_dim) layer_ = layer;
  }
  n_qv_ = static_cast<double>(m.n_head * (layer_.head_dim + layer_.value_dim));
  const auto n_keys = static_cast<double>(m.n_head_kv * layer_.head_dim);
  if (layer_.value_in_key) {  // the other matrices count as a part of ffn_
    wkv_ = n_embd * n_keys;
  } else {
    wq_ = n_embd * static_cast<double>(m.n_head * layer_.head_dim);
    wkv_ = n_embd * (n_keys + static_cast<double>(m.n_head_kv * layer_.value_dim));
    wo_ = static_cast<double>(m.n_head * layer_.value_dim) * n_embd;
  }
  head_ = n_embd * static_cast<double>(m.n_vocab);
  n_layer_ = static_cast<double>(m.n_layer);
  for (const LayerInfo& layer : m.layers) {
    if (layer.attention != AttentionKind::none) attending_.push_back(layer);
  }
  n_attending_ = static_cast<double>(attending_.size());
  for (double* weights : {&wq_, &wkv_, &wo_}) *weights *= n_attending_ / n_layer_;
  n_head_kv_ = static_cast<double>(m.n_head_kv);
  size_t embedding = 0;
  size_t row_table = 0;  // of which a token reads one row
  bool separate_output = false;
  double layer_weights = 0;  // matrices of all layers
  for (const TensorEntry& t : model.tensors) {
    if (t.name.starts_with("blk.") && t.shape.size() > 1) {
      layer_weights += std::accumulate(t.shape.begin(), t.shape.end(), 1.0, std::multiplies<>());
    }
    if (t.name == "token_embd.weight") embedding = t.bytes;
    if (t.name == "output.weight") separate_output = true;
    if (t.name == "per_layer_token_embd.weight") row_table = t.bytes;
  }
  layer_weights -= static_cast<double>(m.n_params - m.n_active_params);
  ffn_ = layer_weights / n_layer_ - wq_ - wkv_ - wo_;
  const size_t unread = (separate_output ? embedding : 0) + row_table;
  weight_bytes_ = m.weight_bytes - unread;
  decode_weight_bytes_ = m.active_weight_bytes - unread;
}

double ModelCost::prefill_linear_flops(int64_t n_tokens, int64_t n_window) const {
  const auto n = static_cast<double>(n_tokens);
  const auto n_voters = static_cast<double>(std::min(n_tokens, std::max<int64_t>(n_window, 1)));
  const double inner = (n_layer_ - 1) * n * (wq_ + wkv_ + wo_ + ffn_);
  const double last = n * wkv_ + n_voters * wq_ + wo_ + ffn_;
  return 2 * (inner + last + head_);
}

double ModelCost::prefill_attention_flops(int64_t n_tokens, double n_rows) const {
  const auto n = static_cast<double>(n_tokens);
  double pairs = 0;  // pairs of a query and a key; the last layer needs only one query
  for (size_t il = 0; il < attending_.size(); ++il) {
    const LayerInfo& layer = attending_[il];
    const double window = layer.window > 0 ? static_cast<double>(layer.window) : n_rows + n;
    const bool is_last = il + 1 == attending_.size();
    if (layer.attention == AttentionKind::chunked) {
      pairs +=
          is_last ? pairs_in_chunks(window, n_rows + n - 1, 1) : pairs_in_chunks(window, n_rows, n);
      continue;
    }
    if (is_last) {
      pairs += std::min(window, n_rows + n);
      continue;
    }
    // while the window is not yet full, each query sees one row more than the last; then all of it
    const double n_growing = std::clamp(window - n_rows, 0.0, n);
    pairs += n_growing * n_rows + n_growing * (n_growing + 1) / 2 + (n - n_growing) * window;
  }
  return 2 * n_qv_ * pairs;
}

double ModelCost::prefill_bytes(int64_t n_tokens, DType kv_type) const {
  const double row = n_attending_ * n_head_kv_ * kv_row_bytes(kv_type, layer_);
  return static_cast<double>(weight_bytes_) + static_cast<double>(n_tokens) * row;
}

double ModelCost::decode_linear_flops(int64_t n_seq) const {
  const double weights = n_layer_ * (wq_ + wkv_ + wo_ + ffn_) + head_;
  return static_cast<double>(n_seq) * 2 * weights;
}

double ModelCost::decode_attention_flops(double n_rows) const {
  return 2 * n_qv_ * n_attending_ * n_rows;
}

double ModelCost::rows(size_t kv_bytes_used, DType kv_type) const {
  if (attending_.empty()) return 0;
  return static_cast<double>(kv_bytes_used) / stored_row_bytes(kv_type, layer_) /
         (n_attending_ * n_head_kv_);
}

double ModelCost::kv_bytes_read(size_t kv_bytes_used, DType kv_type) const {
  if (attending_.empty()) return static_cast<double>(kv_bytes_used);
  return static_cast<double>(kv_bytes_used) * kv_row_bytes(kv_type, layer_) /
         stored_row_bytes(kv_type, layer_);
}

}  // namespace snapkv::cli
