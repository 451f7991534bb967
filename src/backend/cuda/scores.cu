// SPDX-License-Identifier: MIT
// The parts of policies' scores: norms, products and sums of KV rows, and arithmetic on scores.
// Every op runs once per layer (moments once per chunk of a prompt). A warp reads each row once and
// a thread each score once, so the limit is the memory, except for moments, where threads multiply
// what is in L1. Sums are in f64 where ops.def says so.
#include <algorithm>
#include <cmath>

#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/launch.cuh"
#include "base/check.h"

namespace snapkv::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;

int64_t longest(std::span<const int32_t> n) {
  return n.empty() ? 0 : *std::max_element(n.begin(), n.end());
}

/// A grid with one head per y, for at most n_items of which a block takes `per_block`.
Grid head_grid(int64_t n_items, size_t n_head, int64_t per_block) {
  return {dim3(static_cast<unsigned>(std::max<int64_t>(1, div_up(n_items, per_block))),
               static_cast<unsigned>(n_head)),
          dim3(kThreads)};
}

__device__ __forceinline__ double warp_sum(double v) {
  for (int bits = kWarpSize / 2; bits > 0; bits /= 2) v += __shfl_xor_sync(kAllLanes, v, bits);
  return v;
}

/// Sum and maximum over the threads of a block; every thread receives them.
__device__ __forceinline__ double block_sum(double v) {
  __shared__ double of_warps[kWarps];
  v = warp_sum(v);
  __syncthreads();  // the previous call may still be reading of_warps
  if (threadIdx.x % kWarpSize == 0) of_warps[threadIdx.x / kWarpSize] = v;
  __syncthreads();
  v = 0.0;
  for (int w = 0; w < kWarps; ++w) v += of_warps[w];
  return v;
}
__device__ __forceinline__ float block_max(float v) {
  __shared__ float of_warps[kWarps];
  v = warp_max(v);
  __syncthreads();
  if (threadIdx.x % kWarpSize == 0) of_warps[threadIdx.x / kWarpSize] = v;
  __syncthreads();
  v = of_warps[0];
  for (int w = 1; w < kWarps; ++w) v = fmaxf(v, of_warps[w]);
  return v;
}

/// Rows of KV heads of type T, with any strides.
template <typename T>
struct HeadView {
  const char* data;
  int64_t head_stride, row_stride;  // bytes
  int64_t d;
  __device__ __forceinline__ const T* row(int64_t h, int64_t j) const {
    return reinterpret_cast<const T*>(data + h * head_stride + j * row_stride);
  }
};
template <typename T>
HeadView<T> view_of(const Tensor& x) {
  return {static_cast<const char*>(x.data), x.stride[0], x.stride[1], x.shape[2]};
}

/// Scores of all heads: [n_head_kv, columns], of which n[h] count.
struct Scores {
  float* data;
  int64_t columns;
  const int32_t* n;
  __device__ __forceinline__ float* row(int64_t h) const { return data + h * columns; }
};
Scores scores_of(const Tensor& t, const int32_t* n) {
  return {static_cast<float*>(t.data), t.shape[t.rank - 1], n};
}

/// Calls f with a value of the tensor's KV type.
template <typename F>
void visit_kv_type(DType type, F f) {
  switch (type) {
    case DType::f32:
      return f(float());
    case DType::f16:
      return f(__half());
    case DType::bf16:
      return f(__nv_bfloat16());
    default:
      SNAPKV_CHECK(false);
  }
}

__device__ __forceinline__ void put(float& score, double value, bool accumulate) {
  score = static_cast<float>(accumulate ? score + value : value);
}

// ---------------------------------------------------------------- rows

struct NormOptions {
  float factor;
  bool l1, inverse, accumulate;
};

// One warp per row.
template <typename T>
__global__ void norms_kernel(const HeadView<T> x, const Scores out, const NormOptions o) {
  const int64_t j = blockIdx.x * static_cast<int64_t>(kWarps) + threadIdx.x / kWarpSize;
  if (j >= out.n[blockIdx.y]) return;
  const T* row = x.row(blockIdx.y, j);
  double sum = 0.0;
  for (int64_t i = threadIdx.x % kWarpSize; i < x.d; i += kWarpSize) {
    const double v = to_float(row[i]);
    sum += o.l1 ? fabs(v) : v * v;
  }
  sum = warp_sum(sum);
  const double norm = o.l1 ? sum : sqrt(sum);
  if (threadIdx.x % kWarpSize != 0) return;
  put(out.row(blockIdx.y)[j], o.inverse ? o.factor / fmax(norm, 1e-12) : o.factor * norm,
      o.accumulate);
}

