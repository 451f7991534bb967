// SPDX-License-Identifier: MIT
// Pooling of votes and selection of the k highest, without reading anything back to the host.
//
// top_k is a radix select: scores become 32-bit keys of the same order, and histograms of 11, 11
// and 10 bits, highest first, give the k-th highest key and how many keys equal to it are taken.
// Then every warp counts what its part of the row takes and, once it knows the counts before it,
// writes its indices, which are therefore in ascending order. Blocks exchange only integer sums, so
// the result does not depend on their order.
// Floor: 5 reads of the scores, 20 bytes each, and the indices; a million scores of 32 heads take
// 0.15 ms of an H200's memory bandwidth. A warp's atomics on one bin could be slower, so a thread
// adds up runs of the same bin first. Rows of up to kOneBlock scores stay in one block, in one
// launch: their time is that of launches and barriers.
// pool: the floor is 8 bytes a score; its kernel_size reads of a score come from L1.
#include <algorithm>
#include <cmath>

#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/launch.cuh"

namespace snapkv::cuda {
namespace {

// ---------------------------------------------------------------- pool

constexpr int kPoolThreads = 256;

__global__ void pool_kernel(const float* scores, int64_t scores_columns, const int32_t* n, int half,
                            bool average, float* out, int64_t out_columns) {
  const int64_t j = blockIdx.x * int64_t{kPoolThreads} + threadIdx.x;
  const int64_t n_columns = n[blockIdx.y];
  if (j >= n_columns) return;
  const float* s = scores + blockIdx.y * scores_columns;
  const int64_t begin = max(j - half, int64_t{0});
  const int64_t end = min(j + half + 1, n_columns);
  float most = -INFINITY, sum = 0.0f;
  if (average) {
    for (int64_t i = begin; i < end; ++i) sum += s[i];
  } else {
    for (int64_t i = begin; i < end; ++i) most = fmaxf(most, s[i]);
  }
  out[blockIdx.y * out_columns + j] = average ? sum / static_cast<float>(2 * half + 1) : most;
}

// ---------------------------------------------------------------- keys and digits

constexpr int kDigits = 3;
constexpr int kBins = 2048;
constexpr int kUnroll = 8;  // loads of a thread in flight

/// A key in the order of scores. NaN is the lowest; -0.0 equals 0.0.
__device__ __forceinline__ uint32_t key_of(float score) {
  const uint32_t bits = score == 0.0f ? 0 : __float_as_uint(score);
  if (score != score) return 0;
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ int digit_shift(int digit) {
  return digit == 0 ? 21 : digit == 1 ? 10 : 0;
}
__device__ __forceinline__ uint32_t digit_of(uint32_t key, int digit) {
  return key >> digit_shift(digit) & (digit == 2 ? 1023 : 2047);
}

/// What is known about the k-th highest key.
struct Threshold {
  uint32_t key;  // its digits so far, then zeros
  int32_t n;     // how many keys with these digits are among the k highest
};

struct Counts {
  int32_t above, equal;  // than, to a threshold's key
};

/// The sum of `value` over the threads of the block before this one.
template <int kThreads>
__device__ __forceinline__ int sum_before(int value) {
  __shared__ int of_warps[kThreads / kWarpSize];
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  int sum = value;
  for (int distance = 1; distance < kWarpSize; distance *= 2) {
    const int other = __shfl_up_sync(kAllLanes, sum, distance);
    if (lane >= distance) sum += other;
  }
  __syncthreads();  // the previous call may still be reading of_warps
  if (lane == kWarpSize - 1) of_warps[warp] = sum;
  __syncthreads();
  for (int w = 0; w < warp; ++w) sum += of_warps[w];
  return sum - value;
}

/// Finds one more digit from the counts of keys that have the digits so far and each next digit.
template <int kThreads>
__device__ __forceinline__ Threshold next_digit(const unsigned* bins, int digit, Threshold t) {
  constexpr int kOwn = kBins / kThreads;
  __shared__ Threshold found;
  const int first = kBins - 1 - static_cast<int>(threadIdx.x) * kOwn;  // from the highest down
  int own = 0;
  for (int i = 0; i < kOwn; ++i) own += static_cast<int>(bins[first - i]);
  int before = sum_before<kThreads>(own);
  if (before < t.n && t.n <= before + own) {
    int bin = first;
    while (before + static_cast<int>(bins[bin]) < t.n) before += static_cast<int>(bins[bin--]);
    found = {t.key | static_cast<uint32_t>(bin) << digit_shift(digit), t.n - before};
  }
  __syncthreads();
  const Threshold result = found;
  __syncthreads();
  return result;
}

/// Counts the next digit of the keys in [begin, end) that have the threshold's digits so far.
template <int kThreads>
__device__ __forceinline__ void count_digits(const float* s, int64_t begin, int64_t end, int digit,
                                             uint32_t known, unsigned* bins) {
  const int above = digit == 0 ? 0 : digit_shift(digit - 1);
  uint32_t last = 0;
  unsigned run = 0;
  for (int64_t at = begin + threadIdx.x; at < end; at += kUnroll * kThreads) {
    float score[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      score[i] = at + i * kThreads < end ? s[at + i * kThreads] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const uint32_t key = key_of(score[i]);
      if (at + i * kThreads >= end || (digit > 0 && key >> above != known >> above)) continue;
      const uint32_t bin = digit_of(key, digit);
      if (bin != last && run > 0) {
        atomicAdd(&bins[last], run);
        run = 0;
      }
      last = bin;
      ++run;
    }
  }
  if (run > 0) atomicAdd(&bins[last], run);
}

/// Counts one warp's part of a row; all lanes receive the counts.
__device__ __forceinline__ Counts count_taken(const float* s, int64_t begin, int64_t end,
                                              uint32_t key) {
  Counts c{0, 0};
  for (int64_t at = begin + threadIdx.x % kWarpSize; at < end; at += kUnroll * kWarpSize) {
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (at + i * kWarpSize >= end) continue;
      const uint32_t own = key_of(s[at + i * kWarpSize]);
      c.above += own > key;
      c.equal += own == key;
    }
  }
  for (int bits = kWarpSize / 2; bits > 0; bits /= 2) {
    c.above += __shfl_xor_sync(kAllLanes, c.above, bits);
    c.equal += __shfl_xor_sync(kAllLanes, c.equal, bits);
  }
  return c;
}

/// Writes the indices that one warp's part of a row takes; `before`: the counts of all earlier
/// parts.
__device__ __forceinline__ void write_taken(const float* s, int64_t begin, int64_t end, Threshold t,
                                            Counts before, int32_t* rows) {
  const int lane = threadIdx.x % kWarpSize;
  const unsigned lower = (1u << lane) - 1;
  for (int64_t first = begin; first < end; first += kUnroll * kWarpSize) {
    float score[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const int64_t at = first + i * kWarpSize + lane;
      score[i] = at < end ? s[at] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const int64_t at = first + i * kWarpSize + lane;
      const uint32_t key = key_of(score[i]);
      const unsigned above = __ballot_sync(kAllLanes, at < end && key > t.key);
      const unsigned equal = __ballot_sync(kAllLanes, at < end && key == t.key);
      const int n_above = before.above + __popc(above & lower);
      const int n_equal = before.equal + __popc(equal & lower);
      if ((above >> lane & 1) != 0 || ((equal >> lane & 1) != 0 && n_equal < t.n)) {
        rows[n_above + min(n_equal, t.n)] = static_cast<int32_t>(at);
      }
      before.above += __popc(above);
      before.equal += __popc(equal);
    }
  }
}

// ---------------------------------------------------------------- top_k

struct Rows {
  const float* scores;  // [n_heads, n_columns]
  int32_t* rows;        // [n_heads, rows_columns]
  const int32_t *n, *k;
  int64_t n_columns, rows_columns;
  int n_tail;
};

template <int kThreads>
__device__ __forceinline__ void write_tail(const Rows& r, int head) {
  int32_t* tail = r.rows + head * r.rows_columns + r.k[head];
  for (int i = threadIdx.x; i < r.n_tail; i += kThreads) tail[i] = r.n[head] + i;
}

/// The sums over the threads of the block; every thread receives them.
template <int kThreads>
__device__ __forceinline__ Counts block_sum(Counts c) {
  __shared__ Counts of_warps[kThreads / kWarpSize];
  for (int bits = kWarpSize / 2; bits > 0; bits /= 2) {
    c.above += __shfl_xor_sync(kAllLanes, c.above, bits);
    c.equal += __shfl_xor_sync(kAllLanes, c.equal, bits);
  }
  if (threadIdx.x % kWarpSize == 0) of_warps[threadIdx.x / kWarpSize] = c;
  __syncthreads();
  c = {0, 0};
  for (int w = 0; w < kThreads / kWarpSize; ++w) {
    c.above += of_warps[w].above;
    c.equal += of_warps[w].equal;
  }
  return c;
}

constexpr int kOneBlock = 32768;  // scores
constexpr int kOneBlockThreads = 1024;

// One block per head.
__global__ void __launch_bounds__(kOneBlockThreads) short_top_k_kernel(const Rows r) {
  constexpr int kWarps = kOneBlockThreads / kWarpSize;
  __shared__ unsigned bins[kBins];
  __shared__ Counts of_warps[kWarps];
  const int head = blockIdx.x, n = r.n[head], warp = threadIdx.x / kWarpSize;
  write_tail<kOneBlockThreads>(r, head);
  if (r.k[head] == 0) return;
  const float* s = r.scores + head * r.n_columns;
  Threshold t{0, r.k[head]};
  for (int digit = 0; digit < kDigits; ++digit) {
    for (int i = threadIdx.x; i < kBins; i += kOneBlockThreads) bins[i] = 0;
    __syncthreads();
    count_digits<kOneBlockThreads>(s, 0, n, digit, t.key, bins);
    __syncthreads();
    t = next_digit<kOneBlockThreads>(bins, digit, t);
  }
  const int64_t part = div_up(n, kOneBlockThreads) * kWarpSize;  // of each warp
  const int64_t begin = warp * part, end = min(begin + part, int64_t{n});
  const Counts own = count_taken(s, begin, end, t.key);
  if (threadIdx.x % kWarpSize == 0) of_warps[warp] = own;
  __syncthreads();
  Counts before{0, 0};
  for (int w = 0; w < warp; ++w) {
    before.above += of_warps[w].above;
    before.equal += of_warps[w].equal;
  }
  write_taken(s, begin, end, t, before, r.rows + head * r.rows_columns);
}

// Long rows: blocks of kThreads take kChunk scores of one head, with one kernel for each of the
// steps above. Every block computes again what the previous kernel found.
constexpr int kThreads = 512;
constexpr int kWarps = kThreads / kWarpSize;
constexpr int kPart = 2048;  // scores per warp
constexpr int kChunk = kWarps * kPart;

struct Scratch {
  unsigned* bins;         // [kDigits, n_heads, kBins]
  Threshold* thresholds;  // [kDigits, n_heads], after each digit
  Counts* counts;         // [n_heads, n_parts]
  int64_t n_parts;
};

/// The threshold after `n_digits` digits. The first block of a head stores it for later kernels.
__device__ __forceinline__ Threshold find_threshold(const Rows& r, const Scratch& s, int n_digits) {
  const int head = blockIdx.y, n_heads = gridDim.y;
  Threshold t{0, r.k[head]};
  if (n_digits == 0) return t;
  const int last = n_digits - 1;
  if (last > 0) t = s.thresholds[(last - 1) * n_heads + head];
  t = next_digit<kThreads>(s.bins + (int64_t{last} * n_heads + head) * kBins, last, t);
  if (blockIdx.x == 0 && threadIdx.x == 0) s.thresholds[last * n_heads + head] = t;
  return t;
}

__global__ void zero_kernel(unsigned* p, int64_t n) {
  const int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (i < n) p[i] = 0;
}

__global__ void __launch_bounds__(kThreads)
    digit_kernel(const Rows r, const Scratch scratch, int digit) {
  __shared__ unsigned bins[kBins];
  const int head = blockIdx.y;
  const int64_t begin = int64_t{blockIdx.x} * kChunk, n = r.n[head];
  if (begin >= n || r.k[head] == 0) return;
  const Threshold t = find_threshold(r, scratch, digit);
  for (int i = threadIdx.x; i < kBins; i += kThreads) bins[i] = 0;
  __syncthreads();
  count_digits<kThreads>(r.scores + head * r.n_columns, begin, min(begin + kChunk, n), digit, t.key,
                         bins);
  __syncthreads();
  unsigned* of_head = scratch.bins + (int64_t{digit} * gridDim.y + head) * kBins;
  for (int i = threadIdx.x; i < kBins; i += kThreads) {
    if (bins[i] > 0) atomicAdd(&of_head[i], bins[i]);
  }
}

__global__ void __launch_bounds__(kThreads) count_kernel(const Rows r, const Scratch scratch) {
  const int head = blockIdx.y, warp = threadIdx.x / kWarpSize;
  const int64_t n = r.n[head], first = int64_t{blockIdx.x} * kChunk;
  if (first >= n || r.k[head] == 0) return;
  const Threshold t = find_threshold(r, scratch, kDigits);
  const int64_t begin = first + warp * kPart;
  const Counts c = count_taken(r.scores + head * r.n_columns, begin, min(begin + kPart, n), t.key);
  if (threadIdx.x % kWarpSize == 0) {
    scratch.counts[head * scratch.n_parts + blockIdx.x * kWarps + warp] = c;
  }
}

__global__ void __launch_bounds__(kThreads) write_kernel(const Rows r, const Scratch scratch) {
  const int head = blockIdx.y, warp = threadIdx.x / kWarpSize;
  const int64_t n = r.n[head], first = int64_t{blockIdx.x} * kChunk;
  if (blockIdx.x == 0) write_tail<kThreads>(r, head);
  if (first >= n || r.k[head] == 0) return;
  const Counts* counts = scratch.counts + head * scratch.n_parts;
  const int n_before = blockIdx.x * kWarps;  // parts before this block
  Counts before{0, 0};
  for (int i = threadIdx.x; i < n_before; i += kThreads) {
    before.above += counts[i].above;
    before.equal += counts[i].equal;
  }
  before = block_sum<kThreads>(before);
  for (int w = 0; w < warp; ++w) {
    before.above += counts[n_before + w].above;
    before.equal += counts[n_before + w].equal;
  }
  const int64_t begin = first + warp * kPart;
  write_taken(r.scores + head * r.n_columns, begin, min(begin + kPart, n),
              scratch.thresholds[(kDigits - 1) * gridDim.y + head], before,
              r.rows + head * r.rows_columns);
}

void long_top_k(Context& ctx, const Rows& r, int64_t n_heads, int64_t n) {
  const int64_t n_chunks = div_up(n, kChunk), n_bins = kDigits * n_heads * kBins;
  Scratch s{};
  s.n_parts = n_chunks * kWarps;
  const int64_t bytes = n_bins * int64_t{sizeof(unsigned)} +
                        kDigits * n_heads * int64_t{sizeof(Threshold)} +
                        n_heads * s.n_parts * int64_t{sizeof(Counts)};
  s.bins = static_cast<unsigned*>(ctx.scratch(bytes));
  s.thresholds = reinterpret_cast<Threshold*>(s.bins + n_bins);
  s.counts = reinterpret_cast<Counts*>(s.thresholds + kDigits * n_heads);
  const Grid grid{dim3(n_chunks, n_heads), dim3(kThreads)};
  launch(ctx, {dim3(div_up(n_bins, kThreads)), dim3(kThreads)}, zero_kernel, s.bins, n_bins);
  for (int digit = 0; digit < kDigits; ++digit) launch(ctx, grid, digit_kernel, r, s, digit);
  launch(ctx, grid, count_kernel, r, s);
  launch(ctx, grid, write_kernel, r, s);
}

int64_t longest(std::span<const int32_t> n) {
  return n.empty() ? 0 : *std::max_element(n.begin(), n.end());
}

}  // namespace

void pool(Context& ctx, const Tensor& scores, std::span<const int32_t> n, int kernel_size,
          Pooling pooling, const Tensor& out) {
  const int64_t most = longest(n);
  if (most == 0) return;
  const Grid grid{dim3(div_up(most, kPoolThreads), n.size()), dim3(kPoolThreads)};
  launch(ctx, grid, pool_kernel, static_cast<const float*>(scores.data), scores.shape[1],
         ctx.put(n), kernel_size / 2, pooling == Pooling::avg, static_cast<float*>(out.data),
         out.shape[1]);
}

void top_k(Context& ctx, const Tensor& scores, std::span<const int32_t> n,
           std::span<const int32_t> k, int n_tail, const Tensor& rows) {
  Rows r{};
  r.scores = static_cast<const float*>(scores.data);
  r.rows = static_cast<int32_t*>(rows.data);
  r.n = ctx.put(n);
  r.k = ctx.put(k);
  r.n_columns = scores.shape[1];
  r.rows_columns = rows.shape[1];
  r.n_tail = n_tail;
  const int64_t n_heads = std::ssize(n);
  if (longest(n) > kOneBlock) return long_top_k(ctx, r, n_heads, longest(n));
  launch(ctx, {dim3(n_heads), dim3(kOneBlockThreads)}, short_top_k_kernel, r);
}

}  // namespace snapkv::cuda
