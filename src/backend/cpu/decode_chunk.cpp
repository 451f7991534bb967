// SPDX-License-Identifier: MIT
// decode_chunk() in Highway: scores of a block of rows, an online softmax, the sum of values.
#include "backend/cpu/decode_chunk.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "format/block_types.h"

// Scalable vectors can't be array elements: NEON serves those processors.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/decode_chunk.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backend/cpu/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {

// How many query heads and vectors of values are computed at once: accumulators, operands and
// broadcasts fit the registers.
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kHeads = 4;
constexpr int kVectors = 4;
#else
constexpr int kHeads = 2;
constexpr int kVectors = 4;
#endif

#if HWY_TARGET != HWY_SCALAR
using Quad = hn::Full128<float>;

/// Adds the upper half of the lanes to the lower until 4 are left.
template <class D>
HWY_INLINE hn::Vec<Quad> fold(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> dh;
    return fold(dh, hn::LowerHalf(dh, v) + hn::UpperHalf(dh, v));
  } else {
    (void)d;
    return v;
  }
}
#endif

/// out[i] = sum of the lanes of v[i], i < 4.
template <class D>
HWY_INLINE void store_sums(D d, const hn::Vec<D> v[4], float* HWY_RESTRICT out) {
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < 4; ++i) hn::StoreU(v[i], d, out + i);
#else
  const Quad dq;
  const hn::RepartitionToWide<Quad> dw;
  const auto a = fold(d, v[0]);
  const auto b = fold(d, v[1]);
  const auto c = fold(d, v[2]);
  const auto e = fold(d, v[3]);
  const auto ab = hn::InterleaveLower(dq, a, b) + hn::InterleaveUpper(dq, a, b);
  const auto ce = hn::InterleaveLower(dq, c, e) + hn::InterleaveUpper(dq, c, e);
  const auto first = hn::InterleaveLower(dw, hn::BitCast(dw, ab), hn::BitCast(dw, ce));
  const auto second = hn::InterleaveUpper(dw, hn::BitCast(dw, ab), hn::BitCast(dw, ce));
  hn::StoreU(hn::BitCast(dq, first) + hn::BitCast(dq, second), dq, out);
#endif
}

#if HWY_TARGET != HWY_SCALAR
/// The same for two sets of 8-lane vectors, with half the steps: each half of a vector adds up a
/// set.
template <class D>
HWY_INLINE void store_sums(D d, const hn::Vec<D> v[4], const hn::Vec<D> w[4],
                           float* HWY_RESTRICT v_out, float* HWY_RESTRICT w_out) {
  static_assert(hn::MaxLanes(D()) == 8);
  const hn::Half<D> dh;
  const hn::RepartitionToWide<D> dw;
  hn::Vec<D> x[4];
  for (int i = 0; i < 4; ++i) {
    x[i] = hn::ConcatUpperLower(d, w[i], v[i]) + hn::ConcatLowerUpper(d, w[i], v[i]);
  }
  const auto a = hn::InterleaveLower(d, x[0], x[1]) + hn::InterleaveUpper(d, x[0], x[1]);
  const auto b = hn::InterleaveLower(d, x[2], x[3]) + hn::InterleaveUpper(d, x[2], x[3]);
  const auto first = hn::InterleaveLower(dw, hn::BitCast(dw, a), hn::BitCast(dw, b));
  const auto second = hn::InterleaveUpper(dw, hn::BitCast(dw, a), hn::BitCast(dw, b));
  const auto sums = hn::BitCast(d, first) + hn::BitCast(d, second);
  hn::StoreU(hn::LowerHalf(dh, sums), dh, v_out);
  hn::StoreU(hn::UpperHalf(dh, sums), dh, w_out);
}
#endif

