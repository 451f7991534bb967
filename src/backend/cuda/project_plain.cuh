// SPDX-License-Identifier: MIT
// project() for f32, f16 and bf16 weights, with activations that are not rounded.
#pragma once

#include "backend/cuda/project.cuh"
#include "backend/cuda/ptx.cuh"

namespace snapkv::cuda {

// ---------------------------------------------------------------- few columns: f32 products

template <typename T>
constexpr int kValuesPerLoad = 16 / sizeof(T);

__device__ __forceinline__ void unpack(const uint4& v, float (&f)[4], float) {
  f[0] = __uint_as_float(v.x);
  f[1] = __uint_as_float(v.y);
  f[2] = __uint_as_float(v.z);
  f[3] = __uint_as_float(v.w);
}
__device__ __forceinline__ void unpack(const uint4& v, float (&f)[8], __nv_bfloat16) {
  const uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    f[2 * i] = __uint_as_float(words[i] << 16);
    f[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
}
__device__ __forceinline__ void unpack(const uint4& v, float (&f)[8], __half) {
  const uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    f[2 * i] = __half2float(__ushort_as_half(static_cast<unsigned short>(words[i])));
    f[2 * i + 1] = __half2float(__ushort_as_half(static_cast<unsigned short>(words[i] >> 16)));
  }
}

constexpr int kPlainRows = 4;  // per block; its warps share the rows and divide k

// out[t, o] = sum_k x[t, k] w[o, k] in f32, for kPlainRows rows and n_cols columns. Lanes stride
// through k, with n_loads loads of every row in flight: a load is requested again as soon as it has
// been used. Rows and x are 16-byte aligned.
template <typename T, int n_cols, int n_loads, int n_blocks>
__global__ void __launch_bounds__(kProjectThreads, n_blocks)
    project_plain_kernel(const Products products, const float* x, int n, int n_in) {
  constexpr int n_rows = kPlainRows, kSums = n_rows * n_cols;
  constexpr int kValues = kValuesPerLoad<T>, kStep = kProjectThreads * kValues;
  __shared__ float parts[kProjectWarps][kSums];
  ptx::let_next_kernel_start();
  const Product p = product_of_block(products);
  const int lane = threadIdx.x % kWarpSize, warp = threadIdx.x / kWarpSize;
  const int row = (static_cast<int>(blockIdx.x) - p.first_block) * n_rows;
  const int col = blockIdx.y * n_cols;

  const T* w[n_rows];
#pragma unroll
  for (int r = 0; r < n_rows; ++r) {
    w[r] = reinterpret_cast<const T*>(p.w) + int64_t{min(row + r, p.n_out - 1)} * n_in;
  }
  const auto load = [&](int k, uint4(&to)[n_rows]) {
#pragma unroll
    for (int r = 0; r < n_rows; ++r) {
      if (k < n_in) to[r] = __ldcs(reinterpret_cast<const uint4*>(w[r] + k));
    }
  };
  const int first = threadIdx.x * kValues;
  uint4 raw[n_loads][n_rows] = {};
#pragma unroll
  for (int u = 0; u < n_loads; ++u) load(first + u * kStep, raw[u]);
  ptx::wait_for_earlier_kernels();  // the first weights are under way before x is there

  int xs[n_cols];  // where the columns begin
#pragma unroll
  for (int c = 0; c < n_cols; ++c) xs[c] = min(col + c, n - 1) * n_in;
  float sums[kSums] = {};
  for (int begin = first; begin < n_in; begin += n_loads * kStep) {
#pragma unroll
    for (int u = 0; u < n_loads; ++u) {
      const int k = begin + u * kStep;
      if (k >= n_in) break;
      float ws[n_rows][kValues];
#pragma unroll
      for (int r = 0; r < n_rows; ++r) unpack(raw[u][r], ws[r], T());
      load(k + n_loads * kStep, raw[u]);
#pragma unroll
      for (int c = 0; c < n_cols; ++c) {
#pragma unroll
        for (int i = 0; i < kValues; i += 4) {
          const float4 v = *reinterpret_cast<const float4*>(x + (xs[c] + k + i));
#pragma unroll
          for (int r = 0; r < n_rows; ++r) {
            float& sum = sums[r * n_cols + c];
            sum = fmaf(ws[r][i], v.x, sum);
            sum = fmaf(ws[r][i + 1], v.y, sum);
            sum = fmaf(ws[r][i + 2], v.z, sum);
            sum = fmaf(ws[r][i + 3], v.w, sum);
          }
        }
      }
    }
  }

  const int first_sum = warp_sums(sums, lane);
  if (lane % kLanesPerSum<kSums> == 0) {
#pragma unroll
    for (int i = 0; i < kSumsPerLane<kSums>; ++i) parts[warp][first_sum + i] = sums[i];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kSums; i += kProjectThreads) {
    const int r = i / n_cols, c = i % n_cols;
    float sum = 0.0f;
#pragma unroll
    for (int other = 0; other < kProjectWarps; ++other) sum += parts[other][i];
    if (row + r < p.n_out && col + c < n) put_sum(p, row + r, col + c, sum);
  }
}

// Same for rows at any address, one value at a time: for sizes that no real model has.
constexpr int kScalarCols = 4;
template <typename T>
__global__ void __launch_bounds__(kProjectThreads)
    project_scalar_kernel(const Products products, const float* x, int n, int n_in) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  const Product p = product_of_block(products);
  const int lane = threadIdx.x % kWarpSize, warp = threadIdx.x / kWarpSize;
  const int row = (static_cast<int>(blockIdx.x) - p.first_block) * kProjectWarps + warp;
  const int col = blockIdx.y * kScalarCols;
  if (row >= p.n_out) return;
  const T* w = reinterpret_cast<const T*>(p.w) + int64_t{row} * n_in;
  float sums[kScalarCols] = {};
  for (int k = lane; k < n_in; k += kWarpSize) {
    const float v = to_float(w[k]);
#pragma unroll
    for (int c = 0; c < kScalarCols; ++c) {
      sums[c] = fmaf(v, x[int64_t{min(col + c, n - 1)} * n_in + k], sums[c]);
    }
  }
  put_sums<1, kScalarCols>(p, row, col, n, lane, sums);
}

