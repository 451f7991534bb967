// SPDX-License-Identifier: MIT
// Op selective_scan (backend/ops.def): kScanTokens tokens at a time, in the chunked form of arXiv
// 2405.21060, section 6. With c[i] the product of the decays g of the chunk's tokens up to i, w[j]
// the step of token j, and S the state before the chunk,
//   out[i] = c[i] S^T C[i] + sum over j <= i of c[i] / c[j] w[j] (C[i] . B[j]) x[j] + skip x[i],
// and the state after it is c[last] S + sum over j of c[last] / c[j] w[j] B[j] x[j]^T.
//
// A row of S meets all of the chunk's tokens while it is in registers: the sums of S^T C stay
// there, and the row goes back changed. For each token and head that is 2 d_state d_head
// multiplications and additions in one pass over S for kScanTokens tokens, against as many, d_state
// d_head multiplications by decays and a pass for each token when tokens come one by one. Chunks of
// 64 as matrix products would take the same 2 d_state d_head and 32 d_head more (an eighth for
// d_state = 128): blocks of S are in the first-level cache, so there is no traffic that they would
// save.
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/target/highway_targets.h"
#include "backend/cpu/target/scratch.h"

#ifndef SNAPKV_CPU_SELECTIVE_SCAN_TYPES
#define SNAPKV_CPU_SELECTIVE_SCAN_TYPES

namespace snapkv::cpu {
namespace {

constexpr int kScanTokens = 4;      // of a chunk
constexpr int64_t kScanPiece = 64;  // tokens whose factors are prepared at a time

using ScanMatrix = std::array<std::array<float, kScanTokens>, kScanTokens>;

/// What all columns of a head share in a chunk.
struct ScanFactors {
  std::array<float, kScanTokens> decay;  // c[i]
  std::array<float, kScanTokens> rest;   // c[last] / c[j] w[j]
  ScanMatrix mix;  // [i][j], j <= i: how much of x[j] is in out[i], with the skip where j = i
};

/// A thread's memory for a piece.
struct ScanScratch {
  float *steps, *decays;  // [kScanPiece, n_head]: w and g
  ScanMatrix* dots;       // [chunks]: C[i] . B[j] of a group
  ScanFactors* factors;   // [chunks]: of a head
};

constexpr int64_t kScanChunks = kScanPiece / kScanTokens;  // of a piece

/// Blocks of columns, as many as a head has, numbered through all heads.
struct ScanBlocks {
  int64_t begin, end;
  int64_t of_head;
};

}  // namespace
}  // namespace snapkv::cpu
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/rows/selective_scan.cpp"
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

/// Vectors of a block of columns: with their updates and sums, 4 * kScanTokens registers where
/// there are 32.
constexpr int kScanVectors = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM ? 2 : 1;

/// Rows [begin, begin + n) of a sequence.
struct ScanPiece {
  const SelectiveScan* s;
  int64_t begin, n;

  int64_t n_chunks() const { return (n + kScanTokens - 1) / kScanTokens; }
  int n_tokens(int64_t chunk) const {
    return static_cast<int>(std::min<int64_t>(kScanTokens, n - chunk * kScanTokens));
  }
  const float* b(int64_t token, int64_t group) const {
    return s->xbc.at<const float>(begin + token) + s->n_head() * s->d_head() + group * s->d_state;
  }
  const float* c(int64_t token, int64_t group) const {
    return b(token, group) + s->n_group * s->d_state;
  }
};

