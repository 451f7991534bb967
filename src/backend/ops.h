// SPDX-License-Identifier: MIT
// The ops: ops::rms_norm(backend, x, weight, eps, out) and so on, one function for each entry of
// ops.def, where they are documented; here are the structs that they take. Each validates shapes
// and types once and calls the backend's kernel of the same name. ref/ is the specification.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "backend/backend.h"
#include "base/buffer.h"
#include "base/tensor.h"

namespace snapkv {

/// One product of project(): out = x w^T (+ bias), or out += ... .
struct Projection {
  Tensor w;                 // [n_out, n_in] of any type but i32
  Tensor bias;              // [n_out] f32, or empty
  Tensor out;               // [n, n_out] f32
  bool accumulate = false;  // add to what `out` holds (the residual stream)
};

/// What a backend notes about a layout of PackedWeight that it chose; each derives its own.
struct PackedLayout {
  virtual ~PackedLayout() = default;
};

/// Where weights are laid out for the product that comes next, a piece of a matrix after the other.
struct PackWorkspace {
  Buffer memory;            // grows to what the products need
  double pack_seconds = 0;  // that these products have spent laying weights out
};

/// A weight matrix laid out for many rows at once, in the compute dtype. Made by pack(), which may
/// be called again for another matrix and then reuses the memory. A backend may remember a weight
/// of a block type instead, which must then stay where it is: Backend::byte_products().
struct PackedWeight {
  /// Not null: for few products, which are made one after another. A backend may then remember the
  /// weight instead, which must stay where it is, and lay out each piece just before it multiplies.
  PackWorkspace* workspace = nullptr;
  int64_t n_out = 0;
  int64_t n_in = 0;
  Buffer storage;                        // in the backend's own layout
  std::unique_ptr<PackedLayout> layout;  // of the backend that packed it, where it has several
};

/// The functions between the two matrices of a feed-forward network.
enum class Activation {
  silu,       // x sigmoid(x)
  gelu_tanh,  // x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))): GELU's usual approximation
};

enum class RopeLayout {
  norm,  // rotates pairs (2i, 2i+1): architecture `llama`
  neox,  // rotates pairs (i, i + n_rot/2)
};

/// Rotary embedding (RoFormer, arXiv 2104.09864, eq. 15): pair i of position p turns by
/// p * inv_freq[i]. Scaling of any kind is already in inv_freq. f64, so that positions of a million
/// keep their phase. Rotated values are also multiplied by `magnitude` (YaRN, arXiv 2309.00071,
/// section 3.4, writes the temperature of its attention that way).
struct RopeFrequencies {
  std::span<const double> inv_freq;  // [n_rot / 2]
  RopeLayout layout = RopeLayout::norm;
  float magnitude = 1.0f;
};

/// In what the attention of a layer differs from a plain softmax over all visible rows. The scores
/// below are scale * q . k.
struct AttentionVariant {
  /// > 0: a query sees the last `window` rows up to its own only (arXiv 2004.05150, section 3.1).
  int64_t window = 0;
  /// > 0: scores s become softcap * tanh(s / softcap) before the softmax (arXiv 2408.00118,
  /// section 2).
  float softcap = 0.0f;
  /// [n_head] f32, or empty: each head's softmax has one column more, of this score and without a
  /// value (arXiv 2309.17453, section 3.2; a score as it is, not scaled nor capped). A weight.
  Tensor sinks = {};
};

/// Causal attention of a chunk of queries over the rows of one layer (all of them uncompressed
/// during prefill). Query t sees rows [0, n_past[h] + t] of head h, or the last variant.window of
/// them: the chunk's own keys are already stored at rows n_past[h] ... n_past[h] + n - 1.
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
/// to sequence and from head to head, nothing is padded. A sliding window is where the rows begin:
/// variant.window must be 0.
struct DecodeAttention {
  Tensor q;                         // [n_seq, n_head, head_dim] f32
  std::span<const HeadRows> heads;  // [n_seq * n_head_kv]
  DType kv_dtype = DType::f16;
  float scale = 1.0f;
  Tensor out;  // [n_seq, n_head, head_dim] f32
  AttentionVariant variant = {};
};

/// How votes are smoothed along the positions (SnapKV, arXiv 2404.14469, section 4.2).
enum class Pooling { max, avg };

/// How the query heads that share one KV head combine their votes (grouped-query attention).
enum class GroupReduce { mean, max };

/// How the queries of a window combine what they give a row: SnapKV adds it up; the largest keeps a
/// row that a single query needs.
enum class VoteReduce { sum, max };

/// SnapKV's vote (arXiv 2404.14469, section 4.1; docs/architecture.md, steps 2 to 5). The W queries
/// are those of the last W rows of every head; query i sees rows [0, n_rows[h] - W + i].
///   votes[g, j] = reduce_{h in group g} sum_i softmax_j'(scale * q[i, h] . k[g, j'])[j]
/// (with VoteReduce::max the largest over i instead of the sum) for j < n_rows[g] - W, the softmax
/// over all visible rows, in f32. With `whole` for every j < n_rows[g]: the window's own columns too,
/// over the queries that see them. (W is the number of queries; variant.window, if any, how many
/// rows each of them sees.)
struct WindowVotes {
  Tensor q;                         // [W, n_head, head_dim] f32
  Tensor k;                         // [n_head_kv, capacity, head_dim] KV dtype
  std::span<const int32_t> n_rows;  // [n_head_kv], each > W; whole: >= W
  float scale = 1.0f;
  GroupReduce group = GroupReduce::mean;
  Tensor votes;  // [n_head_kv, >= max(n_rows) - W] f32; whole: >= max(n_rows)
  bool whole = false;
  AttentionVariant variant = {};
  VoteReduce reduce = VoteReduce::sum;
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

/// out[h, j] (+)= factor * ||x[h, j, :]|| for j < n[h], summed in f64; with `inverse`
/// factor / max(||x[h, j, :]||, 1e-12).
struct RowNorms {
  Tensor x;                    // [n_head_kv, capacity, d] KV dtype, any strides
  std::span<const int32_t> n;  // [n_head_kv]
  Tensor out;                  // [n_head_kv, >= max(n)] f32
  float factor = 1.0f;
  bool l1 = false;  // the sum of absolute values, else the L2 norm
  bool inverse = false;
  bool accumulate = false;  // add to what `out` holds
};

/// What becomes of a score among those of its chunk. `rank`: how many of the chunk are lower, of
/// equal ones those of higher index; NaN is lower than all and its rank is NaN.
enum class ChunkScore { mean, softmax, rank };

/// out[h, j] (+)= factor * kind(scores[h, chunk of j])[j] for begin <= j < n[h]; chunks have
/// `length` rows from `begin` on, the last one what is left. Below `begin` out is 0 (+= 0).
struct ChunkScores {
  ChunkScore kind = ChunkScore::mean;
  Tensor scores;               // [n_head_kv, >= max(n)] f32
  std::span<const int32_t> n;  // [n_head_kv]
  int64_t begin = 0;
  int64_t length = 1;  // >= 1
  Tensor out;          // as scores; the same memory only for means that don't accumulate
  float factor = 1.0f;
  bool accumulate = false;  // add to what `out` holds
};

namespace ops {

#define SNAPKV_UNPACK(...) __VA_ARGS__  // (a, b) -> a, b
#define SNAPKV_OP(name, parameters, names) void name(Backend& backend, SNAPKV_UNPACK parameters);
#include "backend/ops.def"

}  // namespace ops
}  // namespace snapkv
