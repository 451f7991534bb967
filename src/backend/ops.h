// SPDX-License-Identifier: MIT
// The ops: ops::rms_norm(backend, x, weight, eps, out) and so on, one function for each entry of
// ops.def, which documents them. This file has the structs they take. Each op validates shapes and
// types once and calls the backend's kernel of the same name. ref/ is the specification.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
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
  bool accumulate = false;  // add to the content of `out` (the residual stream)
};

/// Base of a backend's description of a PackedWeight's layout; each backend derives its own.
struct PackedLayout {
  virtual ~PackedLayout() = default;
};

/// Memory where weights are packed for the next product, one piece of a matrix after another.
struct PackWorkspace {
  Buffer memory;            // grows to the products' needs
  double pack_seconds = 0;  // spent packing in these products
};

/// A weight matrix packed for products of many rows, in the compute dtype. pack() fills it, and may
/// be called again for another matrix, reusing the memory. A backend may only remember a weight of
/// a block type, which must then stay in place: ProductTraits::packed_in_bytes.
struct PackedWeight {
  /// Not null: for a few products that run one after another. A backend may then only remember the
  /// weight, which must stay in place, and pack each piece just before it multiplies.
  PackWorkspace* workspace = nullptr;
  int64_t n_out = 0;
  int64_t n_in = 0;
  Buffer storage;                        // in the backend's own layout
  std::unique_ptr<PackedLayout> layout;  // by the backend that packed it, if it has several
};

/// The functions between the matrices of a feed-forward network.
enum class Activation {
  silu,       // x sigmoid(x)
  gelu_tanh,  // x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))): GELU's usual approximation
  gelu,       // x / 2 (1 + erf(x / sqrt(2))): GELU itself (arXiv 1606.08415)
  /// gpt-oss's SwiGLU, always with a factor y: g sigmoid(kClampedAlpha g) (clamp(y) + 1), where g
  /// is x or kClampedLimit if that is less, and clamp(y) lies within -kClampedLimit ...
  /// kClampedLimit.
  clamped_swiglu,
  sigmoid,       // 1 / (1 + exp(-x)): a gate
  relu_squared,  // max(x, 0)^2 (arXiv 2109.08668)
  relu,          // max(x, 0)
  softplus,      // log(1 + exp(x)): a gate
  tanh,
  identity,  // x itself: with a factor, a product
};
inline constexpr float kClampedAlpha = 1.702f;
inline constexpr float kClampedLimit = 7.0f;

/// Of a token, in the ops for several residual streams.
inline constexpr int64_t kMostStreams = 8;
/// match_norms() takes a lower mean square of x for this one.
inline constexpr float kLeastMeanSquare = 1e-5f;

/// How the scores of experts are computed from a router's logits.
enum class ExpertScore {
  softmax,            // of all experts
  softmax_of_chosen,  // of the chosen experts only
  sigmoid,            // of each expert by itself (arXiv 2412.19437, section 2.1.2)
  /// The sparse mixer (arXiv 2409.12136): of each chosen expert the softmax among those that are
  /// not chosen before it and whose logits s are near its own, m: (m - s) / max(|s|, m) <= 2 *
  /// Routing::jitter.
  sparse_mixer,
};

/// The rule by which each token gets its experts, and their weights.
struct Routing {
  ExpertScore score = ExpertScore::softmax;
  bool normalized = true;  // divides the weights of a token's experts by their sum
  float scale = 1.0f;      // multiplies the weights
  float jitter = 0.01f;    // of the sparse mixer, which adds so much noise in training
  /// The experts are in n_group groups of neighbours. With more than one, a token chooses among the
  /// experts of n_group_used groups: those whose n_group_best highest scores have the highest sum.
  int64_t n_group = 1;
  int64_t n_group_used = 1;
  int64_t n_group_best = 2;  // 1 or 2; of groups of one, the one
};

/// Most experts of a layer.
inline constexpr int64_t kMostExperts = 1024;

