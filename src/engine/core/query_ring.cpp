// SPDX-License-Identifier: MIT
#include "engine/core/query_ring.h"

#include <algorithm>
#include <utility>

namespace snapkv {

QueryRing::QueryRing(Backend& backend, std::vector<int64_t> token_floats, int window_size,
                     int n_spare)
    : window_size_(window_size),
      n_slots_(window_size + n_spare),
      token_floats_(std::move(token_floats)) {
  int64_t n = 0;
  for (const int64_t floats : token_floats_) {
    first_.push_back(n);
    n += floats * n_slots_;
  }
  storage_ = backend.allocate(n * sizeof(float), kLabel);
}

void QueryRing::fill(Backend& backend, int il, const Tensor& q) {
  const int64_t n = q.shape[0];
  SNAPKV_CHECK(1 <= n && n <= window_size_);
  backend.copy(slot(il, 0), q.data, n * token_floats_[il] * sizeof(float));
  size_ = n;
  next_ = n % n_slots_;
}

void QueryRing::push(Backend& backend, int il, int64_t i, const void* q) {
  backend.copy(slot(il, (next_ + i) % n_slots_), q, token_floats_[il] * sizeof(float));
}

void QueryRing::advance(int64_t n_tokens) {
  size_ = std::min(size_ + n_tokens, n_slots_);
  next_ = (next_ + n_tokens) % n_slots_;
}

void QueryRing::pop(int64_t n_tokens) {
  SNAPKV_CHECK(0 <= n_tokens && n_tokens <= size_);
  size_ -= n_tokens;
  next_ = (next_ + n_slots_ - n_tokens) % n_slots_;
}

Buffer QueryRing::last(Backend& backend, int il, int64_t n) const {
  SNAPKV_CHECK(1 <= n && n <= size());
  const size_t token = token_floats_[il] * sizeof(float);
  Buffer out = backend.allocate(n * token, "queries of the window");
  const int64_t first = (next_ + n_slots_ - n) % n_slots_;
  const int64_t until_wrap = std::min(n, n_slots_ - first);
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
