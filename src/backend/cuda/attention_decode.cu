// SPDX-License-Identifier: MIT
// Attention of one query per sequence over the rows of its own cache, split along the rows (flash
// decoding): a block takes some rows of one KV head of one sequence for all query heads of the
// group and writes (max, sum, sum of exp2(score - max) v); a second kernel combines the splits.
//
// Floor: the bytes of K and V, read once. Two things stand in the way. Arithmetic, for large
// groups: so f16, bf16 and q8_0 use the tensor cores. Latency, at a few thousand rows: so each warp
// keeps copies of tiles of 16 rows of K and V in flight, in a ring of its own in shared memory,
// without barriers between warps. Tensor cores round their operands, so queries and probabilities
// are split into a high and a low part of the operands' type. Products have 16 rows for queries; up
// to 8 queries use the other 8 rows for the low parts, which costs nothing, and 9 to 16 take two
// products.
//   error of a product, f16: 2^-22 of the largest factor; bf16 and q8_0: 2^-17 of each factor.
// f32 rows, values of another width or within the keys, and shapes that the tensor cores' kernel has
// no instance for, use decode_plain.cuh.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/decode_plain.cuh"
#include "backend/cuda/decode_split.cuh"
#include "backend/cuda/decode_tile.cuh"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/ptx.cuh"

namespace snapkv::cuda {
namespace {

using namespace decode;

constexpr int kMostRows = 512;   // of a split, unless that makes more than kMaxSplits
constexpr int kMaxSplits = 256;  // combine_kernel has a thread for each
constexpr int kMaxGroup = 16;    // query heads per block

// ---------------------------------------------------------------- the tensor cores' kernel

constexpr int kMostWarps = 4;

/// Shared memory of a block: operands of the queries, then the warps' rings, which finally hold the
/// warps' results.
template <typename Kv, int kDim, bool kWide>
struct Shape {
  static constexpr int kQ = kWide ? 2 : 1;
  static constexpr int kQueries = 8 * kQ;
  static constexpr int kStageBytes = 2 * Tile<Kv, kDim>::kBytes;  // a tile of K, one of V
  static constexpr int kStages = kStageBytes > 12288 ? 2 : kStageBytes > 6144 ? 3 : 4;
  static constexpr int kQueryBytes = kDim / 16 * kQ * kWarpSize * 16;
  static constexpr int kResultBytes = kQueries * (kDim + 2) * 4;  // of a warp
  static constexpr size_t shared_bytes(int n_warps) {
    return kQueryBytes + static_cast<size_t>(n_warps) *
                             std::max(kStages * kStageBytes, static_cast<int>(kResultBytes));
  }
};

/// The biased exponent of a query's largest value, clamped away from the ends of the range, and the
/// powers of 2 that bring that value to [2^kQueryBits, 2^(kQueryBits + 1)) and back.
__device__ __forceinline__ int exponent(float most) {
  return min(244, max(20, static_cast<int>(__float_as_uint(most) >> 23 & 0xff)));
}
__device__ __forceinline__ float query_factor(int e) {
  return __uint_as_float(static_cast<unsigned>(254 + kQueryBits - e) << 23);
}
__device__ __forceinline__ float query_inverse(int e) {
  return __uint_as_float(static_cast<unsigned>(e - kQueryBits) << 23);
}

/// Writes the queries' operands for all warps, and their exponents.
template <typename Kv, int kDim, int kQ>
__device__ __forceinline__ void prepare_queries(const DecodeArguments& a, const Work& w,
                                                uint4* operands, int* exponents) {
  const int n_warps = blockDim.x / kWarpSize;
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const float* q = a.q + w.head * a.head_dim;
  for (int i = warp; i < 8 * kQ; i += n_warps) {
    float most = 0.0f;
    for (int d = lane; i < w.n_queries && d < a.head_dim; d += kWarpSize) {
      most = fmaxf(most, fabsf(q[i * a.head_dim + d]));
    }
    most = warp_max(most);
    if (lane == 0) exponents[i] = exponent(most);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kDim / 16 * kWarpSize; i += blockDim.x) {
    const int step = i / kWarpSize, g = i % kWarpSize / 4, t = i % 4;
    float v[kQ][4];
    for (int x = 0; x < kQ; ++x) {
      const int query = g + 8 * x;
      const float factor = query_factor(exponents[query]);
      for (int r = 0; r < 4; ++r) {
        const int d = Tile<Kv, kDim>::query_dim(step, t, r / 2) + r % 2;
        const bool inside = query < w.n_queries && d < a.head_dim;
        v[x][r] = inside ? q[query * a.head_dim + d] * factor : 0.0f;
      }
    }
    uint32_t bits[kQ][4];
    split<typename Tile<Kv, kDim>::Operand>(v, bits);
    for (int x = 0; x < kQ; ++x) {
      operands[(step * kQ + x) * kWarpSize + i % kWarpSize] =
          make_uint4(bits[x][0], bits[x][1], bits[x][2], bits[x][3]);
    }
  }
  __syncthreads();
}

/// A warp's running state for its rows and query g + 8x; `sum` is the lane's share.
template <int kDim, int kQ>
struct Partial {
  float max[kQ], sum[kQ];
  float acc[kDim / 8][4];

