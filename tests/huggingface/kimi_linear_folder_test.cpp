// SPDX-License-Identifier: MIT
// Folders of Kimi Linear beside what hf_oracle_test.cpp compares with transformers: GGUF's keys and
// shapes, config.json and names as they are published, and what is refused.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/huggingface/oracle_folder.h"

namespace snapkv::test {
namespace kimi_linear_folder_tests {

class KimiLinearFolder : public OracleFolder {};

std::vector<int64_t> shape_in(const GgufFile& file, const char* name) {
  const GgufTensor* const t = file.find_tensor(name);
  if (t == nullptr) return {};
  return {t->tensor.shape.begin(), t->tensor.shape.begin() + t->tensor.rank};
}

TEST_F(KimiLinearFolder, HasTheKeysAndShapesOfGguf) {
  write("kimi_linear");
  for (const GgufFile& file : {open(), converted(DType::f32)}) {
    EXPECT_EQ(file.get_string("general.architecture"), "kimi-linear");
    EXPECT_EQ(file.get_uint("kimi-linear.kda.head_dim"), 32u);
    EXPECT_EQ(file.get_uint("kimi-linear.ssm.conv_kernel"), 4u);
    EXPECT_EQ(file.get_uint("kimi-linear.attention.key_length"), 48u);
    EXPECT_EQ(file.get_uint("kimi-linear.attention.key_length_mla"), 40u);
    EXPECT_EQ(file.get_uint("kimi-linear.attention.value_length_mla"), 40u);
    EXPECT_EQ(file.get_uint("kimi-linear.rope.dimension_count"), 16u);
    EXPECT_EQ(file.get_uint("kimi-linear.expert_gating_func"), 2u);
    EXPECT_EQ(file.get_uint("kimi-linear.expert_shared_count"), 2u);
    EXPECT_EQ(file.get_uint("kimi-linear.leading_dense_block_count"), 1u);
    EXPECT_EQ(std::get<std::vector<int64_t>>(
                  file.metadata().at("kimi-linear.attention.head_count_kv").value),
              (std::vector<int64_t>{0, 1, 0, 0}));
    using Shape = std::vector<int64_t>;
    EXPECT_EQ(shape_in(file, "blk.0.ssm_conv1d_k.weight"), (Shape{128, 1, 4}));
    EXPECT_EQ(shape_in(file, "blk.0.ssm_a"), (Shape{4, 1}));
    EXPECT_EQ(shape_in(file, "blk.1.attn_k_b.weight"), (Shape{4, 32, 24}));
    EXPECT_EQ(shape_in(file, "blk.1.attn_v_b.weight"), (Shape{4, 40, 32}));
  }
}

TEST_F(KimiLinearFolder, AConvertedFileComputesTheSame) {
  write("kimi_linear-q");
  const std::vector<float> expected = logits(folder_);
  converted(DType::f32);
  expect_near(logits(file_), expected);
}

// llama.cpp's convolutions take f32 only.
TEST_F(KimiLinearFolder, ConvolutionsStayInF32) {
  write("kimi_linear-q");
  const GgufFile file = converted(DType::q8_0);
  EXPECT_EQ(file.find_tensor("blk.0.ssm_conv1d_q.weight")->tensor.dtype, DType::f32);
  EXPECT_EQ(file.find_tensor("blk.0.ssm_f_a.weight")->tensor.dtype, DType::q8_0);
}

// The published folder counts layers from 1, and its first layer's network is not named as experts
// are.
TEST_F(KimiLinearFolder, PublishedNamesAreRead) {
  write("kimi_linear");
  const std::vector<float> expected = logits(folder_);
  const Json published = {{"layer_types", nullptr},
                          {"mlp_layer_types", nullptr},
                          {"first_k_dense_replace", 1},
                          {"linear_head_dim", nullptr},
                          {"linear_num_heads", nullptr},
                          {"linear_conv_kernel_dim", nullptr},
                          {"linear_attn_config",
                           {{"full_attn_layers", {2}},
                            {"kda_layers", {1, 3, 4}},
                            {"head_dim", 32},
                            {"num_heads", 4},
                            {"short_conv_kernel_size", 4}}},
                          {"mla_use_nope", true},
                          {"moe_layer_freq", 1},
                          {"moe_router_activation_func", "sigmoid"}};
  set_config(published);
  EXPECT_EQ(logits(folder_), expected);
  const auto refused_lists = [&](std::vector<int> full, std::vector<int> kda, const char* key,
                                 const char* number) {
    refused({{"layer_types", nullptr},
             {"linear_attn_config",
              {{"full_attn_layers", std::move(full)}, {"kda_layers", std::move(kda)}}}},
            {key, number});
  };
  refused_lists({2}, {1, 2, 3, 4}, "kda_layers", "holds 2");
  refused_lists({2, 5}, {1, 3, 4}, "full_attn_layers", "holds 5");
  refused_lists({2, 0}, {1, 3, 4}, "full_attn_layers", "holds 0");
  refused_lists({2}, {1, 3}, "kda_layers", "layer 4");
}

TEST_F(KimiLinearFolder, TheDenseNetworkMayHaveItsOwnName) {
  write("kimi_linear");
  const std::vector<float> expected = logits(folder_);
  Json& files = golden_.at("files");
  std::vector<HfTensor> tensors;
  for (const auto& [name, shape] : files.begin().value().items()) {
    int64_t n = 1;
    for (const int64_t size : shape) n *= size;
    std::string own = name;
    const std::string experts = "layers.0.block_sparse_moe.";
    if (const size_t at = own.find(experts); at != std::string::npos) {
      own.replace(at, experts.size(), "layers.0.mlp.");
    }
    tensors.push_back(f32_tensor(own, shape, oracle_values(name, n, false)));
  }
  write_bytes(folder_ + "/" + files.begin().key(), safetensors_bytes(tensors));
  EXPECT_EQ(logits(folder_), expected);
}

TEST_F(KimiLinearFolder, WhatIsNotSupportedIsNamed) {
  write("kimi_linear");
  refused({{"linear_num_heads", 8}}, {"num_attention_heads", "is 4", "8 heads"});
  refused({{"linear_head_dim", 16}}, {"[128, 64]", "[64, 64]"});
  refused({{"linear_conv_kernel_dim", 1}}, {"linear_conv_kernel_dim"});
  refused({{"layer_types", {"full_attention", "linear_attention"}}}, {"layer_types", "4 layers"});
  refused(
      {{"layer_types", {"full_attention", "attention", "linear_attention", "linear_attention"}}},
      {"layer_types", "\"attention\""});
  refused({{"mlp_layer_types", {"sparse", "dense", "sparse", "sparse"}}},
          {"mlp_layer_types", "first \"dense\""});
  refused({{"mlp_layer_types", {"dense", "dense", "dense", "dense"}}},
          {"mlp_layer_types", "last layer"});
  refused({{"moe_layer_freq", 2}}, {"moe_layer_freq", "is 2"});
  refused({{"moe_renormalize", false}}, {"moe_renormalize", "false"});
  refused({{"moe_router_activation_func", "softmax"}}, {"moe_router_activation_func", "softmax"});
  refused({{"mla_use_nope", false}}, {"mla_use_nope", "false"});
  refused({{"mla_use_output_gate", true}}, {"mla_use_output_gate", "true"});
  refused({{"attn_res_block_size", 12}}, {"attn_res_block_size", "12"});
  refused({{"routed_expert_hidden_size", 32}}, {"routed_expert_hidden_size", "32"});
  refused({{"linear_attn_config", {{"use_full_rank_gate", true}}}}, {"use_full_rank_gate", "true"});
  refused({{"linear_attn_config", {{"gate_lower_bound", -5.0}}}}, {"gate_lower_bound", "-5"});
  refused({{"kv_lora_rank", nullptr}}, {"kv_lora_rank"});
  refused({{"q_lora_rank", 24}}, {"attn_q_a"});
}

}  // namespace kimi_linear_folder_tests
}  // namespace snapkv::test
