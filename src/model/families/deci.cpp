// SPDX-License-Identifier: MIT
#include "model/families/deci.h"

#include <vector>

#include "model/metadata_reader.h"
#include "model/model_spec.h"

namespace snapkv {

void make_deci_layers(const MetadataReader& reader, ModelSpec& spec) {
  constexpr int64_t kMostHeads = 1 << 14, kMostWidth = 1 << 22;
  const ModelConfig& c = spec.config;
  const std::vector<Heads> heads = read_heads(reader, c, false);
  const std::vector<int64_t> n_head =
      reader.sizes("attention.head_count", c.n_layer, {}, 0, kMostHeads);
  const std::vector<int64_t> n_ff =
      reader.sizes("feed_forward_length", c.n_layer, {}, 0, kMostWidth);
  for (int64_t il = 0; il < c.n_layer; ++il) {
    if (heads[il].n_head_kv > 0) {
      spec.layers.push_back(full_attention_layer(reader, spec, heads[il]));
    } else {
      spec.layers.push_back(
          stateless_layer(n_head[il] > 0 ? TokenMixerKind::linear : TokenMixerKind::none));
    }
    LayerSpec& layer = spec.layers.back();
    layer.has_ffn = n_ff[il] > 0;
    if (layer.has_ffn) layer.ffn = {{FeedForwardKind::dense, n_ff[il]}};
  }
  require_attention(reader, spec);
}

}  // namespace snapkv