// One warp per row.
template <typename T>
__global__ void dots_kernel(const HeadView<T> x, const HeadView<float> y, const Scores out) {
  const int64_t j = blockIdx.x * static_cast<int64_t>(kWarps) + threadIdx.x / kWarpSize;
  if (j >= out.n[blockIdx.y]) return;
  const T* a = x.row(blockIdx.y, j);
  const float* b = y.row(blockIdx.y, j);
  double sum = 0.0;
  for (int64_t i = threadIdx.x % kWarpSize; i < x.d; i += kWarpSize) {
    sum += static_cast<double>(to_float(a[i])) * b[i];
  }
  sum = warp_sum(sum);
  if (threadIdx.x % kWarpSize == 0) out.row(blockIdx.y)[j] = static_cast<float>(sum);
}

// One warp per key, for the query blockIdx.y.
template <typename T>
__global__ void index_scores_kernel(const HeadView<T> keys, const float* q, const float* weights,
                                    int64_t n_head, const Scores out) {
  const int64_t t = blockIdx.y;
  const int64_t j = blockIdx.x * static_cast<int64_t>(kWarps) + threadIdx.x / kWarpSize;
  if (j >= out.n[t]) return;
  const T* const key = keys.row(0, j);
  double score = 0.0;
  for (int64_t h = 0; h < n_head; ++h) {
    const float* const query = q + (t * n_head + h) * keys.d;
    double dot = 0.0;
    for (int64_t i = threadIdx.x % kWarpSize; i < keys.d; i += kWarpSize) {
      dot += static_cast<double>(to_float(key[i])) * query[i];
    }
    dot = warp_sum(dot);
    score += weights[t * n_head + h] * (dot < 0.0 ? 0.0 : dot);
  }
  if (threadIdx.x % kWarpSize == 0) out.row(t)[j] = static_cast<float>(score);
}

// One block per head and 32 channels; its warps take turns at the rows.
template <typename T>
__global__ void sum_rows_kernel(const HeadView<T> x, const Scores weights, float* out) {
  __shared__ double sums[kWarps][kWarpSize];
  const int lane = threadIdx.x % kWarpSize, warp = threadIdx.x / kWarpSize;
  const int64_t h = blockIdx.y, c = blockIdx.x * static_cast<int64_t>(kWarpSize) + lane;
  double sum = 0.0;
  for (int64_t j = warp; j < weights.n[h] && c < x.d; j += kWarps) {
    sum += static_cast<double>(weights.row(h)[j]) * to_float(x.row(h, j)[c]);
  }
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || c >= x.d) return;
  for (int w = 1; w < kWarps; ++w) sum += sums[w][lane];
  out[h * x.d + c] = static_cast<float>(sum);
}

// ---------------------------------------------------------------- scores

__global__ void weigh_kernel(const Scores scores, const Scores weights, float factor,
                             float offset) {
  const int64_t j = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
  if (j >= scores.n[blockIdx.y]) return;
  float& s = scores.row(blockIdx.y)[j];
  s = static_cast<float>((static_cast<double>(factor) * s + offset) * weights.row(blockIdx.y)[j]);
}

__global__ void add_kernel(const Scores x, const Scores sums) {
  const int64_t j = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
  if (j >= x.n[blockIdx.y]) return;
  float& sum = sums.row(blockIdx.y)[j];
  float& rest = sums.row(gridDim.y + blockIdx.y)[j];
  const double total = static_cast<double>(sum) + rest + x.row(blockIdx.y)[j];
  sum = static_cast<float>(total);
  rest = static_cast<float>(total - sum);
}

__global__ void set_kernel(const Scores scores, const int32_t* rows, int64_t rows_columns,
                           float value) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
  if (i >= scores.n[blockIdx.y]) return;
  scores.row(blockIdx.y)[rows[blockIdx.y * rows_columns + i]] = value;
}

// ---------------------------------------------------------------- chunks

struct Chunks {
  int64_t begin, length;
  float factor;
  bool accumulate;
};

/// Whether a counts as lower than b; of two equal ones, the one with the higher index is lower.
__device__ __forceinline__ bool is_lower(float a, int64_t a_index, float b, int64_t b_index) {
  const bool a_is_nan = a != a, b_is_nan = b != b;
  if (a_is_nan != b_is_nan) return a_is_nan;
  if (!a_is_nan && a != b) return a < b;
  return a_index > b_index;
}

