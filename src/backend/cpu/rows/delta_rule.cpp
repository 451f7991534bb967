// SPDX-License-Identifier: MIT
// Op delta_rule (backend/ops.def): kChunkTokens tokens at a time, in the chunked form of arXiv 2412.06464,
// section 3.3. With c[i] the product of the decays of the chunk's tokens up to i, and S the state
// before it, the update d[i] of token i, and what comes out, are
//   d[i] = b[i] (v[i] - c[i] S^T k[i] - sum over j < i of c[i] / c[j] (k[j] . k[i]) d[j])
//   o[i] = c[i] S^T q[i] + sum over j <= i of c[i] / c[j] (k[j] . q[i]) d[j]
// and the state after the chunk is c[last] S + sum over j of c[last] / c[j] k[j] d[j]^T.
//
// Columns of the state do not depend on each other: a block of them is a few vectors wide, and its
// sums stay in registers while the rows of S pass by, once for S^T k and S^T q, and once to change
// them. That is 3 d_k d_v multiplications and additions for each token and head, as many as token by
// token, with a quarter of the loads. Chunks of 64 tokens, as on GPUs, would take 1.7 times as many
// (d_k = d_v = 128), more than the better reuse gives back: blocks of S are in the first-level cache.
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/target/highway_targets.h"
#include "backend/cpu/target/scratch.h"

#ifndef SNAPKV_CPU_DELTA_RULE_TYPES
#define SNAPKV_CPU_DELTA_RULE_TYPES

namespace snapkv::cpu {
namespace {

constexpr int kChunkTokens = 4;  // of a chunk
constexpr int kPieceTokens = 64;  // tokens whose queries and keys are prepared at a time

/// What all columns of a chunk's n tokens share.
struct DeltaChunk {
  std::array<float, kChunkTokens> beta;
  std::array<float, kChunkTokens> decay;                          // c[i]
  std::array<float, kChunkTokens> rest;                           // c[last] / c[i]
  std::array<std::array<float, kChunkTokens>, kChunkTokens> key_key;   // [i][j], j < i: c[i] / c[j] k[j] . k[i]
  std::array<std::array<float, kChunkTokens>, kChunkTokens> key_query;  // [i][j], j <= i
};

/// Rows of one head and one sequence, with their prepared queries and keys.
struct DeltaPiece {
  const DeltaRule* r;
  int64_t head;
  int64_t begin, n;         // rows
  const float *q, *k;       // [n, d_k]
  const DeltaChunk* chunks;  // [n / kChunkTokens, rounded up]
};

/// Memory for a piece.
struct DeltaScratch {
  float *q, *k;
  DeltaChunk* chunks;
};

}  // namespace
}  // namespace snapkv::cpu
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/rows/delta_rule.cpp"
// foreach_target.h comes before the -inl headers
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "backend/cpu/target/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {
namespace {  // other files have functions of the same names

/// Vectors of a block of columns: with their sums, 4 * kChunkTokens registers where there are 32.
constexpr int kBlockVectors = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM ? 2 : 1;

HWY_INLINE float dot_rows(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, int64_t n) {
  const F32 d;
  const int64_t n_lanes = hn::Lanes(d);
  VF s0 = hn::Zero(d), s1 = s0;
  int64_t i = 0;
  for (; i + 2 * n_lanes <= n; i += 2 * n_lanes) {
    s0 = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), s0);
    s1 = hn::MulAdd(hn::LoadU(d, a + i + n_lanes), hn::LoadU(d, b + i + n_lanes), s1);
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/// out = x / sqrt(|x|^2 + eps) * scale
void normalize_row(const float* x, float eps, float scale, int64_t n, float* out) {
  const float factor = scale / std::sqrt(dot_rows(x, x, n) + eps);
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] * factor;
}

/// Chunk of n tokens from row t on; q and k are prepared.
void prepare_chunk(const DeltaRule& r, int64_t head, int64_t t, int n, const float* q,
                   const float* k, DeltaChunk& chunk) {
  std::array<float, kChunkTokens> decay;
  for (int i = 0; i < n; ++i) {
    const float x = *r.decay.at<const float>(t + i, head) + *r.decay_bias.at<const float>(head);
    const float softplus = x > 0.0f ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
    decay[i] = std::exp(*r.rate.at<const float>(head) * softplus);
    chunk.beta[i] = 1.0f / (1.0f + std::exp(-*r.beta.at<const float>(t + i, head)));
    chunk.decay[i] = i == 0 ? decay[i] : chunk.decay[i - 1] * decay[i];
  }
  for (int j = 0; j < n; ++j) {
    float between = 1.0f;  // c[i] / c[j]
    for (int i = j; i < n; ++i) {
      if (i > j) {
        between *= decay[i];
        chunk.key_key[i][j] = between * dot_rows(k + j * r.d_k, k + i * r.d_k, r.d_k);
      }
      chunk.key_query[i][j] = between * dot_rows(k + j * r.d_k, q + i * r.d_k, r.d_k);
    }
    chunk.rest[j] = between;
  }
}

