// SPDX-License-Identifier: MIT
// Gemma 3n: several residual streams (blocks/altup.h); the last layers read the rows of earlier
// ones; gates of the first layers are closed unless they stand out.
#pragma once

#include <string_view>

namespace snapkv {

class MetadataReader;
struct ModelSpec;

/// Keys that other families do not have.
inline constexpr std::string_view kGemma3nKeys[] = {"attention.shared_kv_layers"};

/// Family::make_layers
void make_gemma3n_layers(const MetadataReader& reader, ModelSpec& spec);

}  // namespace snapkv
