// SPDX-License-Identifier: MIT
// Products of many rows of activations with weights of block types, in 8 bits. Each piece of the
// weights, 64 output rows by 256 values, is unpacked into the L1 cache and multiplied with all rows
// there before the next piece. For each of a vector's outputs, 4 values of k are multiplied with 4
// broadcast values of a row: lanes are outputs, so lanes are never added together. The integer sum
// of a part, values that share a scale, is exact; it is converted to f32 and multiplied by both
// scales. As in gemv.h, only activations are rounded, to 8 bits with a scale per 32 values.
//
// byte_panels_x86.cpp prepares activations and unpacks weights, byte_tiles_*.cpp multiply.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/products/byte_products.h"
#include "backend/cpu/products/few_rows/gemv.h"

namespace snapkv::cpu {

/// Output rows of a panel.
inline constexpr int64_t kBytePanelRows = 64;
/// Activation rows that one step multiplies.
inline constexpr int64_t kByteTileRows = 2;

/// A tile of activations: kGemvUnit rounded values of kByteTileRows rows.
struct alignas(64) ByteTile {
  int8_t q[64][kByteTileRows][4];  // 4 neighbouring values of each row
  float d[8][kByteTileRows];       // scales of 32 values
  /// Negated sums of q over 32 and over 16 values.
  int32_t negative_sums[8][kByteTileRows];
  int32_t negative_half_sums[16][kByteTileRows];
};
static_assert(sizeof(ByteTile) == 768);

/// One of the kParts parts of kGemvUnit values of a panel's rows: 32 or 16 values of k that share a
/// scale. Outputs are adjacent.
template <int kParts>
struct alignas(64) BytePart {
  static constexpr int kDepth = kGemvUnit / 4 / kParts;  // words of 4 values
  uint32_t q[kDepth][kBytePanelRows];                    // levels plus a surplus, unsigned
  float d[kBytePanelRows];
  float min[kBytePanelRows];  // if the type has minima
};
inline constexpr size_t kBytePieceBytes = 16 * sizeof(BytePart<16>);
static_assert(8 * sizeof(BytePart<8>) <= kBytePieceBytes);

/// Rounds n <= kGemvUnit values, whole blocks of 32, of kByteTileRows rows of type `dtype`, f32 or
/// bf16. Missing rows are null and become zeros.
using PrepareByteTileFn = void (*)(const void* const (&rows)[kByteTileRows], DType dtype, int64_t n,
                                   ByteTile& tile);

/// Unpacks kGemvUnit values of n_rows <= kBytePanelRows rows of the kernel's type, `stride` bytes
/// apart, to `piece`, which is aligned to a cache line. Missing rows become zeros.
using UnpackBytePieceFn = void (*)(const char* rows, int64_t stride, int64_t n_rows, char* piece);

/// The same for interleaved weights (interleave.h) and n_values of their rows, a multiple of
/// kInterleavedRows; `stride` is from unit to unit.
using UnpackInterleavedFn = void (*)(const char* units, int64_t stride, int64_t n_rows,
                                     int64_t n_values, char* piece);

/// sums[i][r] (+)= dot(activation row i, row r of the piece).
struct ByteTilesCall {
  const char* piece = nullptr;
  const ByteTile* x = nullptr;  // [n_tiles]
  int64_t n_tiles = 0;          // at least 1
  float* sums = nullptr;        // [n_tiles * kByteTileRows, kBytePanelRows], line-aligned
  bool adds = false;            // add to the content of sums
  /// Rows, or units, that are copied meanwhile, to be unpacked next. In the file each of these rows
  /// is in a page of its own, and they are more streams than the processor's prefetcher follows;
  /// waiting for them takes longer than unpacking.
  const char* next = nullptr;  // [next_rows, next_bytes]
  int64_t next_rows = 0, next_bytes = 0, next_stride = 0;
  char* copy = nullptr;  // rows of copy_stride bytes
  int64_t copy_stride = 0;
};
using MultiplyByteTilesFn = void (*)(const ByteTilesCall& call);

struct BytePanelKernel {
  PrepareByteTileFn prepare = nullptr;
  UnpackBytePieceFn unpack = nullptr;
  UnpackInterleavedFn unpack_interleaved = nullptr;
  MultiplyByteTilesFn multiply = nullptr;
};

/// The kernel for a weight type; its functions are null if there is none.
BytePanelKernel byte_panel_kernel(ByteProducts products, DType weight);

#if defined(__x86_64__)
// Its functions for each CpuTarget; call them only where has() it.
PrepareByteTileFn prepare_byte_tile_avx2();
UnpackBytePieceFn unpack_byte_piece_avx2(DType weight);
UnpackBytePieceFn unpack_byte_piece_avx512(DType weight);    // where has(CpuTarget::avx512_vnni)
UnpackInterleavedFn unpack_interleaved_avx2(DType weight);
UnpackInterleavedFn unpack_interleaved_avx512(DType weight);
MultiplyByteTilesFn multiply_byte_tiles_vnni(DType weight);  // AVX-512
MultiplyByteTilesFn multiply_byte_tiles_avx_vnni(DType weight);
MultiplyByteTilesFn multiply_byte_tiles_avx2(DType weight);
#endif

}  // namespace snapkv::cpu
