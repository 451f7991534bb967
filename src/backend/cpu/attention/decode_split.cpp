// SPDX-License-Identifier: MIT
// decode_split() in Highway: scores of a block of rows, an online softmax, the weighted sum of
// values.
#include "backend/cpu/attention/decode_split.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "backend/cpu/target/highway_targets.h"
#include "format/block_types.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/attention/decode_split.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backend/cpu/attention/decode_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {

/// Number of values in one element of a row of T.
template <typename T>
constexpr int kValues = 1;
template <>
constexpr int kValues<BlockQ8_0> = kBlockSize;

/// Number of elements from a row of keys to the next one, which is what pointers to T advance by.
template <typename T>
HWY_INLINE int64_t row_step_of(const DecodeSplit& c) {
  return c.head_dim / kValues<T>;
}
/// Same for rows of values.
template <typename T>
HWY_INLINE int64_t value_step_of(const DecodeSplit& c) {
  return c.v_step / static_cast<int64_t>(sizeof(T));
}

/// Rows of keys or of values: all from the first one on or, with kChosen, those with the given
/// numbers.
template <typename T, bool kChosen>
struct SplitRows {
  const T* first;
  int64_t step;
  const int32_t* numbers;
  HWY_INLINE const T* operator[](int64_t j) const {
    return first + (kChosen ? int64_t{numbers[j]} : j) * step;
  }
  HWY_INLINE SplitRows from(int64_t j) const {
    return {kChosen ? first : first + j * step, step, kChosen ? numbers + j : nullptr};
  }
};

/// Loads C vectors of values from value i of a row on; i is a multiple of C * lanes.
template <int C, class D, typename T>
HWY_INLINE void load_values(D d, const T* HWY_RESTRICT row, int i, hn::Vec<D> out[C]) {
  const int lanes = hn::Lanes(d);
  for (int x = 0; x < C; ++x) out[x] = load_f32(d, row + i + x * lanes);
}
/// Loads C vectors of levels (values without their scale) from level `offset` of a block on.
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
/// Loads a block's scale into all lanes.
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

/// Number of vectors of a block, which share its scale, that are loaded at a time.
template <class D>
constexpr int kBlockVectors = std::clamp<int>(kBlockSize / hn::MaxLanes(D()), 1, kVectors);