  /// Turns scores in units of log 2 into probabilities times 2^kProbabilityBits.
  __device__ __forceinline__ void update(float (&s)[kQ][4]) {
    bool grown = false;
    float factor[kQ];
#pragma unroll
    for (int x = 0; x < kQ; ++x) {
      float most = fmaxf(fmaxf(s[x][0], s[x][1]), fmaxf(s[x][2], s[x][3]));
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 1));
      most = fmaxf(max[x], fmaxf(most, __shfl_xor_sync(kAllLanes, most, 2)));
      grown = grown || most != max[x];
      const float from = reference(most);
      factor[x] = exp2f(max[x] - from);
      max[x] = most;
#pragma unroll
      for (int i = 0; i < 4; ++i) s[x][i] = exp2f(s[x][i] - (from - kProbabilityBits));
      sum[x] = sum[x] * factor[x] + ((s[x][0] + s[x][1]) + (s[x][2] + s[x][3]));
    }
    if (__any_sync(kAllLanes, grown) == 0) return;
#pragma unroll
    for (int i = 0; i < kDim / 8; ++i) {
#pragma unroll
      for (int c = 0; c < 4; ++c) acc[i][c] *= factor[kQ == 1 ? 0 : c / 2];
    }
  }
};

/// Merges the results of the block's warps. `results` holds them: [n_warps][kQueries][kDim] sums,
/// then [n_warps][kQueries] ranges.
template <typename Kv, int kDim, int kQ>
__device__ __forceinline__ void merge_warps(const DecodeArguments& a, const Work& w, float* results,
                                            const Partial<kDim, kQ>& p) {
  constexpr int kQueries = 8 * kQ;
  const int n_warps = blockDim.x / kWarpSize;
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int g = lane / 4, t = lane % 4;
  auto* ranges = reinterpret_cast<float2*>(results + n_warps * kQueries * kDim);
#pragma unroll
  for (int x = 0; x < kQ; ++x) {
    const int query = warp * kQueries + g + 8 * x;
    float sum = p.sum[x] + __shfl_xor_sync(kAllLanes, p.sum[x], 1);
    sum += __shfl_xor_sync(kAllLanes, sum, 2);
    if (t == 0) ranges[query] = make_float2(p.max[x], sum);
#pragma unroll
    for (int i = 0; i < kDim / 8; ++i) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        results[query * kDim + Tile<Kv, kDim>::value_dim(i, 2 * t + e)] =
            result<kQ>(p.acc[i], x, e);
      }
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < w.n_queries * a.head_dim; i += blockDim.x) {
    const int query = i / a.head_dim, d = i % a.head_dim;
    float max = -INFINITY, value = 0.0f, sum = 0.0f;
    for (int other = 0; other < n_warps; ++other) {
      max = fmaxf(max, ranges[other * kQueries + query].x);
    }
    for (int other = 0; other < n_warps; ++other) {
      const int at = other * kQueries + query;
      const float weight = exp2f(ranges[at].x - reference(max));
      value += weight * results[at * kDim + d];
      sum += weight * ranges[at].y;
    }
    store_result(a, w.head + query, d, value, max, sum);
  }
}

