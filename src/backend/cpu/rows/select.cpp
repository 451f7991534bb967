// SPDX-License-Identifier: MIT
// Stores, pools, ranks, gathers and converts KV rows; voting is in window_votes.cpp.
#include <omp.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/target/highway_targets.h"
#include "backend/cpu/target/scratch.h"
#include "backend/cpu/weights/convert.h"
#include "base/half.h"
#include "format/block_types.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/rows/select.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backend/cpu/target/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {

// Highway's emulated conversion to f16 truncates. Only these targets have an instruction that
// rounds to nearest even.
#if HWY_TARGET <= HWY_AVX2 || HWY_TARGET == HWY_NEON
constexpr bool kRoundsToF16 = true;
#else
constexpr bool kRoundsToF16 = false;
#endif

/// Quantizes 32 values as store_rows() defines q8_0. The bits of |x| compare as |x| does, with NaN
/// greatest.
HWY_INLINE void quantize_block(const float* HWY_RESTRICT x, BlockQ8_0& block) {
  const F32 d;
  const hn::Rebind<int32_t, F32> di;
  const hn::Rebind<int8_t, F32> db;
  const int lanes = hn::Lanes(d);
  auto max = hn::Zero(di);
  for (int i = 0; i < kBlockSize; i += lanes) {
    max = hn::Max(max, hn::And(hn::BitCast(di, hn::LoadU(d, x + i)), hn::Set(di, 0x7fffffff)));
  }
  const auto max_bits = hn::GetLane(hn::MaxOfLanes(di, max));
  const bool finite = max_bits < 0x7f800000;
  const float scale = std::bit_cast<float>(max_bits) / 127.0f;
  block.d = to_f16(finite ? scale : std::numeric_limits<float>::quiet_NaN());
  if (!finite || to_f32(block.d) == 0.0f) {
    std::memset(block.qs, 0, sizeof(block.qs));
    return;
  }
  const auto inverse = hn::Set(d, 1.0f / scale);
  for (int i = 0; i < kBlockSize; i += lanes) {
    hn::StoreU(hn::DemoteTo(db, hn::NearestInt(hn::LoadU(d, x + i) * inverse)), db, block.qs + i);
  }
}

