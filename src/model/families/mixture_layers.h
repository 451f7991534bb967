// SPDX-License-Identifier: MIT
// Layers of families whose experts have other networks beside them than a shared expert.
#pragma once

#include <array>
#include <string_view>

namespace snapkv {

class MetadataReader;
struct ModelSpec;

/// Family::make_layers of `arctic`: each layer has a dense network as wide as the model, and
/// experts that read what the layer reads.
void make_arctic_layers(const MetadataReader& reader, ModelSpec& spec);

/// Of `deepseek2-ocr`: full attention. Windows, which its models of other makers have, are refused.
void make_deepseek2_ocr_layers(const MetadataReader& reader, ModelSpec& spec);

/// Of `grok`: layers have a dense network beside the experts where the file has one (Grok 2), and
/// scales that are Grok 1's where the header has none.
void make_grok_layers(const MetadataReader& reader, ModelSpec& spec);

/// Of `grovemoe`: neighbouring experts share a smaller one.
void make_grovemoe_layers(const MetadataReader& reader, ModelSpec& spec);

}  // namespace snapkv