/// The choice of experts. Of a token's logits, the highest are chosen; with a bias or with groups,
/// the highest of score + bias instead. Ties go to the lower index, and NaN ranks lowest. The
/// weights are the scores, without the bias, times each expert's own factor.
struct ExpertChoice {
  Tensor logits;   // [n, n_expert] f32, n_expert <= kMostExperts
  Tensor bias;     // [n_expert] f32, or empty: added to scores for the choice. A weight
  Tensor factors;  // [n_expert] f32, or empty. A weight
  Routing rule = {};
  Tensor experts;  // [n, n_used] i32: the chosen ones, best first
  Tensor weights;  // [n, n_used] f32
};

/// The matrices of one expert, of any weight types, with their biases [n_out] f32 or empty.
struct Expert {
  Tensor gate, up;  // [n_ff, n_embd]; no gate: down(f(up x))
  Tensor down;      // [n_embd, n_ff]
  Tensor gate_bias, up_bias, down_bias;
};

/// Memory for what experts compute on m rows at a time, m >= n_used.
struct ExpertMemory {
  Tensor x;         // [m, n_embd], the type of ExpertProducts::x
  Tensor gate, up;  // [m, n_ff] f32; no gate if experts have none
  Tensor act;       // [m, n_ff], as x
  Tensor out;       // [m, n_embd] f32
  Tensor order;     // [n_expert + 1 + n * n_used] i32, for tokens sorted by expert
  Tensor factors;   // [n * n_used] f32
};

/// Gates above `gate` become it, before their activation, and what these are multiplied with is
/// kept between -up and up.
struct GateLimits {
  float gate = std::numeric_limits<float>::infinity();
  float up = std::numeric_limits<float>::infinity();

  explicit operator bool() const { return std::isfinite(gate) || std::isfinite(up); }
};

/// Feed-forward networks of which every token passes only those chosen for it.
struct ExpertProducts {
  Tensor x;                         // [n, n_embd] f32; compute dtype with a workspace
  std::span<const Expert> experts;  // [n_expert], all of the same shapes
  Tensor chosen;                    // [n, n_used] i32, of one token all different
  Tensor weights;                   // [n, n_used] f32
  Activation activation = Activation::silu;
  GateLimits limits;  // only where experts have gates
  float factor = 1.0f;
  Tensor out;  // [n, n_embd] f32
  ExpertMemory memory;
  /// Null: the products round as project() does. Otherwise they are those of project_packed().
  PackWorkspace* workspace = nullptr;
};

enum class RopeLayout {
  norm,  // rotates pairs (2i, 2i+1): architecture `llama`
  neox,  // rotates pairs (i, i + n_rot/2)
};

/// Rotary embedding (RoFormer, arXiv 2104.09864, eq. 15): pair i of position p turns by p *
/// inv_freq[i]. inv_freq already includes scaling of any kind. It is f64, so that positions of a
/// million keep their phase. Rotated values are also multiplied by `magnitude` (this is how YaRN,
/// arXiv 2309.00071, section 3.4, implements the temperature of its attention).
struct RopeFrequencies {
  std::span<const double> inv_freq;  // [n_rot / 2]
  RopeLayout layout = RopeLayout::norm;
  float magnitude = 1.0f;
};

/// How a layer's attention differs from a plain softmax over all visible rows. The scores below are
/// scale * q . k.
struct AttentionVariant {
  /// > 0: a query sees only the last `window` rows up to its own (arXiv 2004.05150, section 3.1).
  int64_t window = 0;
  /// > 0: scores s become softcap * tanh(s / softcap) before the softmax (arXiv 2408.00118,
  /// section 2).
  float softcap = 0.0f;
  /// [n_head] f32, or empty: each head's softmax has one more column with this score and no value
  /// (arXiv 2309.17453, section 3.2; the score is neither scaled nor capped). A weight.
  Tensor sinks = {};
};

