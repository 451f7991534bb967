// SPDX-License-Identifier: MIT
// QueryRing: the queries of a sequence's last tokens, in all layers, so that a policy can choose
// rows during decoding too.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "base/buffer.h"
#include "base/tensor.h"
#include "model/config.h"

namespace snapkv {

class QueryRing {
 public:
  QueryRing() = default;  // holds nothing
  QueryRing(Backend& backend, const ModelConfig& config, int window_size);
  static constexpr const char* kLabel = "queries of the last tokens";

  explicit operator bool() const { return window_size_ > 0; }
  size_t bytes() const { return storage_.bytes(); }
  /// Number of tokens whose queries it holds: at most the window, and the same for every layer.
  int64_t size() const { return size_; }

  /// Replaces the queries of layer il by q [n, n_head, head_dim] f32; n is at most the window and
  /// the same for all layers.
  void fill(Backend& backend, int il, const Tensor& q);
  /// Adds the next token's query q [n_head, head_dim] f32 in layer il. Call advance() when every
  /// layer has one.
  void push(Backend& backend, int il, const void* q);
  void advance();
  /// Undoes push() if no advance() will follow: stops counting the oldest token's query, which
  /// push() may have overwritten. A window of one token keeps its only query.
  void drop_pushed() {
    if (size_ == window_size_ && size_ > 1) --size_;
  }

  /// The queries of the last n tokens, oldest first: [n, n_head, head_dim] f32.
  Buffer last(Backend& backend, int il, int64_t n) const;

 private:
  float* slot(int il, int64_t i) const {
    return static_cast<float*>(storage_.data()) + (il * window_size_ + i) * token_floats_;
  }

  Buffer storage_;  // [n_layer, window_size, n_head, head_dim] f32
  int64_t window_size_ = 0;
  int64_t token_floats_ = 0;  // n_head * head_dim
  int64_t size_ = 0;
  int64_t next_ = 0;  // slot of the next token
};

}  // namespace snapkv
