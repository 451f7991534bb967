// SPDX-License-Identifier: MIT
// Sizes of all of ggml's tensor types, those too that the project does not compute with. Used by
// the parser of GGUF files, so that a file with unsupported tensors can still be described.
#pragma once

#include <array>
#include <cstdint>

namespace snapkv {

/// `values` values take `bytes` bytes; 0 where a number has no type (any more).
struct GgmlTypeSize {
  uint16_t values = 0;
  uint16_t bytes = 0;
};

/// Indexed by the type's number in the file, as kGgmlTypeNames (ggml_types.h).
inline constexpr std::array<GgmlTypeSize, 40> kGgmlTypeSizes = {{
    {1, 4},    {1, 2},    {32, 18},  {32, 20},   {},         {},         {32, 22},   {32, 24},
    {32, 34},  {32, 36},  {256, 84}, {256, 110}, {256, 144}, {256, 176}, {256, 210}, {256, 292},
    {256, 66}, {256, 74}, {256, 98}, {256, 50},  {32, 18},   {256, 110}, {256, 82},  {256, 136},
    {1, 1},    {1, 2},    {1, 4},    {1, 8},     {1, 8},     {256, 56},  {1, 2},     {},
    {},        {},        {256, 54}, {256, 66},  {},         {},         {},         {32, 17},
}};

constexpr GgmlTypeSize ggml_type_size(uint32_t ggml_type) {
  return ggml_type < kGgmlTypeSizes.size() ? kGgmlTypeSizes[ggml_type] : GgmlTypeSize{};
}

}  // namespace snapkv