// Each warp takes every n_warps-th tile of the block's rows.
template <typename Kv, int kDim, bool kWide>
__global__ void __launch_bounds__(kMostWarps* kWarpSize, 2) tensor_kernel(const DecodeArguments a) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  using S = Shape<Kv, kDim, kWide>;
  using T = Tile<Kv, kDim>;
  constexpr int kQ = S::kQ;
  __shared__ int exponents[S::kQueries];
  const Work w = block_work<kMaxGroup>(a);
  if (w.begin >= w.end) return;
  const int n_warps = blockDim.x / kWarpSize;
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize, t = lane % 4;
  auto* queries = reinterpret_cast<uint4*>(dynamic_shared());
  char* rings = dynamic_shared() + S::kQueryBytes;
  char* ring = rings + warp * S::kStages * S::kStageBytes;
  const auto* k = static_cast<const char*>(w.rows.k);
  const auto* v = static_cast<const char*>(w.rows.v);

  const auto row_of = [&](int i) { return w.begin + (warp + i * n_warps) * kTileRows; };
  const auto copy = [&](int i) {  // ends a group even if there is nothing to copy
    const int row = row_of(i), n = min(kTileRows, w.end - row);
    if (n > 0) {
      char* stage = ring + i % S::kStages * S::kStageBytes;
      const int64_t at = row * T::row_bytes(a.head_dim);
      T::copy(stage, k + at, n, a.head_dim, lane);
      T::copy(stage + T::kBytes, v + at, n, a.head_dim, lane);
    }
    ptx::commit_copies();
  };
#pragma unroll
  for (int i = 0; i < S::kStages - 1; ++i) copy(i);
  prepare_queries<Kv, kDim, kQ>(a, w, queries, exponents);

  Partial<kDim, kQ> p;
  float scale[kQ];
#pragma unroll
  for (int x = 0; x < kQ; ++x) {
    p.max[x] = -INFINITY;
    p.sum[x] = 0.0f;
    scale[x] = a.scale * query_inverse(exponents[lane / 4 + 8 * x]);
  }
#pragma unroll
  for (int i = 0; i < kDim / 8; ++i) p.acc[i][0] = p.acc[i][1] = p.acc[i][2] = p.acc[i][3] = 0.0f;

  for (int i = 0; row_of(i) < w.end; ++i) {
    ptx::wait_copies<S::kStages - 2>();
    __syncwarp();  // all lanes' copies are there, and tile i - 1 has been read
    copy(i + S::kStages - 1);
    const char* stage = ring + i % S::kStages * S::kStageBytes;
    float s[kQ][4];
    T::scores(stage, k, queries, a.head_dim, lane, s);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const bool seen = row_of(i) + r / 2 * 8 + 2 * t + r % 2 < w.end;
#pragma unroll
      for (int x = 0; x < kQ; ++x) {
        s[x][r] = seen ? a.variant.capped(s[x][r] * scale[x]) : -INFINITY;
      }
    }
    p.update(s);
    T::add_values(stage + T::kBytes, v, s, a.head_dim, lane, p.acc);
  }
  ptx::wait_copies<0>();
  __syncthreads();
  merge_warps<Kv>(a, w, reinterpret_cast<float*>(rings), p);
}

// ---------------------------------------------------------------- splits to results

