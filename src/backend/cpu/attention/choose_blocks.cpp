// SPDX-License-Identifier: MIT
// The choice costs a product with one key of each block, 1/128 of the scores that it saves some of,
// and reading the keys once for their means.
#include "backend/cpu/attention/choose_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "backend/cpu/attention/attention_tile.h"
#include "backend/cpu/target/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/attention/choose_blocks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backend/cpu/target/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {

template <typename T>
void add_rows_of(const KvRows& rows, float* HWY_RESTRICT sum) {
  const hn::CappedTag<float, 8> d;  // head_dim is a multiple of 8
  for (int j = 0; j < rows.n_rows; ++j) {
    const T* const row = reinterpret_cast<const T*>(rows.data + j * rows.stride);
    for (int i = 0; i < rows.head_dim; i += hn::Lanes(d)) {
      hn::StoreU(hn::LoadU(d, sum + i) + load_f32(d, row + i), d, sum + i);
    }
  }
}

/// sum[i] = sum over the rows.
void sum_kv_rows(const KvRows& rows, float* sum) {
  std::fill(sum, sum + rows.head_dim, 0.0f);
  if (rows.dtype == DType::f32) return add_rows_of<float>(rows, sum);
  if (rows.dtype == DType::f16) return add_rows_of<hwy::float16_t>(rows, sum);
  add_rows_of<hwy::bfloat16_t>(rows, sum);
}

