// SPDX-License-Identifier: MIT
// Tiles of 16 cache rows in shared memory as operands of the tensor cores: how they are copied
// there, and their products for decode's attention.
#pragma once

#include <cstdint>
#include <cstring>

#include "backend/cuda/launch.cuh"
#include "backend/cuda/ptx.cuh"
#include "format/block_types.h"

namespace snapkv::cuda::decode {

constexpr int kTileRows = 16;
/// Probabilities are scaled to at most 2^8, so that f16's smallest numbers do not matter; the
/// factor cancels.
constexpr float kProbabilityBits = 8.0f;
/// Queries are scaled by a power of 2 to less than 2^11, for the same reason.
constexpr int kQueryBits = 10;

template <typename T>
__device__ __forceinline__ float2 unpack(uint32_t bits);
template <>
__device__ __forceinline__ float2 unpack<__half>(uint32_t bits) {
  __half2 pair;
  memcpy(&pair, &bits, sizeof(bits));
  return __half22float2(pair);
}
template <>
__device__ __forceinline__ float2 unpack<__nv_bfloat16>(uint32_t bits) {
  return make_float2(__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000u));
}

/// The A operands (ptx.cuh) of v[x][i]: query g + 8x, columns 2t, 2t + 1, 2t + 8, 2t + 9. With one
/// query per lane its low parts take the place of query g + 8; with two they are a second operand.
template <typename T, int kQ>
__device__ __forceinline__ void split(const float (&v)[kQ][4], uint32_t (&a)[kQ][4]) {
  uint32_t high[kQ][2], low[kQ][2];
#pragma unroll
  for (int x = 0; x < kQ; ++x) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      high[x][i] = pack<T>(v[x][2 * i], v[x][2 * i + 1]);
      const float2 h = unpack<T>(high[x][i]);
      low[x][i] = pack<T>(v[x][2 * i] - h.x, v[x][2 * i + 1] - h.y);
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    a[0][2 * i] = high[0][i];
    a[0][2 * i + 1] = kQ == 1 ? low[0][i] : high[kQ - 1][i];
    a[kQ - 1][2 * i] = kQ == 1 ? high[0][i] : low[0][i];
    a[kQ - 1][2 * i + 1] = low[kQ - 1][i];
  }
}

template <typename T, int kQ>
__device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[kQ][4], uint32_t b0,
                                         uint32_t b1) {
  const uint32_t b[2] = {b0, b1};
#pragma unroll
  for (int x = 0; x < kQ; ++x) ptx::mma_16x8x16<T>(c, a[x], b, c);
}

/// The product with query g (or g + 8) in column 2t + e.
template <int kQ>
__device__ __forceinline__ float result(const float (&c)[4], int x, int e) {
  return kQ == 1 ? c[e] + c[2 + e] : c[2 * x + e];
}

template <int kQ>
__device__ __forceinline__ void load_operand(const uint4* q, int step, int lane,
                                             uint32_t (&a)[kQ][4]) {
#pragma unroll
  for (int x = 0; x < kQ; ++x) {
    const uint4 v = q[(step * kQ + x) * kWarpSize + lane];
    a[x][0] = v.x, a[x][1] = v.y, a[x][2] = v.z, a[x][3] = v.w;
  }
}

/// 16 rows in shared memory and how a warp multiplies with them; g = lane / 4, t = lane % 4. Head
/// dimensions may be summed in any order, so each lane takes those that it can load together;
/// dimensions from head_dim to kDim are 0.
template <typename T, int kDim>
struct Tile {
  using Operand = T;
  static constexpr int kChunks = kDim / 8;  // 16-byte chunks of a row
  static constexpr int kBytes = kTileRows * kDim * 2;

