// SPDX-License-Identifier: MIT
// The parts of attention_prefill.cu's kernel for f16 and bf16 rows: products, mask, softmax,
// result.
#pragma once

#include "backend/cuda/prefill_arguments.cuh"

namespace snapkv::cuda {

/// A warp has 16 * kRowTiles rows and a tile kKeys keys; kBlocks blocks fit on a multiprocessor of
/// Hopper.
template <typename T_, int kDim_, int kWarps_, int kRowTiles_, int kKeys_, int kBlocks_>
struct PrefillShape {
  using T = T_;
  static constexpr int kDim = kDim_, kRowTiles = kRowTiles_, kKeys = kKeys_, kBlocks = kBlocks_;
  static constexpr int kThreads = kWarps_ * kWarpSize;
  static constexpr int kWarpRows = 16 * kRowTiles, kRows = kWarps_ * kWarpRows;
  static constexpr int kKeyTiles = kKeys / 8, kDimTiles = kDim / 8;
  using Queries = Tile<kRows, kDim>;
  using Keys = Tile<kKeys, kDim>;
  static constexpr int kSharedBytes = Queries::kBytes + 4 * Keys::kBytes;

  using Scores = float[kRowTiles][kKeyTiles][4];
  using Sums = float[kRowTiles][kDimTiles][4];
  /// State of rows lane / 4 and lane / 4 + 8 of each row tile; `sum` covers only the lane's own
  /// columns.
  struct State {
    float max[kRowTiles][2], sum[kRowTiles][2];
  };
};

template <typename S>
__device__ __forceinline__ void load_queries(const PrefillArguments& a, int g, int first,
                                             char* tile) {
  constexpr int kChunks = S::kDim / 8;
  for (int at = threadIdx.x; at < S::kRows * kChunks; at += S::kThreads) {
    const int row = at / kChunks, chunk = at % kChunks;
    float x[8];
    const bool exists = first + row < a.n_rows();
    const float* from = a.q + (exists ? a.vector_of(g, first + row) * a.head_dim : 0) + 8 * chunk;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      x[i] = exists && 8 * chunk + i < a.head_dim ? from[i] * a.scale_log2 : 0.0f;
    }
    using T = typename S::T;
    *reinterpret_cast<uint4*>(tile + S::Queries::offset(row, chunk)) = make_uint4(
        pack<T>(x[0], x[1]), pack<T>(x[2], x[3]), pack<T>(x[4], x[5]), pack<T>(x[6], x[7]));
  }
}

/// s = q k^T for the warp's rows; q and k are at address_rows_first and address_chunks_first.
template <typename S>
__device__ __forceinline__ void multiply_keys(const char* q, int q_twist, const char* k,
                                              int k_twist, typename S::Scores& s) {
#pragma unroll
  for (int r = 0; r < S::kRowTiles; ++r) {
#pragma unroll
    for (int n = 0; n < S::kKeyTiles; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) s[r][n][e] = 0.0f;
    }
  }
#pragma unroll
  for (int d = 0; d < S::kDim / 16; ++d) {
    uint32_t a[S::kRowTiles][4];
#pragma unroll
    for (int r = 0; r < S::kRowTiles; ++r) {
      ptx::load_matrices(a[r], q + r * 16 * S::Queries::kRowBytes + (32 * d ^ q_twist));
    }
#pragma unroll
    for (int n = 0; n < S::kKeyTiles; n += 2) {
      uint32_t b[4];
      ptx::load_matrices(b, k + n * 8 * S::Keys::kRowBytes + (32 * d ^ k_twist));
      const uint32_t left[2] = {b[0], b[1]}, right[2] = {b[2], b[3]};
#pragma unroll
      for (int r = 0; r < S::kRowTiles; ++r) {
        ptx::mma_16x8x16<typename S::T>(s[r][n], a[r], left, s[r][n]);
        ptx::mma_16x8x16<typename S::T>(s[r][n + 1], a[r], right, s[r][n + 1]);
      }
    }
  }
}

/// o += p v; v is at address_rows_first.
template <typename S>
__device__ __forceinline__ void multiply_values(const typename S::Scores& p, const char* v,
                                                int v_twist, typename S::Sums& o) {
#pragma unroll
  for (int n = 0; n < S::kKeyTiles; n += 2) {
    uint32_t a[S::kRowTiles][4];  // the result of two tiles is the left operand of the next
#pragma unroll
    for (int r = 0; r < S::kRowTiles; ++r) {
      a[r][0] = pack<typename S::T>(p[r][n][0], p[r][n][1]);
      a[r][1] = pack<typename S::T>(p[r][n][2], p[r][n][3]);
      a[r][2] = pack<typename S::T>(p[r][n + 1][0], p[r][n + 1][1]);
      a[r][3] = pack<typename S::T>(p[r][n + 1][2], p[r][n + 1][3]);
    }
#pragma unroll
    for (int d = 0; d < S::kDimTiles; d += 2) {
      uint32_t b[4];
      ptx::load_matrices_transposed(b, v + n * 8 * S::Keys::kRowBytes + (16 * d ^ v_twist));
      const uint32_t left[2] = {b[0], b[1]}, right[2] = {b[2], b[3]};
#pragma unroll
      for (int r = 0; r < S::kRowTiles; ++r) {
        ptx::mma_16x8x16<typename S::T>(o[r][d], a[r], left, o[r][d]);
        ptx::mma_16x8x16<typename S::T>(o[r][d + 1], a[r], right, o[r][d + 1]);
      }
    }
  }
}