#if HWY_TARGET <= HWY_AVX3
/// The same for four sets of 16-lane vectors, one head each: every 128-bit block of a vector adds
/// up one of them.
template <class D>
HWY_INLINE void store_sums(D d, const hn::Vec<D> v[4][4], float* HWY_RESTRICT out) {
  static_assert(hn::MaxLanes(D()) == 16);
  const hn::RepartitionToWide<D> dw;
  hn::Vec<D> x[4];
  for (int r = 0; r < 4; ++r) {
    const auto even =
        hn::ConcatUpperLower(d, v[2][r], v[0][r]) + hn::ConcatLowerUpper(d, v[2][r], v[0][r]);
    const auto odd =
        hn::ConcatUpperLower(d, v[3][r], v[1][r]) + hn::ConcatLowerUpper(d, v[3][r], v[1][r]);
    x[r] = hn::OddEvenBlocks(odd, even) + hn::SwapAdjacentBlocks(hn::OddEvenBlocks(even, odd));
  }
  const auto a = hn::InterleaveLower(d, x[0], x[1]) + hn::InterleaveUpper(d, x[0], x[1]);
  const auto b = hn::InterleaveLower(d, x[2], x[3]) + hn::InterleaveUpper(d, x[2], x[3]);
  const auto first = hn::InterleaveLower(dw, hn::BitCast(dw, a), hn::BitCast(dw, b));
  const auto second = hn::InterleaveUpper(dw, hn::BitCast(dw, a), hn::BitCast(dw, b));
  const auto sums = hn::BitCast(d, first) + hn::BitCast(d, second);
  alignas(64) float of_heads[16];
  hn::Store(sums, d, of_heads);
  const Quad dq;
  for (int h = 0; h < 4; ++h) {
    hn::StoreU(hn::Load(dq, of_heads + 4 * h), dq, out + h * kScoreStride);
  }
}
#endif

/// How many values one element of a row of T holds.
template <typename T>
constexpr int kValues = 1;
template <>
constexpr int kValues<BlockQ8_0> = kBlockSize;

/// The number of elements of one row, by which pointers to T advance.
template <typename T>
HWY_INLINE int64_t row_step_of(const DecodeChunk& c) {
  return c.head_dim / kValues<T>;
}

/// out = C vectors of values from value i of a row on; i a multiple of C * lanes.
template <int C, class D, typename T>
HWY_INLINE void load_values(D d, const T* HWY_RESTRICT row, int i, hn::Vec<D> out[C]) {
  const int lanes = hn::Lanes(d);
  for (int x = 0; x < C; ++x) out[x] = load_f32(d, row + i + x * lanes);
}
/// C vectors of levels, which are values without their scales, from level `offset` of a block on.
template <int C, class D>
HWY_INLINE void load_levels(D d, const BlockQ8_0* HWY_RESTRICT block, unsigned offset,
                            hn::Vec<D> out[C]) {
  const hn::Rebind<int8_t, D> db;
  const hn::Rebind<int32_t, D> di;
  constexpr unsigned kLanes = hn::MaxLanes(D());
  for (unsigned x = 0; x < C; ++x) {
    const unsigned at = offset + x * kLanes;
    const auto levels = hn::LoadU(db, block[at / kBlockSize].qs + at % kBlockSize);
    out[x] = hn::ConvertTo(d, hn::PromoteTo(di, levels));
  }
}
/// A block's scale in all lanes.
template <class D>
HWY_INLINE hn::Vec<D> load_scale(D d, const BlockQ8_0& block) {
  const hn::Rebind<uint16_t, D> du;
  return promote_f16(d, hn::Set(du, block.d.bits));
}
template <int C, class D>
HWY_INLINE void load_values(D d, const BlockQ8_0* HWY_RESTRICT row, int i, hn::Vec<D> out[C]) {
  constexpr int kLanes = hn::MaxLanes(D());
  constexpr int kVectorsOfBlock = std::min(C, kBlockSize / kLanes);  // read with one scale
  const unsigned at = static_cast<unsigned>(i);
  load_levels<C>(d, row + at / kBlockSize, C * kLanes >= kBlockSize ? 0 : at % kBlockSize, out);
  hn::Vec<D> scale = hn::Zero(d);
  for (int x = 0; x < C; ++x) {
    if (x % kVectorsOfBlock == 0) scale = load_scale(d, row[(at + x * kLanes) / kBlockSize]);
    out[x] = out[x] * scale;
  }
}

