// SPDX-License-Identifier: MIT
// Folders of mixtures that are read by functions of their own (latent_config.h, mixture_config.h),
// beside what hf_oracle_test.cpp compares with transformers: converted files, GGUF's keys, what
// published folders have and those that save_pretrained writes do not, and what is refused.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/huggingface/oracle_folder.h"

namespace snapkv::test {
namespace mixture_folders_tests {

constexpr const char* kFolders[] = {"deepseek_v3",    "deepseek_v3-plain",  "deepseek_v2",
                                    "deepseek_v2-q",  "deepseek_v2-groups", "glm4_moe_lite",
                                    "mistral4",       "mistral4-picture",   "minimax_m2",
                                    "qwen3vlmoe",     "ernie4_5_moe",       "hunyuan_moe",
                                    "dots1",          "exaone_moe",         "hy_v3",
                                    "afmoe",          "cohere2_moe",        "granite_swa",
                                    "granitemoe_swa", "mimo_v2_flash",      "laguna",
                                    "laguna-values",  "bailing_hybrid",     "dbrx",
                                    "step3p7",        "deepseek_v32",       "glm_moe_dsa",
                                    "glm4v_moe",      "solar_open",         "sarvam_moe",
                                    "chameleon",      "chameleon-swin",     "internlm3"};

class MixtureFolders : public OracleFolder {
 protected:
  /// Writes the weights again, after `change` of each tensor.
  template <typename F>
  void rewrite(F change) {
    Json& files = golden_.at("files");
    ASSERT_EQ(files.size(), 1u);
    std::vector<HfTensor> tensors;
    for (const auto& [name, shape] : files.begin().value().items()) {
      int64_t n = 1;
      for (const int64_t size : shape) n *= size;
      std::vector<float> values = oracle_values(name, n, false);
      std::vector<int64_t> own_shape = shape;
      std::string own_name = name;
      change(own_name, own_shape, values);
      tensors.push_back(f32_tensor(own_name, own_shape, values));
    }
    write_bytes(folder_ + "/" + files.begin().key(), safetensors_bytes(tensors));
  }
  void add_tensor(const std::string& name, const std::vector<int64_t>& shape) {
    golden_.at("files").begin().value()[name] = shape;
    rewrite([](auto&...) {});
  }
};

std::vector<int64_t> shape_of_tensor(const GgufFile& file, const char* name) {
  const GgufTensor* const t = file.find_tensor(name);
  if (t == nullptr) return {};
  return {t->tensor.shape.begin(), t->tensor.shape.begin() + t->tensor.rank};
}

TEST_F(MixtureFolders, ConvertedFilesComputeTheSame) {
  for (const char* name : kFolders) {
    SCOPED_TRACE(name);
    write(name);
    const std::vector<float> expected = logits(folder_);
    converted(DType::f32);
    expect_near(logits(file_), expected);
  }
}

TEST_F(MixtureFolders, LatentAttentionHasTheKeysAndShapesOfGguf) {
  write("deepseek_v3");
  for (const GgufFile& file : {open(), converted(DType::f32)}) {
    EXPECT_EQ(file.get_string("general.architecture"), "deepseek2");
    EXPECT_EQ(file.get_uint("deepseek2.attention.head_count_kv"), 1u);
    EXPECT_EQ(file.get_uint("deepseek2.attention.kv_lora_rank"), 32u);
    EXPECT_EQ(file.get_uint("deepseek2.attention.q_lora_rank"), 24u);
    EXPECT_EQ(file.get_uint("deepseek2.attention.key_length"), 48u);
    EXPECT_EQ(file.get_uint("deepseek2.attention.key_length_mla"), 40u);
    EXPECT_EQ(file.get_uint("deepseek2.attention.value_length_mla"), 40u);
    EXPECT_EQ(file.get_uint("deepseek2.rope.dimension_count"), 16u);
    EXPECT_FLOAT_EQ(file.get_float("deepseek2.rope.scaling.yarn_log_multiplier"), 0.1f);
    EXPECT_EQ(file.get_uint("deepseek2.leading_dense_block_count"), 1u);
    EXPECT_EQ(file.get_uint("deepseek2.expert_shared_count"), 2u);
    EXPECT_EQ(file.get_uint("deepseek2.expert_gating_func"), 2u);
    EXPECT_EQ(file.get_uint("deepseek2.expert_group_count"), 3u);
    EXPECT_EQ(file.get_uint("deepseek2.expert_group_used_count"), 2u);
    using Shape = std::vector<int64_t>;
    EXPECT_EQ(shape_of_tensor(file, "blk.1.attn_k_b.weight"), (Shape{4, 32, 24}));
    EXPECT_EQ(shape_of_tensor(file, "blk.1.attn_v_b.weight"), (Shape{4, 40, 32}));
    EXPECT_EQ(shape_of_tensor(file, "blk.1.exp_probs_b.bias"), (Shape{6}));
  }
}

TEST_F(MixtureFolders, IndexersHaveTheKeysAndShapesOfGguf) {
  write("glm_moe_dsa-together");
  for (const GgufFile& file : {open(), converted(DType::f32)}) {
    EXPECT_EQ(file.get_string("general.architecture"), "glm-dsa");
    EXPECT_EQ(file.get_uint("glm-dsa.attention.indexer.head_count"), 16u);
    EXPECT_EQ(file.get_uint("glm-dsa.attention.indexer.key_length"), 32u);
    EXPECT_EQ(file.get_uint("glm-dsa.attention.indexer.top_k"), 128u);
    EXPECT_EQ(
        std::get<std::vector<int64_t>>(file.metadata().at("glm-dsa.attention.indexer.types").value),
        (std::vector<int64_t>{1, 1, 0, 0}));
    using Shape = std::vector<int64_t>;
    EXPECT_EQ(shape_of_tensor(file, "blk.1.indexer.attn_q_b.weight"), (Shape{16 * 32, 24}));
    EXPECT_EQ(shape_of_tensor(file, "blk.1.indexer.k_norm.bias"), (Shape{32}));
    EXPECT_EQ(file.find_tensor("blk.2.indexer.proj.weight"), nullptr);
  }
  const Json types = Json::array({"shared", "full", "full", "full"});
  refused({{"indexer_types", types}}, {"indexer_types", "first layer"});
  refused({{"indexer_types", Json::array({"full", "full"})}}, {"indexer_types", "4 texts"});
  refused({{"indexer_types", Json::array({"full", "full", "some", "full"})}},
          {"indexer_types", "some"});
  refused({{"index_topk", 0}}, {"index_topk"});
  refused({{"q_lora_rank", nullptr}}, {"q_lora_rank"});
  refused({{"indexer_types", nullptr}, {"index_topk_pattern", "FXFF"}},
          {"index_topk_pattern", "FXFF"});
  set_config({{"indexer_types", nullptr}, {"index_topk_freq", 2}, {"index_skip_topk_offset", 1}});
  EXPECT_EQ(
      std::get<std::vector<int64_t>>(open().metadata().at("glm-dsa.attention.indexer.types").value),
      (std::vector<int64_t>{1, 0, 1, 0}));
}

TEST_F(MixtureFolders, WhatChameleonDoesNotSayIsRefused) {
  write("chameleon");
  for (const GgufFile& file : {open(), converted(DType::f32)}) {
    EXPECT_EQ(file.get_uint("snapkv.first_picture_token"), 4u);
    EXPECT_EQ(file.get_uint("snapkv.end_of_picture_tokens"), 68u);
  }
  refused({{"vocabulary_map", nullptr}}, {"vocabulary_map", "missing"});
  refused({{"vocabulary_map", {{"IMGIMG5", nullptr}}}}, {"vocabulary_map", "63", "4 to 67"});
  refused({{"vocabulary_map", {{"IMGIMG5", "five"}}}}, {"vocabulary_map", "five"});
  refused({{"vocab_size", 60}}, {"vocabulary_map", "67", "60"});
}

// As published, other names of the same.
TEST_F(MixtureFolders, SarvamsOwnNamesAreRead) {
  write("sarvam_moe");
  const std::vector<float> expected = logits(folder_);
  set_config({{"architectures", Json::array({"SarvamMoEForCausalLM"})},
              {"n_routed_experts", nullptr},
              {"n_shared_experts", nullptr},
              {"num_experts", 6},
              {"num_shared_experts", 1}});
  EXPECT_EQ(logits(folder_), expected);
}

TEST_F(MixtureFolders, SolarOpenHasExpertsInEveryLayer) {
  write("solar_open");
  refused({{"first_k_dense_replace", 1}}, {"first_k_dense_replace", "experts in every layer"});
}

TEST_F(MixtureFolders, LayersThatDifferHaveArraysOfGguf) {
  const auto array = [this](const char* key) {
    return std::get<std::vector<int64_t>>(open().metadata().at(key).value);
  };
  write("laguna");
  EXPECT_EQ(array("laguna.attention.head_count"), (std::vector<int64_t>{6, 6, 4, 6}));
  EXPECT_EQ(open().get_uint("laguna.rope.dimension_count"), 16u);
  EXPECT_EQ(open().get_uint("laguna.rope.dimension_count_swa"), 32u);
  write("mimo_v2_flash");
  EXPECT_EQ(array("mimo2.attention.head_count_kv"), (std::vector<int64_t>{2, 2, 1, 2}));
  EXPECT_EQ(open().get_uint("mimo2.attention.value_length"), 16u);
}

TEST_F(MixtureFolders, LayersThatGuessFurtherTokensAreLeftOutAsCounted) {
  for (const char* name : {"deepseek_v3", "exaone_moe", "hy_v3", "ernie4_5_moe"}) {
    SCOPED_TRACE(name);
    write(name);
    set_config({{"num_nextn_predict_layers", 1}});
    const std::vector<float> expected = logits(folder_);
    add_tensor("model.layers.4.eh_proj.weight", {64, 128});
    add_tensor("mtp.fc.weight", {64, 128});
    EXPECT_EQ(logits(folder_), expected);
    refused({{"num_nextn_predict_layers", 0}}, {"not part of"});
    add_tensor("model.layers.5.eh_proj.weight", {64, 128});
    refused({{"num_nextn_predict_layers", 1}}, {"model.layers.5.eh_proj.weight", "not part of"});
  }
}

// As published, the matrices of Qwen 3 VL's experts are transposed.
TEST_F(MixtureFolders, TransposedExpertsAreRead) {
  write("qwen3vlmoe");
  const std::vector<float> expected = logits(folder_);
  rewrite([](const std::string& name, std::vector<int64_t>& shape, std::vector<float>& values) {
    if (name.find(".mlp.experts.") == std::string::npos) return;
    const std::vector<float> before = values;
    const int64_t n_row = shape[1], n_col = shape[2];
    for (int64_t e = 0; e < shape[0]; ++e) {
      for (int64_t i = 0; i < n_row; ++i) {
        for (int64_t j = 0; j < n_col; ++j) {
          values[(e * n_col + j) * n_row + i] = before[(e * n_row + i) * n_col + j];
        }
      }
    }
    std::swap(shape[1], shape[2]);
  });
  expect_near(logits(folder_), expected);
}

TEST_F(MixtureFolders, PublishedFieldsAreRead) {
  write("minimax_m2");
  std::vector<float> expected = logits(folder_);
  set_config({{"rope_parameters", nullptr},
              {"rope_theta", 10000.0},
              {"rotary_dim", 16},
              {"scoring_func", "sigmoid"},
              {"use_qk_norm", true},
              {"use_routing_bias", true},
              {"shared_intermediate_size", 0}});
  EXPECT_EQ(logits(folder_), expected);
  write("hunyuan_moe");
  expected = logits(folder_);
  set_config({{"moe_topk", {2, 2, 2, 2}},
              {"moe_intermediate_size", {64, 64, 64, 64}},
              {"num_shared_expert", {1, 1, 1, 1}}});
  EXPECT_EQ(logits(folder_), expected);
  write("glm4_moe_lite");
  expected = logits(folder_);
  set_config({{"mlp_layer_types", nullptr}, {"first_k_dense_replace", 1}});
  EXPECT_EQ(logits(folder_), expected);
  write("dots1");
  expected = logits(folder_);
  set_config({{"scoring_func", "noaux_tc"}, {"layer_types", nullptr}, {"sliding_window", nullptr}});
  EXPECT_EQ(logits(folder_), expected);
  write("exaone_moe");
  expected = logits(folder_);
  set_config({{"mlp_layer_types", nullptr},
              {"first_k_dense_replace", nullptr},
              {"first_last_k_dense_replace", 1},
              {"architectures", {"ExaoneMoEForCausalLM"}}});
  EXPECT_EQ(logits(folder_), expected);
  for (const char* name : {"laguna", "mimo_v2_flash"}) {
    write(name);
    expected = logits(folder_);
    set_config({{"mlp_layer_types", nullptr}, {"mlp_only_layers", {0}}});
    EXPECT_EQ(logits(folder_), expected);
  }
  write("step3p7");
  expected = logits(folder_);
  set_config({{"text_config",
               {{"num_nextn_predict_layers", 1},
                {"layer_types",
                 {"sliding_attention", "sliding_attention", "full_attention", "sliding_attention",
                  "sliding_attention"}},
                {"swiglu_limits", {0.0, 0.0, 0.2, 0.3, 0.0}},
                {"mlp_layer_types", nullptr},
                {"moe_layers_enum", "1,2,3"},
                {"num_key_value_heads", nullptr},
                {"num_attention_groups", 2},
                {"n_routed_experts", nullptr},
                {"moe_num_experts", 6},
                {"num_experts_per_tok", nullptr},
                {"moe_top_k", 2},
                {"num_sliding_attention_heads", nullptr},
                {"per_layer_config", nullptr},
                {"query_pre_attn_scalar", nullptr},
                {"attention_other_setting",
                 {{"num_attention_heads", 6}, {"num_attention_groups", 2}, {"head_dim", 32}}},
                {"rope_theta", {1e4, 1e4, 5e4, 1e4, 1e4}},
                {"partial_rotary_factors", {1.0, 1.0, 0.5, 1.0, 1.0}},
                {"rope_scaling",
                 {{"rope_type", "llama3"},
                  {"factor", 8.0},
                  {"low_freq_factor", 1.0},
                  {"high_freq_factor", 4.0},
                  {"original_max_position_embeddings", 64}}},
                {"rope_parameters", nullptr}}}});
  EXPECT_EQ(logits(folder_), expected);
  write("bailing_hybrid");
  expected = logits(folder_);
  set_config({{"architectures", {"BailingMoeV3ForCausalLM"}},
              {"max_position_embeddings", 256},
              {"num_experts_per_tok", 2},
              {"n_group", 3},
              {"norm_topk_prob", true},
              {"rope_parameters", {{"partial_rotary_factor", 0.5}}},
              {"model_max_length", nullptr},
              {"num_experts_per_token", nullptr},
              {"num_expert_group", nullptr},
              {"moe_renormalize", nullptr},
              {"head_dim", 32},
              {"linear_head_dim", nullptr},
              {"linear_num_heads", nullptr},
              {"linear_conv_kernel_dim", nullptr}});
  EXPECT_EQ(logits(folder_), expected);
  write("cohere2_moe");
  expected = logits(folder_);
  set_config({{"mlp_layer_types", nullptr}, {"first_k_dense_replace", 1}});
  EXPECT_EQ(logits(folder_), expected);
}

// By the highest score in each, where V3 adds the two highest.
TEST_F(MixtureFolders, DeepseekV2ChoosesGroupsOfExperts) {
  write("deepseek_v2-groups");
  const GgufFile file = open();
  EXPECT_EQ(file.get_uint("deepseek2.expert_group_count"), 4u);
  EXPECT_EQ(file.get_uint("deepseek2.expert_group_used_count"), 2u);
  EXPECT_EQ(file.get_uint("snapkv.expert_group_best"), 1u);
  const std::vector<float> expected = logits(folder_);
  set_config({{"topk_method", "greedy"}});
  EXPECT_FALSE(open().has("deepseek2.expert_group_count"));
  EXPECT_FALSE(open().has("snapkv.expert_group_best"));
  EXPECT_NE(logits(folder_), expected);
}

TEST_F(MixtureFolders, WhatLatentAttentionCannotDoIsNamed) {
  write("deepseek_v3");
  refused({{"rope_interleave", false}}, {"rope_interleave", "is false"});
  refused({{"attention_bias", true}}, {"attention_bias", "is true"});
  refused({{"topk_method", "greedy"}}, {"topk_method", "\"greedy\"", "\"noaux_tc\""});
  refused({{"scoring_func", "softmax"}}, {"scoring_func", "\"softmax\"", "\"sigmoid\""});
  refused({{"first_k_dense_replace", 4}}, {"first_k_dense_replace", "4"});
  refused({{"moe_layer_freq", 2}}, {"moe_layer_freq", "is 2"});
  refused({{"topk_group", 4}}, {"topk_group", "4"});
  refused({{"n_group", 4}, {"topk_group", 2}}, {"n_group is 4", "experts, 6"});
  refused({{"topk_group", 1}, {"num_experts_per_tok", 3}},
          {"topk_group is 1", "leaves 2", "uses 3"});
  refused({{"kv_lora_rank", nullptr}}, {"kv_lora_rank"});
  refused({{"kv_lora_rank", 64}}, {"kv_a_proj_with_mqa", "[48, 64]", "[80, 64]"});
  refused({{"q_lora_rank", nullptr}}, {"q_a_proj", "[24, 64]", "[0, 64]"});
  refused({{"n_routed_experts", 0}}, {"n_routed_experts", "0"});
  refused({{"num_experts_per_tok", 7}}, {"num_experts_per_tok", "7"});
  refused({{"n_shared_experts", 1}}, {"mlp.shared_experts.gate_proj", "[128, 64]", "[64, 64]"});
  refused({{"rope_parameters", {{"mscale", 0.7}}}}, {"rope_parameters.mscale", "0.7", "is 1"});
  refused({{"rope_parameters", {{"mscale_all_dim", nullptr}}}},
          {"rope_parameters.mscale_all_dim", "missing"});
  refused({{"rope_parameters", {{"attention_factor", 1.2}}}}, {"attention_factor", "1.2"});
  refused({{"quantization_config", {{"quant_method", "fp8"}}}}, {"quantization_config", "fp8"});
  write("deepseek_v2");
  refused({{"topk_method", "noaux_tc"}}, {"topk_method", "noaux_tc", "group_limited_greedy"});
  refused({{"norm_topk_prob", true}}, {"norm_topk_prob", "is true"});
  write("deepseek_v2-groups");
  refused({{"n_group", 5}}, {"n_group is 5", "experts, 12"});
  refused({{"topk_group", 1}, {"num_experts_per_tok", 4}},
          {"topk_group is 1", "leaves 3", "uses 4"});
  write("mistral4");
  refused({{"rope_parameters", {{"mscale", 0.5}, {"mscale_all_dim", 0.5}}}},
          {"mscale_all_dim", "0.5", "supported is 1"});
  refused({{"rope_parameters", {{"llama_4_scaling_beta", nullptr}}}}, {"llama_4_scaling_beta"});
  refused({{"rope_parameters", {{"partial_rotary_factor", 0.6}}}}, {"rotates 24", "expected 16"});
}

TEST_F(MixtureFolders, ExpertsThatAreNotSupportedAreNamed) {
  const auto check = [this](const char* name, const Json& fields,
                            std::initializer_list<std::string_view> words) {
    write(name);
    refused(fields, words);
  };
  check("minimax_m2", {{"scoring_func", "softmax"}}, {"scoring_func", "softmax"});
  check("minimax_m2", {{"shared_intermediate_size", 64}}, {"shared_intermediate_size", "64"});
  check("minimax_m2", {{"rotary_dim", 24}}, {"rotary_dim", "24", "partial_rotary_factor"});
  check("minimax_m2", {{"use_qk_norm", false}}, {"use_qk_norm", "false"});
  check("qwen3vlmoe", {{"text_config", {{"moe_intermediate_size", 48}}}},
        {"mlp.experts.gate_up_proj", "[6, 192, 64]", "[6, 96, 64]"});
  check("ernie4_5_moe", {{"moe_layer_interval", 2}}, {"moe_layer_interval", "2"});
  check("ernie4_5_moe", {{"moe_layer_end_index", 2}}, {"moe_layer_end_index", "2", "3"});
  check("ernie4_5_moe", {{"use_bias", true}}, {"use_bias", "true"});
  check("hunyuan_moe", {{"moe_topk", {2, 2, 1, 2}}}, {"moe_topk", "same number"});
  check("hunyuan_moe", {{"moe_topk", {}}}, {"moe_topk"});
  check("hunyuan_moe", {{"moe_intermediate_size", 96}}, {"moe_intermediate_size", "96", "64"});
  check("hunyuan_moe", {{"num_shared_expert", 2}}, {"num_shared_expert", "2"});
  check("dots1", {{"layer_types", nullptr}, {"max_window_layers", 2}}, {"max_window_layers"});
  check("dots1",
        {{"layer_types",
          {"full_attention", "sliding_attention", "full_attention", "full_attention"}}},
        {"layer_types", "sliding windows"});
  check("exaone_moe", {{"layer_types", nullptr}}, {"layer_types", "missing"});
  check("hy_v3", {{"num_shared_experts", 0}}, {"num_shared_experts", "0"});
  check("hy_v3", {{"route_norm", false}}, {"route_norm", "false"});
  check("hy_v3", {{"mlp_layer_types", {"sparse", "dense", "sparse", "sparse"}}},
        {"mlp_layer_types", "first \"dense\""});
  check("afmoe", {{"mup_enabled", false}}, {"mup_enabled", "false"});
  check("afmoe", {{"mup_enabled", nullptr}}, {"mup_enabled", "missing"});
  check("afmoe", {{"score_func", "softmax"}}, {"score_func", "softmax"});
  check("afmoe", {{"n_group", 2}}, {"n_group", "2"});
  check("cohere2_moe", {{"shared_expert_combination_strategy", "sum"}}, {"sum", "average"});
  check("cohere2_moe", {{"expert_selection_fn", "relu"}}, {"expert_selection_fn", "relu"});
  check("cohere2_moe", {{"prefix_dense_sliding_window_pattern", 4}},
        {"prefix_dense_sliding_window_pattern", "4"});
  check("granite_swa", {{"layer_rope_theta", {1e4, 1e4, 1e5}}}, {"layer_rope_theta", "4"});
  check("granite_swa", {{"layer_rope_theta", {1e4, 1e5, 0, 1e4}}},
        {"layer_rope_theta", "10000", "100000"});
  check("granite_swa", {{"layer_rope_theta", {1e4, 1e4, -1, 1e4}}}, {"layer_rope_theta", "-1"});
  check("granite_swa", {{"mlp_bias", true}}, {"mlp_bias", "true"});
  check("bailing_hybrid", {{"kda_safe_gate", false}}, {"kda_safe_gate", "false"});
  check("bailing_hybrid", {{"kda_lower_bound", 0.0}}, {"kda_lower_bound", "0"});
  check("bailing_hybrid", {{"linear_num_heads", 8}}, {"linear_num_heads", "8", "4"});
  check("bailing_hybrid", {{"layer_types", {"linear_attention", "full_attention"}}},
        {"layer_types", "4 layers"});
  check("bailing_hybrid", {{"layer_types", nullptr}}, {"layer_group_size", "none of 4 layers"});
  check("bailing_hybrid", {{"use_mla_nope", true}}, {"use_mla_nope", "true"});
  check("bailing_hybrid", {{"expert_swiglu_limit_list", {7.0}}}, {"expert_swiglu_limit_list"});
  const auto check_step = [&](const Json& fields, std::initializer_list<std::string_view> words) {
    check("step3p7", {{"text_config", fields}}, words);
  };
  check_step({{"swiglu_limits", {1.0, 2.0}}}, {"swiglu_limits", "4 layers"});
  check_step({{"attention_other_setting", {{"head_dim", 64}}}},
             {"attention_other_setting.head_dim", "64", "32"});
  check_step({{"rope_parameters", nullptr},
              {"rope_theta", {1e4, 2e4, 5e4, 1e4}},
              {"partial_rotary_factors", {1.0, 1.0, 0.5, 1.0}}},
             {"rope_theta", "10000", "20000"});
  check_step({{"mlp_layer_types", nullptr}, {"moe_layers_enum", "1,3"}},
             {"moe_layers_enum", "1,3"});
  check_step({{"norm_expert_weight", false}}, {"norm_expert_weight", "false"});
  check_step({{"swiglu_limits_shared", {-1.0, 0.0, 0.0, 0.0}}}, {"swiglu_limits_shared", "-1"});
  check_step({{"num_sliding_attention_heads", 5}}, {"num_sliding_attention_heads", "5"});
  check_step({{"num_sliding_attention_heads", 8}},
             {"per_layer_config.0.num_attention_heads", "6", "8"});
  check_step({{"query_pre_attn_scalar", 64}}, {"query_pre_attn_scalar", "64", "32"});
  check_step({{"rope_parameters", {{"full_attention", {{"partial_rotary_factor", 1.0}}}}}},
             {"rope_parameters", "32", "twice"});
  check_step({{"mlp_layer_types", nullptr}}, {"moe_layers_enum", "missing"});
  check_step({{"layer_types", nullptr}}, {"layer_types", "missing"});
  check("dbrx", {{"ffn_config", nullptr}}, {"ffn_config", "missing"});
  check("dbrx", {{"ffn_config", {{"moe_normalize_expert_weights", 2.0}}}},
        {"ffn_config.moe_normalize_expert_weights", "2"});
  check("dbrx", {{"ffn_config", {{"ffn_act_fn", {{"name", "gelu"}}}}}},
        {"ffn_config.ffn_act_fn.name", "gelu"});
  check("dbrx", {{"ffn_config", {{"ffn_hidden_size", 48}}}},
        {"mlp.w1", "[576, 64]", "[6, 48, 64]"});
  check("dbrx", {{"attn_config", {{"rope_theta", 5e5}}}}, {"rope_theta", "500000", "10000"});
  check("dbrx", {{"attn_config", {{"kv_n_heads", 3}}}}, {"n_heads", "kv_n_heads, 3"});
  check("mimo_v2_flash", {{"num_key_value_heads", 4}}, {"num_attention_heads", "twice"});
  check("mimo_v2_flash",
        {{"rope_parameters", {{"sliding_attention", {{"partial_rotary_factor", 0.5}}}}}},
        {"sliding_attention.partial_rotary_factor", "12", "8"});
  check("laguna", {{"gating", "per-layer"}}, {"gating", "per-layer"});
  check("laguna", {{"mlp_only_layers", {1}}}, {"mlp_only_layers", "first 1 layers"});
  check("minimax_m2", {{"attn_type_list", {0, 0}}}, {"attn_type_list", "supported is 1"});
  check("laguna", {{"gating_types", {"per-head"}}}, {"gating_types"});
  check("laguna", {{"num_attention_heads_per_layer", {6, 6, 4}}},
        {"num_attention_heads_per_layer", "4 numbers"});
  check("laguna", {{"num_attention_heads_per_layer", {6, 6, 4, 5}}},
        {"num_attention_heads_per_layer", "5", "multiples"});
  check("laguna", {{"moe_router_logit_softcapping", 30.0}}, {"moe_router_logit_softcapping", "30"});
  check("laguna", {{"moe_apply_router_weight_on_input", true}}, {"router_weight_on_input", "true"});
  check("laguna", {{"rope_parameters", {{"sliding_attention", nullptr}}}}, {"sliding_attention"});
}

}  // namespace mixture_folders_tests
}  // namespace snapkv::test
