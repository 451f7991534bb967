// SPDX-License-Identifier: MIT
// Shared parts of project()'s kernels: which rows a block has, and how sums that are spread over a
// warp become outputs.
#pragma once

#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/launch.cuh"

namespace snapkv::cuda {

/// Products of one launch, which share type and input. Passed by value: a graph of a decode step
/// stores them, which works because tensors do not move between its steps.
struct Product {
  const char* w;  // [n_out, n_in]
  const float* bias;
  float* out;  // [n, n_out]
  int n_out;
  int first_block;
  bool accumulate;
};
constexpr int kMaxProducts = 4;
struct Products {
  Product items[kMaxProducts];
  int n;  // >= 1
};

__device__ __forceinline__ Product product_of_block(const Products& products) {
  Product p = products.items[0];
#pragma unroll
  for (int i = 1; i < kMaxProducts; ++i) {
    if (i < products.n && static_cast<int>(blockIdx.x) >= products.items[i].first_block) {
      p = products.items[i];
    }
  }
  return p;
}

/// Writes column t of the product's row `row`.
__device__ __forceinline__ void put_sum(const Product& p, int row, int t, float sum) {
  float* out = p.out + static_cast<int64_t>(t) * p.n_out + row;
  if (p.bias != nullptr) sum += p.bias[row];
  if (p.accumulate) sum += *out;
  *out = sum;
}

/// Sums n values (a power of two) over the lanes of a warp. Afterwards values [0, max(1, n / 32))
/// of a lane are the sums of values `first`, first + 1, ...; `first` is returned. The order of
/// additions does not depend on n.
template <int n>
__device__ __forceinline__ int warp_sums(float (&v)[n], int lane) {
  int first = 0, left = n;
#pragma unroll
  for (int bit = kWarpSize / 2; bit > 0; bit /= 2) {
    if (left > 1) {  // lanes with the bit keep half of the values
      left /= 2;
      const bool upper = (lane & bit) != 0;
      if (upper) first += left;
#pragma unroll
      for (int i = 0; i < n / 2; ++i) {
        if (i < left) {
          const float kept = upper ? v[i + left] : v[i], sent = upper ? v[i] : v[i + left];
          v[i] = kept + __shfl_xor_sync(kAllLanes, sent, bit);
        }
      }
    } else {
      v[0] += __shfl_xor_sync(kAllLanes, v[0], bit);
    }
  }
  return first;
}

/// After warp_sums() of n values: how many a lane has, and how many lanes, which differ only in the
/// low bits, have the same ones.
template <int n>
constexpr int kSumsPerLane = n > kWarpSize ? n / kWarpSize : 1;
template <int n>
constexpr int kLanesPerSum = n < kWarpSize ? kWarpSize / n : 1;

/// Writes a warp's sums[r * n_cols + c] for rows row, row + 1, ... and columns col, col + 1, ...
/// that exist.
template <int n_rows, int n_cols>
__device__ __forceinline__ void put_sums(const Product& p, int row, int col, int n, int lane,
                                         float (&sums)[n_rows * n_cols]) {
  constexpr int kSums = n_rows * n_cols;
  const int first = warp_sums(sums, lane);
  if (lane % kLanesPerSum<kSums> != 0) return;
#pragma unroll
  for (int i = 0; i < kSumsPerLane<kSums>; ++i) {
    const int r = (first + i) / n_cols, c = (first + i) % n_cols;
    if (row + r < p.n_out && col + c < n) put_sum(p, row + r, col + c, sums[i]);
  }
}

constexpr int kProjectWarps = 4;  // per block; they share only the first-level cache
constexpr int kProjectThreads = kProjectWarps * kWarpSize;

/// How many blocks must fit into the registers of a multiprocessor. Each row and column of a block
/// takes a register for its sum.
constexpr int min_blocks(int n_cols) {
  return n_cols == 1 ? 8 : n_cols == 2 ? 6 : n_cols <= 8 ? 4 : 3;
}

}  // namespace snapkv::cuda
