// SPDX-License-Identifier: MIT
// Causal attention of a chunk of queries (PrefillAttention in ops.h).
//
// f16 and bf16 rows: one pass over the keys with a running softmax in registers (FlashAttention-2,
// arXiv 2307.08691). A block has 128 (query, head) rows of one KV head: all query heads of a group
// are in one tile, so that appending a few tokens still fills it. Each of its 4 warps has 32 rows:
// a fragment of K or V that a warp loads is multiplied twice, which keeps shared memory (160 bytes
// per product of 16 x 8 x 16) from being slower than the tensor cores. Tiles of 64 keys arrive by
// cp.async in two stages, with one barrier per tile. Chunks too small to fill the device are split
// along the keys.
//
// Floor: 4 n_past head_dim FLOP per row of n n_head rows; mma.sync reaches about 0.6 of Hopper's
// wgmma peak, so some 600 TFLOP/s. K and V are read from L2 once per 128 rows: 128 FLOP per byte.
// Limited by the tensor cores for head_dim >= 128, and next by the exponentials (16 per clock and
// multiprocessor: half the time of the products at head_dim 64). Registers (O and S in f32: 192 of
// 255 at head_dim 128) allow 2 blocks per multiprocessor, which hide each other's softmax. An H100
// reaches 330 TFLOP/s at head_dim 128; with 256 rows in a block, 32 or 128 keys in a tile, or 16
// rows in a warp it is as fast or slower.
//
// f32 rows, head_dim > 256 and values of another width: prefill_plain.cuh, with f32 arithmetic throughout, limited by FMA
// and shared memory.
#include <algorithm>
#include <cmath>
#include <string>

#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/prefill_mma.cuh"
#include "backend/cuda/prefill_plain.cuh"
#include "base/check.h"
#include "snapkv/error.h"