/// How many vectors of a block, which share its scale, are loaded at a time.
template <class D>
constexpr int kBlockVectors = std::clamp<int>(kBlockSize / hn::MaxLanes(D()), 1, kVectors);

/// sum[h, r] += q[h] . k[r], lane by lane.
template <int H, class D, typename T>
HWY_INLINE void score_values(D d, const DecodeChunk& c, const float* HWY_RESTRICT q,
                             const T* HWY_RESTRICT k, int64_t row_step, hn::Vec<D> (&sum)[H][4]) {
  const int lanes = hn::Lanes(d);
  for (int i = 0; i < c.head_dim; i += lanes) {
    hn::Vec<D> kv[4];
    for (int r = 0; r < 4; ++r) kv[r] = load_f32(d, k + r * row_step + i);
    for (int h = 0; h < H; ++h) {
      const auto qv = hn::LoadU(d, q + h * c.head_dim + i);
      for (int r = 0; r < 4; ++r) sum[h][r] = hn::MulAdd(qv, kv[r], sum[h][r]);
    }
  }
}
/// The same for q8_0. The scale goes to whichever are fewer: the vectors of a block, or the sums of
/// the heads over a block.
template <int H, class D>
HWY_INLINE void score_blocks(D d, const DecodeChunk& c, const float* HWY_RESTRICT q,
                             const BlockQ8_0* HWY_RESTRICT k, int64_t row_step,
                             hn::Vec<D> (&sum)[H][4]) {
  constexpr int kLoads = kBlockVectors<D>, kLanes = hn::MaxLanes(D());
  constexpr bool kWhole = kLoads * kLanes == kBlockSize;
  for (int i = 0; i < c.head_dim; i += kLoads * kLanes) {
    const auto at = static_cast<unsigned>(i);
    const BlockQ8_0* HWY_RESTRICT block = k + at / kBlockSize;
    const unsigned offset = kWhole ? 0 : at % kBlockSize;
    if constexpr (H < kLoads) {
      for (int r = 0; r < 4; ++r) {
        hn::Vec<D> levels[kLoads];
        load_levels<kLoads>(d, block + r * row_step, offset, levels);
        const auto scale = load_scale(d, block[r * row_step]);
        for (int h = 0; h < H; ++h) {
          const float* HWY_RESTRICT qh = q + h * c.head_dim + i;
          auto part = hn::LoadU(d, qh) * levels[0];
          for (int x = 1; x < kLoads; ++x) {
            part = hn::MulAdd(hn::LoadU(d, qh + x * kLanes), levels[x], part);
          }
          sum[h][r] = hn::MulAdd(scale, part, sum[h][r]);
        }
      }
    } else {
      hn::Vec<D> kv[4][kLoads];
      for (int r = 0; r < 4; ++r) {
        load_levels<kLoads>(d, block + r * row_step, offset, kv[r]);
        const auto scale = load_scale(d, block[r * row_step]);
        for (int x = 0; x < kLoads; ++x) kv[r][x] = kv[r][x] * scale;
      }
      for (int x = 0; x < kLoads; ++x) {
        for (int h = 0; h < H; ++h) {
          const auto qv = hn::LoadU(d, q + h * c.head_dim + i + x * kLanes);
          for (int r = 0; r < 4; ++r) sum[h][r] = hn::MulAdd(qv, kv[r][x], sum[h][r]);
        }
      }
    }
  }
}

