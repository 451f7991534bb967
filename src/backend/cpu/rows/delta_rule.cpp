// SPDX-License-Identifier: MIT
// Op delta_rule (backend/ops.def): kChunkTokens tokens at a time, in the chunked form of arXiv
// 2412.06464, section 3.3. With c[i] the product of the decays of the chunk's tokens up to i, and S
// the state before it, the update d[i] of token i, and what comes out, are
//   d[i] = b[i] (v[i] - c[i] S^T k[i] - sum over j < i of c[i] / c[j] (k[j] . k[i]) d[j])
//   o[i] = c[i] S^T q[i] + sum over j <= i of c[i] / c[j] (k[j] . q[i]) d[j]
// and the state after the chunk is c[last] S + sum over j of c[last] / c[j] k[j] d[j]^T.
// Where each channel of the keys has a decay, c is a vector and belongs to the channels of the
// products: c[i] k[i], c[i] q[i] and c[last] / c[j] k[j] are computed once for all columns, and so
// are the sums over channels of c[i] / c[j] k[j] k[i] and c[i] / c[j] k[j] q[i]. A ratio of these
// is the product of the decays between, at most 1: nothing overflows, however fast a channel
// forgets.
//
// Columns of the state do not depend on each other: a block of them is a few vectors wide, and its
// sums stay in registers while the rows of S pass by, once for S^T k and S^T q, and once to change
// them. That is 3 d_k d_v multiplications and additions for each token and head, as many as token
// by token, with a quarter of the loads. Chunks of 64 tokens, as on GPUs, would take 1.7 times as
// many (d_k = d_v = 128), more than the better reuse gives back: blocks of S are in the first-level
// cache.
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
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
  std::array<float, kChunkTokens> decay;  // c[i]; unused where channels have decays
  std::array<float, kChunkTokens> rest;   // c[last] / c[i]; the same
  std::array<std::array<float, kChunkTokens>, kChunkTokens> key_key;   // [i][j], j < i: c[i] / c[j] k[j] . k[i]
  std::array<std::array<float, kChunkTokens>, kChunkTokens> key_query;  // [i][j], j <= i
};

/// Rows of one head and one sequence, with their prepared queries and keys.
struct DeltaPiece {
  const DeltaRule* r;
  int64_t head;
  int64_t begin, n;         // rows
  const float *q, *k;       // [n, d_k]; where channels have decays, times c[i]
  const DeltaChunk* chunks;  // [n / kChunkTokens, rounded up]
  // where channels have decays
  const float* rest;    // [n, d_k]: c[last] / c[j] k[j]
  const float* decays;  // [n / kChunkTokens, rounded up, d_k]: c[last]
};

/// Memory for a piece.
struct DeltaScratch {
  float *q, *k;
  DeltaChunk* chunks;
  float *rest, *decays;
  float* steps;  // [kChunkTokens, d_k]: of a chunk's tokens, the decays, then their products c[i]
};

}  // namespace
}  // namespace snapkv::cpu
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/rows/delta_rule.cpp"
// foreach_target.h comes before the -inl headers
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/cache_control.h>
#include <hwy/highway.h>
// clang-format on

