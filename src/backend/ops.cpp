// SPDX-License-Identifier: MIT
// Validation and dispatch of every op. Shapes and types are checked here only, so that kernels may
// trust them. A failed check is a programmer's error.
//
// The function in `op_checks` with an op's name validates it and returns whether there is anything
// to do: kernels are not called for empty work.
#include "backend/ops.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "backend/backend.h"
#include "backend/kernels.h"
#include "backend/op_checks.h"
#include "base/check.h"

namespace snapkv {
namespace op_checks {
namespace {

bool is_kv_dtype(DType t) { return t == DType::f32 || t == DType::f16 || t == DType::bf16; }

// Whether decoding can read rows of this type, in whole blocks.
bool is_cache_dtype(DType t, int64_t head_dim) {
  return is_kv_dtype(t) || (t == DType::q8_0 && head_dim % block_size(t) == 0);
}

bool is_weight(const Tensor& t) {
  return t.dtype != DType::i32 && is_dense(t, {kAny, kAny}) &&
         t.n_cols() % block_size(t.dtype) == 0;
}

// Whether t has rows of KV heads: [n_head_kv, capacity, d]. Rows and heads may have any stride, so
// that the memory of other engines ([n_tokens, n_head_kv, d]) can be read in place.
bool is_kv(const Tensor& t) {
  const int64_t element = block_bytes(t.dtype);
  return has_shape(t, {kAny, kAny, kAny}) && block_size(t.dtype) == 1 && t.stride[2] == element &&
         t.stride[0] >= 0 && t.stride[0] % element == 0 && t.stride[1] >= 0 &&
         t.stride[1] % element == 0 && (t.data != nullptr || t.numel() == 0);
}

bool is_variant(const AttentionVariant& v, int64_t n_head) {
  return v.window >= 0 && std::isfinite(v.softcap) && v.softcap >= 0.0f && is_bias(v.sinks, n_head);
}

bool embed(const Backend&, const Tensor& weight, std::span<const int32_t> ids, const Tensor& out) {
  SNAPKV_CHECK(is_weight(weight));
  SNAPKV_CHECK(is_f32(out, {std::ssize(ids), weight.shape[1]}));
  SNAPKV_CHECK(all_within(ids, 0, weight.shape[0] - 1));
  return out.numel() > 0;
}

// Whether t is the weight of a norm of x's rows: one for all, or m of them that take turns.
bool is_norm_weight(const Tensor& t, const Tensor& x) {
  if (t.rank == 1) return is_f32(t, {x.shape[1]});
  return is_f32(t, {kAny, x.shape[1]}) && t.shape[0] > 0 && x.shape[0] % t.shape[0] == 0;
}

bool rms_norm(const Backend&, const Tensor& x, const Tensor& weight, float eps, const Tensor& out) {
  SNAPKV_CHECK(is_f32(x, {kAny, kAny}));
  SNAPKV_CHECK(is_norm_weight(weight, x));
  SNAPKV_CHECK(out.dtype == DType::f32 || out.dtype == DType::bf16);
  SNAPKV_CHECK(is_dense(out, {x.shape[0], x.shape[1]}));
  SNAPKV_CHECK(eps >= 0.0f);
  return x.numel() > 0;
}

bool layer_norm(const Backend&, const Tensor& x, const Tensor& weight, const Tensor& bias,
                float eps, const Tensor& out) {
  SNAPKV_CHECK(is_f32(x, {kAny, kAny}));
  SNAPKV_CHECK(is_norm_weight(weight, x));
  SNAPKV_CHECK(is_bias(bias, x.shape[1]) ||
               (weight.rank == 2 && is_f32(bias, {weight.shape[0], x.shape[1]})));
  SNAPKV_CHECK(out.dtype == DType::f32 || out.dtype == DType::bf16);
  SNAPKV_CHECK(is_dense(out, {x.shape[0], x.shape[1]}));
  SNAPKV_CHECK(eps >= 0.0f);
  return x.numel() > 0;
}

bool add(const Backend&, const Tensor& x, const Tensor& y, float) {
  SNAPKV_CHECK(is_f32(x, {kAny, kAny}) && is_f32(y, {x.shape[0], x.shape[1]}));
  return x.numel() > 0;
}

bool add_rows(const Backend&, const Tensor& x, const Tensor& y, std::span<const int32_t> rows,
              std::span<const float> factors) {
  SNAPKV_CHECK(is_f32(x, {kAny, kAny}) && is_f32(y, {std::ssize(rows), x.shape[1]}));
  SNAPKV_CHECK(factors.size() == rows.size() && all_within(rows, 0, x.shape[0] - 1));
  SNAPKV_CHECK(std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) == rows.end());
  return y.numel() > 0;
}

bool scale(const Backend&, const Tensor& x, std::span<const float> factors) {
  SNAPKV_CHECK(x.rank > 0 && x.dtype == DType::f32 && x.is_contiguous());
  SNAPKV_CHECK(factors.size() == 1 || std::ssize(factors) == x.shape[0]);
  return x.numel() > 0;
}

bool scale_rows(const Backend&, const Tensor& x, const Tensor& factors) {
  SNAPKV_CHECK(is_f32(x, {kAny, kAny}) && is_f32(factors, {x.shape[0], 1}));
  return x.numel() > 0;
}

bool softcap(const Backend&, const Tensor& x, float cap) {
  SNAPKV_CHECK(is_f32(x, {kAny, kAny}));
  SNAPKV_CHECK(std::isfinite(cap) && cap > 0.0f);
  return x.numel() > 0;
}

bool clamp(const Backend&, const Tensor& x, float low, float high) {
  SNAPKV_CHECK(x.rank > 0 && x.dtype == DType::f32 && x.is_contiguous());
  SNAPKV_CHECK(low < high && (std::isfinite(low) || std::isfinite(high)));
  return x.numel() > 0;
}

bool keep_peaks(const Backend&, const Tensor& x, float deviations) {
  SNAPKV_CHECK(is_f32(x, {kAny, kAny}));
  SNAPKV_CHECK(std::isfinite(deviations));
  return x.numel() > 0;
}

// Checks rows of several streams.
bool has_streams(const Tensor& x) {
  SNAPKV_CHECK(is_f32(x, {kAny, kAny, kAny}));
  SNAPKV_CHECK(x.shape[1] >= 1 && x.shape[1] <= kMostStreams);
  return x.numel() > 0;
}

bool take_stream(const Backend&, const Tensor& x, int64_t stream, const Tensor& factors,
                 const Tensor& out) {
  const bool any = has_streams(x);
  SNAPKV_CHECK(stream >= 0 && stream < x.shape[1]);
  SNAPKV_CHECK(is_bias(factors, x.shape[2]) && is_f32(out, {x.shape[0], x.shape[2]}));
  return any;
}

bool mix_streams(const Backend&, const Tensor& x, const Tensor& coefficients) {
  const bool any = has_streams(x);
  SNAPKV_CHECK(is_f32(coefficients, {x.shape[0], x.shape[1] * x.shape[1]}));
  return any;
}

bool add_to_streams(const Backend&, const Tensor& x, const Tensor& y, const Tensor& factors,
                    int64_t first) {
  const bool any = has_streams(x);
  SNAPKV_CHECK(is_f32(y, {x.shape[0], x.shape[2]}));
  SNAPKV_CHECK(!factors || is_f32(factors, {x.shape[0], x.shape[1]}));
  SNAPKV_CHECK(first >= 0 && first <= x.shape[1]);
  return any && first < x.shape[1];
}

bool match_norms(const Backend&, const Tensor& x, const Tensor& like) {
  SNAPKV_CHECK(is_f32(x, {kAny, kAny}) && is_f32(like, {x.shape[0], x.shape[1]}));
  return x.numel() > 0;
}

// Checks rows and the parts that they consist of.
bool has_parts(const Backend& backend, const Tensor& x, std::span<const Tensor> parts) {
  SNAPKV_CHECK(is_activation(backend, x, {kAny, kAny}));
  int64_t d = 0;
  for (const Tensor& part : parts) {
    SNAPKV_CHECK(is_activation(backend, part, {x.shape[0], kAny}));
    d += part.shape[1];
  }
  SNAPKV_CHECK(d == x.shape[1]);
  return x.numel() > 0;
}

bool split(const Backend& backend, const Tensor& x, std::span<const Tensor> parts) {
  return has_parts(backend, x, parts);
}

bool join(const Backend& backend, std::span<const Tensor> parts, const Tensor& out) {
  return has_parts(backend, out, parts);
}

bool blend(const Backend&, const Tensor& x, const Tensor& y, const Tensor& gates) {
  SNAPKV_CHECK(is_f32(x, {kAny, kAny}) && is_f32(y, {x.shape[0], x.shape[1]}));
  SNAPKV_CHECK(is_f32(gates, {x.shape[0], x.shape[1]}));
  return x.numel() > 0;
}

bool rope(const Backend&, const Tensor& x, std::span<const int32_t> pos,
          const RopeFrequencies& frequencies) {
  SNAPKV_CHECK(is_f32(x, {std::ssize(pos), kAny, kAny}));
  SNAPKV_CHECK(2 * std::ssize(frequencies.inv_freq) <= x.shape[2]);
  SNAPKV_CHECK(std::isfinite(frequencies.magnitude));
  return x.numel() > 0 && !frequencies.inv_freq.empty();
}

bool activate(const Backend& backend, Activation activation, const Tensor& x, const Tensor& factor,
              const Tensor& out) {
  SNAPKV_CHECK(is_activation(backend, x, {kAny, kAny}));
  if (factor) {
    SNAPKV_CHECK(factor.dtype == x.dtype && is_dense(factor, {x.shape[0], x.shape[1]}));
  }
  SNAPKV_CHECK(is_activation(backend, out, {x.shape[0], x.shape[1]}));
  if (x.numel() == 0) return false;
  SNAPKV_CHECK(factor || activation != Activation::clamped_swiglu);
  return true;
}

bool xielu(const Backend& backend, const Tensor& x, float alpha_p, float alpha_n, float beta,
           float eps, const Tensor& out) {
  SNAPKV_CHECK(is_f32(x, {kAny, kAny}) && is_activation(backend, out, {x.shape[0], x.shape[1]}));
  for (const float value : {alpha_p, alpha_n, beta, eps}) SNAPKV_CHECK(std::isfinite(value));
  return x.numel() > 0;
}

bool project(const Backend&, const Tensor& x, std::span<const Projection> projections) {
  SNAPKV_CHECK(is_f32(x, {kAny, kAny}));
  for (const Projection& p : projections) {
    SNAPKV_CHECK(is_weight(p.w) && p.w.shape[1] == x.shape[1]);
    SNAPKV_CHECK(is_bias(p.bias, p.w.shape[0]));
    SNAPKV_CHECK(is_f32(p.out, {x.shape[0], p.w.shape[0]}));
  }
  return x.shape[0] > 0 && !projections.empty();
}

bool project_each(const Backend&, const Tensor& x, std::span<const Projection> projections) {
  SNAPKV_CHECK(is_f32(x, {kAny, kAny}));
  int64_t n = 0;
  for (const Projection& p : projections) {
    SNAPKV_CHECK(is_weight(p.w) && p.w.shape[1] == x.shape[1]);
    SNAPKV_CHECK(is_bias(p.bias, p.w.shape[0]) && is_f32(p.out, {kAny, p.w.shape[0]}));
    n += p.out.shape[0];
  }
  SNAPKV_CHECK(n == x.shape[0]);
  return n > 0;
}

bool pack(const Backend&, const Tensor& weight, const PackedWeight&) {
  SNAPKV_CHECK(is_weight(weight) && weight.numel() > 0);
  return true;
}

bool project_packed(const Backend& backend, const Tensor& x, const PackedWeight& weight,
                    const Tensor& bias, const Tensor& out, bool accumulate) {
  SNAPKV_CHECK((weight.storage || weight.layout != nullptr) && weight.n_out > 0 && weight.n_in > 0);
  SNAPKV_CHECK(x.dtype == backend.compute_dtype() && is_dense(x, {kAny, weight.n_in}));
  SNAPKV_CHECK(is_bias(bias, weight.n_out));
  SNAPKV_CHECK(is_activation(backend, out, {x.shape[0], weight.n_out}));
  SNAPKV_CHECK(!accumulate || out.dtype == DType::f32);
  return x.shape[0] > 0;
}

bool route(const Backend&, const ExpertChoice& c) {
  SNAPKV_CHECK(is_f32(c.logits, {kAny, kAny}));
  const int64_t n = c.logits.shape[0], n_expert = c.logits.shape[1];
  SNAPKV_CHECK(is_bias(c.bias, n_expert) && is_bias(c.factors, n_expert));
  SNAPKV_CHECK(is_f32(c.weights, {n, kAny}));
  const int64_t n_used = c.weights.shape[1], n_group = c.rule.n_group;
  SNAPKV_CHECK(c.experts.dtype == DType::i32 && is_dense(c.experts, {n, n_used}));
  SNAPKV_CHECK(n_expert <= kMostExperts && 1 <= n_used && n_used <= n_expert);
  SNAPKV_CHECK(n_group >= 1 && n_expert % n_group == 0 && std::isfinite(c.rule.scale));
  SNAPKV_CHECK(1 <= c.rule.n_group_used && c.rule.n_group_used <= n_group);
  SNAPKV_CHECK(c.rule.n_group_best == 1 || c.rule.n_group_best == 2);
  SNAPKV_CHECK(n_used <= c.rule.n_group_used * (n_expert / n_group));
  if (c.rule.score == ExpertScore::sparse_mixer) {
    SNAPKV_CHECK(!c.bias && n_group == 1 && c.rule.jitter >= 0.0f && c.rule.jitter < 0.5f);
  }
  return n > 0;
}

// Whether all of an expert's tensors have the shapes that `like`'s have.
bool is_expert(const Expert& e, const Expert& like) {
  const int64_t n_ff = like.up.shape[0], n_embd = like.up.shape[1];
  const auto is_matrix = [](const Tensor& w, int64_t n_out, int64_t n_in) {
    return is_weight(w) && w.shape[0] == n_out && w.shape[1] == n_in;
  };
  if (static_cast<bool>(e.gate) != static_cast<bool>(like.gate)) return false;
  return (!e.gate || is_matrix(e.gate, n_ff, n_embd)) && is_matrix(e.up, n_ff, n_embd) &&
         is_matrix(e.down, n_embd, n_ff) && is_bias(e.gate_bias, n_ff) &&
         is_bias(e.up_bias, n_ff) && is_bias(e.down_bias, n_embd);
}

bool project_experts(const Backend& backend, const ExpertProducts& p) {
  const DType type = p.workspace != nullptr ? backend.compute_dtype() : DType::f32;
  const auto has_type = [&](const Tensor& t, std::initializer_list<int64_t> shape) {
    return t.dtype == type && is_dense(t, shape);
  };
  SNAPKV_CHECK(has_type(p.x, {kAny, kAny}) && !p.experts.empty() && is_weight(p.experts[0].up));
  const int64_t n = p.x.shape[0], n_embd = p.x.shape[1], n_expert = std::ssize(p.experts);
  const int64_t n_ff = p.experts[0].up.shape[0];
  SNAPKV_CHECK(n_expert <= kMostExperts);
  for (const Expert& e : p.experts) SNAPKV_CHECK(is_expert(e, p.experts[0]));
  SNAPKV_CHECK(p.experts[0].gate || p.activation != Activation::clamped_swiglu);
  SNAPKV_CHECK(!p.limits || (p.experts[0].gate && p.limits.up > 0.0f));
  SNAPKV_CHECK(is_f32(p.weights, {n, kAny}) && is_f32(p.out, {n, n_embd}));
  const int64_t n_used = p.weights.shape[1];
  SNAPKV_CHECK(p.chosen.dtype == DType::i32 && is_dense(p.chosen, {n, n_used}));
  const int64_t m = p.memory.x.shape[0];
  SNAPKV_CHECK(m >= n_used && has_type(p.memory.x, {m, n_embd}));
  SNAPKV_CHECK(!p.experts[0].gate || is_f32(p.memory.gate, {m, n_ff}));
  SNAPKV_CHECK(is_f32(p.memory.up, {m, n_ff}) && has_type(p.memory.act, {m, n_ff}));
  SNAPKV_CHECK(is_f32(p.memory.out, {m, n_embd}));
  SNAPKV_CHECK(p.memory.order.dtype == DType::i32 &&
               is_dense(p.memory.order, {n_expert + 1 + n * n_used}));
  SNAPKV_CHECK(is_f32(p.memory.factors, {n * n_used}));
  return p.out.numel() > 0 && n_used > 0;
}

bool store_rows(const Backend&, const Tensor& src, DType dtype, std::span<void* const> dst) {
  SNAPKV_CHECK(is_f32(src, {kAny, std::ssize(dst), kAny}));
  SNAPKV_CHECK(is_cache_dtype(dtype, src.shape[2]));
  if (src.numel() == 0) return false;
  for (void* head : dst) SNAPKV_CHECK(head != nullptr);
  return true;
}

bool store_positions(const Backend&, std::span<const int32_t> pos, std::span<int32_t* const> dst) {
  if (pos.empty() || dst.empty()) return false;
  for (int32_t* head : dst) SNAPKV_CHECK(head != nullptr);
  return true;
}

bool gather_rows(const Backend&, const Tensor& src, const Tensor& rows, std::span<const int32_t> n,
                 std::span<void* const> dst) {
  SNAPKV_CHECK(is_kv(src) && std::ssize(n) == src.shape[0] && dst.size() == n.size());
  SNAPKV_CHECK(rows.dtype == DType::i32 && is_dense(rows, {src.shape[0], kAny}));
  SNAPKV_CHECK(all_within(n, 0, rows.shape[1]));
  if (rows.numel() == 0 || src.numel() == 0) return false;
  for (size_t h = 0; h < n.size(); ++h) SNAPKV_CHECK(n[h] == 0 || dst[h] != nullptr);
  return true;
}

bool convert_rows(const Backend&, const RowConversion& c) {
  SNAPKV_CHECK(c.src.size() == c.n.size() && c.dst.size() == c.n.size() && c.head_dim >= 0);
  SNAPKV_CHECK(is_cache_dtype(c.src_dtype, c.head_dim) && is_cache_dtype(c.dst_dtype, c.head_dim));
  if (c.rows) {
    SNAPKV_CHECK(c.rows.dtype == DType::i32 && is_dense(c.rows, {std::ssize(c.n), kAny}));
    SNAPKV_CHECK(all_within(c.n, 0, c.rows.shape[1]));
  }
  for (size_t h = 0; h < c.n.size(); ++h) {
    SNAPKV_CHECK(c.n[h] == 0 || (c.n[h] > 0 && c.src[h] != nullptr && c.dst[h] != nullptr));
  }
  return !c.n.empty() && c.head_dim > 0;
}

bool attention_prefill(const Backend& backend, const PrefillAttention& a) {
  SNAPKV_CHECK(is_f32(a.q, {kAny, kAny, kAny}));
  SNAPKV_CHECK(is_kv_dtype(a.k.dtype) && is_kv(a.k));
  SNAPKV_CHECK(is_kv(a.v) && a.v.dtype == a.k.dtype);
  const int64_t n = a.q.shape[0], n_head = a.q.shape[1], n_head_kv = a.k.shape[0];
  SNAPKV_CHECK(a.v.shape[0] == n_head_kv && a.v.shape[1] == a.k.shape[1]);
  SNAPKV_CHECK(a.q.shape[2] == a.k.shape[2]);
  SNAPKV_CHECK(n_head_kv > 0 && n_head % n_head_kv == 0);
  SNAPKV_CHECK(std::ssize(a.n_past) == n_head_kv && all_within(a.n_past, 0, a.k.shape[1] - n));
  SNAPKV_CHECK(is_activation(backend, a.out, {n, n_head, a.v.shape[2]}));
  SNAPKV_CHECK(is_variant(a.variant, n_head));
  SNAPKV_CHECK(a.sparse.share >= 0.0f && a.sparse.share <= 1.0f && a.sparse.n_dense >= 0);
  SNAPKV_CHECK(!a.sparse.on() || a.variant.window == 0);
  return a.out.numel() > 0;
}

bool index_scores(const Backend&, const IndexScores& s) {
  SNAPKV_CHECK(is_f32(s.q, {kAny, kAny, kAny}));
  const int64_t n = s.q.shape[0];
  SNAPKV_CHECK(is_f32(s.weights, {n, s.q.shape[1]}) && is_f32(s.out, {n, kAny}));
  SNAPKV_CHECK(is_kv_dtype(s.keys.dtype) && has_shape(s.keys, {kAny, s.q.shape[2]}));
  SNAPKV_CHECK(s.keys.stride[1] == row_bytes(s.keys.dtype, 1));
  SNAPKV_CHECK(std::ssize(s.n_seen) == n);
  SNAPKV_CHECK(all_within(s.n_seen, 0, std::min(s.keys.shape[0], s.out.shape[1])));
  return std::any_of(s.n_seen.begin(), s.n_seen.end(), [](int32_t seen) { return seen > 0; });
}

bool attention_decode(const Backend& backend, const DecodeAttention& a) {
  SNAPKV_CHECK(is_f32(a.q, {kAny, kAny, kAny}));
  SNAPKV_CHECK(is_f32(a.out, {a.q.shape[0], a.q.shape[1], kAny}));
  SNAPKV_CHECK(is_cache_dtype(a.kv_dtype, a.q.shape[2]));
  SNAPKV_CHECK(is_cache_dtype(a.kv_dtype, a.value_dim()));
  SNAPKV_CHECK(!a.v_in_k || a.value_dim() <= a.q.shape[2]);
  SNAPKV_CHECK(is_variant(a.variant, a.q.shape[1]) && a.variant.window == 0);
  if (a.out.numel() == 0) return false;
  const int64_t n_seq = a.q.shape[0], n_heads = std::ssize(a.heads);
  SNAPKV_CHECK(n_heads > 0 && n_heads % n_seq == 0 && a.q.shape[1] % (n_heads / n_seq) == 0);
  for (const HeadRows& head : a.heads) {
    SNAPKV_CHECK(head.n_kv >= 1 && head.k != nullptr && head.v != nullptr);
  }
  if (!a.chosen) return true;
  SNAPKV_CHECK(backend.attends_to_chosen() && is_kv_dtype(a.kv_dtype));
  SNAPKV_CHECK(a.chosen.dtype == DType::i32 && is_dense(a.chosen, {n_heads, kAny}));
  for (const HeadRows& head : a.heads) {
    SNAPKV_CHECK(a.chosen.shape[1] >= 1 && a.chosen.shape[1] <= head.n_kv);
  }
  return true;
}

bool window_votes(const Backend&, const WindowVotes& w) {
  SNAPKV_CHECK(is_f32(w.q, {kAny, kAny, kAny}));
  SNAPKV_CHECK(is_kv_dtype(w.k.dtype) && is_kv(w.k));
  const int64_t n_window = w.q.shape[0], n_head_kv = w.k.shape[0];
  SNAPKV_CHECK(w.q.shape[2] == w.k.shape[2]);
  SNAPKV_CHECK(n_head_kv > 0 && w.q.shape[1] % n_head_kv == 0);
  SNAPKV_CHECK(is_f32(w.votes, {n_head_kv, kAny}));
  SNAPKV_CHECK(is_variant(w.variant, w.q.shape[1]));
  if (w.q.numel() == 0) return false;
  SNAPKV_CHECK(std::ssize(w.n_rows) == n_head_kv);
  const int64_t n_own = w.whole ? 0 : n_window;  // rows at the end that get no votes
  SNAPKV_CHECK(all_within(w.n_rows, std::max(n_window, n_own + 1),
                          std::min(w.k.shape[1], n_own + w.votes.shape[1])));
  return true;
}

bool pool(const Backend&, const Tensor& scores, std::span<const int32_t> n, int kernel_size,
          Pooling, const Tensor& out) {
  SNAPKV_CHECK(kernel_size >= 1 && kernel_size % 2 == 1);
  SNAPKV_CHECK(is_f32(scores, {std::ssize(n), kAny}));
  SNAPKV_CHECK(is_f32(out, {std::ssize(n), kAny}));
  SNAPKV_CHECK(all_within(n, 0, std::min(scores.shape[1], out.shape[1])));
  if (scores.numel() == 0) return false;
  SNAPKV_CHECK(out.data != scores.data);
  return true;
}

bool top_k(const Backend&, const Tensor& scores, std::span<const int32_t> n,
           std::span<const int32_t> k, int n_tail, const Tensor& rows) {
  SNAPKV_CHECK(is_f32(scores, {std::ssize(n), kAny}));
  SNAPKV_CHECK(rows.dtype == DType::i32 && is_dense(rows, {std::ssize(n), kAny}));
  SNAPKV_CHECK(n_tail >= 0 && k.size() == n.size());
  SNAPKV_CHECK(all_within(n, 0, scores.shape[1]));
  for (size_t h = 0; h < n.size(); ++h) {
    SNAPKV_CHECK(0 <= k[h] && k[h] <= n[h] && k[h] + n_tail <= rows.shape[1]);
  }
  return rows.numel() > 0;
}

// Whether t has scores for n[h] rows of each head.
bool is_scores(const Tensor& t, std::span<const int32_t> n) {
  return is_f32(t, {std::ssize(n), kAny}) && all_within(n, 0, t.shape[1]);
}

// Whether t has n[h] rows of each KV head, in a type that is not quantized.
bool is_kv_rows(const Tensor& t, std::span<const int32_t> n) {
  return is_kv_dtype(t.dtype) && is_kv(t) && t.shape[0] == std::ssize(n) &&
         all_within(n, 0, t.shape[1]);
}

bool any(std::span<const int32_t> n) {
  return std::any_of(n.begin(), n.end(), [](int32_t v) { return v > 0; });
}

bool row_norms(const Backend&, const RowNorms& r) {
  SNAPKV_CHECK(is_kv_rows(r.x, r.n) && is_scores(r.out, r.n));
  return any(r.n);
}

bool row_dots(const Backend&, const Tensor& x, const Tensor& y, std::span<const int32_t> n,
              const Tensor& out) {
  SNAPKV_CHECK(is_kv_rows(x, n) && is_kv_rows(y, n) && is_scores(out, n));
  SNAPKV_CHECK(y.dtype == DType::f32 && y.shape[2] == x.shape[2]);
  return any(n);
}

bool sum_rows(const Backend&, const Tensor& x, const Tensor& weights, std::span<const int32_t> n,
              const Tensor& out) {
  SNAPKV_CHECK(is_kv_rows(x, n) && is_scores(weights, n));
  SNAPKV_CHECK(is_f32(out, {std::ssize(n), x.shape[2]}));
  return out.numel() > 0;
}

bool weigh_scores(const Backend&, const Tensor& scores, std::span<const int32_t> n, float, float,
                  const Tensor& weights) {
  SNAPKV_CHECK(is_scores(scores, n) && is_scores(weights, n));
  return any(n);
}

bool add_scores(const Backend&, const Tensor& x, std::span<const int32_t> n, const Tensor& sums) {
  SNAPKV_CHECK(is_scores(x, n));
  SNAPKV_CHECK(is_f32(sums, {2, std::ssize(n), kAny}) && all_within(n, 0, sums.shape[2]));
  return any(n);
}

bool set_scores(const Backend&, const Tensor& scores, const Tensor& rows,
                std::span<const int32_t> n, float) {
  SNAPKV_CHECK(is_f32(scores, {std::ssize(n), kAny}));
  SNAPKV_CHECK(rows.dtype == DType::i32 && is_dense(rows, {std::ssize(n), kAny}));
  SNAPKV_CHECK(all_within(n, 0, rows.shape[1]));
  return any(n);
}

bool chunk_scores(const Backend&, const ChunkScores& c) {
  SNAPKV_CHECK(is_scores(c.scores, c.n) && is_scores(c.out, c.n));
  SNAPKV_CHECK(c.begin >= 0 && c.length >= 1);
  if (!any(c.n)) return false;
  SNAPKV_CHECK(c.out.data != c.scores.data || (c.kind == ChunkScore::mean && !c.accumulate));
  return true;
}

bool lag_deviations(const Backend&, const Tensor& x, std::span<const int32_t> n, int64_t begin,
                    int64_t lag, const Tensor& out) {
  SNAPKV_CHECK(is_kv_rows(x, n) && is_scores(out, n));
  SNAPKV_CHECK(begin >= 0 && lag >= 1);
  return any(n);
}

bool moments(const Backend&, const Tensor& x, const Tensor& shift, const Tensor& out) {
  SNAPKV_CHECK(is_f32(x, {kAny, kAny, kAny}));
  const int64_t n_head = x.shape[1], d = x.shape[2];
  SNAPKV_CHECK(is_f32(shift, {n_head, d}) && is_f32(out, {n_head, d + 1, d}));
  return out.numel() > 0;
}

}  // namespace
}  // namespace op_checks

namespace ops {

#define SNAPKV_OP(name, parameters, names)                                           \
  void name(Backend& backend, SNAPKV_UNPACK parameters) {                            \
    if (op_checks::name(backend, SNAPKV_UNPACK names)) backend.kernels().name names; \
  }
#include "backend/ops.def"

}  // namespace ops
}  // namespace snapkv
