// SPDX-License-Identifier: MIT
// QueryRing: the queries of a sequence's last tokens, in all layers, so that a policy can choose
// rows during decoding too.
#pragma once

#include <algorithm>
#include <vector>

#include "backend/backend.h"
#include "base/buffer.h"
#include "base/tensor.h"
#include "model/model_spec.h"

namespace snapkv {

class QueryRing {
 public:
  QueryRing() = default;  // holds nothing
  /// `token_floats`: how many values a token's queries have in each layer, n_head * head_dim; 0
  /// where there are none. `n_spare`: how many tokens pop() may take back without loss.
  QueryRing(Backend& backend, std::vector<int64_t> token_floats, int window_size,
            int n_spare = 0);
  static constexpr const char* kLabel = "queries of the last tokens";

  explicit operator bool() const { return window_size_ > 0; }
  size_t bytes() const { return storage_.bytes(); }
  bool has_layer(int il) const { return token_floats_[il] > 0; }
  /// Bytes of the queries of one layer.
  size_t layer_bytes(int il) const { return n_slots_ * token_floats_[il] * sizeof(float); }
  /// Number of tokens whose queries it holds: at most the window, and the same for every layer.
  int64_t size() const { return std::min(size_, window_size_); }
  int64_t n_spare() const { return n_slots_ - window_size_; }

  /// Replaces the queries of layer il by q [n, n_head, head_dim] f32; n is at most the window and
  /// the same for all layers.
  void fill(Backend& backend, int il, const Tensor& q);
  /// Adds the query q [n_head, head_dim] f32 of the i-th next token in layer il. Call advance() when
  /// every layer has those of all of the step's tokens.
  void push(Backend& backend, int il, int64_t i, const void* q);
  void advance(int64_t n_tokens);
  /// Undoes push() of n tokens if no advance() will follow: stops counting the oldest queries, which
  /// it may have overwritten. A window of one token keeps its only query.
  void drop_pushed(int64_t n_tokens) {
    size_ = std::min(size_, std::max<int64_t>(n_slots_ - n_tokens, 1));
  }
  /// Takes back the last n tokens.
  void pop(int64_t n_tokens);

  /// The queries of the last n tokens, oldest first: [n, n_head, head_dim] f32.
  Buffer last(Backend& backend, int il, int64_t n) const;

 private:
  float* slot(int il, int64_t i) const {
    return static_cast<float*>(storage_.data()) + first_[il] + i * token_floats_[il];
  }

  Buffer storage_;  // [n_layer] of [n_slots, n_head, head_dim] f32
  int64_t window_size_ = 0;
  int64_t n_slots_ = 0;
  std::vector<int64_t> token_floats_;  // [n_layer]
  std::vector<int64_t> first_;         // [n_layer], where each begins in storage_
  int64_t size_ = 0;  // tokens in the slots
  int64_t next_ = 0;  // slot of the next token
};

/// QueryRing's token_floats for all layers of a model.
std::vector<int64_t> query_floats(const ModelSpec& spec);

}  // namespace snapkv
