// SPDX-License-Identifier: MIT
// Gemma 4: layers with a sliding window and layers without differ in their heads; the last layers
// may read the rows of earlier ones; a dense network and experts may stand side by side.
#pragma once

#include <string_view>

namespace snapkv {

class MetadataReader;
struct ModelSpec;

/// Keys that other families do not have.
inline constexpr std::string_view kGemma4Keys[] = {"attention.shared_kv_layers",
                                                   "attention.key_length_swa"};

/// Family::make_layers
void make_gemma4_layers(const MetadataReader& reader, ModelSpec& spec);

}  // namespace snapkv