void prepare_piece(const DeltaRule& r, int64_t head, int64_t begin, int64_t n,
                   const DeltaScratch& to) {
  const int64_t at = r.key_head(head) * r.d_k, to_keys = r.n_head_k * r.d_k;
  const float scale = 1.0f / std::sqrt(static_cast<float>(r.d_k));
  for (int64_t i = 0; i < n; ++i) {
    const float* const row = r.qkv.at<const float>(begin + i) + at;
    normalize_row(row, r.eps, scale, r.d_k, to.q + i * r.d_k);
    normalize_row(row + to_keys, r.eps, 1.0f, r.d_k, to.k + i * r.d_k);
  }
  for (int64_t i = 0; i < n; i += kChunkTokens) {
    const int n_tokens = static_cast<int>(std::min<int64_t>(kChunkTokens, n - i));
    prepare_chunk(r, head, begin + i, n_tokens, to.q + i * r.d_k, to.k + i * r.d_k,
                  to.chunks[i / kChunkTokens]);
  }
}

/// Columns [0, kVectors * lanes) of a chunk of n tokens. v and out: of the first token, whose next
/// ones are v_stride and out_stride values away; from and to: the state's rows, d_v values apart.
template <int n, int kVectors, class D>
HWY_INLINE void run_chunk(D d, const DeltaChunk& chunk, const float* HWY_RESTRICT q,
                          const float* HWY_RESTRICT k, int64_t d_k, const float* v,
                          int64_t v_stride, const float* from, float* to, int64_t d_v, float* out,
                          int64_t out_stride) {
  using V = hn::Vec<D>;
  const int64_t n_lanes = hn::Lanes(d);
  V held[n][kVectors], read[n][kVectors];  // S^T k, then the updates; S^T q
  for (int i = 0; i < n; ++i) {
    for (int c = 0; c < kVectors; ++c) held[i][c] = read[i][c] = hn::Zero(d);
  }
  for (int64_t row = 0; row < d_k; ++row) {
    V s[kVectors];
    for (int c = 0; c < kVectors; ++c) s[c] = hn::LoadU(d, from + row * d_v + c * n_lanes);
    for (int i = 0; i < n; ++i) {
      const V key = hn::Set(d, k[i * d_k + row]), query = hn::Set(d, q[i * d_k + row]);
      for (int c = 0; c < kVectors; ++c) {
        held[i][c] = hn::MulAdd(key, s[c], held[i][c]);
        read[i][c] = hn::MulAdd(query, s[c], read[i][c]);
      }
    }
  }
  for (int c = 0; c < kVectors; ++c) {
    for (int i = 0; i < n; ++i) {
      const V decay = hn::Set(d, chunk.decay[i]);
      V update = hn::NegMulAdd(decay, held[i][c], hn::LoadU(d, v + i * v_stride + c * n_lanes));
      V result = hn::Mul(decay, read[i][c]);
      for (int j = 0; j < i; ++j) {
        update = hn::NegMulAdd(hn::Set(d, chunk.key_key[i][j]), held[j][c], update);
        result = hn::MulAdd(hn::Set(d, chunk.key_query[i][j]), held[j][c], result);
      }
      held[i][c] = hn::Mul(hn::Set(d, chunk.beta[i]), update);
      result = hn::MulAdd(hn::Set(d, chunk.key_query[i][i]), held[i][c], result);
      hn::StoreU(result, d, out + i * out_stride + c * n_lanes);
    }
    for (int i = 0; i < n; ++i) held[i][c] = hn::Mul(hn::Set(d, chunk.rest[i]), held[i][c]);
  }
  const V decay = hn::Set(d, chunk.decay[n - 1]);
  for (int64_t row = 0; row < d_k; ++row) {
    V s[kVectors];
    for (int c = 0; c < kVectors; ++c) {
      s[c] = hn::Mul(decay, hn::LoadU(d, from + row * d_v + c * n_lanes));
    }
    for (int i = 0; i < n; ++i) {
      const V key = hn::Set(d, k[i * d_k + row]);
      for (int c = 0; c < kVectors; ++c) s[c] = hn::MulAdd(key, held[i][c], s[c]);
    }
    for (int c = 0; c < kVectors; ++c) hn::StoreU(s[c], d, to + row * d_v + c * n_lanes);
  }
}

