// SPDX-License-Identifier: MIT
#include "model/families/llama4.h"

#include "base/error.h"
#include "format/gguf.h"
#include "model/metadata_reader.h"
#include "model/model_spec.h"

namespace snapkv {
namespace {

constexpr uint64_t kFullEvery = 4;  // the last of every four layers sees all tokens
constexpr int64_t kChunk = 8192;    // where the file says nothing
/// Of Maverick, whose queries and keys have no norms; GGUF files say it by this number alone.
constexpr int64_t kExpertsWithoutNorms = 128;

void check_llama4_keys(const MetadataReader& reader, const ModelConfig& c) {
  const std::string& path = reader.file().path();
  const auto expect = [&](const char* name, uint64_t expected, const char* why) {
    const uint64_t value = reader.file().get_uint(reader.key(name), expected);
    if (value == expected) return;
    fail(ErrorCode::kBadModel, "{}: {} is {}, supported is {}: {}", path, reader.key(name), value,
         expected, why);
  };
  expect("attention.sliding_window_pattern", kFullEvery,
         "other layers than the last of four would see all tokens");
  expect("expert_used_count", 1, "what a token's only expert reads is multiplied by its weight");
  if (c.routing.score != ExpertScore::sigmoid || c.routing.normalized) {
    fail(ErrorCode::kBadModel, "{}: {} and {} must be 2 (sigmoid) and false, or missing", path,
         reader.key("expert_gating_func"), reader.key("expert_weights_norm"));
  }
}

/// Chunks of .attention.sliding_window tokens, as files call it.
int64_t read_chunk(const MetadataReader& reader) {
  constexpr const char* kKey = "attention.sliding_window";
  if (reader.file().get_uint(reader.key(kKey), kChunk) > 0) {
    return reader.size(kKey, kChunk, INT32_MAX);
  }
  fail(ErrorCode::kBadModel, "{}: {} is 0: models without attention in chunks are not supported",
       reader.file().path(), reader.key(kKey));
}

}  // namespace

void make_llama4_layers(const MetadataReader& reader, ModelSpec& spec) {
  const ModelConfig& c = spec.config;
  check_llama4_keys(reader, c);
  const int64_t chunk = read_chunk(reader);
  const bool normed =
      reader.file().get_bool("snapkv.attention.qk_norm", c.n_expert != kExpertsWithoutNorms);
  const std::vector<Heads> all_heads = read_heads(reader, c, true);
  for (int64_t il = 0; il < c.n_layer; ++il) {
    LayerSpec layer = full_attention_layer(reader, spec, all_heads[il]);
    if ((il + 1) % kFullEvery == 0) {
      layer.rotation = RotationSpec();
    } else {
      layer.plain_qk_norm = normed;
      layer.has_temperature = false;
      if (chunk < c.n_ctx_train) {  // one as long as the context hides nothing
        layer.attention = AttentionKind::chunked;
        layer.window = layer.state.chunk = chunk;
        layer.compressed = false;
      }
    }
    spec.layers.push_back(layer);
  }
}

}  // namespace snapkv