  static __device__ __forceinline__ int64_t row_bytes(int head_dim) { return head_dim * 2; }
  /// The place of a chunk. Lanes that are served together in a load of K (rows g, chunks t) or of V
  /// (rows 2t, chunks g) never use the same bank.
  static __device__ __forceinline__ int place(int row, int chunk) {
    return row * kChunks + (chunk ^ (row & 6) ^ (row & 1) << 2);
  }
  static __device__ __forceinline__ void copy(char* tile, const char* rows, int n_rows,
                                              int head_dim, int lane) {
#pragma unroll
    for (int i = 0; i < kTileRows * kChunks / kWarpSize; ++i) {
      const int c = lane + kWarpSize * i, row = c / kChunks, chunk = c % kChunks;
      const bool inside = row < n_rows && 8 * chunk < head_dim;
      ptx::copy_async_16(tile + 16 * place(row, chunk),
                         rows + (inside ? (row * head_dim + 8 * chunk) * 2 : 0), inside ? 16 : 0);
    }
  }
  /// The head dimension in column 2t (half 0) or 2t + 8 (half 1) of step `step` of q.
  static __device__ __forceinline__ int query_dim(int step, int t, int half) {
    return step / 2 * 32 + 8 * t + step % 2 * 4 + 2 * half;
  }
  /// s[x][2j + e]: query g + 8x with row 8j + 2t + e
  template <int kQ>
  static __device__ __forceinline__ void scores(const char* tile, const char*, const uint4* q, int,
                                                int lane, float (&s)[kQ][4]) {
    const int g = lane / 4, t = lane % 4;
    float c[2][4] = {};
#pragma unroll
    for (int i = 0; i < kDim / 32; ++i) {
      uint32_t a[2][kQ][4];
      load_operand(q, 2 * i, lane, a[0]);
      load_operand(q, 2 * i + 1, lane, a[1]);
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const uint4 k = reinterpret_cast<const uint4*>(tile)[place(8 * j + g, 4 * i + t)];
        multiply<T>(c[j], a[0], k.x, k.y);
        multiply<T>(c[j], a[1], k.z, k.w);
      }
    }
#pragma unroll
    for (int x = 0; x < kQ; ++x) {
#pragma unroll
      for (int i = 0; i < 4; ++i) s[x][i] = result<kQ>(c[i / 2], x, i % 2);
    }
  }
  /// acc += p v; acc[8i + e] has dimensions 64i + 8n + e in column n.
  template <int kQ>
  static __device__ __forceinline__ void add_values(const char* tile, const char*,
                                                    const float (&p)[kQ][4], int, int lane,
                                                    float (&acc)[kDim / 8][4]) {
    const int g = lane / 4, t = lane % 4;
    uint32_t a[kQ][4];
    split<T>(p, a);
#pragma unroll
    for (int i = 0; i < kDim / 64; ++i) {
      uint32_t v[4][4];  // rows 2t, 2t + 1, 2t + 8, 2t + 9: dimensions 64i + 8g ... + 7
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int row = r / 2 * 8 + 2 * t + r % 2;
        const uint4 chunk = reinterpret_cast<const uint4*>(tile)[place(row, 8 * i + g)];
        v[r][0] = chunk.x, v[r][1] = chunk.y, v[r][2] = chunk.z, v[r][3] = chunk.w;
      }
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const unsigned half = e % 2 == 0 ? 0x5410 : 0x7632;
        multiply<T>(acc[8 * i + e], a, __byte_perm(v[0][e / 2], v[1][e / 2], half),
                    __byte_perm(v[2][e / 2], v[3][e / 2], half));
      }
    }
  }
  static __device__ __forceinline__ int value_dim(int i, int column) {
    return i / 8 * 64 + 8 * column + i % 8;
  }
};

/// Rows are copied as they are, from any even address. Levels are exact in bf16; a block's scale
/// multiplies its scores, and for V the probabilities.
template <int kDim>
struct Tile<BlockQ8_0, kDim> {
  using Operand = __nv_bfloat16;
  static constexpr int kBytes = kTileRows * (kDim / kBlockSize) * 34 + 16;

