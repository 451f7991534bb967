// SPDX-License-Identifier: MIT
// The whole op list. Each function validates shapes and types once (a mismatch is a programmer's
// error: SNAPKV_CHECK) and calls the backend's kernel of the same name. ref/ is the specification.
//
// Conventions: [n, ...] row-major, outermost first; f32 unless said; "compute dtype" is
// Backend::compute_dtype() (f32 or bf16); KV dtype is f32, f16 or bf16; cache dtype is a KV dtype
// or q8_0 (head_dim then a multiple of 32). Accumulation is f32 (ref: f64 where it costs nothing).
// Every op accepts n == 0 and then does nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "backend/backend.h"
#include "base/buffer.h"
#include "base/tensor.h"
#include "snapkv/policy.h"

namespace snapkv {

/// One product of project(): out = x w^T (+ bias), or out += ... .
struct Projection {
  Tensor w;                 // [n_out, n_in] of any type but i32
  Tensor bias;              // [n_out] f32, or empty
  Tensor out;               // [n, n_out] f32
  bool accumulate = false;  // add to what `out` holds (the residual stream)
};

/// A weight matrix laid out for many rows at once, in the compute dtype. Made by pack(), which may
/// be called again for another matrix and then reuses the memory.
struct PackedWeight {
  int64_t n_out = 0;
  int64_t n_in = 0;
  Buffer storage;               // in the backend's own layout
  std::shared_ptr<void> state;  // of the backend (a layout descriptor, say)
};

enum class RopeLayout {
  norm,  // rotates pairs (2i, 2i+1): architecture `llama`
  neox,  // rotates pairs (i, i + n_rot/2)
};

/// Rotary embedding (RoFormer, arXiv 2104.09864, eq. 15): pair i of position p turns by
/// p * inv_freq[i]. Scaling of any kind is already in inv_freq. f64, so that positions of a million
/// keep their phase.
struct RopeFrequencies {
  std::span<const double> inv_freq;  // [n_rot / 2]
  RopeLayout layout = RopeLayout::norm;
};

/// In what the attention of a layer differs from a plain softmax over all visible rows. Not yet:
/// ops refuse every value but the defaults.
struct AttentionVariant {
  int64_t window = 0;    // > 0: a query sees the last `window` rows up to its own only
  float softcap = 0.0f;  // > 0: scores s become softcap * tanh(s / softcap)
  Tensor sinks = {};  // [n_head] f32: a score more in each head's softmax, with no value; or empty
};

/// Causal attention of a chunk of queries over the rows of one layer (all of them uncompressed
/// during prefill). Query t sees rows [0, n_past[h] + t] of head h: the chunk's own keys are
/// already stored at rows n_past[h] ... n_past[h] + n - 1.
///   out[t, h, :] = sum_j softmax_j(scale * q[t, h] . k[h / n_group, j]) * v[h / n_group, j]
struct PrefillAttention {
  Tensor q;                         // [n, n_head, head_dim] f32
  Tensor k;                         // [n_head_kv, capacity, head_dim] KV dtype
  Tensor v;                         // as k
  std::span<const int32_t> n_past;  // [n_head_kv]
  float scale = 1.0f;
  Tensor out;  // [n, n_head, head_dim] f32 or compute dtype
  AttentionVariant variant = {};
};

/// The rows of one KV head of one sequence.
struct HeadRows {
  const void* k = nullptr;  // [n_kv, head_dim] cache dtype, contiguous
  const void* v = nullptr;
  int32_t n_kv = 0;  // >= 1
};

/// Attention of one query per sequence over that sequence's own rows; lengths differ from sequence
/// to sequence and from head to head, nothing is padded.
struct DecodeAttention {
  Tensor q;                         // [n_seq, n_head, head_dim] f32
  std::span<const HeadRows> heads;  // [n_seq * n_head_kv]
  DType kv_dtype = DType::f16;
  float scale = 1.0f;
  Tensor out;  // [n_seq, n_head, head_dim] f32
  AttentionVariant variant = {};
};

/// SnapKV's vote (arXiv 2404.14469, section 4.1; docs/architecture.md, steps 2 to 5). The W queries
/// are those of the last W rows of every head; query i sees rows [0, n_rows[h] - W + i].
///   votes[g, j] = reduce_{h in group g} sum_i softmax_j'(scale * q[i, h] . k[g, j'])[j]
/// for j < n_rows[g] - W, the softmax over all visible rows, in f32. With `whole` for every
/// j < n_rows[g]: the window's own columns too, summed over the queries that see them.
struct WindowVotes {
  Tensor q;                         // [W, n_head, head_dim] f32
  Tensor k;                         // [n_head_kv, capacity, head_dim] KV dtype
  std::span<const int32_t> n_rows;  // [n_head_kv], each > W; whole: >= W
  float scale = 1.0f;
  GroupReduce group = GroupReduce::mean;
  Tensor votes;  // [n_head_kv, >= max(n_rows) - W] f32; whole: >= max(n_rows)
  bool whole = false;
  AttentionVariant variant = {};
};

/// dst[h][i, :] = src[h][rows[h, i], :] for i < n[h], in another cache dtype (as store_rows
/// rounds).
struct RowConversion {
  std::span<const void* const> src;  // [n_head_kv], each [.., head_dim] src_dtype, contiguous
  DType src_dtype = DType::f16;
  int64_t head_dim = 0;
  Tensor rows;                 // [n_head_kv, >= max(n)] i32, or empty: rows 0 ... n[h] - 1
  std::span<const int32_t> n;  // [n_head_kv]
  DType dst_dtype = DType::f16;
  std::span<void* const> dst;  // [n_head_kv], each [n[h], head_dim] dst_dtype, contiguous
};

namespace ops {

/// out[t, :] = weight[ids[t], :]. weight [n_vocab, n_embd] of any type; ids in range (checked).
void embed(Backend& backend, const Tensor& weight, std::span<const int32_t> ids, const Tensor& out);

/// out = x / sqrt(mean(x^2) + eps) * weight. x [n, d] f32, weight [d] f32, out f32 or bf16.
void rms_norm(Backend& backend, const Tensor& x, const Tensor& weight, float eps,
              const Tensor& out);

/// Products of a few rows (decode, short prompts): reads every weight once, in its file's type.
/// x [n, n_in] f32. With compute f32 activations are not rounded; with bf16 they may be rounded to
/// the type the weight's kernel multiplies (8 bits per 32 values for block types).
void project(Backend& backend, const Tensor& x, std::span<const Projection> projections);

/// Lays `weight` ([n_out, n_in], any weight type) out for project_packed.
void pack(Backend& backend, const Tensor& weight, PackedWeight& packed);

/// out (+)= x w^T (+ bias) for many rows. x [n, n_in] compute dtype, out [n, n_out] f32 or compute
/// dtype (f32 if accumulate), bias [n_out] f32 or empty.
void project_packed(Backend& backend, const Tensor& x, const PackedWeight& weight,
                    const Tensor& bias, const Tensor& out, bool accumulate);

/// Rotates x [n, n_head, head_dim] f32 in place; the first 2 * inv_freq.size() values of each head.
void rope(Backend& backend, const Tensor& x, std::span<const int32_t> pos,
          const RopeFrequencies& rope);

/// out = silu(gate) * up, all [n, n_ff], f32 or compute dtype (gate and up alike).
void swiglu(Backend& backend, const Tensor& gate, const Tensor& up, const Tensor& out);

/// Converts src [n, n_head_kv, head_dim] f32 to `dtype`, a cache dtype; head h's n rows go to
/// dst[h], contiguous. q8_0, per 32 values x: d = max |x| / 127, stored as f16; qs = x * (1 / d) to
/// nearest even; all 0 where d rounds to 0, d = NaN where a value is not finite.
void store_rows(Backend& backend, const Tensor& src, DType dtype, std::span<void* const> dst);

/// dst[h][i] = pos[i]: true positions of the rows that store_rows stores.
void store_positions(Backend& backend, std::span<const int32_t> pos, std::span<int32_t* const> dst);

void attention_prefill(Backend& backend, const PrefillAttention& a);
void attention_decode(Backend& backend, const DecodeAttention& a);
void window_votes(Backend& backend, const WindowVotes& w);

/// Pools each scores row [0, n[h]) with stride 1: max (edges ignored) or avg (zero edges, always
/// divided by kernel_size). scores and out [n_head_kv, columns] f32, not the same memory.
void pool(Backend& backend, const Tensor& scores, std::span<const int32_t> n, int kernel_size,
          Pooling pooling, const Tensor& out);

/// rows[h] = the k[h] indices of the highest of scores[h, 0 .. n[h]), ties to the lower index, in
/// ascending order; then n[h] ... n[h] + n_tail - 1 (the window). NaN ranks lowest.
/// rows [n_head_kv, >= max(k) + n_tail] i32.
void top_k(Backend& backend, const Tensor& scores, std::span<const int32_t> n,
           std::span<const int32_t> k, int n_tail, const Tensor& rows);

/// dst[h][i, :] = src[h, rows[h, i], :] for i < n[h]. src [n_head_kv, capacity, d] of any plain
/// type.
void gather_rows(Backend& backend, const Tensor& src, const Tensor& rows,
                 std::span<const int32_t> n, std::span<void* const> dst);

/// The same between two cache dtypes, by way of f32.
void convert_rows(Backend& backend, const RowConversion& c);

}  // namespace ops
}  // namespace snapkv
