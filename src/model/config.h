// SPDX-License-Identifier: MIT
// ModelConfig: the sizes and constants of a decoder, read from GGUF metadata.
#pragma once

#include <cstdint>
#include <string>

namespace snapkv {

class GgufFile;

enum class RopeScaling { none, linear };

struct ModelConfig {
  std::string architecture;                      // general.architecture, prefix of the keys below
  int64_t n_layer = 0;                           // .block_count
  int64_t n_embd = 0;                            // .embedding_length
  int64_t n_ff = 0;                              // .feed_forward_length
  int64_t n_vocab = 0;                           // rows of token_embd.weight
  int64_t n_ctx_train = 0;                       // .context_length
  int64_t n_head = 0;                            // .attention.head_count
  int64_t n_head_kv = 0;                         // .attention.head_count_kv, default n_head
  int64_t head_dim = 0;                          // .attention.key_length, default n_embd / n_head
  int64_t n_rot = 0;                             // .rope.dimension_count, default head_dim
  float rms_eps = 1e-5f;                         // .attention.layer_norm_rms_epsilon
  double rope_freq_base = 1e4;                   // .rope.freq_base
  RopeScaling rope_scaling = RopeScaling::none;  // .rope.scaling.type
  double rope_scaling_factor = 1.0;              // .rope.scaling.factor
  float attention_scale = 0;                     // of the scores: 1 / sqrt(head_dim)

  int64_t n_group() const { return n_head / n_head_kv; }
};

/// Reads and checks what decoders have in common. Throws Error{kBadModel} naming key, expected and
/// actual.
ModelConfig read_config(const GgufFile& file);

}  // namespace snapkv
