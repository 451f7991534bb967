// SPDX-License-Identifier: MIT
#include <array>

#include "model/layer_pass.h"

namespace snapkv {
namespace {

/// Rows, columns and type of each buffer, in the order of the members below; no columns where the
/// model has no use for it.
struct Part {
  int64_t n_rows, n_cols;
  DType dtype;

  size_t bytes() const {
    const size_t used = row_bytes(dtype, n_rows * n_cols);
    return (used + Buffer::kAlignment - 1) / Buffer::kAlignment * Buffer::kAlignment;
  }
};

std::array<Part, 12> parts(const ModelSpec& spec, int64_t n, DType dtype) {
  const ModelConfig& c = spec.config;
  const int64_t n_ffn = spec.ffn_rows(n);
  return {{{n, c.n_embd, dtype},
           {n, spec.has_branches() ? c.n_embd : 0, DType::f32},
           {n, c.n_q(), DType::f32},
           {n, c.n_kv(), DType::f32},
           {n, c.n_kv(), DType::f32},
           {n, c.n_q(), dtype},
           {n_ffn, spec.family->gated ? c.n_ff : 0, DType::f32},
           {n_ffn, c.n_ff, DType::f32},
           {n_ffn, c.n_ff, dtype},
           {n_ffn, c.n_expert > 0 ? c.n_embd : 0, dtype},
           {n, c.n_expert, DType::f32},
           {n, c.n_expert_used, DType::i32}}};
}

}  // namespace

void ActivationBuffer::ensure(Backend& backend, const ModelSpec& spec, int64_t n_rows,
                              DType dtype) {
  if (n_rows <= n_rows_ && dtype == dtype_) return;
  *this = ActivationBuffer();
  const std::array<Part, 12> all = parts(spec, n_rows, dtype);
  size_t bytes = 0;
  for (const Part& p : all) bytes += p.bytes();
  storage_ = backend.allocate(bytes, kLabel);
  const ModelConfig& c = spec.config;
  n_rows_ = n_rows;
  dtype_ = dtype;
  size_t offset = 0;
  std::array<Tensor, 12> views;
  size_t i = 0;
  for (const Part& p : all) {
    views[i++] = storage_.view(p.dtype, {p.n_rows, p.n_cols}, offset);
    offset += p.bytes();
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
  gathered_ = views[9];
  router_ = views[10];
  routed_ = views[11].reshaped({n_rows * c.n_expert_used});
}

}  // namespace snapkv