HWY_INLINE float scan_dot(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, int64_t n) {
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

/// A vector that begins with n values.
HWY_INLINE VF load_some(const float* from, int64_t n) {
  const F32 d;
  if (n == static_cast<int64_t>(hn::Lanes(d))) return hn::LoadU(d, from);
  HWY_ALIGN float values[16] = {};
  std::copy_n(from, n, values);
  return hn::Load(d, values);
}
HWY_INLINE void store_some(VF v, int64_t n, float* to) {
  const F32 d;
  if (n == static_cast<int64_t>(hn::Lanes(d))) return hn::StoreU(v, d, to);
  HWY_ALIGN float values[16];
  hn::Store(v, d, values);
  std::copy_n(values, n, to);
}

/// The steps and decays of heads [first, end). softplus(x) = max(x, 0) + log(1 + exp(-|x|)).
void prepare_steps(const ScanPiece& p, int64_t first, int64_t end, const ScanScratch& to) {
  const F32 d;
  const SelectiveScan& s = *p.s;
  const int64_t n_lanes = hn::Lanes(d);
  for (int64_t h = first; h < end; h += n_lanes) {
    const int64_t n = std::min(n_lanes, end - h);
    const VF bias = load_some(s.step_bias.at<const float>(h), n);
    const VF rate = load_some(s.rate.at<const float>(h), n);
    for (int64_t i = 0; i < p.n; ++i) {
      const VF x = hn::Add(load_some(s.step.at<const float>(p.begin + i, h), n), bias);
      const VF rest = hn::Log1p(d, hn::Exp(d, hn::Neg(hn::Abs(x))));
      const VF step = hn::Add(hn::Max(x, hn::Zero(d)), rest);
      store_some(step, n, to.steps + i * s.n_head() + h);
      store_some(hn::Exp(d, hn::Mul(rate, step)), n, to.decays + i * s.n_head() + h);
    }
  }
}

void prepare_group(const ScanPiece& p, int64_t group, ScanMatrix* dots) {
  for (int64_t chunk = 0; chunk < p.n_chunks(); ++chunk) {
    const int64_t first = chunk * kScanTokens;
    for (int i = 0; i < p.n_tokens(chunk); ++i) {
      const float* const c = p.c(first + i, group);
      for (int j = 0; j <= i; ++j) {
        dots[chunk][i][j] = scan_dot(c, p.b(first + j, group), p.s->d_state);
      }
    }
  }
}

void prepare_head(const ScanPiece& p, int64_t head, const ScanScratch& memory) {
  const int64_t n_head = p.s->n_head();
  const float skip = *p.s->skip.at<const float>(head);
  for (int64_t chunk = 0; chunk < p.n_chunks(); ++chunk) {
    const float* const steps = memory.steps + chunk * kScanTokens * n_head + head;
    const float* const decays = memory.decays + chunk * kScanTokens * n_head + head;
    const int n = p.n_tokens(chunk);
    ScanFactors& f = memory.factors[chunk];
    float before = 1.0f;
    for (int i = 0; i < n; ++i) f.decay[i] = before *= decays[i * n_head];
    for (int j = 0; j < n; ++j) {
      float share = steps[j * n_head];  // c[i] / c[j] w[j]
      for (int i = j; i < n; ++i) {
        if (i > j) share *= decays[i * n_head];
        f.mix[i][j] = share * memory.dots[chunk][i][j];
      }
      f.mix[j][j] += skip;
      f.rest[j] = share;
    }
  }
}

/// Columns [0, kVectors * lanes) of a chunk of n tokens. x, b, c and out: of the first token, whose
/// next ones are stride and out_stride values away; from and to: the state's rows, which may be the
/// same.
template <int n, int kVectors, class D>
HWY_INLINE void scan_chunk(D d, const ScanFactors& f, int64_t d_state, const float* x,
                           const float* b, const float* c, int64_t stride, const float* from,
                           float* to, int64_t d_head, float* out, int64_t out_stride) {
  using V = hn::Vec<D>;
  const int64_t n_lanes = hn::Lanes(d);
  V update[n][kVectors], read[n][kVectors];
  for (int i = 0; i < n; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      update[i][v] = hn::Mul(hn::Set(d, f.rest[i]), hn::LoadU(d, x + i * stride + v * n_lanes));
      read[i][v] = hn::Zero(d);
    }
  }
  const V decay = hn::Set(d, f.decay[n - 1]);
  for (int64_t row = 0; row < d_state; ++row) {
    V s[kVectors], next[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      s[v] = hn::LoadU(d, from + row * d_head + v * n_lanes);
      next[v] = hn::Mul(decay, s[v]);
    }
    for (int i = 0; i < n; ++i) {
      const V bi = hn::Set(d, b[i * stride + row]), ci = hn::Set(d, c[i * stride + row]);
      for (int v = 0; v < kVectors; ++v) {
        read[i][v] = hn::MulAdd(ci, s[v], read[i][v]);
        next[v] = hn::MulAdd(bi, update[i][v], next[v]);
      }
    }
    for (int v = 0; v < kVectors; ++v) hn::StoreU(next[v], d, to + row * d_head + v * n_lanes);
  }
  for (int i = 0; i < n; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      V result = hn::Mul(hn::Set(d, f.decay[i]), read[i][v]);
      for (int j = 0; j <= i; ++j) {
        const V xj = hn::LoadU(d, x + j * stride + v * n_lanes);
        result = hn::MulAdd(hn::Set(d, f.mix[i][j]), xj, result);
      }
      hn::StoreU(result, d, out + i * out_stride + v * n_lanes);
    }
  }
}

/// Columns from `column` on of all tokens of a piece. from and to: the head's state.
template <int kVectors, class D>
void scan_block(D d, const ScanPiece& p, int64_t head, int64_t column, const ScanFactors* factors,
                const float* from, float* to) {
  const SelectiveScan& s = *p.s;
  const int64_t d_head = s.d_head(), group = s.group(head);
  from += column;
  to += column;
  for (int64_t chunk = 0; chunk < p.n_chunks(); ++chunk) {
    const int64_t first = chunk * kScanTokens;
    const float* const x = s.xbc.at<const float>(p.begin + first) + head * d_head + column;
    float* const out = s.out.at<float>(p.begin + first, head) + column;
    const auto run = [&](auto n) HWY_ATTR {
      scan_chunk<decltype(n)::value, kVectors>(d, factors[chunk], s.d_state, x, p.b(first, group),
                                               p.c(first, group), s.n_xbc(), from, to, d_head, out,
                                               s.n_head() * d_head);
    };
    switch (p.n_tokens(chunk)) {
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
        run(std::integral_constant<int, kScanTokens>());
    }
    from = to;
  }
}

