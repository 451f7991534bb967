// SPDX-License-Identifier: MIT
// Element types of weights, activations and caches; this is the only list of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace snapkv {

/// f32, f16 (IEEE half) and bf16 are plain. The others are GGUF's block types (layouts in
/// src/format/block_types.h and codebook_types.h), except i32, which weights never have.
enum class DType : uint8_t {
  f32,
  f16,
  bf16,
  i32,
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  iq4_nl,
  mxfp4,
  nvfp4,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_xs,
  iq2_xxs,
  iq2_xs,
  iq2_s,
  iq3_xxs,
  iq3_s,
  iq1_s,
  iq1_m,
  tq1_0,
  tq2_0
};

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  int64_t block_size;   // values per block: 1 for plain types
  int64_t block_bytes;  // bytes per block
  uint32_t ggml_type;   // the type's number in GGUF files
  uint32_t file_type;   // general.file_type of a GGUF file whose matrices have this type
};

inline constexpr DTypeInfo kDTypes[] = {
    {DType::f32, "f32", 1, 4, 0, 0},
    {DType::f16, "f16", 1, 2, 1, 1},
    {DType::bf16, "bf16", 1, 2, 30, 32},
    {DType::i32, "i32", 1, 4, 26, 0},
    {DType::q8_0, "q8_0", 32, 34, 8, 7},
    {DType::q4_0, "q4_0", 32, 18, 2, 2},
    {DType::q4_1, "q4_1", 32, 20, 3, 3},
    {DType::q5_0, "q5_0", 32, 22, 6, 8},
    {DType::q5_1, "q5_1", 32, 24, 7, 9},
    {DType::iq4_nl, "iq4_nl", 32, 18, 20, 25},
    {DType::mxfp4, "mxfp4", 32, 17, 39, 38},
    {DType::nvfp4, "nvfp4", 64, 36, 40, 39},
    {DType::q2_k, "q2_k", 256, 84, 10, 10},
    {DType::q3_k, "q3_k", 256, 110, 11, 11},
    {DType::q4_k, "q4_k", 256, 144, 12, 14},
    {DType::q5_k, "q5_k", 256, 176, 13, 16},
    {DType::q6_k, "q6_k", 256, 210, 14, 18},
    {DType::iq4_xs, "iq4_xs", 256, 136, 23, 30},
    {DType::iq2_xxs, "iq2_xxs", 256, 66, 16, 19},
    {DType::iq2_xs, "iq2_xs", 256, 74, 17, 20},
    {DType::iq2_s, "iq2_s", 256, 82, 22, 28},
    {DType::iq3_xxs, "iq3_xxs", 256, 98, 18, 23},
    {DType::iq3_s, "iq3_s", 256, 110, 21, 26},
    {DType::iq1_s, "iq1_s", 256, 50, 19, 24},
    {DType::iq1_m, "iq1_m", 256, 56, 29, 31},
    {DType::tq1_0, "tq1_0", 256, 54, 34, 36},
    {DType::tq2_0, "tq2_0", 256, 66, 35, 37},
};

constexpr const DTypeInfo& dtype_info(DType t) { return kDTypes[static_cast<size_t>(t)]; }
constexpr int64_t block_size(DType t) { return dtype_info(t).block_size; }
constexpr int64_t block_bytes(DType t) { return dtype_info(t).block_bytes; }
/// "f32", "bf16", "q8_0", ...
constexpr std::string_view name(DType t) { return dtype_info(t).name; }

/// Bytes of a contiguous row of `n` values; `n` must be a multiple of block_size(t).
constexpr int64_t row_bytes(DType t, int64_t n) { return n / block_size(t) * block_bytes(t); }

/// Every type that weights may have: all but i32.
inline constexpr auto kWeightTypes = [] {
  std::array<DType, std::size(kDTypes) - 1> types{};
  size_t n = 0;
  for (size_t i = 0; i < std::size(kDTypes); ++i) {
    if (kDTypes[i].dtype != DType::i32) types[n++] = kDTypes[i].dtype;
  }
  return types;
}();

static_assert(
    [] {
      for (size_t i = 0; i < std::size(kDTypes); ++i) {
        if (kDTypes[i].dtype != static_cast<DType>(i)) return false;
      }
      return true;
    }(),
    "kDTypes has the order of DType");

}  // namespace snapkv
