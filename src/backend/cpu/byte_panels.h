// SPDX-License-Identifier: MIT
// Products of many rows of activations with weights of block types, in 8 bits: each piece of the
// weights, 64 output rows by 256 values, is unpacked in the L1 cache and meets all rows there
// before the next one. 4 values of k of each of a vector's outputs are multiplied with 4 values of
// a row that are broadcast: lanes are outputs, so that no lanes are ever added up. The integer sum
// of a part, values that share a scale, is exact; it becomes f32 and is multiplied with both
// scales. What is rounded is what gemv.h rounds: activations, to 8 bits with a scale per 32 values.
//
// Called by panel_product.cpp. byte_panels_x86.cpp prepares activations and unpacks weights,
// byte_tiles_*.cpp multiply.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/byte_products.h"
#include "backend/cpu/gemv.h"

namespace snapkv::cpu {

/// Output rows of a panel.
inline constexpr int64_t kBytePanelRows = 64;
/// Activation rows that are multiplied together.
inline constexpr int64_t kByteTileRows = 2;

/// A tile of activations: kGemvUnit values of kByteTileRows rows, rounded.
struct alignas(64) ByteTile {
  int8_t q[64][kByteTileRows][4];  // 4 neighbouring values of each row
  float d[8][kByteTileRows];       // scales of 32 values
  /// Sums of q over 32 and over 16 values, times -1.
  int32_t negative_sums[8][kByteTileRows];
  int32_t negative_half_sums[16][kByteTileRows];
};
static_assert(sizeof(ByteTile) == 768);

/// kGemvUnit values of the rows of a panel are kParts of these: values of k that share a scale, 32
/// or 16. Outputs stand side by side.
template <int kParts>
struct alignas(64) BytePart {
  static constexpr int kDepth = kGemvUnit / 4 / kParts;  // words of 4 values
  uint32_t q[kDepth][kBytePanelRows];                    // levels plus a surplus, from 0 on
  float d[kBytePanelRows];
  float min[kBytePanelRows];  // where the type has minima
};
inline constexpr size_t kBytePieceBytes = 16 * sizeof(BytePart<16>);
static_assert(8 * sizeof(BytePart<8>) <= kBytePieceBytes);

/// n <= kGemvUnit values, whole blocks of 32, of kByteTileRows rows of type `dtype`, f32 or bf16.
/// Rows that don't exist are null: zeros.
using PrepareByteTileFn = void (*)(const void* const (&rows)[kByteTileRows], DType dtype, int64_t n,
                                   ByteTile& tile);

/// Unpacks kGemvUnit values of the kernel's type of n_rows <= kBytePanelRows rows, `stride` bytes
/// apart, to `piece`, which is aligned to a cache line. Rows that don't exist are zeros.
using UnpackBytePieceFn = void (*)(const char* rows, int64_t stride, int64_t n_rows, char* piece);

/// sums[i][r] (+)= dot(activation row i, row r of the piece).
struct ByteTilesCall {
  const char* piece = nullptr;
  const ByteTile* x = nullptr;  // [n_tiles]
  int64_t n_tiles = 0;          // at least 1
  float* sums = nullptr;        // [n_tiles * kByteTileRows, kBytePanelRows], by cache lines
  bool adds = false;            // to what sums hold
  /// Copied meanwhile, to be unpacked next: the file has these rows in as many pages and in more
  /// streams than the processor's prefetcher follows, and waiting for them takes longer than
  /// unpacking.
  const char* next = nullptr;  // [next_rows, next_bytes]
  int64_t next_rows = 0, next_bytes = 0, next_stride = 0;
  char* copy = nullptr;  // rows of copy_stride bytes
  int64_t copy_stride = 0;
};
using MultiplyByteTilesFn = void (*)(const ByteTilesCall& call);

struct BytePanelKernel {
  PrepareByteTileFn prepare = nullptr;
  UnpackBytePieceFn unpack = nullptr;
  MultiplyByteTilesFn multiply = nullptr;
};

/// For weights of a type; null functions where there is no kernel.
BytePanelKernel byte_panel_kernel(ByteProducts products, DType weight);

#if defined(__x86_64__)
// Parts of it: only where has() the CpuTarget.
PrepareByteTileFn prepare_byte_tile_avx2();
UnpackBytePieceFn unpack_byte_piece_avx2(DType weight);
UnpackBytePieceFn unpack_byte_piece_avx512(DType weight);    // where has(CpuTarget::avx512_vnni)
MultiplyByteTilesFn multiply_byte_tiles_vnni(DType weight);  // AVX-512
MultiplyByteTilesFn multiply_byte_tiles_avx_vnni(DType weight);
MultiplyByteTilesFn multiply_byte_tiles_avx2(DType weight);
#endif

}  // namespace snapkv::cpu