// One block per query head.
__global__ void __launch_bounds__(kMaxSplits) combine_kernel(const DecodeArguments a) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  constexpr int kWarps = kMaxSplits / kWarpSize;
  __shared__ float weights[kMaxSplits], columns[kMaxSplits], of_warps[2][kWarps];
  const int64_t head = blockIdx.x;
  const int n_kv = a.heads[head / a.n_group].n_kv;
  const int n = static_cast<int>(div_up(n_kv, a.split_rows)), i = threadIdx.x;
  const int warp = i / kWarpSize, lane = i % kWarpSize;
  const float2 range = i < n ? a.ranges[head * a.n_splits + i] : make_float2(-INFINITY, 0.0f);
  float max = warp_max(range.x);
  if (lane == 0) of_warps[0][warp] = max;
  __syncthreads();
  max = warp_max(lane < kWarps ? of_warps[0][lane] : -INFINITY);
  const float sink = a.sink(head);
  max = fmaxf(max, sink);
  weights[i] = exp2f(range.x - reference(max));
  float sum = warp_sum(weights[i] * range.y);
  if (lane == 0) of_warps[1][warp] = sum;
  __syncthreads();
  sum = warp_sum(lane < kWarps ? of_warps[1][lane] : 0.0f);
  if (sink != -INFINITY) sum += a.unit * exp2f(sink - max);

  const int n_columns = min(a.value_dim, kMaxSplits), n_slices = kMaxSplits / n_columns;
  const int column = i % n_columns, slice = i / n_columns;
  for (int first = 0; first < a.value_dim; first += n_columns) {
    const int d = first + column;
    float value = 0.0f;
    if (slice < n_slices && d < a.value_dim) {
      const float* sums = a.sums + head * a.n_splits * a.value_dim + d;
#pragma unroll 8
      for (int s = slice; s < n; s += n_slices) value += weights[s] * sums[s * a.value_dim];
    }
    columns[i] = value;
    __syncthreads();
    if (slice == 0 && d < a.value_dim) {
      for (int other = 1; other < n_slices; ++other) value += columns[other * n_columns + column];
      a.out[head * a.value_dim + d] = value / sum;
    }
    __syncthreads();
  }
}

// ---------------------------------------------------------------- on the host

/// Rows of a split: few enough that two blocks on every multiprocessor have work, and fewer than
/// that for many rows, so that heads of different lengths even out. The longest head counts only in
/// multiples of kStepRows.
int split_rows(const Context& ctx, int64_t n_rows, int64_t n_heads) {
  const int64_t even = div_up(n_rows * n_heads, 2 * ctx.n_multiprocessors());
  const int64_t rows =
      std::max(std::clamp<int64_t>(even, kSplitStep, kMostRows), div_up(n_rows, kMaxSplits));
  return static_cast<int>(div_up(rows, kSplitStep) * kSplitStep);
}

dim3 blocks(const DecodeArguments& a, int64_t n_seq) {
  return dim3(a.n_splits, a.n_head_kv * a.n_passes, n_seq);
}

template <typename Kv, int kDim, bool kWide>
void run_tensor(const Context& ctx, const DecodeArguments& a, int64_t n_seq) {
  int n_warps = kMostWarps;  // fewer if there is less shared memory
  using S = Shape<Kv, kDim, kWide>;
  while (n_warps > 1 && S::shared_bytes(n_warps) > ctx.max_shared_bytes()) n_warps /= 2;
  start_early(ctx, {blocks(a, n_seq), dim3(n_warps * kWarpSize), S::shared_bytes(n_warps)},
              tensor_kernel<Kv, kDim, kWide>, a);
}

template <typename Kv, int kDim>
void run_tensor(const Context& ctx, DecodeArguments a, int64_t n_seq) {
  a.n_passes = static_cast<int>(div_up(a.n_group, kMaxGroup));
  a.n_group > 8 ? run_tensor<Kv, kDim, true>(ctx, a, n_seq)
                : run_tensor<Kv, kDim, false>(ctx, a, n_seq);
}

template <typename Kv, int kVec, int kGroup>
void run_plain(const Context& ctx, DecodeArguments a, int64_t n_seq) {
  a.n_passes = static_cast<int>(div_up(a.n_group, kGroup));
  const int columns = a.head_dim + kSplitStep + PlainShape(a.value_dim).n_columns;
  const size_t shared = static_cast<size_t>(kGroup) * columns * sizeof(float);
  if constexpr (kGroup > 1) {
    constexpr int kSmaller = kGroup > 8 ? 8 : kGroup > 4 ? 4 : 1;
    if (a.n_group <= kSmaller || shared > ctx.max_shared_bytes()) {
      return run_plain<Kv, kVec, kSmaller>(ctx, a, n_seq);
    }
  }
  start_early(ctx, {blocks(a, n_seq), dim3(kPlainThreads), shared}, plain_kernel<Kv, kVec, kGroup>,
              a);
}

