// SPDX-License-Identifier: MIT
#include "model/families/gemma4.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "format/gguf.h"
#include "model/families/shared_rows.h"
#include "model/metadata_reader.h"
#include "model/model_spec.h"

namespace snapkv {
namespace {

constexpr int64_t kMostGemma4Heads = 1 << 14, kMostGemma4HeadDim = 4096, kMostGemma4Width = 1 << 22;

/// Heads of one kind of layers, whose keys in the header end with `ending`.
struct KindOfHeads {
  int64_t head_dim = 0;
  RotationSpec rotation;
};

int64_t read_head_dim(const MetadataReader& reader, const std::string& ending) {
  const std::string key = "attention.key_length" + ending;
  const int64_t n = reader.size(key, kMostGemma4HeadDim);
  const int64_t n_value = reader.size("attention.value_length" + ending, n, kMostGemma4HeadDim);
  if (n_value != n) {
    fail(ErrorCode::kBadModel, "{}: {} = {} differs from {} = {}, which is not supported",
         reader.file().path(), reader.key("attention.value_length" + ending), n_value,
         reader.key(key), n);
  }
  if (n % 8 == 0) return n;  // a whole number of the kernels' vectors
  fail(ErrorCode::kBadModel, "{}: {} = {}; supported are multiples of 8", reader.file().path(),
       reader.key(key), n);
}

KindOfHeads read_full(const MetadataReader& reader) {
  if (reader.file().find_tensor("rope_freqs.weight") == nullptr) {
    fail(ErrorCode::kBadModel,
         "{}: tensor rope_freqs.weight is missing: it says which values layers without a window "
         "rotate",
         reader.file().path());
  }
  const int64_t head_dim = read_head_dim(reader, "");
  return {head_dim, read_rotation(reader, RopeLayout::neox, head_dim)};
}

/// The file's factors slow down pairs of layers without a window, and stop some of them.
KindOfHeads read_windowed(const MetadataReader& reader, const KindOfHeads& full) {
  KindOfHeads kind = {read_head_dim(reader, "_swa"), full.rotation};
  kind.rotation.uses_factors = false;
  kind.rotation.n_rot = reader.size("rope.dimension_count_swa", kind.head_dim, kind.head_dim);
  kind.rotation.freq_base = reader.positive("rope.freq_base_swa", full.rotation.freq_base);
  if (kind.rotation.n_rot % 2 == 0) return kind;
  fail(ErrorCode::kBadModel, "{}: {} = {} must be even", reader.file().path(),
       reader.key("rope.dimension_count_swa"), kind.rotation.n_rot);
}

void add_networks(const MetadataReader& reader, ModelSpec& spec) {
  const ModelConfig& c = spec.config;
  const std::vector<int64_t> widths =
      reader.sizes("feed_forward_length", c.n_layer, {}, 1, kMostGemma4Width);
  for (int64_t il = 0; il < c.n_layer; ++il) {
    std::vector<FeedForwardPart>& ffn = spec.layers[il].ffn;
    ffn = {{FeedForwardKind::dense, widths[il]}};
    if (c.n_expert == 0) continue;
    ffn.push_back({FeedForwardKind::experts,
                   reader.size("expert_feed_forward_length", widths[il], kMostGemma4Width)});
    for (FeedForwardPart& part : ffn) part.beside = true;
  }
}

}  // namespace

void make_gemma4_layers(const MetadataReader& reader, ModelSpec& spec) {
  const ModelConfig& c = spec.config;
  const std::vector<int64_t> n_head =
      reader.sizes("attention.head_count", c.n_layer, {}, 1, kMostGemma4Heads);
  const std::vector<int64_t> n_head_kv =
      reader.sizes("attention.head_count_kv", c.n_layer, n_head, 1, kMostGemma4Heads);
  const std::vector<bool> windowed = read_window_flags(reader, c.n_layer);
  const int64_t window = reader.size("attention.sliding_window", INT32_MAX);
  const int64_t n_own = c.n_layer - read_n_shared(reader, c.n_layer);
  const KindOfHeads full = read_full(reader), in_window = read_windowed(reader, full);
  for (int64_t il = 0; il < c.n_layer; ++il) {
    const KindOfHeads& kind = windowed[il] ? in_window : full;
    if (n_head[il] % n_head_kv[il] != 0) {
      fail(ErrorCode::kBadModel, "{}: {} = {} is not a multiple of {} = {} in layer {}",
           reader.file().path(), reader.key("attention.head_count"), n_head[il],
           reader.key("attention.head_count_kv"), n_head_kv[il], il);
    }
    LayerSpec layer;
    layer.n_head = n_head[il];
    layer.rotation = kind.rotation;
    layer.scale = 1.0f;  // the norms of queries and keys scale the scores
    layer.state = {
        .n_head = n_head_kv[il], .head_dim_k = kind.head_dim, .head_dim_v = kind.head_dim};
    // a window as long as the context hides nothing
    if (windowed[il] && window < c.n_ctx_train) {
      layer.attention = AttentionKind::sliding_window;
      layer.window = layer.state.window = window;
      layer.compressed = false;
    }
    spec.layers.push_back(layer);
    if (il >= n_own) share_rows(reader, windowed, n_own, il, spec);
  }
  add_networks(reader, spec);
}

}  // namespace snapkv
