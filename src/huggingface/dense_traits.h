// SPDX-License-Identifier: MIT
// DenseTraits: how config.json and the tensors of a dense class (dense_mappings.h) differ from
// Llama's.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace snapkv::huggingface {

struct Config;
class JsonFields;
class Keys;

/// Keys of config.json.
struct ConfigNames {
  std::string_view n_layer = "num_hidden_layers";
  std::string_view n_embd = "hidden_size";
  std::string_view n_ff = "intermediate_size";
  std::string_view n_head = "num_attention_heads";
  std::string_view n_head_kv = "num_key_value_heads";  // empty: it follows from other keys
  std::string_view n_ctx = "max_position_embeddings";
  std::string_view n_vocab = "vocab_size";
  std::string_view eps = "rms_norm_eps";
  std::string_view theta = "rope_theta";
  std::string_view rotated_share = "partial_rotary_factor";
};

/// A switch of which only one value is supported, which is also the default.
struct FixedFlag {
  std::string_view key;
  bool value = false;
};

/// Which layers have a sliding window.
enum class DenseWindows {
  none,
  all,       // if `sliding_window` is a number
  listed,    // those of `layer_types`, or all without it
  patterned  // all but the last of every DenseTraits::full_every
};

struct DenseTraits {
  // keys
  ConfigNames names = {};
  /// Used for n_layer, n_embd, n_head, n_ctx, eps, theta and rotated_share where their keys in
  /// `names` are missing.
  ConfigNames older_names = {};
  std::string_view older_activation_key = "hidden_act";
  bool may_be_flat = false;  // the text model's fields may stand among those of a picture model

  // defaults of the class
  double eps = 1e-5;
  double rotated_share = 1;
  int64_t head_dim = 0;     // 0: n_embd / n_head
  int64_t n_ctx = 0;        // 0: config.json must say it
  int64_t window = 0;       // 0: no window
  bool needs_rope = false;  // the default is a scaled rotation, so config.json must have one

  // what the class computes
  DenseWindows windows = DenseWindows::none;
  int64_t full_every = 0;
  bool has_head_dim = true;         // false: heads have n_embd / n_head values, whatever `head_dim`
  bool rotates_part = false;        // `partial_rotary_factor` may differ from 1
  bool has_sections = false;        // pairs turn by several positions, which are alike in text
  std::string_view positions = {};  // tensor of learned positions
  bool biased = false;              // scores have position biases; without both, the class rotates
  /// "dynamic" scales rotations beyond the context of config.json alone, which are not computed.
  bool ignores_dynamic = false;
  std::span<const FixedFlag> fixed = {};

  // tensors
  bool may_lack_root = false;                          // published names may lack GgufMapping::root
  std::span<const std::string_view> other_parts = {};  // prefixes of tensors that text does not use
  std::span<const std::string_view> buffers = {};      // tensors of a layer that are not mapped
  std::span<const std::string_view> root_buffers = {};  // those of the whole model

  // GGUF
  bool shares_output = false;     // the architecture always uses the embeddings for the logits
  bool needs_output = false;      // the architecture never does
  bool names_activation = false;  // the architecture reads `hidden_activation`
  std::string_view gguf_activation = "gelu_pytorch_tanh";  // its activation without that key

  /// Reads what else config.json says of the class, and adds its keys.
  void (*read_more)(const JsonFields& c, Config& config) = nullptr;
  void (*add_more_keys)(const Config& config, Keys& keys) = nullptr;
};

}  // namespace snapkv::huggingface