int64_t columns_of_scan() { return kScanVectors * static_cast<int64_t>(hn::Lanes(F32())); }

/// Block `at` of a head's columns.
void scan_columns(const ScanPiece& p, int64_t head, int64_t at, const ScanFactors* factors,
                  const float* from, float* to) {
  const F32 d;
  const int64_t n_lanes = hn::Lanes(d), wide = kScanVectors * n_lanes;
  int64_t column = at * wide;
  const int64_t end = std::min(p.s->d_head(), column + wide);
  if (column + wide == end) {
    scan_block<kScanVectors>(d, p, head, column, factors, from, to);
    return;
  }
  for (; column + n_lanes <= end; column += n_lanes) {
    scan_block<1>(d, p, head, column, factors, from, to);
  }
  const hn::CappedTag<float, 1> one;
  for (; column < end; ++column) scan_block<1>(one, p, head, column, factors, from, to);
}

/// Some blocks of columns, along all sequences. Heads of a group share its products C . B.
void scan_blocks(const SelectiveScan& s, const ScanBlocks& blocks, const ScanScratch& memory) {
  const int64_t first_head = blocks.begin / blocks.of_head;
  const int64_t end_head = (blocks.end - 1) / blocks.of_head + 1;
  for (const SequenceRows& rows : s.sequences) {
    for (int64_t t = rows.begin; t < rows.end; t += kScanPiece) {
      const ScanPiece piece{&s, t, std::min(kScanPiece, rows.end - t)};
      const void* const from = t == rows.begin ? rows.from : rows.to;
      prepare_steps(piece, first_head, end_head, memory);
      for (int64_t head = first_head; head < end_head; ++head) {
        if (head == first_head || s.group(head) != s.group(head - 1)) {
          prepare_group(piece, s.group(head), memory.dots);
        }
        prepare_head(piece, head, memory);
        const int64_t to_state = head * s.d_state * s.d_head();
        const int64_t first = std::max<int64_t>(0, blocks.begin - head * blocks.of_head);
        const int64_t end = std::min(blocks.of_head, blocks.end - head * blocks.of_head);
        for (int64_t at = first; at < end; ++at) {
          scan_columns(piece, head, at, memory.factors, static_cast<const float*>(from) + to_state,
                       static_cast<float*>(rows.to) + to_state);
        }
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {

HWY_EXPORT(scan_blocks);
HWY_EXPORT(columns_of_scan);

namespace {

ScanScratch take_scan_scratch(ScratchCutter& cutter, int64_t n_head) {
  ScanScratch memory;
  memory.steps = cutter.take<float>(kScanPiece * n_head);
  memory.decays = cutter.take<float>(kScanPiece * n_head);
  memory.dots = cutter.take<ScanMatrix>(kScanChunks);
  memory.factors = cutter.take<ScanFactors>(kScanChunks);
  return memory;
}

size_t scan_scratch_bytes(int64_t n_head) {
  ScratchCutter cutter(nullptr);
  take_scan_scratch(cutter, n_head);
  return cutter.used();
}

}  // namespace

size_t selective_scan_workspace(const CpuContext& ctx, const SelectiveScan& s) {
  return ctx.n_threads * scan_scratch_bytes(s.n_head());
}

// Blocks of columns are shared out to the threads.
void selective_scan(const CpuContext& ctx, const SelectiveScan& s) {
  const int64_t wide = HWY_DYNAMIC_DISPATCH(columns_of_scan)();
  const int64_t of_head = (s.d_head() + wide - 1) / wide, n_blocks = s.n_head() * of_head;
  const int64_t n_shares = std::min<int64_t>(ctx.n_threads, n_blocks);
  const size_t bytes = scan_scratch_bytes(s.n_head());
  char* const memory = scratch(selective_scan_workspace(ctx, s));
  const auto run = HWY_DYNAMIC_DISPATCH(scan_blocks);
#pragma omp parallel for num_threads(ctx.n_threads) if (n_shares > 1)
  for (int64_t share = 0; share < n_shares; ++share) {
    ScratchCutter cutter(memory + share * bytes);
    const ScanScratch mine = take_scan_scratch(cutter, s.n_head());
    run(s, {share * n_blocks / n_shares, (share + 1) * n_blocks / n_shares, of_head}, mine);
  }
}

}  // namespace snapkv::cpu
#endif
