// SPDX-License-Identifier: MIT
// Which kinds of block types there are in x86 registers: concepts and numbers by which kernels
// choose their loops.
#pragma once

#include "backend/cpu/weights/blocks_x86.h"
#include "backend/cpu/weights/codebook_blocks_x86.h"
#include "backend/cpu/weights/superblocks_x86.h"

#if defined(__x86_64__)

#include <algorithm>
#include <bit>

namespace snapkv::cpu {

/// Whether there are 8-bit products for the type.
template <DType T>
concept HasX86Block = requires {
  X86Block<T>::levels(nullptr, 0);
};

/// Whether levels() are unsigned, with a surplus of kOffset.
template <DType T>
concept HasLevelOffset = requires {
  X86Block<T>::kOffset;
};

/// Whether levels are looked up from nibbles, 32 to a block.
template <DType T>
concept HasNibbles = requires(__m256i nibbles) {
  X86Block<T>::from_nibbles(nibbles);
};

/// Whether each scale belongs to 16 values.
template <DType T>
concept HasHalfScales = std::is_same_v<typename X86Block<T>::Scales, HalfPartBytes>;

/// Whether blocks have 64 values, and an f32 scale for each 16. Packing with 512-bit vectors does
/// not know them.
template <DType T>
concept HasFloatHalves = requires {
  X86Block<T>::half_scales(nullptr, 0);
};

/// Whether levels are loaded by CodebookLevels.
template <DType T>
concept HasCodebook = requires {
  CodebookLevels<T>::kHasSigns;
};

/// Whether levels are entries of a codebook less a number: CodebookLevels::bytes.
template <DType T>
concept HasDeltas = requires {
  X86Block<T>::pair_deltas(nullptr, nullptr);
};

/// Whether integer sums are over 16 values.
template <DType T>
constexpr bool kSumsHalves = HasHalfScales<T> || HasFloatHalves<T>;

/// The largest of the bytes of levels in pieces of weights (byte_panels.h).
template <DType T>
constexpr int kMostLevel = [] {
  if constexpr (T == DType::q2_k || T == DType::tq1_0 || T == DType::tq2_0) return 3;
  if constexpr (T == DType::q3_k) return 7;
  if constexpr (T == DType::q4_0 || T == DType::q4_1 || T == DType::q4_k) return 15;
  if constexpr (T == DType::mxfp4 || T == DType::nvfp4) return 24;
  if constexpr (T == DType::q5_0 || T == DType::q5_1 || T == DType::q5_k) return 31;
  if constexpr (T == DType::q6_k) return 63;
  return 255;
}();

/// How many words of 4 levels, times activations, AVX2 adds up in 16 bits: two products to a sum,
/// in one part. 0 for 8-bit levels. (A NaN's activation is -128.)
template <DType T>
constexpr int kNarrowWords = std::min(
    kSumsHalves<T> ? 4 : 8, static_cast<int>(std::bit_floor(0x7fffu / (2 * kMostLevel<T> * 128))));

/// Whether VNNI treats 256 values as 8 blocks with their own scales.
template <DType T>
concept HasVnniBlocks = requires {
  X86Block<T>::d_8(nullptr);
};

/// Whether it does so with two scales for each block.
template <DType T>
concept HasVnniHalfBlocks = requires {
  X86Block<T>::half_d_8(nullptr);
};

/// Whether VNNI treats the type as superblocks with integer scales.
template <DType T>
concept HasVnniParts = requires(VnniLevels& q) {
  X86Block<T>::load_parts(nullptr, q);
};

}  // namespace snapkv::cpu

#endif  // x86-64
