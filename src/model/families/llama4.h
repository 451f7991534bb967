// SPDX-License-Identifier: MIT
// The layers of Llama 4: three of four rotate queries and keys, norm them without weights, and
// attend in chunks of the text; the others see all of it, and sharpen queries of later tokens.
#pragma once

namespace snapkv {

class MetadataReader;
struct ModelSpec;

/// Family::make_layers. Throws Error{kBadModel} naming the key, its value and the supported ones.
void make_llama4_layers(const MetadataReader& reader, ModelSpec& spec);

}  // namespace snapkv