// One block per chunk and head. For a rank, a score is compared with all of its chunk.
__global__ void chunks_kernel(const Scores scores, const Scores out, ChunkScore kind,
                              const Chunks c) {
  const int64_t h = blockIdx.y, n = scores.n[h];
  if (blockIdx.x == 0 && !c.accumulate) {
    for (int64_t j = threadIdx.x; j < min(c.begin, n); j += kThreads) out.row(h)[j] = 0.0f;
  }
  const int64_t first = c.begin + blockIdx.x * c.length, size = min(c.length, n - first);
  if (size <= 0) return;
  const float* s = scores.row(h) + first;
  float* to = out.row(h) + first;
  if (kind == ChunkScore::rank) {
    for (int64_t j = threadIdx.x; j < size; j += kThreads) {
      int64_t rank = 0;
      for (int64_t i = 0; i < size; ++i) rank += is_lower(s[i], i, s[j], j);
      const double value = s[j] != s[j] ? s[j] : static_cast<double>(rank);
      put(to[j], static_cast<double>(c.factor) * value, c.accumulate);
    }
    return;
  }
  float max = 0.0f;
  double sum = 0.0;
  if (kind == ChunkScore::softmax) {
    max = -INFINITY;
    for (int64_t j = threadIdx.x; j < size; j += kThreads) max = fmaxf(max, s[j]);
    max = block_max(max);
  }
  for (int64_t j = threadIdx.x; j < size; j += kThreads) {
    sum += kind == ChunkScore::softmax ? exp(static_cast<double>(s[j]) - max)
                                       : static_cast<double>(s[j]);
  }
  sum = block_sum(sum);  // before anything is written: `to` may be `s`
  for (int64_t j = threadIdx.x; j < size; j += kThreads) {
    const double value = kind == ChunkScore::softmax ? exp(static_cast<double>(s[j]) - max) / sum
                                                     : sum / static_cast<double>(size);
    put(to[j], c.factor * value, c.accumulate);
  }
}

// ---------------------------------------------------------------- LagKV

// One block per chunk and head. The range of the next chunk is put into shared memory; then each
// warp takes a row.
template <typename T>
__global__ void lag_kernel(const HeadView<T> x, const Scores out, int64_t begin, int64_t lag) {
  float* low = reinterpret_cast<float*>(dynamic_shared());
  float* high = low + x.d;
  const int64_t h = blockIdx.y, n = out.n[h];
  // the first block also sets the rows before the chunks
  const int64_t first = begin + blockIdx.x * lag, next = first + lag;
  for (int64_t j = threadIdx.x; blockIdx.x == 0 && j < min(begin, n); j += kThreads) {
    out.row(h)[j] = 0.0f;
  }
  if (next + lag > n) {
    for (int64_t j = first + threadIdx.x; j < min(next, n); j += kThreads) out.row(h)[j] = 0.0f;
    return;
  }
  for (int64_t c = threadIdx.x; c < x.d; c += kThreads) {
    float least = to_float(x.row(h, next)[c]), most = least;
    for (int64_t j = next; j < next + lag; ++j) {
      const float v = to_float(x.row(h, j)[c]);
      least = fminf(least, v);
      most = fmaxf(most, v);
    }
    low[c] = least;
    high[c] = most;
  }
  __syncthreads();
  const int lane = threadIdx.x % kWarpSize;
  for (int64_t j = first + threadIdx.x / kWarpSize; j < next; j += kWarps) {
    const T* row = x.row(h, j);
    const auto value = [&](int64_t c) -> double {
      const double width = static_cast<double>(high[c]) - low[c];
      const double above = to_float(row[c]) - static_cast<double>(low[c]);
      return width > 0.0 ? above / width : 0.0 * above;
    };
    double sum = 0.0, squares = 0.0;
    for (int64_t c = lane; c < x.d; c += kWarpSize) sum += value(c);
    const double mean = warp_sum(sum) / static_cast<double>(x.d);
    for (int64_t c = lane; c < x.d; c += kWarpSize) {
      squares += (value(c) - mean) * (value(c) - mean);
    }
    squares = warp_sum(squares);
    if (lane != 0) continue;
    out.row(h)[j] =
        x.d < 2 ? 0.0f : static_cast<float>(sqrt(squares / static_cast<double>(x.d - 1)));
  }
}

// ---------------------------------------------------------------- moments

// One block per head and row of the result; each thread has some columns. Row d is the sum.
__global__ void moments_kernel(const float* x, const float* shift, int64_t n, int64_t d,
                               float* out) {
  const int64_t h = blockIdx.y, i = blockIdx.x, n_head = gridDim.y;
  const float* s = shift + h * d;
  for (int64_t j = threadIdx.x; j < d; j += kThreads) {
    double sum = 0.0;
    for (int64_t t = 0; t < n; ++t) {
      const float* y = x + (t * n_head + h) * d;
      const double own = y[j] - s[j];
      sum += i < d ? own * (y[i] - s[i]) : own;
    }
    out[(h * (d + 1) + i) * d + j] = static_cast<float>(sum);
  }
}

}  // namespace

