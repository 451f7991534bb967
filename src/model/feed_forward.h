// SPDX-License-Identifier: MIT
// What the header says of the layers' feed-forward networks.
#pragma once

namespace snapkv {

class MetadataReader;
struct ModelSpec;

/// Fills in LayerSpec::ffn, as the family's switches and the header say, of the layers where the
/// family's own function has not. Throws Error{kBadModel} naming the key.
void add_feed_forward(const MetadataReader& reader, ModelSpec& spec);

}  // namespace snapkv
