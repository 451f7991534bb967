// SPDX-License-Identifier: MIT
#include "engine/hidden_states.h"

#include <algorithm>

#include "base/file_buffer.h"

namespace snapkv {
namespace {

constexpr const char* kWhat = "hidden states of the prompt";

size_t row_bytes_of(const Tensor& t) { return static_cast<size_t>(t.stride[0]); }

}  // namespace

HiddenStates::HiddenStates(Backend& backend, int64_t n_tokens, int64_t n_embd,
                           const std::string& spill_dir)
    : spilled_(!spill_dir.empty()) {
  const size_t bytes = static_cast<size_t>(n_tokens) * static_cast<size_t>(n_embd) * sizeof(float);
  buffer_ = spilled_ ? make_file_buffer(spill_dir, bytes, kWhat) : backend.allocate(bytes, kWhat);
  all_ = buffer_.view(DType::f32, {n_tokens, n_embd});
}

size_t HiddenStates::bytes(int64_t n_tokens, int64_t n_embd, int64_t n_chunk, bool spilled) {
  // the chunk that is computed and the one read ahead
  const int64_t n = spilled ? std::min(n_tokens, 2 * n_chunk) : n_tokens;
  return static_cast<size_t>(n) * static_cast<size_t>(n_embd) * sizeof(float);
}

void HiddenStates::visit(int64_t begin, int64_t end) const {
  if (!spilled_) return;
  const int64_t n = all_.shape[0];
  const int64_t next = end < n ? end : 0, next_end = std::min(n, next + end - begin);
  const Tensor t = all_.slice(next, next_end);
  prefetch_pages(t.data, row_bytes_of(t) * static_cast<size_t>(next_end - next));
}

void HiddenStates::leave(int64_t begin, int64_t end) const {
  if (!spilled_) return;
  const Tensor t = all_.slice(begin, end);
  release_pages(t.data, row_bytes_of(t) * static_cast<size_t>(end - begin));
}

}  // namespace snapkv