#include "backend/cpu/target/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {
namespace {  // other files have functions of the same names

/// Vectors of a block of columns: with their sums, 4 * kChunkTokens registers where there are 32.
constexpr int kBlockVectors = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM ? 2 : 1;
/// The same for a single token, as decoding has it: the state comes from memory and goes back, and
/// rows are read as widely as there are registers.
constexpr int kStepVectors = 4 * kBlockVectors;
/// Rows of the state that are fetched ahead for a single token: a page where rows have 128 values.
constexpr int64_t kStepAhead = 8;

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

float sigmoid_of(float x) { return 1.0f / (1.0f + std::exp(-x)); }

/// Chunk of n tokens from row t on; q and k are prepared.
void prepare_chunk(const DeltaRule& r, int64_t head, int64_t t, int n, const float* q,
                   const float* k, DeltaChunk& chunk) {
  std::array<float, kChunkTokens> decay;
  for (int i = 0; i < n; ++i) {
    const float x = *r.decay.at<const float>(t + i, head) + *r.decay_bias.at<const float>(head);
    const float rate = *r.rate.at<const float>(head);
    if (r.log_floor < 0.0f) {
      decay[i] = std::exp(r.log_floor * sigmoid_of(rate * x));
    } else {
      const float softplus = x > 0.0f ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
      decay[i] = std::exp(rate * softplus);
    }
    chunk.beta[i] = sigmoid_of(*r.beta.at<const float>(t + i, head));
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

/// The decays of channels from i on, whole vectors; x and bias: of a head. softplus(x) = max(x, 0)
/// + log(1 + exp(-|x|)).
template <class D>
HWY_INLINE int64_t decay_channels(D d, const DeltaRule& r, const float* x, const float* bias,
                                  float rate, int64_t i, float* out) {
  const int64_t n_lanes = hn::Lanes(d);
  const auto rates = hn::Set(d, rate), zero = hn::Zero(d);
  for (; i + n_lanes <= r.d_k; i += n_lanes) {
    const auto sum = hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, bias + i));
    auto log = zero;
    if (r.log_floor < 0.0f) {
      log = hn::Mul(hn::Set(d, r.log_floor), sigmoid(d, hn::Mul(rates, sum)));
    } else {
      const auto positive = hn::IfThenElse(hn::Lt(sum, zero), zero, sum);  // NaN stays
      const auto rest = hn::Log1p(d, hn::Exp(d, hn::Neg(hn::Abs(sum))));
      log = hn::Mul(rates, hn::Add(positive, rest));
    }
    hn::StoreU(hn::Exp(d, log), d, out + i);
  }
  return i;
}

/// x *= y, of n values.
HWY_INLINE void multiply_row(const float* HWY_RESTRICT y, int64_t n, float* HWY_RESTRICT x) {
  const F32 d;
  const int64_t n_lanes = hn::Lanes(d);
  int64_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, x + i);
  }
  for (; i < n; ++i) x[i] *= y[i];
}

/// As prepare_chunk(), where each channel has a decay. q and k become those times c[i].
void prepare_channels(const DeltaRule& r, int64_t head, int64_t t, int n, float* q, float* k,
                      float* rest, float* decays, float* steps, DeltaChunk& chunk) {
  const int64_t d_k = r.d_k;
  const auto* const bias = r.decay_bias.at<const float>(head * d_k);
  const float rate = *r.rate.at<const float>(head);
  for (int i = 0; i < n; ++i) {
    const auto* const x = r.decay.at<const float>(t + i, head * d_k);
    const int64_t done = decay_channels(F32(), r, x, bias, rate, 0, steps + i * d_k);
    decay_channels(hn::CappedTag<float, 1>(), r, x, bias, rate, done, steps + i * d_k);
    chunk.beta[i] = sigmoid_of(*r.beta.at<const float>(t + i, head));
  }
  for (int j = 0; j < n; ++j) {
    float* const share = rest + j * d_k;  // c[i] / c[j] k[j]
    std::copy_n(k + j * d_k, d_k, share);
    for (int i = j; i < n; ++i) {
      if (i > j) {
        multiply_row(steps + i * d_k, d_k, share);
        chunk.key_key[i][j] = dot_rows(share, k + i * d_k, d_k);
      }
      chunk.key_query[i][j] = dot_rows(share, q + i * d_k, d_k);
    }
  }
  for (int i = 0; i < n; ++i) {
    float* const product = steps + i * d_k;
    if (i > 0) multiply_row(product - d_k, d_k, product);
    multiply_row(product, d_k, q + i * d_k);
    multiply_row(product, d_k, k + i * d_k);
  }
  std::copy_n(steps + (n - 1) * d_k, d_k, decays);
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
    float *const q = to.q + i * r.d_k, *const k = to.k + i * r.d_k;
    DeltaChunk& chunk = to.chunks[i / kChunkTokens];
    if (r.n_decay() > 1) {
      prepare_channels(r, head, begin + i, n_tokens, q, k, to.rest + i * r.d_k,
                       to.decays + i / kChunkTokens * r.d_k, to.steps, chunk);
    } else {
      prepare_chunk(r, head, begin + i, n_tokens, q, k, chunk);
    }
  }
}