/// A block of columns, from column `column` on, of all tokens of a piece. from and to: the head's
/// state.
template <int kVectors, class D>
void run_block(D d, const DeltaPiece& p, int64_t column, const float* from, float* to) {
  const DeltaRule& r = *p.r;
  const int64_t d_k = r.d_k, d_v = r.d_v(), v_stride = r.n_qkv(), out_stride = r.n_head() * d_v;
  const int64_t to_values = 2 * r.n_head_k * d_k + p.head * d_v + column;
  from += column;
  to += column;
  for (int64_t i = 0; i < p.n; i += kChunkTokens) {
    const float *q = p.q + i * d_k, *k = p.k + i * d_k;
    const float* v = r.qkv.at<const float>(p.begin + i) + to_values;
    float* const out = r.out.at<float>(p.begin + i, p.head) + column;
    const DeltaChunk& chunk = p.chunks[i / kChunkTokens];
    const auto run = [&](auto n) HWY_ATTR {
      run_chunk<decltype(n)::value, kVectors>(d, chunk, q, k, d_k, v, v_stride, from, to, d_v, out,
                                              out_stride);
    };
    switch (std::min<int64_t>(kChunkTokens, p.n - i)) {
      case 1:
        run(std::integral_constant<int, 1>());
        break;
      case 2:
        run(std::integral_constant<int, 2>());
        break;
      case 3:
        run(std::integral_constant<int, 3>());
        break;
      default:
        run(std::integral_constant<int, kChunkTokens>());
    }
    from = to;
  }
}

int64_t columns_of_block() { return kBlockVectors * static_cast<int64_t>(hn::Lanes(F32())); }

/// Columns [begin, end) of a head, along all sequences.
void run_columns(const DeltaRule& r, int64_t head, int64_t begin, int64_t end,
                 const DeltaScratch& memory) {
  const F32 d;
  const int64_t n_lanes = hn::Lanes(d), wide = kBlockVectors * n_lanes;
  const int64_t to_state = head * r.d_k * r.d_v();
  for (const SequenceRows& rows : r.sequences) {
    const float* from = static_cast<const float*>(rows.from) + to_state;
    float* const to = static_cast<float*>(rows.to) + to_state;
    for (int64_t t = rows.begin; t < rows.end; t += kPieceTokens) {
      const int64_t n = std::min<int64_t>(kPieceTokens, rows.end - t);
      prepare_piece(r, head, t, n, memory);
      const DeltaPiece piece{&r, head, t, n, memory.q, memory.k, memory.chunks};
      int64_t column = begin;
      for (; column + wide <= end; column += wide) {
        run_block<kBlockVectors>(d, piece, column, from, to);
      }
      for (; column + n_lanes <= end; column += n_lanes) run_block<1>(d, piece, column, from, to);
      const hn::CappedTag<float, 1> one;
      for (; column < end; ++column) run_block<1>(one, piece, column, from, to);
      from = to;
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {

HWY_EXPORT(run_columns);
HWY_EXPORT(columns_of_block);

namespace {

DeltaScratch take_delta_scratch(ScratchCutter& cutter, int64_t d_k) {
  DeltaScratch memory;
  memory.q = cutter.take<float>(kPieceTokens * d_k);
  memory.k = cutter.take<float>(kPieceTokens * d_k);
  memory.chunks = cutter.take<DeltaChunk>(kPieceTokens / kChunkTokens);
  return memory;
}

size_t delta_scratch_bytes(int64_t d_k) {
  ScratchCutter cutter(nullptr);
  take_delta_scratch(cutter, d_k);
  return cutter.used();
}

}  // namespace

size_t delta_rule_workspace(const CpuContext& ctx, const DeltaRule& r) {
  return ctx.n_threads * delta_scratch_bytes(r.d_k);
}

// Heads are shared out to the threads, or parts of them if there are few.
void delta_rule(const CpuContext& ctx, const DeltaRule& r) {
  const int64_t wide = HWY_DYNAMIC_DISPATCH(columns_of_block)();
  const int64_t n_blocks = (r.d_v() + wide - 1) / wide;
  const int64_t most_parts = (2 * ctx.n_threads + r.n_head() - 1) / r.n_head();
  const int64_t n_parts = std::clamp<int64_t>(most_parts, 1, n_blocks);
  const size_t bytes = delta_scratch_bytes(r.d_k);
  char* const memory = scratch(delta_rule_workspace(ctx, r));
  const auto run = HWY_DYNAMIC_DISPATCH(run_columns);
#pragma omp parallel for num_threads(ctx.n_threads) if (ctx.n_threads > 1)
  for (int64_t part = 0; part < r.n_head() * n_parts; ++part) {
    ScratchCutter cutter(memory + omp_get_thread_num() * bytes);
    const DeltaScratch mine = take_delta_scratch(cutter, r.d_k);
    const int64_t head = part / n_parts, at = part % n_parts;
    run(r, head, at * n_blocks / n_parts * wide,
        std::min(r.d_v(), (at + 1) * n_blocks / n_parts * wide), mine);
  }
}

}  // namespace snapkv::cpu
#endif