/// scores[h, r] = q[h] . k[r] for H query heads and the 4 rows at k, k + row_step, ...
template <int H, class D, typename T>
HWY_INLINE void score_rows(D d, const DecodeChunk& c, int head, const T* HWY_RESTRICT k,
                           int64_t row_step, float* HWY_RESTRICT scores) {
  const float* HWY_RESTRICT q = c.q + static_cast<int64_t>(head) * c.head_dim;
  hn::Vec<D> sum[H][4];
  for (int h = 0; h < H; ++h) {
    for (int r = 0; r < 4; ++r) sum[h][r] = hn::Zero(d);
  }
  if constexpr (std::is_same_v<T, BlockQ8_0>) {
    score_blocks(d, c, q, k, row_step, sum);
  } else {
    score_values(d, c, q, k, row_step, sum);
  }
#if HWY_TARGET <= HWY_AVX3
  if constexpr (H == 4 && hn::MaxLanes(D()) == 16) return store_sums(d, sum, scores);
#endif
  if constexpr (H % 2 == 0 && hn::MaxLanes(D()) == 8) {
    for (int h = 0; h < H; h += 2) {
      float* out = scores + h * kScoreStride;
      store_sums(d, sum[h], sum[h + 1], out, out + kScoreStride);
    }
  } else {
    for (int h = 0; h < H; ++h) store_sums(d, sum[h], scores + h * kScoreStride);
  }
}

/// Asks for memory that will be read soon; a request beyond the allocation is harmless.
HWY_INLINE void prefetch(const void* begin, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) {
    __builtin_prefetch(static_cast<const char*>(begin) + i, 0, 2);
  }
}

/// c.scores of H query heads from `head` on, for n rows from k on. Fetches as many rows at `next`.
template <int H, class D, typename T>
HWY_INLINE void score_block(D d, const DecodeChunk& c, int head, const T* k, int n, const T* next) {
  float* scores = c.scores + head * kScoreStride;
  const int64_t row_step = row_step_of<T>(c), step = 4 * row_step;
  int j = 0;
  for (; j + 4 <= n; j += 4) {
    if (head == 0) prefetch(next + j / 4 * step, step * int64_t{sizeof(T)});
    score_rows<H>(d, c, head, k + j * row_step, row_step, scores + j);
  }
  // the last rows one by one, each four times over; what lies beyond n is overwritten by the
  // softmax
  for (; j < n; ++j) {
    score_rows<H>(d, c, head, k + j * row_step, 0, scores + j);
  }
}

/// acc[h, i ..] += sum_j p[h, j] v[j, i ..] for H query heads and C vectors of values. Fetches
/// the same part of as many rows at `next`.
template <int H, int C, class D, typename T>
HWY_INLINE void add_values(D d, const DecodeChunk& c, int head, const T* HWY_RESTRICT v, int n,
                           int i, const T* next) {
  const int lanes = hn::Lanes(d);
  const float* HWY_RESTRICT p = c.scores + head * kScoreStride;
  float* HWY_RESTRICT acc = c.acc + static_cast<int64_t>(head) * c.head_dim + i;
  hn::Vec<D> sum[H][C];
  for (int h = 0; h < H; ++h) {
    for (int x = 0; x < C; ++x) sum[h][x] = hn::LoadU(d, acc + h * c.head_dim + x * lanes);
  }
  const int64_t row_step = row_step_of<T>(c);
  const int64_t fetch_bytes = head == 0 ? C * lanes * int64_t{sizeof(T)} / kValues<T> : 0;
  for (int j = 0; j < n; ++j) {
    prefetch(next + j * row_step + i / kValues<T>, fetch_bytes);
    hn::Vec<D> row[C];
    load_values<C>(d, v + j * row_step, i, row);
    for (int h = 0; h < H; ++h) {
      const auto pv = hn::Set(d, p[h * kScoreStride + j]);
      for (int x = 0; x < C; ++x) sum[h][x] = hn::MulAdd(pv, row[x], sum[h][x]);
    }
  }
  for (int h = 0; h < H; ++h) {
    for (int x = 0; x < C; ++x) hn::StoreU(sum[h][x], d, acc + h * c.head_dim + x * lanes);
  }
}

template <int H, class D, typename T>
HWY_INLINE void add_block(D d, const DecodeChunk& c, int head, const T* v, int n, const T* next) {
  const int lanes = hn::Lanes(d);
  int i = 0;
  for (; i + kVectors * lanes <= c.head_dim; i += kVectors * lanes) {
    add_values<H, kVectors>(d, c, head, v, n, i, next);
  }
  for (; i < c.head_dim; i += lanes) add_values<H, 1>(d, c, head, v, n, i, next);
}

