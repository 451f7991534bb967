// SPDX-License-Identifier: MIT
#include "model/families/gemma3n.h"

#include <cmath>
#include <string>
#include <vector>

#include "backend/ops.h"
#include "base/error.h"
#include "format/gguf.h"
#include "model/families/shared_rows.h"
#include "model/metadata_reader.h"
#include "model/model_spec.h"

namespace snapkv {
namespace {

/// Without the key nothing in the file would say which of a layer's matrices are used.
int64_t read_n_shared_of_3n(const MetadataReader& reader, int64_t n_layer) {
  if (reader.has("attention.shared_kv_layers")) return read_n_shared(reader, n_layer);
  fail(ErrorCode::kBadModel, "{}: {} is missing: it says how many layers read rows of earlier ones",
       reader.file().path(), reader.key("attention.shared_kv_layers"));
}

void read_streams(const MetadataReader& reader, ModelSpec& spec) {
  ModelConfig& c = spec.config;
  c.n_streams = reader.size("altup.num_inputs", kMostStreams);
  if (c.n_streams < 2) {
    fail(ErrorCode::kBadModel, "{}: {} is {}, expected 2 to {}", reader.file().path(),
         reader.key("altup.num_inputs"), c.n_streams, kMostStreams);
  }
  const uint64_t active = reader.file().get_uint(reader.key("altup.active_idx"), 0);
  if (active != 0) {
    fail(ErrorCode::kBadModel, "{}: {} is {}; supported is 0", reader.file().path(),
         reader.key("altup.active_idx"), active);
  }
  if (c.n_layer_input == 0) {
    fail(ErrorCode::kBadModel, "{}: {} is missing or 0, expected the width of the layers' inputs",
         reader.file().path(), reader.key("embedding_length_per_layer_input"));
  }
}

/// .activation_sparsity_scale of each layer: how far gates must stand out; -infinity: not at all.
std::vector<double> read_peaks(const MetadataReader& reader, int64_t n_layer) {
  const std::string key = reader.key("activation_sparsity_scale");
  std::vector<double> all = reader.file().get_floats(key);
  if (std::ssize(all) != n_layer) {
    fail(ErrorCode::kBadModel, "{}: {} has {} entries, expected one for each of {} layers",
         reader.file().path(), key, all.size(), n_layer);
  }
  for (const double x : all) {
    if (std::isfinite(static_cast<float>(x)) || (std::isinf(x) && x < 0)) continue;
    fail(ErrorCode::kBadModel, "{}: {} holds {}; supported are numbers and -inf",
         reader.file().path(), key, x);
  }
  return all;
}

/// The values between a layer's two matrices of low rank, which only their shapes say.
int64_t laurel_rank(const MetadataReader& reader, int64_t il) {
  const std::string name = "blk." + std::to_string(il) + ".laurel_l.weight";
  const GgufTensor* t = reader.file().find_tensor(name);
  if (t == nullptr) {
    fail(ErrorCode::kBadModel, "{}: tensor {} is missing", reader.file().path(), name);
  }
  return t->tensor.shape[0];
}

}  // namespace

void make_gemma3n_layers(const MetadataReader& reader, ModelSpec& spec) {
  constexpr int64_t kMostWidth = 1 << 22;
  read_streams(reader, spec);
  const ModelConfig& c = spec.config;
  const std::vector<Heads> heads = read_heads(reader, c, true);
  const std::vector<bool> windowed = read_window_flags(reader, c.n_layer);
  const int64_t window = reader.size("attention.sliding_window", INT32_MAX);
  const std::vector<int64_t> widths =
      reader.sizes("feed_forward_length", c.n_layer, {}, 1, kMostWidth);
  const std::vector<double> peaks = read_peaks(reader, c.n_layer);
  const int64_t n_own = c.n_layer - read_n_shared_of_3n(reader, c.n_layer);
  constexpr SlidingWindows kWindows = {.freq_base = 1e4, .scaled = false};
  for (int64_t il = 0; il < c.n_layer; ++il) {
    LayerSpec layer = full_attention_layer(reader, spec, heads[il]);
    layer.scale = 1.0f;  // the norms of queries and keys scale the scores
    if (windowed[il]) layer.rotation = window_rotation(reader, layer.rotation, kWindows);
    // a window as long as the context hides nothing
    if (windowed[il] && window < c.n_ctx_train) {
      layer.attention = AttentionKind::sliding_window;
      layer.window = layer.state.window = window;
      layer.compressed = false;
    }
    layer.laurel_rank = laurel_rank(reader, il);
    layer.ffn = {{.n_ff = widths[il], .peaks = static_cast<float>(peaks[il])}};
    spec.layers.push_back(layer);
    if (il >= n_own) share_rows(reader, windowed, n_own, il, spec);
  }
}

}  // namespace snapkv