/// sum[j] += softmax_j(s), with s in log2 units; overwrites s up to a whole vector.
void add_softmax(float* HWY_RESTRICT s, int n, float* HWY_RESTRICT sum) {
  const F32 d;
  const int lanes = hn::Lanes(d);
  const int end = (n + lanes - 1) / lanes * lanes;
  std::fill(s + n, s + end, -std::numeric_limits<float>::infinity());
  auto max = hn::LoadU(d, s);
  for (int j = lanes; j < end; j += lanes) max = hn::Max(max, hn::LoadU(d, s + j));
  max = hn::MaxOfLanes(d, max);
  auto total = hn::Zero(d);
  for (int j = 0; j < end; j += lanes) {
    const auto p = exp2_nonpositive(d, hn::LoadU(d, s + j) - max);
    total = total + p;
    hn::StoreU(p, d, s + j);
  }
  const auto factor = hn::Set(d, 1.0f) / hn::SumOfLanes(d, total);
  for (int j = 0; j < end; j += lanes) {
    hn::StoreU(hn::MulAdd(hn::LoadU(d, s + j), factor, hn::LoadU(d, sum + j)), d, sum + j);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {

HWY_EXPORT(sum_kv_rows);
HWY_EXPORT(add_softmax);

namespace {

constexpr int64_t kQueryBlock = SparseAttention::kBlock;
constexpr int64_t kPaddedBlock = (kQueryBlock + kRowGroup - 1) / kRowGroup * kRowGroup;

/// mass[i, b] += softmax over the blocks of each query of the group's i-th head.
void add_mass(const PrefillAttention& a, const QueryBlock& queries, int64_t n_blocks,
              const ChoiceSpace& space) {
  constexpr float kLog2 = 1.44269504f;
  const TileKernels& tile = f32_tile_kernels(false);
  const int64_t head_dim = a.q.shape[2], n_group = a.q.shape[1] / a.k.shape[0];
  const int64_t n = queries.end - queries.begin;
  const int64_t n_padded = (n + kRowGroup - 1) / kRowGroup * kRowGroup;
  std::fill(space.q, space.q + n_padded * head_dim, 0.0f);
  for (int64_t i = 0; i < n_group; ++i) {
    for (int64_t t = 0; t < n; ++t) {
      tile.pack_q(a.q.at<float>(queries.begin + t, queries.head * n_group + i),
                  static_cast<int>(head_dim), a.scale * kLog2, space.q + t * head_dim);
    }
    tile.scores(space.q, static_cast<int>(n_padded), static_cast<int>(head_dim), space.packed,
                static_cast<int>(n_blocks), space.scores, space.stride);
    float* const mass = space.mass + i * space.stride;
    std::fill(mass, mass + space.stride, 0.0f);
    for (int64_t t = 0; t < n; ++t) {
      float* const scores = space.scores + t * space.stride;
      if (a.variant.softcap > 0.0f) {
        tile.cap_scores(scores, static_cast<int>(n_blocks), a.variant.softcap);
      }
      HWY_DYNAMIC_DISPATCH(add_softmax)(scores, static_cast<int>(n_blocks), mass);
    }
  }
}

}  // namespace

ChoiceSpace::ChoiceSpace(const PrefillAttention& a, int64_t n_blocks, ScratchCutter& cutter) {
  const int64_t head_dim = a.q.shape[2], n_group = a.q.shape[1] / a.k.shape[0];
  stride = (n_blocks + 63) / 64 * 64 + 16;
  q = cutter.take<float>(kPaddedBlock * head_dim);
  means = cutter.take<float>(n_blocks * head_dim);
  packed = reinterpret_cast<float*>(
      cutter.take<char>(packed_block_bytes(n_blocks, static_cast<int>(head_dim), sizeof(float))));
  scores = cutter.take<float>(kPaddedBlock * stride);
  mass = cutter.take<float>(n_group * stride);
  best = cutter.take<float>(n_blocks);
  order = cutter.take<int32_t>(n_blocks);
}

void mean_keys(const Tensor& k, int64_t head, int64_t b, int64_t n_rows, float* mean) {
  const int64_t first = b * SparseAttention::kBlock;
  const int64_t n = std::min(SparseAttention::kBlock, n_rows - first);
  const auto head_dim = static_cast<int>(k.shape[2]);
  HWY_DYNAMIC_DISPATCH(sum_kv_rows)
  ({k.at<char>(head, first), k.stride[1], k.dtype, static_cast<int>(n), head_dim}, mean);
  for (int i = 0; i < head_dim; ++i) mean[i] /= static_cast<float>(n);
}

int64_t choose_blocks(const PrefillAttention& a, const QueryBlock& queries, const float* means,
                      const ChoiceSpace& space, int32_t* chosen) {
  const int64_t n_blocks = n_blocks_of(queries.n_rows), head_dim = a.q.shape[2];
  if (queries.end > a.q.shape[0] - a.sparse.n_dense) {
    std::iota(chosen, chosen + n_blocks, 0);
    return n_blocks;
  }
  float* const last = std::copy(means, means + (n_blocks - 1) * head_dim, space.means);
  // the last block may end in rows that these queries do not see
  mean_keys(a.k, queries.head, n_blocks - 1, queries.n_rows, last);
  f32_tile_kernels(false).pack_k({.data = reinterpret_cast<const char*>(space.means),
                                  .stride = head_dim * int64_t{sizeof(float)},
                                  .dtype = DType::f32,
                                  .n_rows = static_cast<int>(n_blocks),
                                  .head_dim = static_cast<int>(head_dim)},
                                 space.packed);
  add_mass(a, queries, n_blocks, space);

  const int64_t n_group = a.q.shape[1] / a.k.shape[0];
  const float needed = a.sparse.share * static_cast<float>(queries.end - queries.begin);
  const int64_t first_own = queries.n_rows - (queries.end - queries.begin);
  const int64_t first_local =
      std::max<int64_t>(1, first_own / SparseAttention::kBlock - SparseAttention::kLocalBlocks);
  const auto mass = [&](int64_t i, int64_t b) { return space.mass[i * space.stride + b]; };
  int32_t* const order = space.order;
  const int64_t n_others = std::max<int64_t>(0, std::min(first_local, n_blocks) - 1);
  for (int64_t b = 1; b <= n_others; ++b) {
    order[b - 1] = static_cast<int32_t>(b);
    space.best[b] = mass(0, b);
    for (int64_t i = 1; i < n_group; ++i) space.best[b] = std::max(space.best[b], mass(i, b));
  }
  if (!std::isfinite(std::accumulate(space.best + 1, space.best + 1 + n_others, 0.0f))) {
    std::iota(chosen, chosen + n_blocks, 0);  // so that what is not finite is seen
    return n_blocks;
  }
  std::sort(order, order + n_others, [&](int32_t x, int32_t y) {
    return space.best[x] > space.best[y] || (space.best[x] == space.best[y] && x < y);
  });
  int64_t n_added = 0;
  for (int64_t i = 0; i < n_group; ++i) {
    float sum = mass(i, 0);
    for (int64_t b = n_others + 1; b < n_blocks; ++b) sum += mass(i, b);
    for (int64_t j = 0; j < n_added; ++j) sum += mass(i, order[j]);
    while (!(sum >= needed) && n_added < n_others) sum += mass(i, order[n_added++]);
  }
  std::sort(order, order + n_added);
  int64_t n = 0;
  chosen[n++] = 0;
  for (int64_t j = 0; j < n_added; ++j) chosen[n++] = order[j];
  for (int64_t b = n_others + 1; b < n_blocks; ++b) chosen[n++] = static_cast<int32_t>(b);
  return n;
}

}  // namespace snapkv::cpu
#endif  // HWY_ONCE
