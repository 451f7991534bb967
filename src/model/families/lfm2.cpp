// SPDX-License-Identifier: MIT
#include "model/families/lfm2.h"

#include <algorithm>

#include "backend/ops.h"
#include "base/error.h"
#include "format/gguf.h"
#include "model/metadata_reader.h"
#include "model/model_spec.h"

namespace snapkv {
namespace {

/// y = W_out (c * conv(b * x)) with b, c, x = W_in h: what the layer remembers are the
/// convolution's last kernel_size - 1 inputs.
LayerSpec short_conv_layer(int64_t n_embd, int64_t kernel_size) {
  LayerSpec layer;
  layer.mixer = TokenMixerKind::short_conv;
  layer.attention = AttentionKind::none;
  layer.compressed = false;
  layer.conv_kernel = kernel_size;
  layer.state = {.n_recurrent = n_embd * (kernel_size - 1)};
  return layer;
}

}  // namespace

void make_lfm2_layers(const MetadataReader& reader, ModelSpec& spec) {
  const int64_t kernel_size = reader.size("shortconv.l_cache", kMostTaps);
  if (kernel_size < 2) {
    fail(ErrorCode::kBadModel, "{}: {} must be between 2 and {}, it is {}", reader.file().path(),
         reader.key("shortconv.l_cache"), kMostTaps, kernel_size);
  }
  const std::vector<Heads> all_heads = read_heads(reader, spec.config, false);
  if (std::none_of(all_heads.begin(), all_heads.end(),
                   [](const Heads& heads) { return heads.n_head_kv > 0; })) {
    fail(ErrorCode::kBadModel,
         "{}: {} is 0 in every layer: a model without attention is not supported",
         reader.file().path(), reader.key("attention.head_count_kv"));
  }
  for (const Heads& heads : all_heads) {
    spec.layers.push_back(heads.n_head_kv > 0 ? full_attention_layer(reader, spec, heads)
                                              : short_conv_layer(spec.config.n_embd, kernel_size));
  }
}

}  // namespace snapkv
