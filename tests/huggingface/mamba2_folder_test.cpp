// SPDX-License-Identifier: MIT
// Folders of Granite 4, Bamba, Nemotron-H and Falcon-H1 beside what hf_oracle_test.cpp compares
// with transformers: GGUF's keys and shapes, the names that published folders have, and what is
// refused.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "format/gguf.h"
#include "tests/huggingface/oracle_folder.h"
#include "tests/support/hf_folder.h"

namespace snapkv::test {
namespace mamba2_folder_tests {

using Ints = std::vector<int64_t>;

using Mamba2Folder = OracleFolder;

TEST_F(Mamba2Folder, HasTheKeysAndShapesOfGguf) {
  write("granitehybrid");
  const GgufFile granite = open();
  EXPECT_EQ(granite.get_string("general.architecture"), "granitehybrid");
  EXPECT_EQ(granite.get_uint("granitehybrid.ssm.time_step_rank"), 8u);
  EXPECT_EQ(granite.get_uint("granitehybrid.ssm.inner_size"), 128u);
  EXPECT_EQ(granite.get_uint("granitehybrid.feed_forward_length"), 96u);
  EXPECT_EQ(granite.get_ints("granitehybrid.attention.head_count_kv"), (Ints{0, 2, 0, 0}));
  expect_decay_rates(granite, "model.layers.0.mamba.A_log", {8, 1});
  EXPECT_EQ(granite.find_tensor("blk.0.ssm_norm.weight")->tensor.shape[0], 2);
  write("nemotron_h");
  const GgufFile nemotron = open();
  EXPECT_EQ(nemotron.get_ints("nemotron_h.feed_forward_length"), (Ints{0, 96, 0, 0, 96}));
  EXPECT_EQ(nemotron.get_ints("nemotron_h.attention.head_count_kv"), (Ints{0, 0, 0, 2, 0}));
}

TEST_F(Mamba2Folder, LayersHaveTheirOldNames) {
  write("granitehybrid");
  const std::vector<float> expected = logits(folder_);
  set_config({{"layer_types", {"mamba", "attention", "mamba", "mamba"}}});
  EXPECT_EQ(logits(folder_), expected);
  write("nemotron_h-moe");
  const std::vector<float> experts = logits(folder_);
  set_config({{"layers_block_type", nullptr}, {"hybrid_override_pattern", "EM*ME"}});
  EXPECT_EQ(logits(folder_), experts);
}

// The first half of a head's values, whose pairs are neighbours in GGUF.
TEST_F(Mamba2Folder, BambaRotatesAHalfOfEachHead) {
  write("bamba");
  const GgufFile bamba = converted(DType::f32);
  EXPECT_EQ(bamba.get_string("general.architecture"), "granitehybrid");
  EXPECT_EQ(bamba.get_uint("granitehybrid.rope.dimension_count"), 8u);
  EXPECT_TRUE(bamba.get_bool("granitehybrid.rope.scaling.finetuned", false));
  EXPECT_EQ(bamba.get_ints("granitehybrid.attention.head_count_kv"), (Ints{0, 2, 0, 0}));
  EXPECT_FALSE(bamba.has("granitehybrid.attention.scale"));
  const Tensor& q = bamba.find_tensor("blk.1.attn_q.weight")->tensor;
  const auto values = oracle_values("model.layers.1.self_attn.q_proj.weight", 64 * 64, false);
  const std::pair<int64_t, int64_t> rows[] = {{0, 0}, {1, 4}, {2, 1}, {7, 7}, {8, 8}, {17, 20}};
  for (const auto& [row, source] : rows) {
    EXPECT_EQ(*q.at<const float>(row, 3), values[source * 64 + 3]) << row;
  }
}

// Python writes a number that JSON does not have.
TEST_F(Mamba2Folder, ConfigurationsMayHoldInfinity) {
  write("bamba");
  const std::vector<float> expected = logits(folder_);
  std::string text = golden_.at("config").dump();
  const std::string number = R"({"__float__":"Infinity"})";
  const size_t at = text.find(number);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, number.size(), "Infinity");
  write_text(folder_ + "/config.json", text);
  EXPECT_EQ(logits(folder_), expected);
  text.replace(text.find("Infinity"), 8, "-Infinity");
  write_text(folder_ + "/config.json", text);
  expect_error(ErrorCode::kBadModel, {"time_step_limit", "-Infinity"},
               [&] { Model::load({.path = folder_}); });
}

TEST_F(Mamba2Folder, LayersThatGuessFurtherTokensAreLeftOut) {
  write("nemotron_h-moe");
  const std::vector<float> expected = logits(folder_);
  golden_["files"]["model.safetensors"]["mtp.layers.0.eh_proj.weight"] = {64, 128};
  write_oracle_folder(folder_, golden_);
  EXPECT_EQ(logits(folder_), expected);
}

TEST_F(Mamba2Folder, ConvertedFilesComputeTheSame) {
  expect_same_if_converted({"granitehybrid-moe", "nemotron_h-latent", "bamba"});
}

TEST_F(Mamba2Folder, WhatIsNotSupportedIsNamed) {
  const auto names = [](std::initializer_list<const char*> all) {
    return Json(std::vector<std::string>(all.begin(), all.end()));
  };
  write("granitehybrid");
  refused({{"layer_types", names({"mamba", "mlp", "mamba", "mamba"})}}, {"layer_types", "mlp"});
  refused({{"layer_types", names({"mamba", "attention"})}}, {"num_hidden_layers", "4", "2"});
  refused({{"mamba_n_groups", 3}}, {"mamba_n_groups", "3", "8"});
  refused({{"mamba_d_head", 8}}, {"mamba_d_head", "8", "16"});
  refused({{"mamba_n_heads", 6}}, {"mamba_n_heads", "6", "128"});
  refused({{"mamba_d_state", 8}}, {"in_proj", "[328, 64]"});
  refused({{"time_step_limit", {0.001, 0.1}}}, {"time_step_limit", "[0.001,0.1]", "Infinity"});
  write("bamba");
  refused({{"attn_layer_indices", {1, 4}}}, {"attn_layer_indices", "4", "0 to 3"});
  refused({{"attn_layer_indices", 1}}, {"attn_layer_indices", "1", "array"});
  refused({{"attn_layer_indices", Json::array()}}, {"none of 4 layers"});
  refused({{"mlp_bias", true}}, {"mlp_bias", "true"});
  write("nemotron_h");
  refused({{"layers_block_type", names({"moe", "mlp", "full_attention"})}},
          {"layers_block_type", "dense"});
  refused({{"layers_block_type", Json::array()}}, {"layers_block_type", "1 to 4096"});
  refused({{"mlp_hidden_act", "silu"}}, {"mlp_hidden_act", "relu2"});
  refused({{"mamba_hidden_act", "relu"}}, {"mamba_hidden_act", "silu"});
  refused({{"hybrid_override_pattern", "EM+ME"}}, {"hybrid_override_pattern", "EM+ME"});
}

// GGUF has the factors of config.json in the matrices.
TEST_F(Mamba2Folder, FactorsAreInTheMatrices) {
  write("falcon_h1");
  const std::vector<float> expected = logits(folder_);
  const GgufFile falcon = converted(DType::f32);
  const auto expect_factor = [&](const char* name, int64_t row, const char* source, double factor) {
    const Tensor& t = falcon.find_tensor(name)->tensor;
    const int64_t n = t.shape[1];
    const auto values = oracle_values(source, t.numel(), false);
    EXPECT_EQ(*t.at<const float>(row, 5), values[row * n + 5] * static_cast<float>(factor)) << name;
  };
  expect_factor("token_embd.weight", 3, "model.embed_tokens.weight", 2.5);
  expect_factor("output.weight", 3, "lm_head.weight", 1.5);
  expect_factor("blk.1.attn_q.weight", 2, "model.layers.1.self_attn.q_proj.weight", 1.3);
  expect_factor("blk.1.attn_k.weight", 2, "model.layers.1.self_attn.k_proj.weight", 1.3 * 1.6);
  expect_factor("blk.1.attn_v.weight", 2, "model.layers.1.self_attn.v_proj.weight", 1.3);
  expect_factor("blk.1.attn_output.weight", 2, "model.layers.1.self_attn.o_proj.weight", 0.9);
  expect_factor("blk.1.ffn_gate.weight", 2, "model.layers.1.feed_forward.gate_proj.weight", 0.88);
  expect_factor("blk.1.ffn_down.weight", 2, "model.layers.1.feed_forward.down_proj.weight", 0.6);
  const char* const in = "model.layers.0.mamba.in_proj.weight";
  // 96 gates, 96 x, 16 B, 16 C, 6 steps
  const std::pair<int64_t, double> parts[] = {{0, 0.4},   {95, 0.4},  {96, 0.7},  {191, 0.7},
                                              {192, 1.4}, {207, 1.4}, {208, 0.8}, {223, 0.8},
                                              {224, 1.2}, {229, 1.2}};
  for (const auto& [row, factor] : parts) {
    expect_factor("blk.0.ssm_in.weight", row, in, 1.25 * factor);
  }
  EXPECT_NE(falcon.find_tensor("blk.0.ffn_norm"), nullptr) << "whose name llama.cpp does not end";
  EXPECT_FALSE(falcon.has("snapkv.falcon_h1.factors"));
  expect_near(logits(file_), expected);
}

// A folder that is read in place has them beside the matrices, which are not copied.
TEST_F(Mamba2Folder, MatricesOfFalconsStayWhereTheyAre) {
  write("falcon_h1-norm");
  const GgufFile falcon = open();
  EXPECT_TRUE(falcon.has("snapkv.falcon_h1.factors"));
  for (const GgufTensor& t : falcon.tensors()) {
    if (t.tensor.rank < 2 || t.tensor.shape[1] == 1) continue;
    EXPECT_NE(t.part, GgufTensor::kNoFile) << t.name;
  }
}

TEST_F(Mamba2Folder, FalconsWhoseOutputIsTheEmbeddingsHaveBoth) {
  write("falcon_h1-norm");
  ASSERT_EQ(golden_.at("config").at("tie_word_embeddings"), true);
  const std::vector<float> expected = logits(folder_);
  EXPECT_NE(converted(DType::f32).find_tensor("output.weight"), nullptr);
  expect_near(logits(file_), expected);
  set_config({{"lm_head_multiplier", 2.5}});  // as the embeddings
  EXPECT_EQ(open().find_tensor("output.weight"), nullptr);
}

TEST_F(Mamba2Folder, WhatFalconsDoNotSupportIsNamed) {
  write("falcon_h1");
  refused({{"mamba_rms_norm", true}, {"mamba_norm_before_gate", true}}, {"mamba_norm_before_gate"});
  refused({{"mamba_n_groups", 4}}, {"mamba_n_groups", "4", "6"});
  refused({{"mamba_d_ssm", 95}}, {"mamba_n_heads", "6", "95"});
  refused({{"mamba_d_head", 8}}, {"mamba_d_head", "8", "16"});
  refused({{"mamba_d_state", 8}}, {"in_proj", "[230, 64]"});
  refused({{"ssm_multipliers", {1, 1, 1, 1}}}, {"ssm_multipliers", "5 positive numbers"});
  refused({{"mlp_multipliers", {1, -1}}}, {"mlp_multipliers", "2 positive numbers"});
  refused({{"key_multiplier", 0}}, {"key_multiplier"});
  refused({{"attention_bias", true}}, {"attention_bias", "true"});
  refused({{"mamba_conv_bias", false}, {"mamba_rms_norm", true}, {"mamba_norm_before_gate", false}},
          {"model.layers.0.mamba.norm.weight", "missing"});
  write("falcon_h1-norm");
  refused({{"mamba_rms_norm", false}}, {"model.layers.0.mamba.norm.weight", "mamba_rms_norm"});
}

}  // namespace mamba2_folder_tests
}  // namespace snapkv::test