/// Columns [0, kVectors * lanes) of a chunk of n tokens. v and out: of the first token, whose next
/// ones are v_stride and out_stride values away; from and to: the state's rows, d_v values apart.
/// kByChannel: whether channels have decays, of which rest and decays are. kStreams: whether the
/// state passes the caches by on its way to memory; its vectors are aligned then.
template <int n, int kVectors, bool kByChannel, bool kStreams = false, class D>
HWY_INLINE void run_chunk(D d, const DeltaChunk& chunk, const float* HWY_RESTRICT q,
                          const float* HWY_RESTRICT k, const float* HWY_RESTRICT rest,
                          const float* HWY_RESTRICT decays, int64_t d_k, const float* v,
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
    for (int c = 0; c < kVectors; ++c) {
      if constexpr (kStreams) hwy::Prefetch(from + (row + kStepAhead) * d_v + c * n_lanes);
      s[c] = hn::LoadU(d, from + row * d_v + c * n_lanes);
    }
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
      const V value = hn::LoadU(d, v + i * v_stride + c * n_lanes);
      V update, result;
      if constexpr (kByChannel) {
        update = hn::Sub(value, held[i][c]);
        result = read[i][c];
      } else {
        const V decay = hn::Set(d, chunk.decay[i]);
        update = hn::NegMulAdd(decay, held[i][c], value);
        result = hn::Mul(decay, read[i][c]);
      }
      for (int j = 0; j < i; ++j) {
        update = hn::NegMulAdd(hn::Set(d, chunk.key_key[i][j]), held[j][c], update);
        result = hn::MulAdd(hn::Set(d, chunk.key_query[i][j]), held[j][c], result);
      }
      held[i][c] = hn::Mul(hn::Set(d, chunk.beta[i]), update);
      result = hn::MulAdd(hn::Set(d, chunk.key_query[i][i]), held[i][c], result);
      hn::StoreU(result, d, out + i * out_stride + c * n_lanes);
    }
    for (int i = 0; i < n && !kByChannel; ++i) {
      held[i][c] = hn::Mul(hn::Set(d, chunk.rest[i]), held[i][c]);
    }
  }
  V decay = hn::Set(d, kByChannel ? 0.0f : chunk.decay[n - 1]);
  for (int64_t row = 0; row < d_k; ++row) {
    if constexpr (kByChannel) decay = hn::Set(d, decays[row]);
    V s[kVectors];
    for (int c = 0; c < kVectors; ++c) {
      s[c] = hn::Mul(decay, hn::LoadU(d, from + row * d_v + c * n_lanes));
    }
    for (int i = 0; i < n; ++i) {
      const V key = hn::Set(d, (kByChannel ? rest : k)[i * d_k + row]);
      for (int c = 0; c < kVectors; ++c) s[c] = hn::MulAdd(key, held[i][c], s[c]);
    }
    for (int c = 0; c < kVectors; ++c) {
      float* const at = to + row * d_v + c * n_lanes;
      if constexpr (kStreams) {
        hn::Stream(s[c], d, at);
      } else {
        hn::StoreU(s[c], d, at);
      }
    }
  }
}