/// Sparse attention: a block of queries attends to some blocks of keys only, chosen by the blocks'
/// mean keys (FlashPrefill, arXiv 2603.06199; the share as in XAttention, arXiv 2503.16428).
/// Query block I has queries [128 I, 128 I + 128) of the chunk. It sees rows up to its last query's
/// own, in blocks b of 128 from row 0 on. With m[b] the mean of the block's keys that it sees, and
/// score' the score with softcap,
///   M[h, b] = mean over t in I of softmax_b(score'(scale * q[t, h] . m[b])).
/// Chosen are block 0, the blocks from two before that of I's first own row on, and of the others
/// those with the highest max over the group's heads of M[h, b] (ties: the lower b), as few as let
/// the chosen blocks' M[h, b] sum up to `share` for each head h of the group.
struct SparseAttention {
  static constexpr int64_t kBlock = 128;
  static constexpr int64_t kLocalBlocks = 2;
  float share = 0.0f;   // up to 1; 0: all rows are seen
  int64_t n_dense = 0;  // a query block that has one of so many last queries sees all rows
  bool on() const { return share > 0.0f; }
};

/// Causal attention of a chunk of queries over the rows of one layer (uncompressed during prefill).
/// Query t sees rows [0, n_past[h] + t] of head h, or the last variant.window of them. The chunk's
/// own keys are already stored at rows n_past[h] ... n_past[h] + n - 1.
///   out[t, h, :] = sum_j softmax_j(scale * q[t, h] . k[h / n_group, j]) * v[h / n_group, j]
struct PrefillAttention {
  Tensor q;                         // [n, n_head, head_dim] f32
  Tensor k;                         // [n_head_kv, capacity, head_dim] KV dtype
  Tensor v;                         // [n_head_kv, capacity, value_dim], as k; may lie in k's rows
  std::span<const int32_t> n_past;  // [n_head_kv]
  float scale = 1.0f;
  Tensor out;  // [n, n_head, value_dim] f32 or compute dtype
  AttentionVariant variant = {};
  SparseAttention sparse = {};  // without a window; not every backend has it
};

/// Consecutive rows of one sequence, and its state before and after them.
struct SequenceRows {
  int64_t begin = 0, end = 0;  // of the rows that an op gets
  const void* from = nullptr;  // may be `to` of the rows before these
  void* to = nullptr;          // not the memory of `from`
};

/// A short convolution along each sequence. With k = kernel_size,
///   z[t, i] = sum over j < k of weight[i, j] * y[t - (k - 1) + j, i]
/// - With gates (LFM2, arXiv 2511.23404) a row of `in` has three parts b, c and x; y = b * x and
///   out = c * z.
/// - Without, a row has one part, y; out = silu(z + bias).
/// A sequence's state is y of its last k - 1 rows, [k - 1, d] f32; zeros at its beginning.
inline constexpr int64_t kMostTaps = 16;  // of kernel_size, at least 2
struct ShortConv {
  Tensor in;                                // [n, 3, d] f32: b, c, x; or [n, 1, d]: y
  Tensor weight;                            // [d, kernel_size] f32, a weight
  std::span<const SequenceRows> sequences;  // all n rows, in order
  Tensor out;                               // [n, d] f32 or compute dtype
  Tensor bias = {};                         // [d] f32, or empty; only without gates; a weight
};

/// The gated delta rule (arXiv 2412.06464, eq. 10) along each sequence. In each head, with q' and
/// k' the queries and keys divided by sqrt(|x|^2 + eps), q' also by sqrt(d_k), and with
///   g[t] = exp(rate * softplus(decay[t] + decay_bias)), b[t] = 1 / (1 + exp(-beta[t])),
/// the state S [d_k, d_v] of the head becomes
///   S[t] = g[t] S[t-1] + k'[t] (b[t] (v[t] - g[t] S[t-1]^T k'[t]))^T,  and out[t] = S[t]^T q'[t].
/// Or each channel of the keys decays at its own pace (Kimi Delta Attention, arXiv 2510.26692, eq.
/// 1): g[t] is then diagonal, [d_k, d_k], with a decay and a bias for each row of S. With a least
/// logarithm f of the decays, g[t] = exp(f / (1 + exp(-rate * (decay[t] + decay_bias)))) instead.
/// A sequence's state is S of each head, [n_head, d_k, d_v] f32; zeros at its beginning.
struct DeltaRule {
  Tensor qkv;    // [n, n_qkv()] f32: queries and keys of n_head_k heads, values of n_head heads
  Tensor decay;  // [n, n_head] f32, or [n, n_head * d_k]
  Tensor beta;   // [n, n_head] f32
  Tensor rate;   // [n_head] f32, below 0, or above 0 with log_floor; a weight
  Tensor decay_bias;     // [n_head] f32, or [n_head * d_k]; a weight
  int64_t n_head_k = 0;  // divides n_head
  int64_t d_k = 0;
  /// Which queries and keys head h has: those of head h % n_head_k, else of h / (n_head /
  /// n_head_k).
  bool keys_take_turns = false;
  float log_floor = 0.0f;  // f, below 0; 0: there is none
  float eps = 1e-6f;
  std::span<const SequenceRows> sequences;  // all n rows, in order
  Tensor out;                               // [n, n_head, d_v] f32