/// Stores one row of n f32 values in a cache dtype, rounded to nearest even.
void store_row(const float* HWY_RESTRICT src, int64_t n, DType dtype, void* dst) {
  const F32 d;
  const int64_t lanes = hn::Lanes(d);
  int64_t i = 0;
  if (dtype == DType::f32) {
    std::memcpy(dst, src, n * sizeof(float));
  } else if (dtype == DType::q8_0) {
    BlockQ8_0* blocks = static_cast<BlockQ8_0*>(dst);
    for (; i < n; i += kBlockSize) quantize_block(src + i, blocks[i / kBlockSize]);
  } else if (dtype == DType::bf16) {
    const hn::Rebind<uint32_t, F32> du;
    const hn::Rebind<uint16_t, F32> dh;
    uint16_t* HWY_RESTRICT out = static_cast<uint16_t*>(dst);
    for (; i + lanes <= n; i += lanes) {
      const auto bits = hn::BitCast(du, round_bf16(d, hn::LoadU(d, src + i)));
      hn::StoreU(hn::TruncateTo(dh, hn::ShiftRight<16>(bits)), dh, out + i);
    }
    for (; i < n; ++i) out[i] = to_bf16(src[i]).bits;
  } else {
    uint16_t* HWY_RESTRICT out = static_cast<uint16_t*>(dst);
    if constexpr (kRoundsToF16) {
      const hn::Rebind<hwy::float16_t, F32> dh;
      for (; i + lanes <= n; i += lanes) {
        hn::StoreU(hn::DemoteTo(dh, hn::LoadU(d, src + i)), dh,
                   reinterpret_cast<hwy::float16_t*>(out + i));
      }
    }
    for (; i < n; ++i) out[i] = to_f16(src[i]).bits;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {
namespace {

HWY_EXPORT(store_row);

/// With less memory traffic, waking the other threads costs more than it saves.
constexpr int64_t kSerialBytes = 64 << 10;

int threads_for(const CpuContext& ctx, int64_t bytes) {
  return team_size(ctx, bytes >= kSerialBytes);
}

int64_t longest(std::span<const int32_t> n) {
  return n.empty() ? 0 : *std::max_element(n.begin(), n.end());
}

int threads_for_ranking(const CpuContext& ctx, std::span<const int32_t> n) {
  return threads_for(ctx, longest(n) * std::ssize(n) * 8);
}

/// out[j] combines x[j + t - kernel_size / 2] over t < kernel_size for j in [begin, end), without
/// positions outside [0, n).
template <typename Combine>
void pool_block(const float* x, int64_t n, int kernel_size, int64_t begin, int64_t end, float* out,
                Combine combine) {
  for (int t = 0; t < kernel_size; ++t) {
    const int64_t shift = t - kernel_size / 2;
    const int64_t first = std::max(begin, -shift);
    const int64_t last = std::min(end, n - shift);
    for (int64_t j = first; j < last; ++j) out[j] = combine(out[j], x[j + shift]);
  }
}

/// A key that is greater for a higher score and, for equal scores, for a lower index. NaN is
/// lowest.
uint64_t rank_key(float score, uint32_t index) {
  uint32_t u = 0;
  if (!std::isnan(score)) {
    u = std::bit_cast<uint32_t>(score + 0.0f);  // -0 ties with 0
    u = (u & 0x80000000u) != 0 ? ~u : u | 0x80000000u;
  }
  return static_cast<uint64_t>(u) << 32 | (0xffffffffu - index);
}

/// Writes the indices of the k highest of scores[0, n) to rows, ascending. keys [n] is scratch.
void top_k_row(const float* scores, int32_t n, int32_t k, uint64_t* keys, int32_t* rows) {
  if (k <= 0) return;
  for (int32_t j = 0; j < n; ++j) keys[j] = rank_key(scores[j], static_cast<uint32_t>(j));
  std::nth_element(keys, keys + (k - 1), keys + n, std::greater<>());
  const uint64_t last = keys[k - 1];
  for (int32_t j = 0; j < n; ++j) {
    if (rank_key(scores[j], static_cast<uint32_t>(j)) >= last) *rows++ = j;
  }
}

}  // namespace

void store_rows(const CpuContext& ctx, const Tensor& src, DType dtype, std::span<void* const> dst) {
  const int64_t n = src.shape[0];
  const int64_t n_head_kv = src.shape[1];
  const int64_t head_dim = src.shape[2];
  const int64_t row = row_bytes(dtype, head_dim);
  const int n_threads = threads_for(ctx, n * n_head_kv * (row + 4 * head_dim));
#pragma omp parallel for num_threads(n_threads) schedule(static)
  for (int64_t t = 0; t < n; ++t) {
    for (int64_t h = 0; h < n_head_kv; ++h) {
      HWY_DYNAMIC_DISPATCH(store_row)
      (src.at<float>(t, h), head_dim, dtype, static_cast<char*>(dst[h]) + t * row);
    }
  }
}

void pool(const CpuContext& ctx, const Tensor& scores, std::span<const int32_t> n, int kernel_size,
          Pooling pooling, const Tensor& out) {
  constexpr int64_t kBlock = 2048;  // columns; the output stays in the L1 cache
  const int64_t n_head_kv = std::ssize(n);
  if (n_head_kv == 0) return;
  const int64_t longest = *std::max_element(n.begin(), n.end());
  const int64_t n_blocks = (longest + kBlock - 1) / kBlock;
  const int64_t n_tasks = n_head_kv * n_blocks;
  const int n_threads = threads_for(ctx, n_tasks * kBlock * 4 * kernel_size);
#pragma omp parallel for num_threads(n_threads) schedule(static)
  for (int64_t i = 0; i < n_tasks; ++i) {
    const int64_t h = i / n_blocks;
    const int64_t columns = n[h];
    const int64_t begin = std::min(i % n_blocks * kBlock, columns);
    const int64_t end = std::min(begin + kBlock, columns);
    float* to = out.at<float>(h);
    if (pooling == Pooling::max) {
      std::fill(to + begin, to + end, -std::numeric_limits<float>::infinity());
      pool_block(scores.at<float>(h), columns, kernel_size, begin, end, to,
                 [](float a, float b) { return a < b ? b : a; });
    } else {
      std::fill(to + begin, to + end, 0.0f);
      pool_block(scores.at<float>(h), columns, kernel_size, begin, end, to,
                 [](float a, float b) { return a + b; });
      for (int64_t j = begin; j < end; ++j) to[j] /= static_cast<float>(kernel_size);
    }
  }
}

size_t top_k_workspace(const CpuContext& ctx, const Tensor&, std::span<const int32_t> n,
                       std::span<const int32_t>, int, const Tensor&) {
  // keys of a head's rows for each thread that ranks: the first ones do if there are few heads
  const int64_t n_ranking = std::min<int64_t>(threads_for_ranking(ctx, n), std::ssize(n));
  return longest(n) * n_ranking * sizeof(uint64_t);
}

void top_k(const CpuContext& ctx, const Tensor& scores, std::span<const int32_t> n,
           std::span<const int32_t> k, int n_tail, const Tensor& rows) {
  const int64_t n_head_kv = std::ssize(n), most = longest(n);
  if (n_head_kv == 0) return;
  const int n_threads = threads_for_ranking(ctx, n);
  auto* keys =
      reinterpret_cast<uint64_t*>(scratch(top_k_workspace(ctx, scores, n, k, n_tail, rows)));
#pragma omp parallel for num_threads(n_threads) schedule(static)
  for (int64_t h = 0; h < n_head_kv; ++h) {
    int32_t* to = rows.at<int32_t>(h);
    top_k_row(scores.at<float>(h), n[h], k[h], keys + omp_get_thread_num() * most, to);
    for (int32_t t = 0; t < n_tail; ++t) to[k[h] + t] = n[h] + t;
  }
}

void store_positions(const CpuContext&, std::span<const int32_t> pos,
                     std::span<int32_t* const> dst) {
  for (int32_t* head : dst) std::copy(pos.begin(), pos.end(), head);
}

void gather_rows(const CpuContext& ctx, const Tensor& src, const Tensor& rows,
                 std::span<const int32_t> n, std::span<void* const> dst) {
  constexpr int64_t kBlock = 256;  // rows per task
  const int64_t n_head_kv = std::ssize(n);
  if (n_head_kv == 0) return;
  const int64_t row = row_bytes(src.dtype, src.shape[2]);
  const int64_t longest = *std::max_element(n.begin(), n.end());
  const int64_t n_blocks = (longest + kBlock - 1) / kBlock;
  const int64_t n_tasks = n_head_kv * n_blocks;
  const int n_threads = threads_for(ctx, longest * n_head_kv * row);
#pragma omp parallel for num_threads(n_threads) schedule(static)
  for (int64_t i = 0; i < n_tasks; ++i) {
    const int64_t h = i / n_blocks;
    const int64_t begin = i % n_blocks * kBlock;
    const int64_t end = std::min<int64_t>(begin + kBlock, n[h]);
    const int32_t* index = rows.at<int32_t>(h);
    char* to = static_cast<char*>(dst[h]);
    for (int64_t r = begin; r < end; ++r) {
      std::memcpy(to + r * row, src.at<char>(h, index[r]), row);
    }
  }
}

size_t convert_rows_workspace(const CpuContext& ctx, const RowConversion& c) {
  return c.head_dim * ctx.n_threads * sizeof(float);  // each thread's row
}

void convert_rows(const CpuContext& ctx, const RowConversion& c) {
  constexpr int64_t kBlock = 256;  // rows per task
  const int64_t src_row = row_bytes(c.src_dtype, c.head_dim);
  const int64_t dst_row = row_bytes(c.dst_dtype, c.head_dim);
  const int64_t n_head_kv = std::ssize(c.n), most = longest(c.n);
  const int64_t n_blocks = (most + kBlock - 1) / kBlock;
  const int64_t n_tasks = n_head_kv * n_blocks;
  const int n_threads = threads_for(ctx, most * n_head_kv * (src_row + dst_row));
  auto* values = reinterpret_cast<float*>(scratch(convert_rows_workspace(ctx, c)));
#pragma omp parallel for num_threads(n_threads) schedule(static)
  for (int64_t i = 0; i < n_tasks; ++i) {
    const int64_t h = i / n_blocks;
    const int64_t begin = i % n_blocks * kBlock;
    const int64_t end = std::min<int64_t>(begin + kBlock, c.n[h]);
    const int32_t* index = c.rows ? c.rows.at<const int32_t>(h) : nullptr;
    float* row = values + omp_get_thread_num() * c.head_dim;
    for (int64_t r = begin; r < end; ++r) {
      const int64_t from = index != nullptr ? index[r] : r;
      convert_row(static_cast<const char*>(c.src[h]) + from * src_row, c.src_dtype, c.head_dim,
                  row);
      HWY_DYNAMIC_DISPATCH(store_row)
      (row, c.head_dim, c.dst_dtype, static_cast<char*>(c.dst[h]) + r * dst_row);
    }
  }
}

}  // namespace snapkv::cpu
#endif  // HWY_ONCE
