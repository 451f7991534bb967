// SPDX-License-Identifier: MIT
#include "engine/core/query_ring.h"

#include <algorithm>
#include <utility>

namespace snapkv {

QueryRing::QueryRing(Backend& backend, std::vector<int64_t> token_floats, int window_size)
    : window_size_(window_size), token_floats_(std::move(token_floats)) {
  int64_t n = 0;
  for (const int64_t floats : token_floats_) {
    first_.push_back(n);
    n += floats * window_size;
  }
  storage_ = backend.allocate(n * sizeof(float), kLabel);
}

void QueryRing::fill(Backend& backend, int il, const Tensor& q) {
  const int64_t n = q.shape[0];
  SNAPKV_CHECK(1 <= n && n <= window_size_);
  backend.copy(slot(il, 0), q.data, n * token_floats_[il] * sizeof(float));
  size_ = n;
  next_ = n % window_size_;
}

void QueryRing::push(Backend& backend, int il, const void* q) {
  backend.copy(slot(il, next_), q, token_floats_[il] * sizeof(float));
}

void QueryRing::advance() {
  size_ = std::min(size_ + 1, window_size_);
  next_ = (next_ + 1) % window_size_;
}

Buffer QueryRing::last(Backend& backend, int il, int64_t n) const {
  SNAPKV_CHECK(1 <= n && n <= size_);
  const size_t token = token_floats_[il] * sizeof(float);
  Buffer out = backend.allocate(n * token, "queries of the window");
  const int64_t first = (next_ + window_size_ - n) % window_size_;
  const int64_t until_wrap = std::min(n, window_size_ - first);
  char* to = static_cast<char*>(out.data());
  backend.copy(to, slot(il, first), until_wrap * token);
  backend.copy(to + until_wrap * token, slot(il, 0), (n - until_wrap) * token);
  return out;
}

std::vector<int64_t> query_floats(const ModelSpec& spec) {
  std::vector<int64_t> floats;
  for (const LayerSpec& layer : spec.layers) floats.push_back(layer.n_q());
  return floats;
}

}  // namespace snapkv
