// SPDX-License-Identifier: MIT
// The named shapes of random models: small ones for tests, and those of real models.
#include <fmt/core.h>

#include "base/error.h"
#include "bench/random_model.h"

namespace snapkv {
namespace {

struct NamedShape {
  std::string name;
  RandomModelShape shape;
};

RandomFamily qwen3() { return {.architecture = "qwen3", .qk_norm = RandomQkNorm::each_head}; }

RandomFamily gemma3() {
  return {.architecture = "gemma3",
          .norm_after = true,
          .qk_norm = RandomQkNorm::each_head,
          .window = 512};
}

/// The vocabulary decides how large it is: 2.3 of E2B's 4.6 billion parameters are inputs of
/// layers.
RandomFamily gemma4_e2b() {
  return {.architecture = "gemma4",
          .norm_after = true,
          .gemma4 = {.full_every = 5,
                     .head_dim_window = 256,
                     .n_head_kv_full = 1,
                     .n_shared = 20,
                     .n_layer_input = 256},
          .window = 512,
          .keys = {{"final_logit_softcapping", 30.0}}};
}

RandomFamily phi3() {
  return {.architecture = "phi3", .fused_qkv = true, .fused_gate = true, .own_output = true};
}

RandomFamily mixtral() { return {.own_output = true, .n_expert = 8, .n_expert_used = 2}; }

RandomFamily qwen3moe() {
  return {.architecture = "qwen3moe",
          .qk_norm = RandomQkNorm::each_head,
          .own_output = true,
          .n_expert = 128,
          .n_expert_used = 8,
          .n_ff_dense = 6144};
}

RandomFamily gpt_oss() {
  return {.architecture = "gpt-oss",
          .qkv_bias = true,
          .output_bias = true,
          .own_output = true,
          .sinks = true,
          .ffn_norm_is_post_attention = true,
          .n_expert = 32,
          .n_expert_used = 4,
          .expert_bias = true,
          .n_ff_dense = 2880,
          .window = 128,
          .keys = {{"rope.scaling.type", "yarn"},
                   {"rope.scaling.factor", 32.0},
                   {"rope.scaling.original_context_length", int64_t{4096}}}};
}

RandomFamily lfm2() {
  return {.architecture = "lfm2",
          .qk_norm = RandomQkNorm::each_head,
          .conv_kernel = 3,
          .attention_layers = {2, 5, 8, 10, 12, 14}};
}

RandomFamily qwen35(int64_t n_head) {
  return {.architecture = "qwen35",
          .n_rot = 64,
          .qk_norm = RandomQkNorm::each_head,
          .ffn_norm_is_post_attention = true,
          .delta_net = {.n_head_k = 16, .n_head = n_head, .head_dim = 128},
          .sections = true};
}

RandomFamily qwen35moe() {
  RandomFamily family = qwen35(32);
  family.architecture = "qwen35moe";
  family.own_output = true;
  family.n_expert = 256;
  family.n_expert_used = 8;
  family.n_ff_dense = 4096;
  family.n_ff_shared = 512;
  family.shared_gate = true;
  return family;
}

RandomFamily granite4_1b() {
  return {.architecture = "granitehybrid",
          .mamba2 = {.n_group = 1,
                     .n_head = 48,
                     .d_state = 128,
                     .d_head = 64,
                     .pattern = "MMMMM*MMMMMMMMM*MMMMMMMMM*MMMMMMMMM*MMMM"},
          .keys = {{"rope.scaling.finetuned", false},
                   {"attention.scale", 0.015625},
                   {"embedding_scale", 12.0},
                   {"residual_scale", 0.22},
                   {"logit_scale", 6.0}}};
}

RandomFamily mamba(int64_t n_layer, int64_t n_embd) {
  return {.architecture = "mamba",
          .mamba = {.n_channel = 2 * n_embd,
                    .d_state = 16,
                    .step_rank = n_embd / 16,
                    .pattern = std::string(n_layer, 'm'),
                    .normed = false,
                    .alone = true}};
}

RandomFamily rwkv7() {
  return {.architecture = "rwkv7",
          .layer_norm = true,
          .norm_bias = true,
          .own_output = true,
          .embedding_norm = true,
          .rwkv = {.version = 7,
                   .head_dim = 64,
                   .decay_rank = 96,
                   .rate_rank = 96,
                   .value_rank = 64,
                   .gate_rank = 256}};
}

RandomFamily falcon_h1() {
  return {.architecture = "falcon-h1",
          .own_output = true,
          .bare_ffn_norm = true,
          .mamba2 = {.n_group = 1,
                     .n_head = 48,
                     .d_state = 256,
                     .d_head = 64,
                     .pattern = std::string(24, '+'),
                     .normed = false}};
}

RandomFamily deepseek2_lite() {
  return {.architecture = "deepseek2",
          .n_rot = 64,
          .own_output = true,
          .n_expert = 64,
          .n_expert_used = 6,
          .n_ff_dense = 10944,
          .n_dense_layers = 1,
          .n_ff_shared = 2 * 1408,
          .latent = {.rank = 512, .n_unrotated = 128, .n_value = 128},
          .keys = {{"rope.scaling.type", "yarn"},
                   {"rope.scaling.factor", 40.0},
                   {"rope.scaling.original_context_length", int64_t{4096}},
                   {"rope.scaling.yarn_log_multiplier", 0.0707}}};
}

RandomFamily deepseek32() {
  return {.architecture = "deepseek32",
          .n_rot = 64,
          .own_output = true,
          .n_expert = 16,
          .n_expert_used = 4,
          .choice_bias = true,
          .n_ff_dense = 8192,
          .n_dense_layers = 1,
          .n_ff_shared = 1408,
          .latent = {.rank = 512,
                     .q_rank = 1536,
                     .n_unrotated = 128,
                     .n_value = 128,
                     .n_index_head = 64,
                     .d_index = 128,
                     .top_k = 2048,
                     .index_layers = {0, 1, 2, 3}},
          .keys = {{"rope.scaling.type", "yarn"},
                   {"rope.scaling.factor", 40.0},
                   {"rope.scaling.original_context_length", int64_t{4096}},
                   {"rope.scaling.yarn_log_multiplier", 0.1},
                   {"expert_gating_func", int64_t{2}},
                   {"expert_weights_norm", true},
                   {"expert_weights_scale", 2.5}}};
}

RandomFamily kimi_linear(int64_t n_expert) {
  return {.architecture = "kimi-linear",
          .n_rot = 64,
          .own_output = true,
          .n_expert = n_expert,
          .n_expert_used = 8,
          .choice_bias = true,
          .n_ff_dense = 9216,
          .n_dense_layers = 1,
          .n_ff_shared = 1024,
          .kimi_delta = {.head_dim = 128},
          .latent = {.rank = 512, .n_unrotated = 128, .n_value = 128},
          .keys = {{"expert_gating_func", int64_t{2}}, {"expert_weights_scale", 2.446}}};
}

const std::vector<NamedShape>& shapes() {
  // n_embd n_layer n_head n_head_kv head_dim n_ff n_vocab rope_base
  static const std::vector<NamedShape> all = {
      {"tiny-gqa", {128, 4, 4, 2, 32, 352, 512, 1e4}},         // for oracles in tests
      {"tiny-wide", {256, 2, 4, 2, 64, 512, 512, 1e4}},        // the same, for superblock types
      {"135m-gqa", {576, 30, 9, 3, 64, 1536, 32000, 1e5}},     // SmolLM-135M
      {"1b-gqa", {2048, 16, 32, 8, 64, 8192, 32000, 5e5}},     // Llama-3.2-1B
      {"1b-mha", {2048, 22, 32, 32, 64, 5632, 32000, 1e6}},    // TinyLlama's sizes, all heads kept
      {"3b-gqa", {3072, 28, 24, 8, 128, 8192, 32000, 5e5}},    // Llama-3.2-3B
      {"7b-mha", {4096, 32, 32, 32, 128, 11008, 32000, 5e7}},  // LWM-Text-Chat-1M
      {"8b-gqa", {4096, 32, 32, 8, 128, 14336, 32000, 1e6}},   // Mistral-7B-v0.2, Llama-3.1-8B
      {"llama3.2-1b", {2048, 16, 32, 8, 64, 8192, 128256, 5e5, {.rope_freqs = true}}},
      {"smollm2-1.7b", {2048, 24, 32, 32, 64, 8192, 49152, 1.3e5}},
      {"qwen3-0.6b", {1024, 28, 16, 8, 128, 3072, 151936, 1e6, qwen3()}},
      {"gemma3-1b", {1152, 26, 4, 1, 256, 6912, 262144, 1e6, gemma3()}},
      {"gemma4-e2b", {1536, 35, 8, 1, 512, 6144, 262144, 1e6, gemma4_e2b()}},
      {"mixtral-3b", {2048, 9, 16, 4, 128, 7168, 32000, 1e6, mixtral()}},  // half as wide as 8x7B
      {"mixtral-8x7b", {4096, 32, 32, 8, 128, 14336, 32000, 1e6, mixtral()}},
      {"qwen3-30b-a3b", {2048, 48, 32, 4, 128, 768, 151936, 1e6, qwen3moe()}},
      {"gpt-oss-3b", {2880, 4, 64, 8, 64, 2880, 32000, 1.5e5, gpt_oss()}},  // 20B's layers, fewer
      {"gpt-oss-20b", {2880, 24, 64, 8, 64, 2880, 201088, 1.5e5, gpt_oss()}},
      {"lfm2-1.2b", {2048, 16, 32, 8, 64, 8192, 65536, 1e6, lfm2()}},
      {"qwen35moe-3b", {2048, 8, 16, 2, 256, 512, 32000, 1e7, qwen35moe()}},  // 35B's, fewer layers
      {"qwen35moe-35b", {2048, 40, 16, 2, 256, 512, 248320, 1e7, qwen35moe()}},
      {"qwen35-2b", {2048, 24, 8, 2, 256, 6144, 151936, 1e7, qwen35(16)}},
      {"mamba-1.4b", {2048, 48, 32, 32, 64, 2048, 50280, 1e4, mamba(48, 2048)}},
      {"rwkv7-1.5b", {2048, 24, 32, 32, 64, 8192, 65536, 1e4, rwkv7()}},
      {"granite4-1b", {1536, 40, 12, 4, 128, 4096, 100352, 1e4, granite4_1b()}},
      {"falcon-h1-1.5b", {2048, 24, 8, 2, 128, 4096, 65536, 1e11, falcon_h1()}},
      // V2-Lite's, fewer layers
      {"deepseek2-lite-3b", {2048, 8, 16, 1, 192, 1408, 32000, 1e4, deepseek2_lite()}},
      {"deepseek2-lite-16b", {2048, 27, 16, 1, 192, 1408, 102400, 1e4, deepseek2_lite()}},
      {"deepseek32-1b", {2048, 4, 32, 1, 192, 1408, 32000, 1e4, deepseek32()}},  // 671B's indexer
      // 48B's, fewer layers and experts
      {"kimi-linear-2b", {2304, 8, 32, 1, 192, 1024, 32000, 1e4, kimi_linear(32)}},
      {"kimi-linear-48b", {2304, 27, 32, 1, 192, 1024, 163840, 1e4, kimi_linear(256)}},
      {"phi3-mini", {3072, 32, 32, 32, 96, 8192, 32064, 1e4, phi3()}},
  };
  return all;
}

}  // namespace

std::vector<std::string> random_model_names() {
  std::vector<std::string> names;
  for (const NamedShape& s : shapes()) names.push_back(s.name);
  return names;
}

RandomModelShape random_model_shape(std::string_view name) {
  std::string names;
  for (const NamedShape& s : shapes()) {
    if (name == s.name) return s.shape;
    names += (names.empty() ? "" : ", ") + s.name;
  }
  fail(ErrorCode::kUsage, "unknown model shape \"{}\"; known: {}", name, names);
}

}  // namespace snapkv
