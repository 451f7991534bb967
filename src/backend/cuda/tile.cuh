// SPDX-License-Identifier: MIT
// Tiles of 16-bit rows for tensor-core products: where they lie in shared memory, how they are
// loaded, and which lane holds what.
#pragma once

#include <cstring>

#include "backend/cuda/launch.cuh"
#include "backend/cuda/ptx.cuh"
#include "base/tensor.h"

namespace snapkv::cuda {

/// Reduces over the 4 lanes that hold a row of a 16 x 8 product.
__device__ __forceinline__ float quad_max(float v) {
  v = fmaxf(v, __shfl_xor_sync(kAllLanes, v, 1));
  return fmaxf(v, __shfl_xor_sync(kAllLanes, v, 2));
}
__device__ __forceinline__ float quad_sum(float v) {
  v += __shfl_xor_sync(kAllLanes, v, 1);
  return v + __shfl_xor_sync(kAllLanes, v, 2);
}

/// Whether every row of [n_head_kv, capacity, head_dim] consists of whole, aligned chunks of 16
/// bytes.
inline bool rows_aligned(const Tensor& t) {
  return reinterpret_cast<uintptr_t>(t.data) % 16 == 0 && t.stride[0] % 16 == 0 &&
         t.stride[1] % 16 == 0 && t.shape[2] * t.stride[2] % 16 == 0;
}

/// Rows of one KV head, anywhere in device memory.
template <typename T>
struct HeadView {
  const T* data;
  int64_t stride;  // of a row, in values
  int n_rows;      // rows that exist
  int head_dim;
  bool aligned;  // every row begins at a multiple of 16 bytes and is whole chunks of 16
};

/// Up to 8 values of a row from column `col` on, as one chunk; zeros beyond the row's end.
template <typename T>
__device__ __forceinline__ uint4 read_chunk(const HeadView<T>& head, int row, int col) {
  uint4 chunk = make_uint4(0, 0, 0, 0);
  if (row >= head.n_rows || col >= head.head_dim) return chunk;
  const T* from = head.data + row * head.stride + col;
  if (head.aligned) return *reinterpret_cast<const uint4*>(from);
  uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    if (col + i < head.head_dim) {
      uint16_t bits;
      memcpy(&bits, from + i, sizeof(bits));
      words[i / 2] |= static_cast<uint32_t>(bits) << (i % 2 * 16);
    }
  }
  return make_uint4(words[0], words[1], words[2], words[3]);
}

/// A tile [kRows, kDim] of 16-bit values in shared memory. Chunks of 16 bytes are permuted within
/// their row, so that the same chunk of 8 consecutive rows lies in 8 different groups of banks:
///   chunk c of row r is at r * kRowBytes + 16 (c ^ twist(r))
/// and since twist(r) is the same for rows 8 apart, (c ^ twist) = (c & ~1) ^ ((c & 1) ^ twist).
template <int kRows, int kDim>
struct Tile {
  static constexpr int kChunks = kDim / 8;
  static constexpr int kRowBytes = 2 * kDim;
  static constexpr int kBytes = kRows * kRowBytes;
  static constexpr int kLine = kChunks % 8 == 0 ? 8 : 4;  // chunks that are permuted together
  static_assert(kChunks % 4 == 0 && kRows % 16 == 0);

  __device__ static int twist(int row) { return kLine == 8 ? row % 8 : row / 2 % 4; }
  __device__ static int offset(int row, int chunk) {
    return row * kRowBytes + 16 * (chunk ^ twist(row));
  }

  /// Loads rows [first, first + kRows) of a head, with all kThreads of the block; asynchronously if
  /// addresses allow it. Missing values become 0.
  template <int kThreads, typename T>
  __device__ static void load(char* tile, const HeadView<T>& head, int first) {
    constexpr int kStep = kThreads / kLine;
    static_assert(kStep % 8 == 0 && kRows % kStep == 0);
    const int chunk = threadIdx.x % kLine, row = threadIdx.x / kLine;
    if (!head.aligned) {
#pragma unroll 1
      for (int r = row; r < kRows; r += kStep) {
#pragma unroll 1
        for (int c = chunk; c < kChunks; c += kLine) {
          *reinterpret_cast<uint4*>(tile + offset(r, c)) = read_chunk(head, first + r, 8 * c);
        }
      }
      return;
    }
    const T* from = head.data + (first + row) * head.stride + 8 * chunk;
    char* to = tile + offset(row, chunk);
#pragma unroll
    for (int r = 0; r < kRows; r += kStep) {
      const bool exists = first + row + r < head.n_rows;
#pragma unroll
      for (int c = 0; c < kChunks; c += kLine) {
        const int n_read = exists && 8 * (chunk + c) < head.head_dim ? 16 : 0;
        ptx::copy_async_16(to + r * kRowBytes + 16 * c, from + r * head.stride + 8 * c, n_read);
      }
    }
  }
};

/// Where a lane points when load_matrices reads 16 x 16 values of a Tile: chunk 2k and the one
/// after it, of the 16 rows at `rows`, are at rows + offset + (32 k ^ twist).
struct LaneAddress {
  int offset, twist;
};
/// Matrices in the order (rows 0-7, chunk 0), (rows 8-15, chunk 0), (rows 0-7, chunk 1), ...: the
/// left operand of a product, or the right one from transposed loads.
template <typename Rows>
__device__ __forceinline__ LaneAddress address_rows_first(int lane) {
  const int row = lane % 16;
  return {row * Rows::kRowBytes, 16 * (lane / 16 ^ Rows::twist(row))};
}
/// (rows 0-7, chunk 0), (rows 0-7, chunk 1), (rows 8-15, chunk 0), ...: the right operand.
template <typename Rows>
__device__ __forceinline__ LaneAddress address_chunks_first(int lane) {
  const int row = lane % 8 + lane / 16 * 8;
  return {row * Rows::kRowBytes, 16 * (lane / 8 % 2 ^ Rows::twist(row))};
}

}  // namespace snapkv::cuda