/// Whether all rows begin at multiples of 16 bytes. This holds for a cache's rows at every length
/// or at none, so all steps of one shape agree.
bool is_aligned(const DecodeAttention& a) {
  const int64_t bytes = row_bytes(a.kv_dtype, a.q.shape[2]);
  return bytes % 16 == 0 && std::all_of(a.heads.begin(), a.heads.end(), [](const HeadRows& h) {
           const auto k = reinterpret_cast<uintptr_t>(h.k), v = reinterpret_cast<uintptr_t>(h.v);
           return (k | v) % 16 == 0;
         });
}

template <typename Kv>
void run(const Context& ctx, const DecodeArguments& a, int64_t n_seq, bool tensor) {
  if (!tensor) return run_plain<Kv, 1, kMaxGroup>(ctx, a, n_seq);
  if (a.head_dim > 128) return run_tensor<Kv, 256>(ctx, a, n_seq);
  if (a.head_dim > 64) return run_tensor<Kv, 128>(ctx, a, n_seq);
  run_tensor<Kv, 64>(ctx, a, n_seq);
}

}  // namespace

void attention_decode(Context& ctx, const DecodeAttention& in) {
  const int64_t n_seq = in.q.shape[0], n_head = in.q.shape[1], head_dim = in.q.shape[2];
  const int64_t n_heads = std::ssize(in.heads);
  int64_t n_rows = 0;
  for (const HeadRows& h : in.heads) n_rows = std::max<int64_t>(n_rows, h.n_kv);
  n_rows = div_up(n_rows, kStepRows) * kStepRows;

  DecodeArguments a{};
  a.q = static_cast<const float*>(in.q.data);
  a.out = static_cast<float*>(in.out.data);
  a.n_head_kv = static_cast<int>(n_heads / n_seq);
  a.n_group = static_cast<int>(n_head / a.n_head_kv);
  a.head_dim = static_cast<int>(head_dim);
  a.value_dim = static_cast<int>(in.value_dim());
  a.v_step = static_cast<int>(in.v_step());
  a.scale = in.scale * kLog2E;
  a.variant = make_variant(ctx, in.variant);
  a.split_rows = split_rows(ctx, n_rows, n_heads);
  a.n_splits = static_cast<int>(div_up(n_rows, a.split_rows));
  if (a.n_splits > 1) {
    const int64_t n = n_seq * n_head * a.n_splits;
    a.ranges =
        static_cast<float2*>(ctx.scratch(n * (sizeof(float2) + in.value_dim() * sizeof(float))));
    a.sums = reinterpret_cast<float*>(a.ranges + n);
  }
  a.heads = ctx.put(in.heads);

  const bool aligned = is_aligned(in);
  const bool tensor = head_dim <= 256 && in.value_dim() == head_dim && !in.v_in_k &&
                      in.kv_dtype != DType::f32 && (aligned || in.kv_dtype == DType::q8_0);
  a.unit = tensor ? std::exp2(kProbabilityBits) : 1.0f;
  switch (in.kv_dtype) {
    case DType::f16:
      run<__half>(ctx, a, n_seq, tensor);
      break;
    case DType::bf16:
      run<__nv_bfloat16>(ctx, a, n_seq, tensor);
      break;
    case DType::q8_0:
      run<BlockQ8_0>(ctx, a, n_seq, tensor);
      break;
    default:
      aligned ? run_plain<float, 4, kMaxGroup>(ctx, a, n_seq)
              : run_plain<float, 1, kMaxGroup>(ctx, a, n_seq);
  }
  if (a.n_splits > 1) {
    start_early(ctx, {dim3(n_seq * n_head), dim3(kMaxSplits)}, combine_kernel, a);
  }
}

}  // namespace snapkv::cuda
