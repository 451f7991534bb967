// SPDX-License-Identifier: MIT
// ggml's tensor types as numbered in GGUF files: which of them the project reads, and the names of
// all for messages. Used by the parser of GGUF files and by what writes them.
#pragma once

#include <fmt/core.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "snapkv/dtype.h"

namespace snapkv {

/// Names of ggml's tensor types, indexed by their number in the file.
inline constexpr std::array<std::string_view, 40> kGgmlTypeNames = {
    "F32",   "F16",        "Q4_0",       "Q4_1",       "Q4_2",     "Q4_3",     "Q5_0",
    "Q5_1",  "Q8_0",       "Q8_1",       "Q2_K",       "Q3_K",     "Q4_K",     "Q5_K",
    "Q6_K",  "Q8_K",       "IQ2_XXS",    "IQ2_XS",     "IQ3_XXS",  "IQ1_S",    "IQ4_NL",
    "IQ3_S", "IQ2_S",      "IQ4_XS",     "I8",         "I16",      "I32",      "I64",
    "F64",   "IQ1_M",      "BF16",       "Q4_0_4_4",   "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",
    "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4"};

/// nullopt for a type that weights can't have here.
inline std::optional<DType> dtype_of(uint32_t ggml_type) {
  for (const DType t : kWeightTypes) {
    if (dtype_info(t).ggml_type == ggml_type) return t;
  }
  return std::nullopt;
}

/// "F32, F16, ...": what dtype_of() knows.
inline std::string supported_ggml_types() {
  std::string names;
  for (const DType t : kWeightTypes) {
    names += names.empty() ? "" : ", ";
    names += kGgmlTypeNames[dtype_info(t).ggml_type];
  }
  return names;
}

/// "Q3_K (11)"
inline std::string ggml_type_name(uint32_t ggml_type) {
  if (ggml_type < kGgmlTypeNames.size()) {
    return fmt::format("{} ({})", kGgmlTypeNames[ggml_type], ggml_type);
  }
  return fmt::format("{} (unknown)", ggml_type);
}

}  // namespace snapkv