namespace snapkv::cuda {
namespace {

template <typename S>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    prefill_mma_kernel(const PrefillArguments a) {
  using T = typename S::T;
  using Keys = typename S::Keys;
  char* const q_tile = dynamic_shared();
  const auto stage_of = [=](int tile) {  // K, V; K, V
    return q_tile + S::Queries::kBytes + tile % 2 * 2 * Keys::kBytes;
  };
  const PrefillWork work = work_of_block(a);
  const int n_past = a.n_past[work.g];
  const HeadView<T> keys = a.keys<T>(work.g), values = a.values<T>(work.g);

  const int block_row = work.tile * S::kRows;
  const int block_last = min(block_row + S::kRows, a.n_rows()) - 1;
  // tiles before the window of the block's first row are skipped
  const int first_tile = a.variant.first_seen(n_past + block_row / a.n_group) / S::kKeys;
  const int64_t n_key_tiles = (n_past + block_last / a.n_group) / S::kKeys + 1 - first_tile;
  const auto begin = first_tile + static_cast<int>(n_key_tiles * work.split / a.n_split);
  const auto end = first_tile + static_cast<int>(n_key_tiles * (work.split + 1) / a.n_split);
  if (begin < end) {
    Keys::template load<S::kThreads>(stage_of(begin), keys, begin * S::kKeys);
    Keys::template load<S::kThreads>(stage_of(begin) + Keys::kBytes, values, begin * S::kKeys);
    ptx::commit_copies();
  }
  load_queries<S>(a, work.g, block_row, q_tile);

  const int lane = threadIdx.x % kWarpSize;
  const int warp_row = threadIdx.x / kWarpSize * S::kWarpRows, first_row = block_row + warp_row;
  // all of the warp's rows see the keys from first_seen_by_all to n_seen_by_all, and some rows see
  // those from first_seen to n_seen
  const int n_seen_by_all = n_past + first_row / a.n_group + 1;
  const int last_row = min(first_row + S::kWarpRows, a.n_rows()) - 1;
  const int n_seen = last_row < first_row ? 0 : n_past + last_row / a.n_group + 1;
  const int first_seen = a.variant.first_seen(n_past + first_row / a.n_group);
  const int first_seen_by_all = a.variant.first_seen(n_past + last_row / a.n_group);
  const LaneAddress rows_first = address_rows_first<Keys>(lane);
  const LaneAddress chunks_first = address_chunks_first<Keys>(lane);
  const char* const q = q_tile + warp_row * Keys::kRowBytes + rows_first.offset;

  typename S::Sums o;
  typename S::State state;
#pragma unroll
  for (int r = 0; r < S::kRowTiles; ++r) {
    state.max[r][0] = state.max[r][1] = -INFINITY;
    state.sum[r][0] = state.sum[r][1] = 0.0f;
#pragma unroll
    for (int d = 0; d < S::kDimTiles; ++d) o[r][d][0] = o[r][d][1] = o[r][d][2] = o[r][d][3] = 0.0f;
  }
#pragma unroll 1
  for (int tile = begin; tile < end; ++tile) {
    char* const stage = stage_of(tile);
    char* const other = stage_of(tile + 1);
    ptx::wait_copies<0>();
    __syncthreads();  // this tile is here, and the other stage is no longer read
    if (tile + 1 < end) {
      Keys::template load<S::kThreads>(other, keys, (tile + 1) * S::kKeys);
      Keys::template load<S::kThreads>(other + Keys::kBytes, values, (tile + 1) * S::kKeys);
      ptx::commit_copies();
    }
    const int first_key = tile * S::kKeys;
    if (first_key >= n_seen || first_key + S::kKeys <= first_seen) continue;
    typename S::Scores s;
    multiply_keys<S>(q, rows_first.twist, stage + chunks_first.offset, chunks_first.twist, s);
    if (a.variant.cap > 0.0f) cap<S>(a.variant, s);
    if (first_key + S::kKeys > n_seen_by_all || first_key < first_seen_by_all) {
      mask<S>(a, n_past, first_row, first_key, s);
    }
    to_probabilities<S>(s, state, o);
    multiply_values<S>(s, stage + Keys::kBytes + rows_first.offset, rows_first.twist, o);
  }
  write<S>(a, work, first_row, state, o);
}

constexpr int kMergeWarps = 4;

// out = sum of the splits' o / sum of their sums, each scaled to the common maximum. One warp per
// vector of out.
__global__ void __launch_bounds__(kMergeWarps* kWarpSize) merge_kernel(const PrefillArguments a) {
  const int64_t n_vectors = int64_t{a.n_rows()} * a.n_head_kv;
  const int64_t vector = int64_t{blockIdx.x} * kMergeWarps + threadIdx.x / kWarpSize;
  if (vector >= n_vectors) return;
  const int n_head = a.n_head_kv * a.n_group;
  const float sink = a.variant.sink(static_cast<int>(vector % n_head));
  float max = sink;
  for (int i = 0; i < a.n_split; ++i) max = fmaxf(max, a.partial_state[i * n_vectors + vector].x);
  float sum = sink == -INFINITY ? 0.0f : ptx::exp2_approx(sink - max);
  for (int i = 0; i < a.n_split; ++i) {
    const float2 state = a.partial_state[i * n_vectors + vector];
    sum += state.y * ptx::exp2_approx(state.x - max);
  }
  for (int d = threadIdx.x % kWarpSize; d < a.head_dim; d += kWarpSize) {
    float o = 0.0f;
    for (int i = 0; i < a.n_split; ++i) {
      const int64_t from = i * n_vectors + vector;
      o += a.partial_out[from * a.head_dim + d] * ptx::exp2_approx(a.partial_state[from].x - max);
    }
    a.put(vector * a.head_dim + d, o / sum);
  }
}

/// How many blocks share a tile's keys: the smallest number that keeps the device nearly as busy as
/// any other. A share is at least 16 tiles long, and merging the shares must stay cheap.
int choose_split(int64_t n_blocks, int64_t n_slots, int64_t n_key_tiles) {
  const int64_t most = std::clamp<int64_t>(
      std::min(n_key_tiles / 16, 4 * n_slots / std::max<int64_t>(n_blocks, 1)), 1, 64);
  const auto busy = [=](int64_t split) {
    const int64_t n = n_blocks * split;
    return static_cast<double>(n) / static_cast<double>(div_up(n, n_slots) * n_slots);
  };
  double best = 0.0;
  for (int64_t split = 1; split <= most; ++split) best = std::max(best, busy(split));
  int64_t split = 1;
  while (busy(split) < 0.9 * best) ++split;
  return static_cast<int>(split);
}

template <typename S>
void run_mma(Context& ctx, PrefillArguments a, int longest) {
  a.n_tiles = static_cast<int>(div_up(int64_t{a.n} * a.n_group, S::kRows));
  const int64_t n_blocks = int64_t{a.n_tiles} * a.n_head_kv;
  if (a.variant.window > 0) longest = std::min(longest, a.variant.window + S::kRows);
  a.n_split = choose_split(n_blocks, int64_t{S::kBlocks} * ctx.n_multiprocessors(),
                           div_up(longest, S::kKeys));
  const int64_t n_vectors = int64_t{a.n} * a.n_group * a.n_head_kv;
  if (a.n_split > 1) {
    const int64_t n_states = a.n_split * n_vectors;
    a.partial_state =
        static_cast<float2*>(ctx.scratch(n_states * (sizeof(float2) + sizeof(float) * a.head_dim)));
    a.partial_out = reinterpret_cast<float*>(a.partial_state + n_states);
  }
  launch(ctx, {dim3(n_blocks * a.n_split), dim3(S::kThreads), S::kSharedBytes},
         prefill_mma_kernel<S>, a);
  if (a.n_split > 1) {
    launch(ctx, {dim3(div_up(n_vectors, kMergeWarps)), dim3(kMergeWarps * kWarpSize)}, merge_kernel,
           a);
  }
}

template <typename T>
void run_plain(Context& ctx, PrefillArguments a) {
  const int dim = std::max(a.head_dim, a.value_dim);
  const size_t shared_bytes = plain_shared_floats(dim) * sizeof(float);
  if (shared_bytes > ctx.max_shared_bytes()) {
    throw Error(ErrorCode::kRuntime, "attention with head_dim " + std::to_string(dim) +
                                         " needs " + std::to_string(shared_bytes) +
                                         " bytes of shared memory, " + ctx.device_name() + " has " +
                                         std::to_string(ctx.max_shared_bytes()));
  }
  a.n_tiles = static_cast<int>(div_up(int64_t{a.n} * a.n_group, kPlainRows));
  launch(ctx, {dim3(a.n_tiles * a.n_head_kv), dim3(kPlainThreads), shared_bytes},
         prefill_plain_kernel<T>, a);
}

// A head_dim between two sizes is padded with zeros.
template <typename T>
void run(Context& ctx, const PrefillArguments& a, int longest) {
  using Wide = PrefillShape<T, 256, 8, 1, 64, 1>;  // 192 KiB of shared memory
  if (a.value_dim != a.head_dim) {
    run_plain<T>(ctx, a);
  } else if (a.head_dim <= 64) {
    run_mma<PrefillShape<T, 64, 4, 2, 64, 2>>(ctx, a, longest);
  } else if (a.head_dim <= 96) {
    run_mma<PrefillShape<T, 96, 4, 2, 64, 2>>(ctx, a, longest);
  } else if (a.head_dim <= 128) {
    run_mma<PrefillShape<T, 128, 4, 2, 64, 2>>(ctx, a, longest);
  } else if (a.head_dim <= 256 && ctx.max_shared_bytes() >= Wide::kSharedBytes) {
    run_mma<Wide>(ctx, a, longest);
  } else if (a.head_dim <= 256) {
    run_mma<PrefillShape<T, 256, 4, 1, 32, 2>>(ctx, a, longest);
  } else {
    run_plain<T>(ctx, a);
  }
}

}  // namespace

void attention_prefill(Context& ctx, const PrefillAttention& t) {
  SNAPKV_CHECK(!t.sparse.on());
  const int64_t element = t.k.stride[2];
  const int32_t n_past = *std::max_element(t.n_past.begin(), t.n_past.end());
  PrefillArguments a{};
  a.q = static_cast<const float*>(t.q.data);
  a.k = t.k.data;
  a.v = t.v.data;
  a.k_head = t.k.stride[0] / element;
  a.k_row = t.k.stride[1] / element;
  a.v_head = t.v.stride[0] / element;
  a.v_row = t.v.stride[1] / element;
  a.n_past = ctx.put(t.n_past);
  a.out = t.out.data;
  a.n = static_cast<int>(t.q.shape[0]);
  a.n_head_kv = static_cast<int>(t.k.shape[0]);
  a.n_group = static_cast<int>(t.q.shape[1] / t.k.shape[0]);
  a.head_dim = static_cast<int>(t.q.shape[2]);
  a.value_dim = static_cast<int>(t.v.shape[2]);
  a.scale_log2 = t.scale * kLog2E;
  a.n_split = 1;
  a.out_bf16 = t.out.dtype == DType::bf16;
  a.k_aligned = rows_aligned(t.k);
  a.v_aligned = rows_aligned(t.v);
  // After many rows all tiles are equally long, and tiles of one KV head share their reads through
  // L2. Before, their lengths differ, and the longest of all heads must come first.
  a.tiles_first = n_past >= 4 * a.n;
  a.variant = make_variant(ctx, t.variant);
  const int longest = n_past + a.n;
  if (t.k.dtype == DType::f16) {
    run<__half>(ctx, a, longest);
  } else if (t.k.dtype == DType::bf16) {
    run<__nv_bfloat16>(ctx, a, longest);
  } else {
    run_plain<float>(ctx, a);
  }
}

}  // namespace snapkv::cuda