// ---------------------------------------------------------------- more columns: tensor cores

// x = high + middle + low, each a bf16 with the next 8 of x's 24 significant bits: three products
// on the tensor cores multiply x by a bf16 weight without rounding it.
constexpr int kPlanes = 3;
constexpr int kPlaneCols = 8;    // per product
constexpr int kPlaneChunk = 32;  // values of k

// The order in which the lanes of project_bf16_kernel read them:
// [column / 8][k / 32][plane][lane][8 values], lane = column % 8 * 4 + k % 32 / 8.
constexpr int64_t kChunkBytes = kPlanes * kWarpSize * 16;
inline int64_t plane_bytes(int64_t n, int64_t n_in) {
  return div_up(n, kPlaneCols) * div_up(n_in, kPlaneChunk) * kChunkBytes;
}

constexpr int kSplitThreads = 128;

// One thread per 8 values; n_chunks = ceil(n_in / 32). Missing columns and values are 0.
__global__ void __launch_bounds__(kSplitThreads)
    split_kernel(const float* x, int n, int n_in, int n_chunks, uint4* planes) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  const int lane = threadIdx.x % kWarpSize;
  const int chunk = blockIdx.x * (kSplitThreads / kWarpSize) + threadIdx.x / kWarpSize;
  if (chunk >= n_chunks) return;
  const int col = blockIdx.y * kPlaneCols + lane / 4, k = chunk * kPlaneChunk + lane % 4 * 8;
  uint32_t words[kPlanes][4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    uint32_t bits[kPlanes][2];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const bool exists = col < n && k < n_in;
      float rest = exists ? x[int64_t{col} * n_in + k + 2 * i + j] : 0.0f;
      const uint32_t whole = __float_as_uint(rest);
      const bool finite = (whole & 0x7f800000u) != 0x7f800000u;
#pragma unroll
      for (int plane = 0; plane < kPlanes; ++plane) {
        bits[plane][j] = __float_as_uint(rest) & 0xffff0000u;
        rest = finite ? rest - __uint_as_float(bits[plane][j]) : 0.0f;
      }
      // A NaN whose bits are all in the lower half must not become infinite.
      if ((whole & 0x7fffffffu) > 0x7f800000u) bits[0][j] |= 0x400000u;
    }
#pragma unroll
    for (int plane = 0; plane < kPlanes; ++plane) {
      words[plane][i] = bits[plane][0] >> 16 | bits[plane][1];
    }
  }
  uint4* to = planes + (int64_t{blockIdx.y} * n_chunks + chunk) * (kPlanes * kWarpSize);
#pragma unroll
  for (int plane = 0; plane < kPlanes; ++plane) {
    to[plane * kWarpSize + lane] =
        make_uint4(words[plane][0], words[plane][1], words[plane][2], words[plane][3]);
  }
}