void row_norms(Context& ctx, const RowNorms& r) {
  visit_kv_type(r.x.dtype, [&](auto value) {
    using T = decltype(value);
    launch(ctx, head_grid(longest(r.n), r.n.size(), kWarps), norms_kernel<T>, view_of<T>(r.x),
           scores_of(r.out, ctx.put(r.n)), NormOptions{r.factor, r.l1, r.inverse, r.accumulate});
  });
}

void row_dots(Context& ctx, const Tensor& x, const Tensor& y, std::span<const int32_t> n,
              const Tensor& out) {
  visit_kv_type(x.dtype, [&](auto value) {
    using T = decltype(value);
    launch(ctx, head_grid(longest(n), n.size(), kWarps), dots_kernel<T>, view_of<T>(x),
           view_of<float>(y), scores_of(out, ctx.put(n)));
  });
}

void index_scores(Context& ctx, const IndexScores& s) {
  visit_kv_type(s.keys.dtype, [&](auto value) {
    using T = decltype(value);
    const HeadView<T> keys = {static_cast<const char*>(s.keys.data), 0, s.keys.stride[0],
                              s.keys.shape[1]};
    // for all columns, so that a recorded step fits later ones that see more keys
    launch(ctx, head_grid(s.out.shape[1], s.n_seen.size(), kWarps), index_scores_kernel<T>, keys,
           static_cast<const float*>(s.q.data), static_cast<const float*>(s.weights.data),
           s.q.shape[1], scores_of(s.out, ctx.put(s.n_seen)));
  });
}

void sum_rows(Context& ctx, const Tensor& x, const Tensor& weights, std::span<const int32_t> n,
              const Tensor& out) {
  visit_kv_type(x.dtype, [&](auto value) {
    using T = decltype(value);
    launch(ctx, head_grid(x.shape[2], n.size(), kWarpSize), sum_rows_kernel<T>, view_of<T>(x),
           scores_of(weights, ctx.put(n)), static_cast<float*>(out.data));
  });
}

void weigh_scores(Context& ctx, const Tensor& scores, std::span<const int32_t> n, float factor,
                  float offset, const Tensor& weights) {
  const int32_t* counts = ctx.put(n);
  launch(ctx, head_grid(longest(n), n.size(), kThreads), weigh_kernel, scores_of(scores, counts),
         scores_of(weights, counts), factor, offset);
}

void add_scores(Context& ctx, const Tensor& x, std::span<const int32_t> n, const Tensor& sums) {
  const int32_t* counts = ctx.put(n);
  launch(ctx, head_grid(longest(n), n.size(), kThreads), add_kernel, scores_of(x, counts),
         scores_of(sums, counts));
}

void set_scores(Context& ctx, const Tensor& scores, const Tensor& rows, std::span<const int32_t> n,
                float value) {
  launch(ctx, head_grid(longest(n), n.size(), kThreads), set_kernel, scores_of(scores, ctx.put(n)),
         static_cast<const int32_t*>(rows.data), rows.shape[1], value);
}

void chunk_scores(Context& ctx, const ChunkScores& c) {
  const int32_t* counts = ctx.put(c.n);
  const int64_t most = longest(c.n);
  launch(ctx, head_grid(most - c.begin, c.n.size(), std::min(c.length, most)), chunks_kernel,
         scores_of(c.scores, counts), scores_of(c.out, counts), c.kind,
         Chunks{c.begin, std::min(c.length, most), c.factor, c.accumulate});
}

void lag_deviations(Context& ctx, const Tensor& x, std::span<const int32_t> n, int64_t begin,
                    int64_t lag, const Tensor& out) {
  Grid grid = head_grid(longest(n) - begin, n.size(), lag);
  grid.shared_bytes = 2 * x.shape[2] * sizeof(float);
  visit_kv_type(x.dtype, [&](auto value) {
    using T = decltype(value);
    launch(ctx, grid, lag_kernel<T>, view_of<T>(x), scores_of(out, ctx.put(n)), begin, lag);
  });
}

void moments(Context& ctx, const Tensor& x, const Tensor& shift, const Tensor& out) {
  const int64_t n_head = x.shape[1], d = x.shape[2];
  launch(ctx, {dim3(static_cast<unsigned>(d + 1), static_cast<unsigned>(n_head)), dim3(kThreads)},
         moments_kernel, static_cast<const float*>(x.data), static_cast<const float*>(shift.data),
         x.shape[0], d, static_cast<float*>(out.data));
}

}  // namespace snapkv::cuda
