// SPDX-License-Identifier: MIT
#include <array>

#include "model/layer_pass.h"

namespace snapkv {
namespace {

/// Columns and type of each buffer, in the order of the members below; no columns where the model
/// has no use for it.
struct Part {
  int64_t n_cols;
  DType dtype;
};

std::array<Part, 9> parts(const ModelSpec& spec, DType dtype) {
  const ModelConfig& c = spec.config;
  return {{{c.n_embd, dtype},
           {spec.has_branches() ? c.n_embd : 0, DType::f32},
           {c.n_q(), DType::f32},
           {c.n_kv(), DType::f32},
           {c.n_kv(), DType::f32},
           {c.n_q(), dtype},
           {spec.family->gated ? c.n_ff : 0, DType::f32},
           {c.n_ff, DType::f32},
           {c.n_ff, dtype}}};
}

size_t aligned(size_t bytes) {
  return (bytes + Buffer::kAlignment - 1) / Buffer::kAlignment * Buffer::kAlignment;
}

}  // namespace

size_t ActivationBuffer::bytes(const ModelSpec& spec, int64_t n_rows, DType dtype) {
  size_t total = 0;
  for (const Part& p : parts(spec, dtype)) total += aligned(row_bytes(p.dtype, n_rows * p.n_cols));
  return total;
}

void ActivationBuffer::ensure(Backend& backend, const ModelSpec& spec, int64_t n_rows,
                              DType dtype) {
  if (n_rows <= n_rows_ && dtype == dtype_) return;
  *this = ActivationBuffer();
  storage_ = backend.allocate(bytes(spec, n_rows, dtype), "activations");
  const ModelConfig& c = spec.config;
  n_rows_ = n_rows;
  dtype_ = dtype;
  size_t offset = 0;
  std::array<Tensor, 9> views;
  size_t i = 0;
  for (const Part& p : parts(spec, dtype)) {
    views[i++] = storage_.view(p.dtype, {n_rows, p.n_cols}, offset);
    offset += aligned(row_bytes(p.dtype, n_rows * p.n_cols));
  }
  normed_ = views[0];
  branch_ = views[1];
  q_ = views[2].reshaped({n_rows, c.n_head, c.head_dim});
  k_ = views[3].reshaped({n_rows, c.n_head_kv, c.head_dim});
  v_ = views[4].reshaped({n_rows, c.n_head_kv, c.head_dim});
  attn_ = views[5].reshaped({n_rows, c.n_head, c.head_dim});
  gate_ = views[6];
  up_ = views[7];
  act_ = views[8];
}

}  // namespace snapkv