  int64_t n_head() const { return out.shape[1]; }
  int64_t d_v() const { return out.shape[2]; }
  int64_t n_qkv() const { return 2 * n_head_k * d_k + n_head() * d_v(); }
  int64_t n_state() const { return n_head() * d_k * d_v(); }
  /// Decays that a head has for a token: 1, or d_k.
  int64_t n_decay() const { return decay.shape[1] / n_head(); }
  /// The head of queries and keys that head h has.
  int64_t key_head(int64_t h) const {
    return keys_take_turns ? h % n_head_k : h / (n_head() / n_head_k);
  }
};

/// The selective state-space scan of Mamba-2 (arXiv 2405.21060, eq. 1 and section 7.1) along each
/// sequence. In each head, with B and C [d_state] of the head's group, and with
///   w[t] = softplus(step[t] + step_bias), g[t] = exp(rate * w[t]),
/// the state S [d_state, d_head] of the head becomes
///   S[t] = g[t] S[t-1] + B[t] (w[t] x[t])^T,  and out[t] = S[t]^T C[t] + skip * x[t].
/// A sequence's state is S of each head, [n_head, d_state, d_head] f32; zeros at its beginning.
struct SelectiveScan {
  Tensor xbc;   // [n, n_xbc()] f32: x of n_head heads, then B of n_group groups, then C of these
  Tensor step;  // [n, n_head] f32
  Tensor rate;  // [n_head] f32, below 0; a weight
  Tensor step_bias;     // [n_head] f32, a weight
  Tensor skip;          // [n_head] f32, a weight
  int64_t n_group = 0;  // divides n_head: group g is that of n_head / n_group neighbouring heads
  int64_t d_state = 0;
  std::span<const SequenceRows> sequences;  // all n rows, in order
  Tensor out;                               // [n, n_head, d_head] f32

  int64_t n_head() const { return out.shape[1]; }
  int64_t d_head() const { return out.shape[2]; }
  int64_t n_xbc() const { return n_head() * d_head() + 2 * n_group * d_state; }
  int64_t n_state() const { return n_head() * d_state * d_head(); }
  int64_t group(int64_t head) const { return head / (n_head() / n_group); }
};

/// The selective state-space scan of Mamba (arXiv 2312.00752, eq. 2 and section 3.6) along each
/// sequence. Of each of d channels, with B and C [d_state], which all channels share, and with
///   w[t] = softplus(step[t]), g[t] = exp(rate * w[t]) for each row of the state,
/// the state S [d_state] becomes
///   S[t] = g[t] * S[t-1] + B[t] w[t] x[t],  and out[t] = S[t]^T C[t] + skip * x[t].
/// A sequence's state is S of all channels, [d_state, d] f32; zeros at its beginning.
struct ChannelScan {
  Tensor x;                                 // [n, d] f32
  Tensor step;                              // [n, d] f32
  Tensor b, c;                              // [n, d_state] f32
  Tensor rate;                              // [d_state, d] f32, at most 0; a weight
  Tensor skip;                              // [d] f32, a weight
  std::span<const SequenceRows> sequences;  // all n rows, in order
  Tensor out;                               // [n, d] f32

  int64_t n_channel() const { return out.shape[1]; }
  int64_t d_state() const { return rate.shape[0]; }
  int64_t n_state() const { return d_state() * n_channel(); }
};

