// SPDX-License-Identifier: MIT
// Random models of families of before 2024 (family_models.h).
#include <utility>

#include "tests/support/family_model_parts.h"

namespace snapkv::test {
namespace {

/// Layer norms, GELU without a gate, one matrix for queries, keys and values.
RandomFamily like_gpt(std::string architecture, bool biases) {
  return {.architecture = std::move(architecture),
          .layer_norm = true,
          .norm_bias = true,
          .qkv_bias = biases,
          .output_bias = biases,
          .ffn_bias = biases,
          .fused_qkv = true,
          .gated = false};
}

/// llama.cpp computes GELU from a table in f16, so the networks add little.
FamilyModel with_small_networks(std::string name, RandomModelShape shape) {
  FamilyModel m = model_of(std::move(name), std::move(shape));
  m.options.gains->ffn = 0.5f;
  return m;
}

RandomModelShape with_kv_heads(RandomFamily family, int64_t n_head_kv) {
  RandomModelShape shape = shape_of(std::move(family));
  shape.n_head_kv = n_head_kv;
  return shape;
}

std::vector<FamilyModel> gpt_neoxes() {
  const auto gptneox = [](std::string name, bool parallel) {
    RandomFamily family = like_gpt("gptneox", true);
    family.n_rot = 4;
    family.own_output = true;
    family.keys = {{"use_parallel_residual", parallel}};
    return with_small_networks(std::move(name), with_kv_heads(std::move(family), 4));
  };
  return {gptneox("gptneox", true), gptneox("gptneox-redpajama", false)};
}

std::vector<FamilyModel> falcons() {
  RandomFamily small = like_gpt("falcon", false);
  small.ffn_norm = false;
  RandomFamily large = small;
  large.second_norm = true;
  large.own_output = true;
  return {with_small_networks("falcon", with_kv_heads(small, 1)),
          with_small_networks("falcon-40b", with_kv_heads(large, 2))};
}

FamilyModel starcoder() {
  RandomFamily family = like_gpt("starcoder", true);
  family.learned_positions = true;
  return with_small_networks("starcoder", with_kv_heads(std::move(family), 1));
}

FamilyModel phi2() {
  RandomFamily family = like_gpt("phi2", true);
  family.n_rot = 8;
  family.ffn_norm = false;
  family.own_output = family.output_has_bias = true;
  return with_small_networks("phi2", with_kv_heads(std::move(family), 4));
}

FamilyModel codeshell() {
  RandomFamily family = like_gpt("codeshell", true);
  family.own_output = true;
  return with_small_networks("codeshell", shape_of(std::move(family)));
}

std::vector<FamilyModel> like_llama() {
  return {model_of("orion", shape_of({.architecture = "orion",
                                      .layer_norm = true,
                                      .norm_bias = true,
                                      .own_output = true})),
          model_of("xverse", shape_of({.architecture = "xverse", .own_output = true})),
          model_of("chatglm", shape_of({.architecture = "chatglm",
                                        .n_rot = 8,
                                        .qkv_bias = true,
                                        .fused_qkv = true,
                                        .fused_gate = true,
                                        .own_output = true}))};
}

std::vector<FamilyModel> families_of_2023() {
  RandomFamily qwen{.architecture = "qwen",
                    .qkv_bias = true,
                    .counts_both = true,
                    .fused_qkv = true,
                    .own_output = true};
  RandomFamily plamo{.architecture = "plamo", .ffn_norm = false, .own_output = true};
  RandomFamily openelm{.architecture = "openelm",
                       .qk_norm = RandomQkNorm::each_head,
                       .fused_qkv = true,
                       .layer_sizes = {{2, 1, 32}, {4, 2, 96}, {4, 1, 64}, {8, 2, 160}}};
  return {model_of("qwen", with_kv_heads(std::move(qwen), 4)),
          model_of("plamo", shape_of(std::move(plamo))),
          model_of("openelm", shape_of(std::move(openelm), 4))};
}

/// Queries, keys and values beyond the limit are many.
std::vector<FamilyModel> with_clamped_attention() {
  RandomFamily olmo{.architecture = "olmo", .layer_norm = true, .plain_norms = true};
  olmo.keys = {{"attention.clamp_kqv", 1.5}};
  RandomFamily large = olmo;
  large.own_output = true;
  large.keys.clear();
  RandomFamily dbrx{.architecture = "dbrx",
                    .layer_norm = true,
                    .fused_qkv = true,
                    .own_output = true,
                    .ffn_norm_is_attn_output = true,
                    .n_expert = 8,
                    .n_expert_used = 3,
                    .keys = {{"attention.clamp_kqv", 1.5}}};
  return {model_of("olmo", shape_of(olmo)), model_of("olmo-plain", shape_of(large)),
          model_of("dbrx", shape_of(dbrx))};
}

std::vector<FamilyModel> with_shared_experts() {
  RandomFamily deepseek{.architecture = "deepseek",
                        .own_output = true,
                        .n_expert = 12,
                        .n_expert_used = 3,
                        .n_ff_dense = 160,
                        .n_dense_layers = 1,
                        .n_ff_shared = 192,
                        .n_shared = 2,
                        .keys = {{"expert_weights_scale", 1.5}}};
  RandomFamily ling = deepseek;
  ling.architecture = "bailingmoe";
  ling.n_dense_layers = 0;
  ling.keys.push_back({"expert_weights_norm", true});
  return {model_of("deepseek", shape_of(deepseek)), model_of("bailingmoe", shape_of(ling))};
}

/// ALiBi. Slopes of 6 heads are of two series.
std::vector<FamilyModel> with_position_biases() {
  RandomFamily bloom = like_gpt("bloom", true);
  bloom.embedding_norm = true;
  RandomFamily mpt = like_gpt("mpt", false);
  mpt.keys = {{"attention.max_alibi_bias", 6.0}, {"attention.clamp_kqv", 1.5}};
  RandomModelShape mpt_shape = shape_of(mpt, 3, 16);
  mpt_shape.n_embd = 96;
  mpt_shape.n_head = mpt_shape.n_head_kv = 6;
  RandomFamily refact{.architecture = "refact", .own_output = true};
  RandomFamily jais{.architecture = "jais",
                    .layer_norm = true,
                    .norm_bias = true,
                    .qkv_bias = true,
                    .output_bias = true,
                    .ffn_bias = true,
                    .fused_qkv = true,
                    .own_output = true,
                    .keys = {{"attention.max_alibi_bias", 8.0}}};
  RandomFamily baichuan{.architecture = "baichuan", .own_output = true};
  FamilyModel deep = model_of("baichuan-13b", shape_of(baichuan, 40));  // by this the file is known
  deep.options.gains->attention_output = deep.options.gains->ffn = 0.4f;
  return {with_small_networks("bloom", with_kv_heads(bloom, 4)),
          with_small_networks("mpt", mpt_shape), model_of("refact", with_kv_heads(refact, 1)),
          model_of("jais", with_kv_heads(jais, 4)), deep};
}

}  // namespace

std::vector<FamilyModel> older_models() {
  std::vector<FamilyModel> all = {starcoder(), phi2(), codeshell()};
  for (auto&& some : {gpt_neoxes(), falcons(), like_llama(), families_of_2023(),
                      with_clamped_attention(), with_shared_experts(), with_position_biases()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace snapkv::test