/// Turns scores into probabilities relative to the new maximum, and scales sum and acc to it.
template <class D>
HWY_INLINE void softmax_block(D d, const DecodeChunk& c, int head, int n) {
  const int lanes = hn::Lanes(d);
  float* HWY_RESTRICT s = c.scores + head * kScoreStride;
  const int end = (n + lanes - 1) / lanes * lanes;
  if (c.softcap > 0.0f) {
    const SoftcapFactors factors(c.softcap);
    for (int j = 0; j < end; j += lanes) {
      hn::StoreU(cap_score(d, hn::LoadU(d, s + j), factors), d, s + j);
    }
  }
  std::fill(s + n, s + end, -std::numeric_limits<float>::infinity());
  auto max = hn::LoadU(d, s);
  for (int j = lanes; j < end; j += lanes) max = hn::Max(max, hn::LoadU(d, s + j));
  OnlineSoftmax block;
  block.max = hn::GetLane(hn::MaxOfLanes(d, max));
  const float common = std::fmax(block.max, c.state[head].max);
  auto sum = hn::Zero(d);
  for (int j = 0; j < end; j += lanes) {
    const auto p = exp2_nonpositive(d, hn::LoadU(d, s + j) - hn::Set(d, common));
    sum = sum + p;
    hn::StoreU(p, d, s + j);
  }
  block.max = common;
  block.sum = hn::GetLane(hn::SumOfLanes(d, sum));
  const float factor = c.state[head].merge(block).self;
  float* acc = c.acc + static_cast<int64_t>(head) * c.head_dim;
  if (factor != 1.0f) {
    for (int i = 0; i < c.head_dim; ++i) acc[i] *= factor;
  }
}

template <class D, typename T>
void decode_typed(D d, const DecodeChunk& c) {
  for (int h = 0; h < c.n_group; ++h) c.state[h].init();
  std::fill(c.acc, c.acc + static_cast<int64_t>(c.n_group) * c.head_dim, 0.0f);
  for (int first = 0; first < c.n_rows; first += kBlockRows) {
    const int n = std::min(kBlockRows, c.n_rows - first);
    const int64_t offset = first * row_step_of<T>(c);
    const T* k = reinterpret_cast<const T*>(c.k) + offset;
    const T* v = reinterpret_cast<const T*>(c.v) + offset;
    int head = 0;
    for (; head + kHeads <= c.n_group; head += kHeads) score_block<kHeads>(d, c, head, k, n, v);
    for (; head < c.n_group; ++head) score_block<1>(d, c, head, k, n, v);
    for (head = 0; head < c.n_group; ++head) softmax_block(d, c, head, n);
    const T* next = k + n * row_step_of<T>(c);
    head = 0;
    for (; head + kHeads <= c.n_group; head += kHeads) add_block<kHeads>(d, c, head, v, n, next);
    for (; head < c.n_group; ++head) add_block<1>(d, c, head, v, n, next);
  }
}

template <class D>
void decode_with(D d, const DecodeChunk& c) {
  if (c.dtype == DType::f32) return decode_typed<D, float>(d, c);
  if (c.dtype == DType::f16) return decode_typed<D, hwy::float16_t>(d, c);
  if (c.dtype == DType::bf16) return decode_typed<D, hwy::bfloat16_t>(d, c);
  decode_typed<D, BlockQ8_0>(d, c);
}

void decode(const DecodeChunk& c) {
  // Only vectors that divide head_dim, a multiple of 8, so that no row is read beyond its end.
  if (c.head_dim % hn::Lanes(F32()) == 0) return decode_with(F32(), c);
  decode_with(hn::CappedTag<float, 8>(), c);
}

}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {

HWY_EXPORT(decode);

void decode_chunk(const DecodeChunk& chunk) { HWY_DYNAMIC_DISPATCH(decode)(chunk); }

}  // namespace snapkv::cpu
#endif  // HWY_ONCE
