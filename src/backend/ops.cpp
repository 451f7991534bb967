// SPDX-License-Identifier: MIT
// Validation and dispatch of every op: the one place where shapes and types are checked, so that
// kernels may trust them. A failed check is a programmer's error.
#include "backend/ops.h"

#include <algorithm>

#include "backend/kernels.h"
#include "base/check.h"

namespace snapkv::ops {
namespace {

constexpr int64_t kAny = -1;

bool has_shape(const Tensor& t, std::initializer_list<int64_t> shape) {
  if (t.rank != static_cast<int>(shape.size())) return false;
  int i = 0;
  for (int64_t n : shape) {
    const int64_t actual = t.shape[i++];
    if (actual < 0 || (n != kAny && actual != n)) return false;
  }
  return true;
}

// Dense memory of this shape; memory may be missing only where there is nothing to hold.
bool is_dense(const Tensor& t, std::initializer_list<int64_t> shape) {
  return has_shape(t, shape) && t.is_contiguous() && (t.data != nullptr || t.numel() == 0);
}

bool is_f32(const Tensor& t, std::initializer_list<int64_t> shape) {
  return t.dtype == DType::f32 && is_dense(t, shape);
}

bool is_activation(Backend& backend, const Tensor& t, std::initializer_list<int64_t> shape) {
  return (t.dtype == DType::f32 || t.dtype == backend.compute_dtype()) && is_dense(t, shape);
}

bool is_kv_dtype(DType t) { return t == DType::f32 || t == DType::f16 || t == DType::bf16; }

// A type of the rows that decode reads, in whole blocks.
bool is_cache_dtype(DType t, int64_t head_dim) {
  return is_kv_dtype(t) || (t == DType::q8_0 && head_dim % block_size(t) == 0);
}

bool is_weight(const Tensor& t) {
  return t.dtype != DType::i32 && is_dense(t, {kAny, kAny}) &&
         t.n_cols() % block_size(t.dtype) == 0;
}

// Rows of KV heads: [n_head_kv, capacity, d], rows and heads at any distance, so that the memory of
// other engines ([n_tokens, n_head_kv, d]) can be read where it is.
bool is_kv(const Tensor& t) {
  const int64_t element = block_bytes(t.dtype);
  return has_shape(t, {kAny, kAny, kAny}) && block_size(t.dtype) == 1 && t.stride[2] == element &&
         t.stride[0] >= 0 && t.stride[0] % element == 0 && t.stride[1] >= 0 &&
         t.stride[1] % element == 0 && (t.data != nullptr || t.numel() == 0);
}

bool is_bias(const Tensor& t, int64_t n_out) { return !t || is_f32(t, {n_out}); }

// "Not yet".
bool is_plain(const AttentionVariant& v) { return v.window == 0 && v.softcap == 0.0f && !v.sinks; }

int64_t size_of(std::span<const int32_t> s) { return static_cast<int64_t>(s.size()); }

bool all_within(std::span<const int32_t> values, int64_t low, int64_t high) {
  return std::all_of(values.begin(), values.end(),
                     [=](int32_t v) { return low <= v && v <= high; });
}

}  // namespace

void embed(Backend& backend, const Tensor& weight, std::span<const int32_t> ids,
           const Tensor& out) {
  SNAPKV_CHECK(is_weight(weight));
  SNAPKV_CHECK(is_f32(out, {size_of(ids), weight.shape[1]}));
  SNAPKV_CHECK(all_within(ids, 0, weight.shape[0] - 1));
  if (out.numel() == 0) return;
  backend.kernels().embed(weight, ids, out);
}

void rms_norm(Backend& backend, const Tensor& x, const Tensor& weight, float eps,
              const Tensor& out) {
  SNAPKV_CHECK(is_f32(x, {kAny, kAny}));
  SNAPKV_CHECK(is_f32(weight, {x.shape[1]}));
  SNAPKV_CHECK(out.dtype == DType::f32 || out.dtype == DType::bf16);
  SNAPKV_CHECK(is_dense(out, {x.shape[0], x.shape[1]}));
  SNAPKV_CHECK(eps >= 0.0f);
  if (x.numel() == 0) return;
  backend.kernels().rms_norm(x, weight, eps, out);
}

void project(Backend& backend, const Tensor& x, std::span<const Projection> projections) {
  SNAPKV_CHECK(is_f32(x, {kAny, kAny}));
  for (const Projection& p : projections) {
    SNAPKV_CHECK(is_weight(p.w) && p.w.shape[1] == x.shape[1]);
    SNAPKV_CHECK(is_bias(p.bias, p.w.shape[0]));
    SNAPKV_CHECK(is_f32(p.out, {x.shape[0], p.w.shape[0]}));
  }
  if (x.shape[0] == 0 || projections.empty()) return;
  backend.kernels().project(x, projections);
}

void pack(Backend& backend, const Tensor& weight, PackedWeight& packed) {
  SNAPKV_CHECK(is_weight(weight) && weight.numel() > 0);
  backend.kernels().pack(weight, packed);
  SNAPKV_CHECK(packed.n_out == weight.shape[0] && packed.n_in == weight.shape[1]);
}

void project_packed(Backend& backend, const Tensor& x, const PackedWeight& weight,
                    const Tensor& bias, const Tensor& out, bool accumulate) {
  SNAPKV_CHECK(weight.storage && weight.n_out > 0 && weight.n_in > 0);
  SNAPKV_CHECK(x.dtype == backend.compute_dtype() && is_dense(x, {kAny, weight.n_in}));
  SNAPKV_CHECK(is_bias(bias, weight.n_out));
  SNAPKV_CHECK(is_activation(backend, out, {x.shape[0], weight.n_out}));
  SNAPKV_CHECK(!accumulate || out.dtype == DType::f32);
  if (x.shape[0] == 0) return;
  backend.kernels().project_packed(x, weight, bias, out, accumulate);
}

void rope(Backend& backend, const Tensor& x, std::span<const int32_t> pos,
          const RopeFrequencies& rope) {
  SNAPKV_CHECK(is_f32(x, {size_of(pos), kAny, kAny}));
  SNAPKV_CHECK(2 * static_cast<int64_t>(rope.inv_freq.size()) <= x.shape[2]);
  if (x.numel() == 0 || rope.inv_freq.empty()) return;
  backend.kernels().rope(x, pos, rope);
}

void swiglu(Backend& backend, const Tensor& gate, const Tensor& up, const Tensor& out) {
  SNAPKV_CHECK(is_activation(backend, gate, {kAny, kAny}));
  SNAPKV_CHECK(up.dtype == gate.dtype && is_dense(up, {gate.shape[0], gate.shape[1]}));
  SNAPKV_CHECK(is_activation(backend, out, {gate.shape[0], gate.shape[1]}));
  if (gate.numel() == 0) return;
  backend.kernels().swiglu(gate, up, out);
}

void store_rows(Backend& backend, const Tensor& src, DType dtype, std::span<void* const> dst) {
  SNAPKV_CHECK(is_f32(src, {kAny, static_cast<int64_t>(dst.size()), kAny}));
  SNAPKV_CHECK(is_cache_dtype(dtype, src.shape[2]));
  if (src.numel() == 0) return;
  for (void* head : dst) SNAPKV_CHECK(head != nullptr);
  backend.kernels().store_rows(src, dtype, dst);
}

void store_positions(Backend& backend, std::span<const int32_t> pos,
                     std::span<int32_t* const> dst) {
  if (pos.empty() || dst.empty()) return;
  for (int32_t* head : dst) SNAPKV_CHECK(head != nullptr);
  backend.kernels().store_positions(pos, dst);
}

void attention_prefill(Backend& backend, const PrefillAttention& a) {
  SNAPKV_CHECK(is_plain(a.variant));
  SNAPKV_CHECK(is_f32(a.q, {kAny, kAny, kAny}));
  SNAPKV_CHECK(is_kv_dtype(a.k.dtype) && is_kv(a.k));
  SNAPKV_CHECK(is_kv(a.v) && a.v.dtype == a.k.dtype && a.v.shape == a.k.shape);
  const int64_t n = a.q.shape[0], n_head = a.q.shape[1], n_head_kv = a.k.shape[0];
  SNAPKV_CHECK(a.q.shape[2] == a.k.shape[2]);
  SNAPKV_CHECK(n_head_kv > 0 && n_head % n_head_kv == 0);
  SNAPKV_CHECK(size_of(a.n_past) == n_head_kv && all_within(a.n_past, 0, a.k.shape[1] - n));
  SNAPKV_CHECK(is_activation(backend, a.out, {n, n_head, a.q.shape[2]}));
  if (a.q.numel() == 0) return;
  backend.kernels().attention_prefill(a);
}

void attention_decode(Backend& backend, const DecodeAttention& a) {
  SNAPKV_CHECK(is_plain(a.variant));
  SNAPKV_CHECK(is_f32(a.q, {kAny, kAny, kAny}));
  SNAPKV_CHECK(is_f32(a.out, {a.q.shape[0], a.q.shape[1], a.q.shape[2]}));
  SNAPKV_CHECK(is_cache_dtype(a.kv_dtype, a.q.shape[2]));
  if (a.q.numel() == 0) return;
  const int64_t n_seq = a.q.shape[0], n_heads = static_cast<int64_t>(a.heads.size());
  SNAPKV_CHECK(n_heads > 0 && n_heads % n_seq == 0 && a.q.shape[1] % (n_heads / n_seq) == 0);
  for (const HeadRows& head : a.heads) {
    SNAPKV_CHECK(head.n_kv >= 1 && head.k != nullptr && head.v != nullptr);
  }
  backend.kernels().attention_decode(a);
}

void window_votes(Backend& backend, const WindowVotes& w) {
  SNAPKV_CHECK(is_plain(w.variant));
  SNAPKV_CHECK(is_f32(w.q, {kAny, kAny, kAny}));
  SNAPKV_CHECK(is_kv_dtype(w.k.dtype) && is_kv(w.k));
  const int64_t n_window = w.q.shape[0], n_head_kv = w.k.shape[0];
  SNAPKV_CHECK(w.q.shape[2] == w.k.shape[2]);
  SNAPKV_CHECK(n_head_kv > 0 && w.q.shape[1] % n_head_kv == 0);
  SNAPKV_CHECK(is_f32(w.votes, {n_head_kv, kAny}));
  if (w.q.numel() == 0) return;
  SNAPKV_CHECK(size_of(w.n_rows) == n_head_kv);
  const int64_t n_own = w.whole ? 0 : n_window;  // last rows that get no votes
  SNAPKV_CHECK(all_within(w.n_rows, std::max(n_window, n_own + 1),
                          std::min(w.k.shape[1], n_own + w.votes.shape[1])));
  backend.kernels().window_votes(w);
}

void pool(Backend& backend, const Tensor& scores, std::span<const int32_t> n, int kernel_size,
          Pooling pooling, const Tensor& out) {
  SNAPKV_CHECK(kernel_size >= 1 && kernel_size % 2 == 1);
  SNAPKV_CHECK(is_f32(scores, {size_of(n), kAny}));
  SNAPKV_CHECK(is_f32(out, {size_of(n), kAny}));
  SNAPKV_CHECK(all_within(n, 0, std::min(scores.shape[1], out.shape[1])));
  if (scores.numel() == 0) return;
  SNAPKV_CHECK(out.data != scores.data);
  backend.kernels().pool(scores, n, kernel_size, pooling, out);
}

void top_k(Backend& backend, const Tensor& scores, std::span<const int32_t> n,
           std::span<const int32_t> k, int n_tail, const Tensor& rows) {
  SNAPKV_CHECK(is_f32(scores, {size_of(n), kAny}));
  SNAPKV_CHECK(rows.dtype == DType::i32 && is_dense(rows, {size_of(n), kAny}));
  SNAPKV_CHECK(n_tail >= 0 && k.size() == n.size());
  SNAPKV_CHECK(all_within(n, 0, scores.shape[1]));
  for (size_t h = 0; h < n.size(); ++h) {
    SNAPKV_CHECK(0 <= k[h] && k[h] <= n[h] && k[h] + n_tail <= rows.shape[1]);
  }
  if (rows.numel() == 0) return;
  backend.kernels().top_k(scores, n, k, n_tail, rows);
}

void gather_rows(Backend& backend, const Tensor& src, const Tensor& rows,
                 std::span<const int32_t> n, std::span<void* const> dst) {
  SNAPKV_CHECK(is_kv(src) && size_of(n) == src.shape[0] && dst.size() == n.size());
  SNAPKV_CHECK(rows.dtype == DType::i32 && is_dense(rows, {src.shape[0], kAny}));
  SNAPKV_CHECK(all_within(n, 0, rows.shape[1]));
  if (rows.numel() == 0 || src.numel() == 0) return;
  for (size_t h = 0; h < n.size(); ++h) SNAPKV_CHECK(n[h] == 0 || dst[h] != nullptr);
  backend.kernels().gather_rows(src, rows, n, dst);
}

void convert_rows(Backend& backend, const RowConversion& c) {
  SNAPKV_CHECK(c.src.size() == c.n.size() && c.dst.size() == c.n.size() && c.head_dim >= 0);
  SNAPKV_CHECK(is_cache_dtype(c.src_dtype, c.head_dim) && is_cache_dtype(c.dst_dtype, c.head_dim));
  if (c.rows) {
    SNAPKV_CHECK(c.rows.dtype == DType::i32 && is_dense(c.rows, {size_of(c.n), kAny}));
    SNAPKV_CHECK(all_within(c.n, 0, c.rows.shape[1]));
  }
  for (size_t h = 0; h < c.n.size(); ++h) {
    SNAPKV_CHECK(c.n[h] == 0 || (c.n[h] > 0 && c.src[h] != nullptr && c.dst[h] != nullptr));
  }
  if (c.n.empty() || c.head_dim == 0) return;
  backend.kernels().convert_rows(c);
}

}  // namespace snapkv::ops
