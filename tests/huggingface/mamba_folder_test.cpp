// SPDX-License-Identifier: MIT
// Folders of Mamba, Falcon Mamba, Mamba 2 and MiniCPM 3 beside what hf_oracle_test.cpp compares
// with transformers: GGUF's keys and shapes, converted files, and what is refused.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "format/gguf.h"
#include "tests/huggingface/oracle_folder.h"
#include "tests/support/expect_error.h"
#include "tests/support/hf_folder.h"

namespace snapkv::test {
namespace mamba_folder_tests {

using MambaFolder = OracleFolder;

TEST_F(MambaFolder, HasTheKeysAndShapesOfGguf) {
  write("mamba");
  const GgufFile mamba = open();
  EXPECT_EQ(mamba.get_string("general.architecture"), "mamba");
  EXPECT_EQ(mamba.get_uint("mamba.context_length"), uint64_t{1} << 20);
  EXPECT_EQ(mamba.get_uint("mamba.ssm.inner_size"), 128u);
  EXPECT_EQ(mamba.get_uint("mamba.ssm.state_size"), 16u);
  EXPECT_EQ(mamba.get_uint("mamba.ssm.time_step_rank"), 4u);
  EXPECT_FALSE(mamba.has("mamba.ssm.dt_b_c_rms"));
  EXPECT_FALSE(mamba.has("mamba.rope.freq_base"));
  expect_decay_rates(mamba, "backbone.layers.0.mixer.A_log", {128, 16});
  EXPECT_EQ(mamba.find_tensor("output.weight"), nullptr);
  write("falcon_mamba");
  const GgufFile falcon = open();
  EXPECT_EQ(falcon.get_uint("mamba.ssm.time_step_rank"), 24u);
  EXPECT_TRUE(falcon.get_bool("mamba.ssm.dt_b_c_rms", false));
  EXPECT_EQ(falcon.get_float("snapkv.ssm_norm_epsilon"), double{0.01f});
  EXPECT_NE(falcon.find_tensor("output.weight"), nullptr);
  write("mamba2");
  const GgufFile mamba2 = open();
  EXPECT_EQ(mamba2.get_string("general.architecture"), "mamba2");
  EXPECT_EQ(mamba2.get_uint("mamba2.ssm.inner_size"), 128u);
  EXPECT_EQ(mamba2.get_uint("mamba2.ssm.group_count"), 2u);
  EXPECT_EQ(mamba2.get_uint("mamba2.ssm.time_step_rank"), 8u);
  EXPECT_FALSE(mamba2.has("mamba2.rope.scaling.finetuned"));
  expect_decay_rates(mamba2, "backbone.layers.0.mixer.A_log", {8, 1});
  EXPECT_EQ(mamba2.find_tensor("blk.0.ssm_norm.weight")->tensor.shape[0], 2);
}

TEST_F(MambaFolder, ConvertedFilesComputeTheSame) {
  expect_same_if_converted({"mamba", "falcon_mamba", "mamba2", "minicpm3", "minicpm3-longrope"});
}

TEST_F(MambaFolder, EmbeddingsMayHaveTheirOldName) {
  write("mamba");
  const std::vector<float> expected = logits(folder_);
  std::vector<HfTensor> tensors;
  for (const auto& [name, shape] : golden_.at("files").at("model.safetensors").items()) {
    const std::vector<int64_t> sizes = shape;
    int64_t n = 1;
    for (const int64_t size : sizes) n *= size;
    const bool renamed = name == "backbone.embeddings.weight";
    tensors.push_back(f32_tensor(renamed ? "backbone.embedding.weight" : name, sizes,
                                 oracle_values(name, n, false)));
  }
  write_bytes(folder_ + "/model.safetensors", safetensors_bytes(tensors));
  EXPECT_EQ(logits(folder_), expected);
}

// Norms of steps, B and C, whose epsilon is that of the other norms unless the key is there.
TEST_F(MambaFolder, FalconsNormsHaveTheirOwnEpsilon) {
  write("falcon_mamba");
  const std::vector<float> expected = logits(folder_);
  set_config({{"mixer_rms_eps", 1e-5}});
  EXPECT_FALSE(open().has("snapkv.ssm_norm_epsilon"));
  EXPECT_NE(logits(folder_), expected);
  set_config({{"mixer_rms_eps", nullptr}});
  EXPECT_EQ(open().get_float("snapkv.ssm_norm_epsilon"), double{1e-6f});
}

TEST_F(MambaFolder, SizesMayFollowFromTheWidth) {
  write("mamba");
  const std::vector<float> expected = logits(folder_);
  for (const Json& rank : {Json("auto"), Json(nullptr)}) {
    set_config({{"time_step_rank", rank}});
    EXPECT_EQ(logits(folder_), expected);
  }
  set_config({{"intermediate_size", nullptr}});
  EXPECT_EQ(logits(folder_), expected);
  refused({{"intermediate_size", 160}}, {"in_proj", "[256, 64]", "[320, 64]"});
}

TEST_F(MambaFolder, WhatIsNotSupportedIsNamed) {
  write("mamba");
  refused({{"use_bias", true}}, {"use_bias", "true"});
  refused({{"use_conv_bias", false}}, {"use_conv_bias", "false"});
  refused({{"hidden_act", "gelu"}}, {"hidden_act", "gelu", "silu"});
  refused({{"state_size", 8}}, {"x_proj", "[36, 128]", "[20, 128]"});
  refused({{"conv_kernel", 1}}, {"conv_kernel", "1"});
  refused({{"time_step_rank", "all"}}, {"time_step_rank", "all"});
  write("falcon_mamba");
  refused({{"mixer_rms_eps", 0}}, {"mixer_rms_eps", "0"});
  write("mamba2");
  refused({{"num_heads", 4}}, {"num_heads", "4", "16", "128"});
  refused({{"n_groups", 3}}, {"n_groups", "3", "8"});
  refused({{"time_step_limit", {0.001, 0.1}}}, {"time_step_limit", "Infinity"});
  refused({{"use_bias", true}}, {"use_bias", "true"});
}

using MiniCpm3Folder = OracleFolder;

TEST_F(MiniCpm3Folder, HasTheKeysAndShapesOfGguf) {
  write("minicpm3");
  const GgufFile plain = open();
  EXPECT_EQ(plain.get_string("general.architecture"), "minicpm3");
  EXPECT_EQ(plain.get_uint("minicpm3.attention.key_length"), 40u);
  EXPECT_EQ(plain.get_uint("minicpm3.attention.value_length"), 40u);
  EXPECT_EQ(plain.get_uint("minicpm3.attention.kv_lora_rank"), 32u);
  EXPECT_EQ(plain.get_uint("minicpm3.attention.q_lora_rank"), 24u);
  EXPECT_EQ(plain.get_uint("minicpm3.rope.dimension_count"), 16u);
  EXPECT_EQ(plain.get_float("minicpm3.embedding_scale"), 3.0);
  EXPECT_EQ(plain.get_float("minicpm3.residual_scale"), 1.0);
  EXPECT_EQ(plain.get_float("minicpm3.logit_scale"), 0.5);
  const Tensor& keys_and_values = plain.find_tensor("blk.0.attn_kv_b.weight")->tensor;
  EXPECT_EQ(keys_and_values.shape[0], 4 * (24 + 40));
  EXPECT_EQ(keys_and_values.shape[1], 32);
  write("minicpm3-longrope");
  const GgufFile longrope = open();
  EXPECT_EQ(longrope.get_uint("minicpm3.attention.value_length"), 16u);
  EXPECT_EQ(longrope.find_tensor("rope_factors_short.weight")->tensor.shape[0], 8);
  EXPECT_FALSE(longrope.has("minicpm3.embedding_scale")) << "which is MiniCPM3-4B's";
}

// Where config.json says nothing the class has MiniCPM3-4B's; null means none of logits and
// residual stream, or a width that follows from the others.
TEST_F(MiniCpm3Folder, ScalesHaveDefaults) {
  write("minicpm3");
  Json config = golden_.at("config");
  for (const char* key : {"scale_emb", "scale_depth", "dim_model_base"}) config.erase(key);
  write_text(folder_ + "/config.json", config.dump());
  const GgufFile defaults = open();
  for (const char* key : {"embedding_scale", "residual_scale", "logit_scale"}) {
    EXPECT_FALSE(defaults.has("minicpm3." + std::string(key))) << key;
  }
  config["scale_depth"] = config["dim_model_base"] = nullptr;
  write_text(folder_ + "/config.json", config.dump());
  const GgufFile none = open();
  EXPECT_EQ(none.get_float("minicpm3.residual_scale"), 1.0);
  EXPECT_EQ(none.get_float("minicpm3.logit_scale"), 1.0);
}

TEST_F(MiniCpm3Folder, WhatIsNotSupportedIsNamed) {
  write("minicpm3");
  refused({{"attention_bias", true}}, {"attention_bias", "true"});
  refused({{"num_key_value_heads", 2}}, {"num_key_value_heads", "2", "4"});
  refused({{"v_head_dim", 24}}, {"kv_b_proj", "[256, 32]", "[192, 32]"});
  refused({{"scale_depth", 0}}, {"scale_depth", "0"});
  refused({{"rope_parameters",
            {{"rope_type", "yarn"},
             {"factor", 4.0},
             {"mscale", 1.0},
             {"mscale_all_dim", 1.0},
             {"original_max_position_embeddings", 64}}}},
          {"YaRN"});
  write("minicpm3-longrope");
  refused({{"max_position_embeddings", 512}}, {"LongRoPE", "256", "512"});
  refused({{"rope_parameters", {{"short_factor", {1.0, 1.0}}}}}, {"short_factor", "8 numbers"});
}

}  // namespace mamba_folder_tests
}  // namespace snapkv::test
