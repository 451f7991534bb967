// SPDX-License-Identifier: MIT
#include "model/families/kimi_linear.h"

#include <cstdint>
#include <vector>

#include "backend/ops.h"
#include "base/error.h"
#include "format/gguf.h"
#include "model/families/deepseek2.h"
#include "model/metadata_reader.h"
#include "model/model_spec.h"

namespace snapkv {
namespace {

constexpr int64_t kMostKimiHeads = 1 << 12, kMostKimiHeadDim = 1 << 10;

/// A layer of Kimi Delta Attention, with as many heads as the others have of queries.
LayerSpec kimi_delta_layer(const MetadataReader& reader, int64_t n_head) {
  const int64_t head_dim = reader.size("kda.head_dim", kMostKimiHeadDim);
  LayerSpec layer = stateless_layer(TokenMixerKind::kimi_delta);
  layer.conv_kernel = reader.size("ssm.conv_kernel", kMostTaps);
  if (layer.conv_kernel < 2) {
    fail(ErrorCode::kBadModel, "{}: {} must be between 2 and {}, it is {}", reader.file().path(),
         reader.key("ssm.conv_kernel"), kMostTaps, layer.conv_kernel);
  }
  layer.delta_net = {.n_head_k = n_head, .n_head = n_head, .d_k = head_dim, .d_v = head_dim};
  layer.state = {.n_recurrent = layer.delta_net.n_qkv() * (layer.conv_kernel - 1) +
                                n_head * head_dim * head_dim};
  return layer;
}

/// .attention.head_count_kv is 0 where a layer has Kimi Delta Attention. `latent`: a layer of the
/// other kind, but for its heads; make_delta(n_head) makes those.
template <typename MakeDelta>
void make_hybrid_layers(const MetadataReader& reader, ModelSpec& spec, const LayerSpec& latent,
                        MakeDelta make_delta) {
  const int64_t n_layer = spec.config.n_layer;
  const std::vector<int64_t> n_head =
      reader.sizes("attention.head_count", n_layer, {}, 1, kMostKimiHeads);
  const std::vector<int64_t> n_head_kv =
      reader.sizes("attention.head_count_kv", n_layer, {}, 0, kMostKimiHeads);
  for (int64_t il = 0; il < n_layer; ++il) {
    spec.layers.push_back(n_head_kv[il] > 0 ? latent : make_delta(n_head[il]));
    if (n_head_kv[il] > 0) spec.layers.back().n_head = n_head[il];
  }
  require_attention(reader, spec);
}

/// The least logarithm of a decay.
float read_floor(const MetadataReader& reader) {
  constexpr const char* kSafe = "kda.safe_gate";
  constexpr const char* kFloor = "kda.gate_lower_bound";
  const std::string& path = reader.file().path();
  if (!reader.flag(kSafe, true)) {
    fail(ErrorCode::kBadModel, "{}: {} is false, supported is true: decays with a floor", path,
         reader.key(kSafe));
  }
  const double floor = reader.file().get_float(reader.key(kFloor));
  if (floor < -1e-3 && floor > -1e3) return static_cast<float>(floor);
  fail(ErrorCode::kBadModel, "{}: {} is {}, expected a number from -1000 to -0.001", path,
       reader.key(kFloor), floor);
}

}  // namespace

void make_kimi_linear_layers(const MetadataReader& reader, ModelSpec& spec) {
  make_hybrid_layers(reader, spec, plain_latent_layer(reader, /*rotated=*/false),
                     [&](int64_t n_head) { return kimi_delta_layer(reader, n_head); });
}

void make_bailingmoe3_layers(const MetadataReader& reader, ModelSpec& spec) {
  LayerSpec latent = plain_latent_layer(reader, /*rotated=*/true);
  latent.latent.gated = true;
  const float floor = read_floor(reader);
  make_hybrid_layers(reader, spec, latent, [&](int64_t n_head) {
    LayerSpec layer = kimi_delta_layer(reader, n_head);
    layer.delta_net.low_rank = false;
    layer.delta_net.log_floor = floor;
    return layer;
  });
}

}  // namespace snapkv