/// sum[h, r] += q[h] . k[r], separately in each lane.
template <int H, class D, typename T>
HWY_INLINE void score_values(D d, const DecodeSplit& c, const float* HWY_RESTRICT q,
                             const T* const (&k)[4], hn::Vec<D> (&sum)[H][4]) {
  const int lanes = hn::Lanes(d);
  for (int i = 0; i < c.head_dim; i += lanes) {
    hn::Vec<D> kv[4];
    for (int r = 0; r < 4; ++r) kv[r] = load_f32(d, k[r] + i);
    for (int h = 0; h < H; ++h) {
      const auto qv = hn::LoadU(d, q + h * c.head_dim + i);
      for (int r = 0; r < 4; ++r) sum[h][r] = hn::MulAdd(qv, kv[r], sum[h][r]);
    }
  }
}
/// Same for q8_0. The scale multiplies whichever are fewer: the vectors of a block, or the sums of
/// the heads over a block.
template <int H, class D>
HWY_INLINE void score_blocks(D d, const DecodeSplit& c, const float* HWY_RESTRICT q,
                             const BlockQ8_0* const (&k)[4], hn::Vec<D> (&sum)[H][4]) {
  constexpr int kLoads = kBlockVectors<D>, kLanes = hn::MaxLanes(D());
  constexpr bool kWhole = kLoads * kLanes == kBlockSize;
  for (int i = 0; i < c.head_dim; i += kLoads * kLanes) {
    const auto at = static_cast<unsigned>(i);
    const unsigned block = at / kBlockSize;
    const unsigned offset = kWhole ? 0 : at % kBlockSize;
    if constexpr (H < kLoads) {
      for (int r = 0; r < 4; ++r) {
        hn::Vec<D> levels[kLoads];
        load_levels<kLoads>(d, k[r] + block, offset, levels);
        const auto scale = load_scale(d, k[r][block]);
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
        load_levels<kLoads>(d, k[r] + block, offset, kv[r]);
        const auto scale = load_scale(d, k[r][block]);
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

/// scores[h, r] = q[h] . k[r] for H query heads and 4 rows.
template <int H, class D, typename T>
HWY_INLINE void score_rows(D d, const DecodeSplit& c, int head, const T* const (&k)[4],
                           float* HWY_RESTRICT scores) {
  const float* HWY_RESTRICT q = c.q + static_cast<int64_t>(head) * c.head_dim;
  hn::Vec<D> sum[H][4];
  for (int h = 0; h < H; ++h) {
    for (int r = 0; r < 4; ++r) sum[h][r] = hn::Zero(d);
  }
  if constexpr (std::is_same_v<T, BlockQ8_0>) {
    score_blocks(d, c, q, k, sum);
  } else {
    score_values(d, c, q, k, sum);
  }
  store_head_sums<H>(d, sum, scores);
}

/// Computes c.scores of H query heads from `head` on, for n rows of k. Prefetches as many rows at
/// `next`, unless rows are chosen.
template <int H, class D, typename T, bool kChosen>
HWY_INLINE void score_block(D d, const DecodeSplit& c, int head, const SplitRows<T, kChosen>& k,
                            int n, const T* next) {
  float* scores = c.scores + head * kScoreStride;
  const int64_t step = 4 * k.step;
  int j = 0;
  for (; j + 4 <= n; j += 4) {
    if (!kChosen && head == 0) prefetch(next + j / 4 * step, step * int64_t{sizeof(T)});
    const T* const rows[4] = {k[j], k[j + 1], k[j + 2], k[j + 3]};
    score_rows<H>(d, c, head, rows, scores + j);
  }
  // the last rows one by one, each four times over; the softmax overwrites what is written beyond n
  for (; j < n; ++j) {
    const T* const rows[4] = {k[j], k[j], k[j], k[j]};
    score_rows<H>(d, c, head, rows, scores + j);
  }
}

/// acc[h, i ..] += sum_j p[h, j] v[j, i ..] for H query heads and C vectors of values. Prefetches
/// the same part of n_next rows of `next`.
template <int H, int C, class D, typename T, bool kChosen>
HWY_INLINE void add_values(D d, const DecodeSplit& c, int head, const SplitRows<T, kChosen>& v,
                           int n, int i, const SplitRows<T, kChosen>& next, int n_next) {
  const int lanes = hn::Lanes(d);
  const float* HWY_RESTRICT p = c.scores + head * kScoreStride;
  float* HWY_RESTRICT acc = c.acc + static_cast<int64_t>(head) * c.value_dim + i;
  hn::Vec<D> sum[H][C];
  for (int h = 0; h < H; ++h) {
    for (int x = 0; x < C; ++x) sum[h][x] = hn::LoadU(d, acc + h * c.value_dim + x * lanes);
  }
  const int64_t fetch_bytes = head == 0 ? C * lanes * int64_t{sizeof(T)} / kValues<T> : 0;
  for (int j = 0; j < n; ++j) {
    if (!kChosen || j < n_next) prefetch(next[j] + i / kValues<T>, fetch_bytes);
    hn::Vec<D> row[C];
    load_values<C>(d, v[j], i, row);
    for (int h = 0; h < H; ++h) {
      const auto pv = hn::Set(d, p[h * kScoreStride + j]);
      for (int x = 0; x < C; ++x) sum[h][x] = hn::MulAdd(pv, row[x], sum[h][x]);
    }
  }
  for (int h = 0; h < H; ++h) {
    for (int x = 0; x < C; ++x) hn::StoreU(sum[h][x], d, acc + h * c.value_dim + x * lanes);
  }
}

template <int H, class D, typename T, bool kChosen>
HWY_INLINE void add_block(D d, const DecodeSplit& c, int head, const SplitRows<T, kChosen>& v,
                          int n, const SplitRows<T, kChosen>& next, int n_next) {
  const int lanes = hn::Lanes(d);
  int i = 0;
  for (; i + kVectors * lanes <= c.value_dim; i += kVectors * lanes) {
    add_values<H, kVectors>(d, c, head, v, n, i, next, n_next);
  }
  for (; i < c.value_dim; i += lanes) add_values<H, 1>(d, c, head, v, n, i, next, n_next);
}

/// How many rows farther than the next block to prefetch while integers are multiplied: whole
/// blocks, together at most kVnniFetchBytes. The products of a block of short rows take less time
/// than memory does. (Measured on a Zen 5: 4 KiB farther, with 64 values, is 1.02 to 1.15 times as
/// fast; 8 KiB with 64 or 128 values is not.)
constexpr int64_t kVnniFetchBytes = 8192;
int64_t rows_farther(const DecodeSplit& c) {
  return kVnniFetchBytes / (kBlockRows * row_bytes(c.dtype, c.head_dim)) * kBlockRows;
}

template <bool kChosen, class D, typename T>
void decode_rows(D d, const DecodeSplit& c) {
  using Rows = SplitRows<T, kChosen>;
  const int64_t farther = rows_farther(c) * row_step_of<T>(c);
  for (int h = 0; h < c.n_group; ++h) c.state[h].init();
  std::fill(c.acc, c.acc + static_cast<int64_t>(c.n_group) * c.value_dim, 0.0f);
  for (int first = 0; first < c.n_rows; first += kBlockRows) {
    const int n = std::min(kBlockRows, c.n_rows - first);
    const Rows all = {reinterpret_cast<const T*>(c.k), row_step_of<T>(c), c.chosen};
    const Rows all_v = {reinterpret_cast<const T*>(c.v), value_step_of<T>(c), c.chosen};
    const Rows k_rows = all.from(first), v_rows = all_v.from(first);
    [[maybe_unused]] const T *const k = k_rows.first, *const v = v_rows.first;
    int head = 0;
    if (std::is_same_v<T, BlockQ8_0> && c.queries != nullptr) {
      score_block_vnni(c.queries, c.n_group, reinterpret_cast<const char*>(k), n, c.head_dim,
                       reinterpret_cast<const char*>(v + farther), c.scores);
    } else {
      for (; head + kHeads <= c.n_group; head += kHeads) {
        score_block<kHeads>(d, c, head, k_rows, n, v);
      }
      for (; head < c.n_group; ++head) score_block<1>(d, c, head, k_rows, n, v);
    }
    for (head = 0; head < c.n_group; ++head) softmax_block(d, c, head, n);
    if (std::is_same_v<T, BlockQ8_0> && c.queries != nullptr &&
        add_values_vnni(c.scores, c.n_group, reinterpret_cast<const char*>(v), n, c.head_dim,
                        reinterpret_cast<const char*>(k + n * row_step_of<T>(c) + farther),
                        c.acc)) {
      continue;
    }
    // without a choice what follows the keys, in steps of the values
    const int n_next = std::min(n, c.n_rows - first - n);
    const Rows next = kChosen ? all.from(first + n)
                              : Rows{k + n * row_step_of<T>(c), value_step_of<T>(c), nullptr};
    head = 0;
    for (; head + kHeads <= c.n_group; head += kHeads) {
      add_block<kHeads>(d, c, head, v_rows, n, next, n_next);
    }
    for (; head < c.n_group; ++head) add_block<1>(d, c, head, v_rows, n, next, n_next);
  }
}

template <class D, typename T>
void decode_typed(D d, const DecodeSplit& c) {
  if constexpr (!std::is_same_v<T, BlockQ8_0>) {
    if (c.chosen != nullptr) return decode_rows<true, D, T>(d, c);
  }
  decode_rows<false, D, T>(d, c);
}

template <class D>
void decode_with(D d, const DecodeSplit& c) {
  if (c.dtype == DType::f32) return decode_typed<D, float>(d, c);
  if (c.dtype == DType::f16) return decode_typed<D, hwy::float16_t>(d, c);
  if (c.dtype == DType::bf16) return decode_typed<D, hwy::bfloat16_t>(d, c);
  decode_typed<D, BlockQ8_0>(d, c);
}

void decode(const DecodeSplit& c) {
  // Only vectors that divide both widths, multiples of 8, so that nothing is read beyond the end of
  // a row.
  if (c.head_dim % hn::Lanes(F32()) == 0 && c.value_dim % hn::Lanes(F32()) == 0) {
    return decode_with(F32(), c);
  }
  decode_with(hn::CappedTag<float, 8>(), c);
}

}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {

HWY_EXPORT(decode);

void decode_split(const DecodeSplit& split) { HWY_DYNAMIC_DISPATCH(decode)(split); }

}  // namespace snapkv::cpu
#endif  // HWY_ONCE