/// Rows mixed with those before them along each sequence (RWKV's token shift, arXiv 2305.13048):
/// with m = mix[i], or mix[i] + added[i][t],
///   outs[i][t] = x[t] + (x[t - 1] - x[t]) * m.
/// A sequence's state is x of its last row, [d] f32; zeros at its beginning.
struct TokenShift {
  Tensor x;                                 // [n, d] f32 or compute dtype
  Tensor mix;                               // [n_mix, d] f32, a weight
  std::span<const Tensor> added = {};       // n_mix of [n, d] f32, or none
  std::span<const SequenceRows> sequences;  // all n rows, in order
  std::span<const Tensor> outs;             // n_mix of [n, d], f32 or compute dtype
};

inline constexpr int64_t kMostMixes = 8;  // of one call

enum class WkvRule {
  rwkv6,  // arXiv 2404.05892
  gated,  // gated linear attention (arXiv 2312.06635), with keys scaled by what is forgotten
  rwkv7,  // arXiv 2503.14456
};

/// Linear attention along each sequence whose state, a matrix S [d, d] of each head, decays in each
/// row i at a pace w[t][i] of its own. With s(x) = 1 / (1 + exp(-x)):
/// - rwkv6: w = exp(-exp(decay)); out[t] = (S[t-1] + (bonus * k[t]) v[t]^T)^T r[t], and
///   S[t] = diag(w[t]) S[t-1] + k[t] v[t]^T.
/// - gated: the same w; S[t] = diag(w[t]) S[t-1] + ((1 - w[t]) * k[t]) v[t]^T, and
///   out[t] = S[t]^T r[t] / sqrt(d).
/// - rwkv7: w = exp(-exp(-1/2) s(decay)), a = s(rate), with z = removal * k[t] / |removal * k[t]|,
///   k' = k[t] * (1 + (a - 1) * replacement):
///   S[t] = diag(w[t]) S[t-1] - (a * z) (S[t-1]^T z)^T + k' v[t]^T, and out[t] = S[t]^T r[t].
///   Beside it, shares[t] = sum_i bonus_i k'_i r_i: how much of v[t] comes out besides.
/// A sequence's state is S of each head, [n_head, d, d] f32; zeros at its beginning.
struct Wkv {
  WkvRule rule = WkvRule::rwkv7;
  Tensor r, decay;                          // [n, n_head * d] f32
  Tensor k, v;                              // [n, n_head_kv * d] f32; n_head_kv divides n_head
  Tensor rate = {};                         // [n, n_head * d] f32, of rwkv7
  Tensor bonus = {};                        // [n_head * d] f32, a weight; of rwkv6 and rwkv7
  Tensor removal = {};                      // the same of rwkv7
  Tensor replacement = {};                  // the same
  std::span<const SequenceRows> sequences;  // all n rows, in order
  Tensor out;                               // [n, n_head, d] f32
  Tensor shares = {};                       // [n, n_head] f32, of rwkv7

  int64_t n_head() const { return out.shape[1]; }
  int64_t d() const { return out.shape[2]; }
  int64_t n_state() const { return n_head() * d() * d(); }
  /// The head of keys and values that head h has.
  int64_t key_head(int64_t h) const { return h / (n_head() * d() / k.shape[1]); }
};
inline constexpr float kLeastKeyLength = 1e-12f;  // |removal * k| is taken as no less

/// The rows of one KV head of one sequence.
struct HeadRows {
  const void* k = nullptr;  // [n_kv, head_dim] cache dtype, contiguous
  const void* v = nullptr;  // [n_kv, value_dim], contiguous unless it lies in k's rows
  int32_t n_kv = 0;         // >= 1
};

/// out[t, j] = sum over h of weights[t, h] * max(0, q[t, h] . keys[j]) for j < n_seen[t] (DeepSeek
/// Sparse Attention, arXiv 2512.02556, eq. 1). Sums are in f32 at least.
struct IndexScores {
  Tensor q;                         // [n, n_head, d] f32
  Tensor weights;                   // [n, n_head] f32
  Tensor keys;                      // [capacity, d] KV dtype, with any stride
  std::span<const int32_t> n_seen;  // [n]
  Tensor out;                       // [n, >= max(n_seen)] f32; other columns are left unchanged
};

