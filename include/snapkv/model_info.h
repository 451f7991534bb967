// SPDX-License-Identifier: MIT
// What a model is, according to its file: returned by Model::info() and, without loading any
// weights, by describe_model(). Sizes are in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "snapkv/dtype.h"
#include "snapkv/policy.h"

namespace snapkv {

/// Which tokens a query sees in a layer, among those up to its own.
enum class AttentionKind {
  full,            ///< all of them
  sliding_window,  ///< the last LayerInfo::window, its own included
  chunked,         ///< those from the last multiple of LayerInfo::window on
  none,            ///< the layer has no attention
};

/// "full", "sliding window", "chunks", "none"
const char* name(AttentionKind kind);

struct LayerInfo {
  AttentionKind attention = AttentionKind::full;
  /// Tokens that a query sees through a sliding window, its own included, or those of a chunk.
  int64_t window = 0;
  /// Whether a policy chooses which rows of its cache are kept. A sliding window keeps its last
  /// `window` rows instead, and a layer with chunks those of the last one, whatever the policy: no
  /// later query can see the others.
  bool compressed = true;
  bool rotated = true;   ///< queries and keys are rotated by their position (RoPE)
  float scale = 1.0f;    ///< of the scores q . k, nearly always 1 / sqrt(head_dim)
  float softcap = 0.0f;  ///< if > 0: scores s become softcap * tanh(s / softcap)
  /// Query heads, KV heads and the width of keys; 0 in a layer without attention.
  int64_t n_head = 0, n_head_kv = 0, head_dim = 0;
  int64_t value_dim = 0;  ///< the width of values
  /// The earlier layer whose rows this one reads, since it has none of its own; -1: it has some.
  /// Policies choose from the rows of that layer, by the queries of all that read them.
  int rows_of = -1;
  /// Whether values are a part of the keys, which alone are stored (multi-head latent attention).
  bool value_in_key = false;
};

class Architecture;
struct ModelSpec;  // private to the engine

/// A model's properties, from its metadata (under GGUF's names).
struct ModelInfo {
  std::string path;
  std::string architecture;  ///< general.architecture
  std::string name;          ///< general.name
  std::string file_type;     ///< most frequent type of the weight matrices: "q8_0"
  /// What llama.cpp calls the file's mixture of types (general.file_type): "Q4_K_M"; file_type in
  /// upper case where the file does not say.
  std::string quantization;
  std::string tokenizer;  ///< tokenizer.ggml.model
  int64_t n_layer = 0, n_embd = 0, n_vocab = 0, n_ctx_train = 0;
  int64_t n_ff = 0;  ///< width of the feed-forward networks; of one expert where there are experts
  /// With YaRN (of the file, or ModelOptions::rope_scaling): n_ctx_train is about `yarn_factor`
  /// times the context that the model was trained with. 0: without YaRN.
  double yarn_factor = 0;
  int64_t yarn_orig_ctx = 0;
  int64_t n_head = 0, n_head_kv = 0, head_dim = 0;  ///< the largest of the layers'
  /// Of each layer that has experts, and how many of them a token passes; 0: no layer has any.
  int64_t n_expert = 0, n_expert_used = 0;
  int64_t n_params = 0;            ///< weights, counted
  size_t weight_bytes = 0;         ///< of the tensors, as in the file
  int64_t n_active_params = 0;     ///< without those of experts that a token does not pass
  size_t active_weight_bytes = 0;  ///< of n_active_params
  std::vector<LayerInfo> layers;   ///< [n_layer]
  /// Parameters of policies that the file recommends, if it has them: window_size from the key
  /// snapkv.window_size, kernel_size from snapkv.kernel_size.
  PolicyParams policy_defaults = {};
  std::shared_ptr<const ModelSpec> spec;  ///< what is known of the layers
  /// The model without its weights, which memory plans run on a device that computes nothing. Null
  /// if it cannot run.
  std::shared_ptr<const Architecture> decoder;
  std::shared_ptr<const ModelInfo> draft;  ///< of ModelOptions::draft_model; null: none

  /// Rows per KV head that layer il keeps of n_tokens if no policy chooses among them.
  int64_t full_rows(int64_t il, int64_t n_tokens) const;
  /// Number of layers that policies choose rows of.
  int64_t n_compressed() const;
};

/// A policy with the parameters that the model's file recommends (ModelInfo::policy_defaults).
/// Parameters that it does not name, or that the policy does not have, keep the papers' defaults.
/// Throws Error{kUsage} for an unknown policy.
PolicyConfig recommended_policy(const ModelInfo& info, const std::string& policy = "snapkv");

struct MetadataEntry {
  std::string key;
  std::string type;   ///< "u32", "string", "array<string>[32000]"
  std::string value;  ///< for people; long arrays and strings are cut and end in "..."
};
struct TensorEntry {
  std::string name;
  std::string type;            ///< "q8_0", "iq2_xxs"
  std::vector<int64_t> shape;  ///< outermost first
  size_t bytes = 0;            ///< 0 if the type's size is unknown
};
struct TypeShare {
  std::string type;
  int64_t n_tensors = 0;
  int64_t n_params = 0;
  size_t bytes = 0;
};

/// Everything that a model's file says about the model, without loading its weights.
struct ModelDescription {
  /// For a model that cannot run, what could be found out: `spec`, `decoder` and `layers` may be
  /// missing, and sizes 0.
  ModelInfo info;
  std::string family;            ///< the models people know it by: "Llama 1 to 3, Mistral, ..."
  std::vector<TypeShare> types;  ///< of the tensors, most bytes first
  std::string chat_template;     ///< its text (Jinja); empty: none
  std::vector<MetadataEntry> metadata;
  std::vector<TensorEntry> tensors;
  /// Why the model cannot run, naming what is not supported; empty if it can.
  std::vector<std::string> problems;
};
/// Reads the header of a GGUF file (or split), or the files of a Hugging Face folder except its
/// weights. Throws kRuntime if they cannot be read, kBadModel if they are damaged. A model that
/// cannot run is not an error.
ModelDescription describe_model(const std::string& path);
struct ModelOptions;  // engine.h
/// The same of a model that is loaded with these options.
ModelDescription describe_model(const ModelOptions& options);

}  // namespace snapkv
