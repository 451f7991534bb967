// SPDX-License-Identifier: MIT
// ModelSpec: what can be known about a model without its weights: its family, its sizes and the
// properties of each layer. Read from a file's header; memory plans are computed from it.
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"
#include "model/family.h"
#include "model/layer_spec.h"
#include "snapkv/compute.h"

namespace snapkv {

class GgufFile;
class MetadataReader;

struct ModelSpec {
  const Family* family = nullptr;
  ModelConfig config;
  std::vector<LayerSpec> layers;  // [n_layer]
  /// ModelOptions::compute, once the model is loaded.
  Compute compute = Compute::automatic;

  /// The layer that has the rows which layer il sees: il, or LayerSpec::source.
  int rows_of(int il) const { return layers[il].state.shared ? layers[il].source : il; }
  /// The layers that see the rows of layer il, ascending: itself, and those that share them.
  std::vector<int> readers(int il) const;
  /// By how many bytes the states of all layers grow with each token, while every row is kept.
  size_t bytes_per_token(DType kv_type) const;
  /// Bytes that they take after n tokens if no policy chooses among their rows.
  size_t full_bytes(DType kv_type, int64_t n_tokens) const;
  /// Whether sessions with these two contexts use the same rotation (RotationSpec::n_ctx_short).
  bool rotate_alike(int64_t n_ctx_a, int64_t n_ctx_b) const;
  /// Whether some layer has a state that can be cut only where it was set aside.
  bool is_recurrent() const;
};

/// A layer of full attention with these heads, as the model's family has them.
LayerSpec full_attention_layer(const MetadataReader& reader, const ModelSpec& spec,
                               const Heads& heads);

/// A layer that remembers nothing of a sequence, with such a mixer: `none` or `linear`.
LayerSpec stateless_layer(TokenMixerKind mixer);

/// Throws Error{kBadModel} naming the key that gives no layer attention.
void require_attention(const MetadataReader& reader, const ModelSpec& spec);

/// Throws Error{kBadModel} naming file, key, expected and actual value.
ModelSpec read_model_spec(const GgufFile& file);

}  // namespace snapkv