  static __device__ __forceinline__ int64_t row_bytes(int head_dim) {
    return head_dim / kBlockSize * int64_t{sizeof(BlockQ8_0)};
  }
  static __device__ __forceinline__ int offset(const char* rows) {
    return static_cast<int>(reinterpret_cast<uintptr_t>(rows) % 16);
  }
  static __device__ __forceinline__ void copy(char* tile, const char* rows, int n_rows,
                                              int head_dim, int lane) {
    const int begin = offset(rows), stride = static_cast<int>(row_bytes(head_dim));
    const int end = begin + n_rows * stride, filled = begin + kTileRows * stride;
    for (int at = 16 * lane; at < filled; at += 16 * kWarpSize) {
      const int n = max(0, min(16, end - at));
      ptx::copy_async_16(tile + at, rows - begin + (n > 0 ? at : 0), n);
    }
  }
  static __device__ __forceinline__ uint32_t two_bytes(const char* p) {
    return *reinterpret_cast<const uint16_t*>(p);
  }
  static __device__ __forceinline__ float scale(const char* block) {
    return to_float(__ushort_as_half(static_cast<unsigned short>(two_bytes(block))));
  }
  /// Converts two signed bytes of `bytes` to bf16: 0x4300 with a byte's lower 7 bits is 128 + those
  /// bits, and with its sign bit 128 or 256.
  static __device__ __forceinline__ uint32_t levels(uint32_t bytes, unsigned selector) {
    const uint32_t v = __byte_perm(bytes, 0x43434343u, selector);
    const uint32_t magnitude = v & 0xff7fff7fu, sign = v & 0xff80ff80u;
    __nv_bfloat162 x, y;
    memcpy(&x, &magnitude, sizeof(x));
    memcpy(&y, &sign, sizeof(y));
    const __nv_bfloat162 d = __hsub2(x, y);
    uint32_t bits;
    memcpy(&bits, &d, sizeof(bits));
    return bits;
  }
  static __device__ __forceinline__ int query_dim(int step, int t, int half) {
    return 16 * step + 8 * half + 2 * t;
  }
  template <int kQ>
  static __device__ __forceinline__ void scores(const char* tile, const char* rows, const uint4* q,
                                                int head_dim, int lane, float (&s)[kQ][4]) {
    const int g = lane / 4, t = lane % 4, stride = static_cast<int>(row_bytes(head_dim));
    const char* first = tile + offset(rows);
#pragma unroll
    for (int x = 0; x < kQ; ++x) s[x][0] = s[x][1] = s[x][2] = s[x][3] = 0.0f;
#pragma unroll
    for (int i = 0; i < kDim / kBlockSize; ++i) {
      if (i * kBlockSize >= head_dim) break;
      uint32_t a[2][kQ][4];
      load_operand(q, 2 * i, lane, a[0]);
      load_operand(q, 2 * i + 1, lane, a[1]);
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const char* qs = first + (8 * j + g) * stride + 34 * i + 2 + 2 * t;
        float c[4] = {};
#pragma unroll
        for (int step = 0; step < 2; ++step) {
          multiply<Operand>(c, a[step], levels(two_bytes(qs + 16 * step), 0x4140),
                            levels(two_bytes(qs + 16 * step + 8), 0x4140));
        }
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const float d = scale(first + (8 * j + 2 * t + e) * stride + 34 * i);
#pragma unroll
          for (int x = 0; x < kQ; ++x) s[x][2 * j + e] += result<kQ>(c, x, e) * d;
        }
      }
    }
  }
  /// acc[4i + 2h + e] has dimensions 32i + 16h + 2n + e in column n.
  template <int kQ>
  static __device__ __forceinline__ void add_values(const char* tile, const char* rows,
                                                    const float (&p)[kQ][4], int head_dim, int lane,
                                                    float (&acc)[kDim / 8][4]) {
    const int g = lane / 4, t = lane % 4, stride = static_cast<int>(row_bytes(head_dim));
    const char* first = tile + offset(rows) + 2 * t * stride;
    const int row_offset[4] = {0, stride, 8 * stride, 9 * stride};
#pragma unroll
    for (int i = 0; i < kDim / kBlockSize; ++i) {
      if (i * kBlockSize >= head_dim) break;
      float scaled[kQ][4];
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const float d = scale(first + row_offset[r] + 34 * i);
#pragma unroll
        for (int x = 0; x < kQ; ++x) scaled[x][r] = p[x][r] * d;
      }
      uint32_t a[kQ][4];
      split<Operand>(scaled, a);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        uint32_t pair[2];  // rows 2t and 2t + 1, 2t + 8 and 2t + 9
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const char* qs = first + 34 * i + 2 + 16 * h + 2 * g;
          pair[r] = two_bytes(qs + row_offset[2 * r]) | two_bytes(qs + row_offset[2 * r + 1]) << 16;
        }
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const unsigned selector = e == 0 ? 0x4240 : 0x4341;
          multiply<Operand>(acc[4 * i + 2 * h + e], a, levels(pair[0], selector),
                            levels(pair[1], selector));
        }
      }
    }
  }
  static __device__ __forceinline__ int value_dim(int i, int column) {
    return i / 2 * 16 + 2 * column + i % 2;
  }
};

}  // namespace snapkv::cuda::decode