/// Caps the scores as AttentionVariant::softcap says.
template <typename S>
__device__ __forceinline__ void cap(const DeviceVariant& variant, typename S::Scores& s) {
#pragma unroll
  for (int r = 0; r < S::kRowTiles; ++r) {
#pragma unroll
    for (int n = 0; n < S::kKeyTiles; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) s[r][n][e] = variant.capped(s[r][n][e]);
    }
  }
}

/// Hides the keys that row r of the warp does not see: those after n_past + (first_row + r) /
/// n_group, and those before its window.
template <typename S>
__device__ __forceinline__ void mask(const PrefillArguments& a, int n_past, int first_row,
                                     int first_key, typename S::Scores& s) {
  const int lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int r = 0; r < S::kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + 16 * r + 8 * half + lane / 4;
      const int own = n_past + row / a.n_group, offset = first_key + lane % 4 * 2;
      const int last = own - offset, first = a.variant.first_seen(own) - offset;
#pragma unroll
      for (int n = 0; n < S::kKeyTiles; ++n) {
        if (8 * n > last || 8 * n < first) s[r][n][2 * half] = -INFINITY;
        if (8 * n + 1 > last || 8 * n + 1 < first) s[r][n][2 * half + 1] = -INFINITY;
      }
    }
  }
}

/// A row's maximum is kept as long as no score exceeds it by more than this. Probabilities up to
/// 2^8 fit every type, and so in nearly all tiles sums need not be rescaled. Whether a row's
/// maximum changes depends on that row only.
constexpr float kSlack = 8.0f;

/// Replaces s by 2^(s - max), and updates state and o accordingly.
template <typename S>
__device__ __forceinline__ void to_probabilities(typename S::Scores& s, typename S::State& state,
                                                 typename S::Sums& o) {
  float factor[S::kRowTiles][2];
  bool any_grows = false;
#pragma unroll
  for (int r = 0; r < S::kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float m = fmaxf(s[r][0][2 * half], s[r][0][2 * half + 1]);
#pragma unroll
      for (int n = 1; n < S::kKeyTiles; ++n) {
        m = fmaxf(m, fmaxf(s[r][n][2 * half], s[r][n][2 * half + 1]));
      }
      m = quad_max(m);
      float& max = state.max[r][half];
      const bool grows = m > max + kSlack;
      factor[r][half] = grows ? ptx::exp2_approx(max - m) : 1.0f;
      max = grows ? m : max;
      any_grows = any_grows || grows;
    }
  }
  if (__any_sync(kAllLanes, any_grows)) {
#pragma unroll
    for (int r = 0; r < S::kRowTiles; ++r) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        state.sum[r][half] *= factor[r][half];
#pragma unroll
        for (int d = 0; d < S::kDimTiles; ++d) {
          o[r][d][2 * half] *= factor[r][half];
          o[r][d][2 * half + 1] *= factor[r][half];
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < S::kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      // a row that has seen nothing yet: 2^(-inf), not 2^(-inf + inf)
      const float max = state.max[r][half] == -INFINITY ? 0.0f : state.max[r][half];
#pragma unroll
      for (int n = 0; n < S::kKeyTiles; ++n) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          s[r][n][e] = ptx::exp2_approx(s[r][n][e] - max);
          state.sum[r][half] += s[r][n][e];
        }
      }
    }
  }
}

/// out = o / sum, or o and the state of a split.
template <typename S>
__device__ __forceinline__ void write(const PrefillArguments& a, const PrefillWork& work,
                                      int first_row, const typename S::State& state,
                                      const typename S::Sums& o) {
  const int lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int r = 0; r < S::kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float max = state.max[r][half], sum = quad_sum(state.sum[r][half]);
      const int row = first_row + 16 * r + 8 * half + lane / 4;
      if (row >= a.n_rows()) continue;
      int64_t vector = a.vector_of(work.g, row);
      float factor = 1.0f;
      if (a.n_split == 1) {
        factor = with_sink(a.variant.sink(a.head_of(work.g, row)), max, sum) / sum;
      } else {
        vector += static_cast<int64_t>(work.split) * a.n_rows() * a.n_head_kv;
        if (lane % 4 == 0) a.partial_state[vector] = make_float2(max, sum);
      }
#pragma unroll
      for (int d = 0; d < S::kDimTiles; ++d) {
        const int col = 8 * d + lane % 4 * 2;
        const float x = o[r][d][2 * half] * factor, y = o[r][d][2 * half + 1] * factor;
        const int64_t at = vector * a.head_dim + col;
        if (col + 1 >= a.head_dim || a.head_dim % 2 != 0) {
          for (int i = 0; i < 2 && col + i < a.head_dim; ++i) {
            if (a.n_split > 1) {
              a.partial_out[at + i] = i == 0 ? x : y;
            } else {
              a.put(at + i, i == 0 ? x : y);
            }
          }
        } else if (a.n_split > 1) {
          *reinterpret_cast<float2*>(a.partial_out + at) = make_float2(x, y);
        } else if (a.out_bf16) {
          const uint32_t both = pack<__nv_bfloat16>(x, y);
          memcpy(static_cast<__nv_bfloat16*>(a.out) + at, &both, sizeof(both));
        } else {
          *reinterpret_cast<float2*>(static_cast<float*>(a.out) + at) = make_float2(x, y);
        }
      }
    }
  }
}

}  // namespace snapkv::cuda
