// SPDX-License-Identifier: MIT
// Element types of weights, activations and caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace snapkv {

/// f32, f16 (IEEE half) and bf16 are plain; q8_0 and q4_0 are GGUF block types of 32 values, q4_k,
/// q5_k and q6_k of 256 (layouts in src/format/block_types.h).
enum class DType : uint8_t { f32, f16, bf16, i32, q8_0, q4_0, q4_k, q5_k, q6_k };

/// Values in one block: 1 for plain types.
constexpr int64_t block_size(DType t) {
  switch (t) {
    case DType::q8_0:
    case DType::q4_0:
      return 32;
    case DType::q4_k:
    case DType::q5_k:
    case DType::q6_k:
      return 256;
    case DType::f32:
    case DType::i32:
    case DType::f16:
    case DType::bf16:
      break;
  }
  return 1;
}

/// Bytes of one block.
constexpr int64_t block_bytes(DType t) {
  switch (t) {
    case DType::f32:
      return 4;
    case DType::i32:
      return 4;
    case DType::f16:
      return 2;
    case DType::bf16:
      return 2;
    case DType::q8_0:
      return 34;
    case DType::q4_0:
      return 18;
    case DType::q4_k:
      return 144;
    case DType::q5_k:
      return 176;
    case DType::q6_k:
      return 210;
  }
  return 0;
}

/// Bytes of a contiguous row of `n` values; `n` must be a multiple of block_size(t).
constexpr int64_t row_bytes(DType t, int64_t n) { return n / block_size(t) * block_bytes(t); }

/// "f32", "bf16", "q8_0", ...
constexpr std::string_view name(DType t) {
  switch (t) {
    case DType::f32:
      return "f32";
    case DType::i32:
      return "i32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::q8_0:
      return "q8_0";
    case DType::q4_0:
      return "q4_0";
    case DType::q4_k:
      return "q4_k";
    case DType::q5_k:
      return "q5_k";
    case DType::q6_k:
      return "q6_k";
  }
  return "?";
}

}  // namespace snapkv