constexpr int kBf16Rows = 16;  // per block
constexpr int kBf16Warps = 8;  // they share the rows and divide k
constexpr int kBf16Threads = kBf16Warps * kWarpSize;
constexpr int kBf16Chunks = 4;  // chunks of 32 values that a warp takes at a time

// out[t, o] = sum_k x[t, k] w[o, k] for bf16 weights: A holds 16 rows of w, B 8 columns of x,
// n_tiles times. An element of A and B may stand for any k as long as both agree: here a lane's 8
// consecutive values are its elements in two products, so 16 bytes are loaded at once and no shared
// memory is needed. n_in is a multiple of 8, rows are 16-byte aligned.
template <int n_tiles>
__global__ void __launch_bounds__(kBf16Threads)
    project_bf16_kernel(const Products products, const uint4* planes, int n, int n_in,
                        int n_chunks) {
  ptx::let_next_kernel_start();
  constexpr int kCols = n_tiles * kPlaneCols;
  __shared__ float parts[kBf16Warps][kCols][kBf16Rows + 1];
  const Product p = product_of_block(products);
  const int lane = threadIdx.x % kWarpSize, warp = threadIdx.x / kWarpSize;
  const int row = (static_cast<int>(blockIdx.x) - p.first_block) * kBf16Rows;
  const int col = blockIdx.y * kCols;
  const int g = lane / 4, t = lane % 4;

  const __nv_bfloat16* w[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    w[i] = reinterpret_cast<const __nv_bfloat16*>(p.w) +
           int64_t{min(row + g + 8 * i, p.n_out - 1)} * n_in + 8 * t;
  }
  const uint4* tiles[n_tiles];  // those after the last one are read and dropped
  const int n_all = (n + kPlaneCols - 1) / kPlaneCols;
#pragma unroll
  for (int i = 0; i < n_tiles; ++i) {
    const int tile = min(col / kPlaneCols + i, n_all - 1);
    tiles[i] = planes + int64_t{tile} * n_chunks * (kPlanes * kWarpSize) + lane;
  }

  // The tensor cores truncate what they add to a sum, so each sum there is a short one.
  float sums[n_tiles][4] = {};
  if (warp * kBf16Chunks >= n_chunks) ptx::wait_for_earlier_kernels();
  for (int begin = warp * kBf16Chunks; begin < n_chunks; begin += kBf16Warps * kBf16Chunks) {
    uint4 raw[kBf16Chunks][2];
#pragma unroll
    for (int u = 0; u < kBf16Chunks; ++u) {
      const int k = (begin + u) * kPlaneChunk;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        raw[u][i] = k + 8 * t < n_in ? __ldcs(reinterpret_cast<const uint4*>(w[i] + k))
                                     : make_uint4(0, 0, 0, 0);
      }
    }
    if (begin == warp * kBf16Chunks) ptx::wait_for_earlier_kernels();
    float short_sums[n_tiles][4] = {};
#pragma unroll
    for (int u = 0; u < kBf16Chunks; ++u) {
      if (begin + u >= n_chunks) break;
      const uint32_t a[2][4] = {{raw[u][0].x, raw[u][1].x, raw[u][0].y, raw[u][1].y},
                                {raw[u][0].z, raw[u][1].z, raw[u][0].w, raw[u][1].w}};
#pragma unroll
      for (int i = 0; i < n_tiles; ++i) {
#pragma unroll
        for (int plane = kPlanes - 1; plane >= 0; --plane) {
          const uint4 v = tiles[i][((begin + u) * kPlanes + plane) * kWarpSize];
          ptx::mma_16x8x16<__nv_bfloat16>(short_sums[i], a[0], {v.x, v.y}, short_sums[i]);
          ptx::mma_16x8x16<__nv_bfloat16>(short_sums[i], a[1], {v.z, v.w}, short_sums[i]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < n_tiles; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[i][j] += short_sums[i][j];
    }
  }

#pragma unroll
  for (int i = 0; i < n_tiles; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      parts[warp][i * kPlaneCols + 2 * t + j % 2][g + j / 2 * 8] = sums[i][j];
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kCols * kBf16Rows; i += kBf16Threads) {
    const int r = i % kBf16Rows, c = i / kBf16Rows;
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < kBf16Warps; ++k) sum += parts[k][c][r];
    if (row + r < p.n_out && col + c < n) put_sum(p, row + r, col + c, sum);
  }
}

}  // namespace snapkv::cuda