/// Attention of queries, each over rows of its own. These may be the first ones of another query's:
/// of a step with several tokens of a sequence, the later ones see more. The number of rows differs
/// between queries and between heads; nothing is padded. A sliding window is expressed by where
/// the rows begin, so variant.window must be 0.
struct DecodeAttention {
  Tensor q;                         // [n, n_head, head_dim] f32
  std::span<const HeadRows> heads;  // [n * n_head_kv]
  DType kv_dtype = DType::f16;
  float scale = 1.0f;
  Tensor out;  // [n, n_head, value_dim] f32
  AttentionVariant variant = {};
  /// Whether each row of v lies in the row of k, a whole number of the type's blocks after its
  /// beginning.
  bool v_in_k = false;
  /// [n * n_head_kv, k] i32: the numbers of the rows of `heads` that are attended to, ascending,
  /// each below n_kv (not checked: they are in device memory). Empty: all are. Only of a KV dtype,
  /// where PlannedDevice::attends_to_chosen().
  Tensor chosen = {};

  int64_t value_dim() const { return out.shape[2]; }
  /// How many rows of `heads[head]` are attended to.
  int64_t n_rows(int64_t head) const { return chosen ? chosen.shape[1] : heads[head].n_kv; }
  /// Bytes from a row of v to the next one.
  int64_t v_step() const { return row_bytes(kv_dtype, v_in_k ? q.shape[2] : value_dim()); }
};

/// How votes are smoothed over positions (SnapKV, arXiv 2404.14469, section 4.2).
enum class Pooling { max, avg };

/// How the query heads that share one KV head combine their votes (grouped-query attention).
enum class GroupReduce { mean, max };

/// How the votes of a window's queries for a row are combined. SnapKV adds them up; the maximum
/// keeps a row that only a single query needs.
enum class VoteReduce { sum, max };

/// SnapKV's vote (arXiv 2404.14469, section 4.1; docs/architecture.md, steps 2 to 5). The W queries
/// belong to the last W rows of every head; query i sees rows [0, n_rows[h] - W + i].
///   votes[g, j] = reduce_{h in group g} sum_i softmax_j'(scale * q[i, h] . k[g, j'])[j]
/// for j < n_rows[g] - W (with VoteReduce::max the largest over i instead of the sum). The softmax
/// is over all visible rows, in f32. With `whole`, for every j < n_rows[g]: the window's own
/// columns too, over the queries that see them. W is the number of queries; variant.window, if set,
/// limits how many rows each of them sees.
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

/// dst[h][i, :] = src[h][rows[h, i], :] for i < n[h], in another cache dtype (rounded like
/// store_rows).
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
  bool l1 = false;  // sum of absolute values; otherwise the L2 norm
  bool inverse = false;
  bool accumulate = false;  // add to the content of `out`
};

/// How a score is replaced within its chunk. `rank`: the number of scores in the chunk that are
/// lower, or equal with a higher index; NaN is lower than all others and its rank is NaN.
enum class ChunkScore { mean, softmax, rank };

/// out[h, j] (+)= factor * kind(scores[h, chunk of j])[j] for begin <= j < n[h]. Chunks have
/// `length` rows from `begin` on; the last one may be shorter. Below `begin`, out is 0 (+= 0).
struct ChunkScores {
  ChunkScore kind = ChunkScore::mean;
  Tensor scores;               // [n_head_kv, >= max(n)] f32
  std::span<const int32_t> n;  // [n_head_kv]
  int64_t begin = 0;
  int64_t length = 1;  // >= 1
  Tensor out;          // as scores; the same memory only for means without accumulate
  float factor = 1.0f;
  bool accumulate = false;  // add to the content of `out`
};

namespace ops {

#define SNAPKV_UNPACK(...) __VA_ARGS__  // (a, b) -> a, b
#define SNAPKV_OP(name, parameters, names) void name(Backend& backend, SNAPKV_UNPACK parameters);
#include "backend/ops.def"

}  // namespace ops
}  // namespace snapkv
