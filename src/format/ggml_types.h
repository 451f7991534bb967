// SPDX-License-Identifier: MIT
// ggml's tensor types, numbered as in GGUF files: names and sizes of all, and which of them the
// project reads.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "snapkv/dtype.h"

namespace snapkv {

struct GgmlType {
  std::string_view name;
  uint16_t values = 0;  // per block; 0 if the number is no longer used
  uint16_t bytes = 0;   // per block
};

/// ggml's tensor types by their number in the file, including those that the project does not
/// compute with, so that files with them can still be described. Three that are no longer used have
/// the numbers of types of bitnet.cpp.
inline constexpr std::array<GgmlType, 42> kGgmlTypes = {{
    {"F32", 1, 4},
    {"F16", 1, 2},
    {"Q4_0", 32, 18},
    {"Q4_1", 32, 20},
    {"Q4_2"},
    {"Q4_3"},
    {"Q5_0", 32, 22},
    {"Q5_1", 32, 24},
    {"Q8_0", 32, 34},
    {"Q8_1", 32, 36},
    {"Q2_K", 256, 84},
    {"Q3_K", 256, 110},
    {"Q4_K", 256, 144},
    {"Q5_K", 256, 176},
    {"Q6_K", 256, 210},
    {"Q8_K", 256, 292},
    {"IQ2_XXS", 256, 66},
    {"IQ2_XS", 256, 74},
    {"IQ3_XXS", 256, 98},
    {"IQ1_S", 256, 50},
    {"IQ4_NL", 32, 18},
    {"IQ3_S", 256, 110},
    {"IQ2_S", 256, 82},
    {"IQ4_XS", 256, 136},
    {"I8", 1, 1},
    {"I16", 1, 2},
    {"I32", 1, 4},
    {"I64", 1, 8},
    {"F64", 1, 8},
    {"IQ1_M", 256, 56},
    {"BF16", 1, 2},
    {"Q4_0_4_4"},
    {"Q4_0_4_8"},
    {"Q4_0_8_8"},
    {"TQ1_0", 256, 54},
    {"TQ2_0", 256, 66},
    {"IQ4_NL_4_4 or I2_S"},
    {"IQ4_NL_4_8 or I8_S"},
    {"IQ4_NL_8_8 or TL1"},
    {"MXFP4", 32, 17},
    {"NVFP4", 64, 36},
    {"Q1_0", 128, 18},
}};

static_assert(std::all_of(std::begin(kDTypes), std::end(kDTypes), [](const DTypeInfo& t) {
  return kGgmlTypes[t.ggml_type].values == t.block_size &&
         kGgmlTypes[t.ggml_type].bytes == t.block_bytes;
}));

/// The table's entry, or null for a number beyond it.
constexpr const GgmlType* find_ggml_type(uint32_t ggml_type) {
  return ggml_type < kGgmlTypes.size() ? &kGgmlTypes[ggml_type] : nullptr;
}

/// llama.cpp's names of mixtures of types by general.file_type; empty where a number is not used.
inline constexpr std::array<std::string_view, 40> kFileTypes = {
    "F32",    "F16",    "Q4_0",  "Q4_1",    "",       "",       "",       "Q8_0",
    "Q5_0",   "Q5_1",   "Q2_K",  "Q3_K_S",  "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M",
    "Q5_K_S", "Q5_K_M", "Q6_K",  "IQ2_XXS", "IQ2_XS", "Q2_K_S", "IQ3_XS", "IQ3_XXS",
    "IQ1_S",  "IQ4_NL", "IQ3_S", "IQ3_M",   "IQ2_S",  "IQ2_M",  "IQ4_XS", "IQ1_M",
    "BF16",   "",       "",      "",        "TQ1_0",  "TQ2_0",  "MXFP4",  "NVFP4"};

static_assert(std::all_of(std::begin(kDTypes), std::end(kDTypes), [](const DTypeInfo& t) {
  return t.dtype == DType::i32 || kFileTypes[t.file_type].empty() ||
         kFileTypes[t.file_type].starts_with(kGgmlTypes[t.ggml_type].name);
}));

/// nullopt for a type that weights cannot have here.
inline std::optional<DType> dtype_of(uint32_t ggml_type) {
  for (const DType t : kWeightTypes) {
    if (dtype_info(t).ggml_type == ggml_type) return t;
  }
  return std::nullopt;
}

/// "F32, F16, ...": the types that dtype_of() knows.
inline std::string supported_ggml_types() {
  std::string names;
  for (const DType t : kWeightTypes) {
    names += names.empty() ? "" : ", ";
    names += kGgmlTypes[dtype_info(t).ggml_type].name;
  }
  return names;
}

/// "Q3_K (11)"
inline std::string ggml_type_name(uint32_t ggml_type) {
  const GgmlType* type = find_ggml_type(ggml_type);
  return type != nullptr ? fmt::format("{} ({})", type->name, ggml_type)
                         : fmt::format("{} (unknown)", ggml_type);
}

}  // namespace snapkv
