// SPDX-License-Identifier: MIT
#include "tests/support/family_models.h"

#include <algorithm>

#include "base/check.h"
#include "tests/support/family_model_parts.h"

namespace snapkv::test {

RandomModelShape shape_of(RandomFamily family, int64_t n_layer, int64_t head_dim) {
  return {.n_embd = 64,
          .n_layer = n_layer,
          .n_head = 4,
          .n_head_kv = 2,
          .head_dim = head_dim,
          .n_ff = 96,
          .n_vocab = kFamilyVocab,
          .family = std::move(family)};
}

FamilyModel model_of(std::string name, RandomModelShape shape) {
  FamilyModel m{.name = std::move(name), .shape = std::move(shape), .options = {}};
  m.options.dtype = DType::f32;
  m.options.n_ctx = m.shape.family.learned_positions ? 256 : 4096;
  m.options.gains.emplace();
  return m;
}

namespace {

/// llama.cpp computes GELU from an f16 table (errors of 2^-11), so here feed-forward networks with
/// GELU add little to the residual stream: their errors stay below the oracle's 1e-3.
FamilyModel with_gelu(FamilyModel m) {
  m.options.gains->ffn = 0.5f;
  m.options.gains->ffn_post_norm = 0.25f;
  return m;
}

/// Gemma multiplies its embeddings by sqrt(n_embd) = 8.
FamilyModel with_scaled_embeddings(FamilyModel m) {
  m.options.gains->embedding = 0.25f;
  return with_gelu(std::move(m));
}

std::vector<RandomKey> yarn(double factor, int64_t n_ctx_original) {
  return {{"rope.scaling.type", "yarn"},
          {"rope.scaling.factor", factor},
          {"rope.scaling.original_context_length", n_ctx_original}};
}

std::vector<RandomKey> longrope(double magnitude, int64_t n_ctx_original) {
  return {{"rope.scaling.attn_factor", magnitude},
          {"rope.scaling.original_context_length", n_ctx_original}};
}

std::vector<RandomKey> joined(std::vector<RandomKey> a, const std::vector<RandomKey>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<FamilyModel> llamas() {
  return {
      model_of("llama-freqs", shape_of({.own_output = true, .rope_freqs = true})),
      model_of("llama-linear",
               shape_of({.keys = {{"rope.scaling.type", "linear"}, {"rope.scaling.factor", 4.0}}})),
      model_of("llama-yarn", shape_of({.keys = yarn(8.0, 512)})),
      model_of("llama-longrope",
               shape_of({.long_factors = true,
                         .keys = joined({{"rope.scaling.type", "longrope"}}, longrope(1.25, 64))})),
      model_of("mistral3",
               shape_of({.architecture = "mistral3",
                         .keys = joined(yarn(16.0, 16), {{"rope.scaling.yarn_log_multiplier", 1.0},
                                                         {"attention.temperature_scale", 0.3}})},
                        3, 32)),
      model_of("smollm3", shape_of({.architecture = "smollm3"}, 4)),
      model_of("granite", shape_of({.architecture = "granite",
                                    .keys = {{"attention.scale", 0.4},
                                             {"embedding_scale", 3.0},
                                             {"residual_scale", 0.5},
                                             {"logit_scale", 2.0}}})),
      model_of("internlm2", shape_of({.architecture = "internlm2", .own_output = true})),
  };
}

std::vector<FamilyModel> mixtures_of_experts() {
  RandomFamily mixtral{.own_output = true, .n_expert = 8, .n_expert_used = 2};
  RandomFamily parts{.n_expert = 5, .n_expert_used = 3, .merged_experts = false};
  RandomFamily qwen3moe{.architecture = "qwen3moe",
                        .qk_norm = RandomQkNorm::each_head,
                        .n_expert = 12,
                        .n_expert_used = 4,
                        .n_ff_dense = 192};
  RandomFamily qwen2moe{.architecture = "qwen2moe",
                        .qkv_bias = true,
                        .own_output = true,
                        .n_expert = 10,
                        .n_expert_used = 4,
                        .n_ff_dense = 192,
                        .n_ff_shared = 160,
                        .shared_gate = true};
  RandomFamily gpt_oss{.architecture = "gpt-oss",
                       .qkv_bias = true,
                       .output_bias = true,
                       .own_output = true,
                       .sinks = true,
                       .ffn_norm_is_post_attention = true,
                       .n_expert = 8,
                       .n_expert_used = 3,
                       .expert_bias = true,
                       .n_ff_dense = 96,
                       .window = 16,
                       .keys = yarn(8.0, 512)};
  const auto granitemoe = [](int64_t n_ff_shared) {
    return shape_of({.architecture = "granitemoe",
                     .n_expert = 8,
                     .n_expert_used = 3,
                     .n_ff_shared = n_ff_shared,
                     .keys = {{"attention.scale", 0.4},
                              {"embedding_scale", 3.0},
                              {"residual_scale", 0.5},
                              {"logit_scale", 2.0}}});
  };
  FamilyModel oss = model_of("gpt-oss", shape_of(gpt_oss, 4));
  oss.options.gains->ffn = 3.0f;  // so that some values exceed the limit of 7
  return {model_of("mixtral", shape_of(mixtral)),
          model_of("mixtral-parts", shape_of(parts)),
          model_of("qwen3moe", shape_of(qwen3moe, 3, 32)),
          model_of("qwen2moe", shape_of(qwen2moe)),
          oss,
          model_of("granitemoe", granitemoe(0)),
          model_of("granitemoe-shared", granitemoe(128))};
}

std::vector<FamilyModel> qwen_and_phi() {
  const auto phi3 = [](RandomFamily more) {
    more.architecture = "phi3";
    more.fused_qkv = more.fused_gate = true;
    return shape_of(std::move(more));
  };
  return {
      model_of("qwen2", shape_of({.architecture = "qwen2", .qkv_bias = true})),
      model_of("llama-scales", shape_of({.qkv_bias = true, .matrix_scales = true})),
      model_of("qwen3",
               shape_of({.architecture = "qwen3", .qk_norm = RandomQkNorm::each_head}, 3, 32)),
      model_of("phi3", phi3({.own_output = true})),
      model_of("phi3-window", phi3({.own_output = true, .window = 16})),
      model_of("phi3-long", phi3({.n_rot = 12, .long_factors = true, .keys = longrope(1.19, 64)})),
      model_of("phi3-short", phi3({.long_factors = true, .keys = longrope(1.19, 4096)})),
  };
}

std::vector<FamilyModel> gemmas() {
  RandomModelShape one_kv_head = shape_of({.architecture = "gemma"}, 3, 32);
  one_kv_head.n_head_kv = 1;
  RandomModelShape gemma3 =
      shape_of({.architecture = "gemma3",
                .norm_after = true,
                .qk_norm = RandomQkNorm::each_head,
                .window = 16,
                .keys = {{"rope.scaling.type", "linear"}, {"rope.scaling.factor", 8.0}}},
               7, 32);
  gemma3.rope_base = 1e6;
  return {
      with_scaled_embeddings(model_of("gemma", one_kv_head)),
      with_scaled_embeddings(model_of(
          "gemma2",
          shape_of({.architecture = "gemma2",
                    .norm_after = true,
                    .window = 16,
                    .keys = {{"attn_logit_softcapping", 3.0}, {"final_logit_softcapping", 5.0}}},
                   4, 32))),
      with_scaled_embeddings(model_of("gemma3", gemma3)),
  };
}

/// Several layers, with a window and without, read the rows of earlier ones; or values are made of
/// keys; or experts stand beside a dense network.
std::vector<FamilyModel> gemma4s() {
  const auto gemma4 = [](std::string name, RandomFamily::Gemma4 sizes, int64_t n_layer,
                         int64_t n_expert = 0) {
    RandomModelShape shape = shape_of({.architecture = "gemma4",
                                       .norm_after = true,
                                       .n_expert = n_expert,
                                       .n_expert_used = n_expert > 0 ? 3 : 0,
                                       .n_ff_dense = n_expert > 0 ? 64 : 0,
                                       .gemma4 = sizes,
                                       .window = 16,
                                       .keys = {{"final_logit_softcapping", 5.0}}},
                                      n_layer, 32);
    shape.rope_base = 1e6;
    FamilyModel m = with_scaled_embeddings(model_of(std::move(name), shape));
    m.options.gains->qk_norm = 0.65f;  // scores are not divided by sqrt(head_dim)
    return m;
  };
  return {
      gemma4("gemma4-e",
             {.full_every = 3,
              .head_dim_window = 16,
              .n_head_kv_full = 2,
              .n_shared = 6,
              .n_layer_input = 24},
             9),
      gemma4("gemma4",
             {.full_every = 3, .head_dim_window = 16, .n_head_kv_full = 1, .keys_are_values = true},
             6),
      gemma4("gemma4-moe",
             {.full_every = 2, .head_dim_window = 16, .n_head_kv_full = 1, .keys_are_values = true},
             4, 8)};
}

std::vector<FamilyModel> with_layer_norms() {
  RandomModelShape gpt2 = shape_of({.architecture = "gpt2",
                                    .layer_norm = true,
                                    .norm_bias = true,
                                    .qkv_bias = true,
                                    .output_bias = true,
                                    .ffn_bias = true,
                                    .fused_qkv = true,
                                    .gated = false,
                                    .learned_positions = true});
  gpt2.n_head_kv = gpt2.n_head;
  return {
      with_gelu(model_of("starcoder2", shape_of({.architecture = "starcoder2",
                                                 .layer_norm = true,
                                                 .norm_bias = true,
                                                 .qkv_bias = true,
                                                 .output_bias = true,
                                                 .ffn_bias = true,
                                                 .gated = false}))),
      model_of("stablelm", shape_of({.architecture = "stablelm",
                                     .n_rot = 4,
                                     .layer_norm = true,
                                     .norm_bias = true,
                                     .qkv_bias = true,
                                     .own_output = true})),
      model_of("stablelm-12b", shape_of({.architecture = "stablelm",
                                         .n_rot = 4,
                                         .layer_norm = true,
                                         .norm_bias = true,
                                         .ffn_norm = false,
                                         .qk_norm = RandomQkNorm::own_weights,
                                         .own_output = true})),
      model_of("command-r", shape_of({.architecture = "command-r",
                                      .layer_norm = true,
                                      .ffn_norm = false,
                                      .keys = {{"logit_scale", 0.5}}})),
      model_of("cohere2", shape_of({.architecture = "cohere2",
                                    .layer_norm = true,
                                    .ffn_norm = false,
                                    .window = 16,
                                    .keys = {{"logit_scale", 0.5}}},
                                   5)),
      with_gelu(model_of("gpt2", gpt2)),
  };
}

std::vector<FamilyModel> olmos() {
  const auto olmo = [](int64_t window, std::vector<RandomKey> keys, int64_t n_layer) {
    return shape_of({.architecture = "olmo2",
                     .norm_before = false,
                     .norm_after = true,
                     .qk_norm = RandomQkNorm::all_together,
                     .own_output = true,
                     .window = window,
                     .keys = std::move(keys)},
                    n_layer);
  };
  RandomModelShape olmoe = shape_of({.architecture = "olmoe",
                                     .qk_norm = RandomQkNorm::all_together,
                                     .own_output = true,
                                     .n_expert = 10,
                                     .n_expert_used = 4});
  olmoe.n_head_kv = olmoe.n_head;
  return {model_of("olmo2", olmo(0, {}, 3)), model_of("olmo3", olmo(16, yarn(8.0, 512), 5)),
          model_of("olmoe", olmoe)};
}

/// Most layers have a short convolution; the models end with it, or with attention.
std::vector<FamilyModel> with_short_convolutions() {
  const auto lfm2 = [](int64_t kernel, std::vector<int64_t> attention_layers, int64_t n_layer) {
    return shape_of({.architecture = "lfm2",
                     .qk_norm = RandomQkNorm::each_head,
                     .conv_kernel = kernel,
                     .attention_layers = std::move(attention_layers)},
                    n_layer);
  };
  RandomModelShape lfm2moe = lfm2(3, {1, 3}, 5);
  lfm2moe.family.architecture = "lfm2moe";
  lfm2moe.family.n_expert = 8;
  lfm2moe.family.n_expert_used = 3;
  lfm2moe.family.choice_bias = true;
  lfm2moe.family.n_ff_dense = 128;
  lfm2moe.family.n_dense_layers = 2;
  lfm2moe.family.keys = {{"expert_gating_func", int64_t{2}}};  // sigmoid
  return {model_of("lfm2", lfm2(3, {1, 3}, 5)), model_of("lfm2-wide", lfm2(4, {2}, 3)),
          model_of("lfm2moe", lfm2moe)};
}

/// Linear attention in three of four layers; one model ends with it and has layers that guess
/// further tokens.
std::vector<FamilyModel> with_delta_rules() {
  const auto qwen35 = [](RandomFamily::DeltaNet net, int64_t n_layer, int64_t n_draft_layer) {
    return shape_of({.architecture = "qwen35",
                     .n_rot = 8,
                     .qk_norm = RandomQkNorm::each_head,
                     .ffn_norm_is_post_attention = true,
                     .delta_net = net,
                     .n_draft_layer = n_draft_layer,
                     .sections = true},
                    n_layer);
  };
  const RandomFamily::DeltaNet net = {.n_head_k = 2, .n_head = 4, .head_dim = 32};
  RandomFamily qwen35moe = qwen35(net, 4, 1).family;
  qwen35moe.architecture = "qwen35moe";
  qwen35moe.n_expert = 12;
  qwen35moe.n_expert_used = 3;
  qwen35moe.n_ff_dense = 192;
  qwen35moe.n_ff_shared = 64;
  qwen35moe.shared_gate = true;
  RandomFamily qwen3next = qwen35moe;
  qwen3next.architecture = "qwen3next";
  qwen3next.n_draft_layer = 0;
  qwen3next.sections = false;
  qwen3next.delta_net.joined_gates = true;
  qwen3next.fused_experts = true;
  qwen3next.own_output = true;
  return {model_of("qwen35", qwen35(net, 4, 0)),
          model_of("qwen35-draft", qwen35({.n_head_k = 3, .n_head = 3, .head_dim = 16}, 9, 1)),
          model_of("qwen35moe", shape_of(qwen35moe, 4)),
          model_of("qwen3next", shape_of(qwen3next, 4))};
}

/// The first layer has no experts.
/// The scales of `minicpm3`, which are not in the file: 12 for embeddings, 4 for logits.
FamilyModel with_minicpm3_scales(FamilyModel m) {
  m.options.gains->embedding = 0.05f;
  m.options.gains->output = 0.75f;
  return m;
}

std::vector<FamilyModel> with_latent_attention() {
  RandomFamily lite{.architecture = "deepseek2",
                    .n_rot = 16,
                    .own_output = true,
                    .n_expert = 8,
                    .n_expert_used = 3,
                    .n_ff_dense = 128,
                    .n_dense_layers = 1,
                    .n_ff_shared = 2 * 96,
                    .latent = {.rank = 32, .n_unrotated = 24, .n_value = 40},
                    .keys = joined(yarn(8.0, 512), {{"rope.scaling.yarn_log_multiplier", 0.0707}})};
  RandomFamily old = lite;
  old.latent.joined = true;
  RandomFamily v3{.architecture = "deepseek2",
                  .n_rot = 16,
                  .n_expert = 16,
                  .n_expert_used = 4,
                  .choice_bias = true,
                  .n_ff_dense = 128,
                  .n_dense_layers = 1,
                  .n_ff_shared = 96,
                  .latent = {.rank = 64, .q_rank = 40, .n_unrotated = 32, .n_value = 24},
                  .n_draft_layer = 1,
                  .keys = joined(yarn(16.0, 64), {{"rope.scaling.yarn_log_multiplier", 0.1},
                                                  {"expert_gating_func", int64_t{2}},
                                                  {"expert_group_count", int64_t{4}},
                                                  {"expert_group_used_count", int64_t{2}},
                                                  {"expert_weights_norm", true},
                                                  {"expert_weights_scale", 1.5}})};
  RandomFamily mistral4 = v3;
  mistral4.architecture = "mistral4";
  mistral4.choice_bias = false;
  mistral4.n_draft_layer = 0;
  mistral4.keys = joined(yarn(16.0, 16), {{"rope.scaling.yarn_log_multiplier", 0.05},
                                          {"attention.temperature_scale", 0.3},
                                          {"attention.temperature_length", int64_t{16}},
                                          {"expert_weights_norm", true}});
  RandomFamily minicpm3{.architecture = "minicpm3",
                        .n_rot = 8,
                        .latent = {.rank = 32,
                                   .q_rank = 48,
                                   .n_unrotated = 16,
                                   .n_value = 16,
                                   .joined = true,
                                   .names_value = false}};
  RandomFamily factors = minicpm3;
  factors.own_output = true;
  factors.long_factors = true;
  RandomFamily plm{.architecture = "plm",
                   .n_rot = 16,
                   .gated = false,
                   .latent = {.rank = 64, .n_unrotated = 24, .n_value = 24, .joined = true}};
  return {with_minicpm3_scales(model_of("minicpm3", shape_of(minicpm3))),
          with_minicpm3_scales(model_of("minicpm3-factors", shape_of(factors))),
          model_of("plm", shape_of(plm)),
          model_of("deepseek2-lite", shape_of(lite)),
          model_of("deepseek2-joined", shape_of(old)),
          model_of("deepseek2", shape_of(v3)),
          model_of("mistral4", shape_of(mistral4))};
}

/// Latent attention to the tokens that indexers choose: of prompts that are longer than top_k, but
/// in the model whose layers choose together. With few heads, all of an indexer's products would
/// be negative for some tokens, whose scores are then the same. Where the last chosen token and the
/// next one differ by less than 1e-5 of all scores, processors choose differently: with a top_k of
/// 36, deepseek32's do by 1e-4 at least.
std::vector<FamilyModel> with_indexers() {
  RandomFamily glm{.architecture = "glm-dsa",
                   .n_rot = 16,
                   .own_output = true,
                   .n_expert = 8,
                   .n_expert_used = 3,
                   .choice_bias = true,
                   .n_ff_dense = 128,
                   .n_dense_layers = 1,
                   .n_ff_shared = 96,
                   .latent = {.rank = 32,
                              .q_rank = 40,
                              .n_unrotated = 24,
                              .n_value = 40,
                              .n_index_head = 16,
                              .d_index = 64,
                              .top_k = 24},
                   .n_draft_layer = 1,
                   .keys = {{"expert_weights_norm", true}, {"expert_weights_scale", 1.5}}};
  RandomFamily together = glm;
  together.latent.top_k = 256;
  together.latent.index_layers = {0, 2};
  together.n_draft_layer = 0;
  RandomFamily deepseek = glm;
  deepseek.architecture = "deepseek32";
  deepseek.n_expert = 16;
  deepseek.n_expert_used = 4;
  deepseek.latent = {.rank = 64,
                     .q_rank = 48,
                     .n_unrotated = 32,
                     .n_value = 24,
                     .n_index_head = 24,
                     .d_index = 128,
                     .top_k = 36};
  deepseek.keys = joined(yarn(16.0, 64), {{"rope.scaling.yarn_log_multiplier", 0.1},
                                          {"expert_gating_func", int64_t{2}},
                                          {"expert_group_count", int64_t{4}},
                                          {"expert_group_used_count", int64_t{2}},
                                          {"expert_weights_norm", true},
                                          {"expert_weights_scale", 1.5}});
  return {model_of("glm-dsa", shape_of(glm)), model_of("glm-dsa-together", shape_of(together)),
          model_of("deepseek32", shape_of(deepseek))};
}

/// Kimi Delta Attention in three of four layers, latent attention in the others; one model ends
/// with the former, one with the latter.
std::vector<FamilyModel> with_kimi_delta() {
  RandomFamily five{.architecture = "kimi-linear",
                    .n_rot = 16,
                    .own_output = true,
                    .n_expert = 12,
                    .n_expert_used = 3,
                    .choice_bias = true,
                    .n_ff_dense = 160,
                    .n_dense_layers = 1,
                    .n_ff_shared = 2 * 96,
                    .kimi_delta = {.head_dim = 24},
                    .latent = {.rank = 32, .n_unrotated = 24, .n_value = 40},
                    .keys = {{"expert_gating_func", int64_t{2}}, {"expert_weights_scale", 1.5}}};
  RandomFamily four = five;
  four.n_dense_layers = 2;
  four.n_ff_shared = 96;
  four.kimi_delta = {.head_dim = 8, .conv_kernel = 3, .joined_qkv = true};
  four.latent = {.rank = 64, .n_unrotated = 16, .n_value = 24};
  RandomFamily ling = five;
  ling.architecture = "bailingmoe3";
  ling.own_output = false;
  ling.head_gates = true;
  ling.n_expert = 16;
  ling.n_expert_used = 4;
  ling.kimi_delta.log_floor = -5.0;
  ling.latent.q_rank = 40;
  ling.keys = joined(five.keys, {{"expert_weights_norm", true},
                                 {"expert_group_count", int64_t{4}},
                                 {"expert_group_used_count", int64_t{2}}});
  return {model_of("kimi-linear", shape_of(five, 5)),
          model_of("kimi-linear-attn", shape_of(four, 4)),
          model_of("bailingmoe3", shape_of(ling, 5))};
}

}  // namespace

const std::vector<FamilyModel>& family_models() {
  static const std::vector<FamilyModel> models = [] {
    std::vector<FamilyModel> all;
    for (auto&& some :
         {llamas(), mixtures_of_experts(), qwen_and_phi(), gemmas(), gemma4s(), olmos(),
          with_layer_norms(), with_short_convolutions(), with_delta_rules(),
          with_latent_attention(), with_indexers(), with_kimi_delta(), with_mamba(), with_mamba2(),
          with_rwkv(), with_streams(), older_models(), more_dense_models(), more_mixtures()}) {
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }();
  return models;
}

void write_family_model(const std::string& name, const std::string& path,
                        const std::string& omitted) {
  const auto m = std::find_if(family_models().begin(), family_models().end(),
                              [&](const FamilyModel& model) { return model.name == name; });
  SNAPKV_CHECK(m != family_models().end());
  RandomModelOptions options = m->options;
  options.omitted = omitted;
  write_random_model(path, m->shape, options);
}

}  // namespace snapkv::test