/// A block of columns, from column `column` on, of all tokens of a piece. from and to: the head's
/// state.
template <int kVectors, bool kByChannel, class D>
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
    const float *rest = nullptr, *decays = nullptr;
    if constexpr (kByChannel) {
      rest = p.rest + i * d_k;
      decays = p.decays + i / kChunkTokens * d_k;
    }
    const auto run = [&](auto n) HWY_ATTR {
      run_chunk<decltype(n)::value, kVectors, kByChannel>(d, chunk, q, k, rest, decays, d_k, v,
                                                          v_stride, from, to, d_v, out, out_stride);
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

/// A wide block of columns of a piece that has one token.
template <bool kByChannel, class D>
void run_step(D d, const DeltaPiece& p, int64_t column, const float* from, float* to) {
  const DeltaRule& r = *p.r;
  const int64_t d_v = r.d_v();
  const float* const v =
      r.qkv.at<const float>(p.begin) + 2 * r.n_head_k * r.d_k + p.head * d_v + column;
  run_chunk<1, kStepVectors, kByChannel, true>(
      d, *p.chunks, p.q, p.k, p.rest, p.decays, r.d_k, v, r.n_qkv(), from + column, to + column,
      d_v, r.out.at<float>(p.begin, p.head) + column, r.n_head() * d_v);
}

/// Whether each row of a state begins a vector.
bool is_aligned(const float* state, int64_t d_v) {
  const int64_t bytes = static_cast<int64_t>(sizeof(float)) * hn::Lanes(F32());
  return reinterpret_cast<uintptr_t>(state) % bytes == 0 &&
         d_v * static_cast<int64_t>(sizeof(float)) % bytes == 0;
}

int64_t columns_of_block() { return kBlockVectors * static_cast<int64_t>(hn::Lanes(F32())); }

/// Columns [begin, end) of a head and a piece.
template <bool kByChannel>
void run_piece(const DeltaPiece& piece, int64_t begin, int64_t end, const float* from, float* to) {
  const F32 d;
  const int64_t n_lanes = hn::Lanes(d), wide = kBlockVectors * n_lanes;
  int64_t column = begin;
  if (piece.n == 1 && from != to && is_aligned(to, piece.r->d_v())) {
    const int64_t widest = kStepVectors * n_lanes;
    for (; column + widest <= end; column += widest) {
      run_step<kByChannel>(d, piece, column, from, to);
    }
    hwy::FlushStream();
  }
  for (; column + wide <= end; column += wide) {
    run_block<kBlockVectors, kByChannel>(d, piece, column, from, to);
  }
  for (; column + n_lanes <= end; column += n_lanes) {
    run_block<1, kByChannel>(d, piece, column, from, to);
  }
  const hn::CappedTag<float, 1> one;
  for (; column < end; ++column) run_block<1, kByChannel>(one, piece, column, from, to);
}

/// Columns [begin, end) of a head, along all sequences.
void run_columns(const DeltaRule& r, int64_t head, int64_t begin, int64_t end,
                 const DeltaScratch& memory) {
  const auto run = r.n_decay() > 1 ? run_piece<true> : run_piece<false>;
  const int64_t to_state = head * r.d_k * r.d_v();
  for (const SequenceRows& rows : r.sequences) {
    const float* from = static_cast<const float*>(rows.from) + to_state;
    float* const to = static_cast<float*>(rows.to) + to_state;
    for (int64_t t = rows.begin; t < rows.end; t += kPieceTokens) {
      const int64_t n = std::min<int64_t>(kPieceTokens, rows.end - t);
      prepare_piece(r, head, t, n, memory);
      const DeltaPiece piece = {&r,          head,         t, n, memory.q, memory.k, memory.chunks,
                                memory.rest, memory.decays};
      run(piece, begin, end, from, to);
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

DeltaScratch take_delta_scratch(ScratchCutter& cutter, const DeltaRule& r) {
  const int64_t d_k = r.d_k;
  DeltaScratch memory = {};
  memory.q = cutter.take<float>(kPieceTokens * d_k);
  memory.k = cutter.take<float>(kPieceTokens * d_k);
  memory.chunks = cutter.take<DeltaChunk>(kPieceTokens / kChunkTokens);
  if (r.n_decay() > 1) {
    memory.rest = cutter.take<float>(kPieceTokens * d_k);
    memory.decays = cutter.take<float>(kPieceTokens / kChunkTokens * d_k);
    memory.steps = cutter.take<float>(kChunkTokens * d_k);
  }
  return memory;
}

size_t delta_scratch_bytes(const DeltaRule& r) {
  ScratchCutter cutter(nullptr);
  take_delta_scratch(cutter, r);
  return cutter.used();
}

}  // namespace

size_t delta_rule_workspace(const CpuContext& ctx, const DeltaRule& r) {
  return ctx.n_threads * delta_scratch_bytes(r);
}

// Heads are shared out to the threads, or parts of them if there are few.
void delta_rule(const CpuContext& ctx, const DeltaRule& r) {
  const int64_t wide = HWY_DYNAMIC_DISPATCH(columns_of_block)();
  const int64_t n_blocks = (r.d_v() + wide - 1) / wide;
  const int64_t most_parts = (2 * ctx.n_threads + r.n_head() - 1) / r.n_head();
  const int64_t n_parts = std::clamp<int64_t>(most_parts, 1, n_blocks);
  const size_t bytes = delta_scratch_bytes(r);
  char* const memory = scratch(delta_rule_workspace(ctx, r));
  const auto run = HWY_DYNAMIC_DISPATCH(run_columns);
#pragma omp parallel for num_threads(ctx.n_threads) if (ctx.n_threads > 1)
  for (int64_t part = 0; part < r.n_head() * n_parts; ++part) {
    ScratchCutter cutter(memory + omp_get_thread_num() * bytes);
    const DeltaScratch mine = take_delta_scratch(cutter, r);
    const int64_t head = part / n_parts, at = part % n_parts;
    run(r, head, at * n_blocks / n_parts * wide,
        std::min(r.d_v(), (at + 1) * n_blocks / n_parts * wide), mine);
  }
}

}  // namespace snapkv::cpu
#endif
