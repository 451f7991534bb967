// SPDX-License-Identifier: MIT
#include "engine/prefill/hidden_states.h"

#include <algorithm>

#include "base/file_buffer.h"

namespace snapkv {
namespace {

size_t bytes_of(const Tensor& t) { return t.stride[0] * t.shape[0]; }

}  // namespace

HiddenStates::HiddenStates(Backend& backend, Place place, int64_t n_tokens, int64_t n_hidden,
                           int64_t n_chunk, const std::string& spill_dir)
    : backend_(&backend), place_(place) {
  const auto size = [n_hidden](int64_t n) { return n * n_hidden * sizeof(float); };
  switch (place) {
    case Place::memory:
      buffer_ = backend.allocate(size(n_tokens), kLabel);
      break;
    case Place::file:
      // in memory: the current chunk and the one that is read ahead
      buffer_ = backend.allocate_in_file(spill_dir, size(n_tokens),
                                         size(std::min(n_tokens, 2 * n_chunk)), kLabel);
      break;
    case Place::host:
      buffer_ = backend.allocate_pinned(size(n_tokens), kLabel);
      chunk_ = backend.allocate(size(n_chunk), kLabel);
      break;
  }
  all_ = buffer_.view(DType::f32, {n_tokens, n_hidden});
}

Tensor HiddenStates::enter(int64_t begin, int64_t end) {
  const Tensor rows = all_.slice(begin, end);
  if (place_ == Place::host) {
    const Tensor chunk = chunk_.view(DType::f32, {end - begin, all_.shape[1]});
    backend_->upload(chunk.data, rows.data, bytes_of(rows));
    return chunk;
  }
  if (place_ == Place::file) {
    const int64_t n = all_.shape[0];
    const int64_t next = end < n ? end : 0;
    const Tensor ahead = all_.slice(next, std::min(n, next + end - begin));
    prefetch_pages(ahead.data, bytes_of(ahead));
  }
  return rows;
}

void HiddenStates::leave(int64_t begin, int64_t end) {
  const Tensor rows = all_.slice(begin, end);
  if (place_ == Place::host) backend_->download(rows.data, chunk_.data(), bytes_of(rows));
  if (place_ == Place::file) release_pages(rows.data, bytes_of(rows));
}

}  // namespace snapkv
