// SPDX-License-Identifier: MIT
// Folders of classes that transformers does not have (remote_mixture_config.h,
// remote_layers_config.h, rwkv_config.h), beside what hf_oracle_test.cpp compares with llama.cpp:
// converted files, what published folders have and the goldens do not, and what is refused.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/huggingface/oracle_folder.h"

namespace snapkv::test {
namespace remote_mixtures_tests {

/// Goldens of tools/hf_llama_mixtures.py.
const char* const kFolders[] = {
    "ling2",        "ling1",        "ling1-plain",  "deepseek_moe",
    "deepseek_ocr", "grove_moe",    "smallthinker", "smallthinker-softmax",
    "arctic",       "plm",          "plamo2",       "plamo3",
    "plamo3-yarn",  "nemotron_nas", "decilm",       "talkie",
    "rwkv7",        "arwkv7",       "arwkv7-bare",  "rwkv6",
    "qrwkv6"};

class RemoteMixtures : public OracleFolder {
 protected:
  /// Fails unless the field is refused by name with this value.
  void refuses(const char* name, const Json& value) {
    refused({{name, value}}, {"config.json", name});
  }
  /// Writes the golden's folder with a further tensor.
  void add_tensor(const std::string& name, const std::vector<int64_t>& shape) {
    golden_.at("files").begin().value()[name] = shape;
    write_oracle_folder(folder_, golden_);
  }
};

TEST_F(RemoteMixtures, ConvertedFilesComputeTheSame) {
  for (const char* name : kFolders) {
    SCOPED_TRACE(name);
    write(name);
    converted();
    expect_near(logits(file_), logits(folder_));
  }
}

// What llama.cpp's converter says of the model, `convert` says too, but for what nothing reads.
TEST_F(RemoteMixtures, MetadataIsThatOfLlamaCppsConverter) {
  const std::set<std::string> kOthers = {"bailingmoe2.nextn_predict_layers",  // 0
                                         "deepseek.rope.scaling.type",        // none
                                         // which one group is
                                         "deepseek2-ocr.expert_group_count",
                                         "deepseek2-ocr.expert_group_used_count",
                                         "deepseek2-ocr.rope.dimension_count",  // 0 there
                                         // snapkv.rope.yarn_truncate here
                                         "plamo3.rope.scaling.yarn_truncate"};
  EXPECT_GT(expect_metadata_of_goldens(kFolders, kOthers), 280u);
}

TEST_F(RemoteMixtures, LayersOfLingThatGuessFurtherTokensAreLeftOut) {
  write("ling2");
  const std::vector<float> expected = logits(folder_);
  add_tensor("model.layers.4.eh_proj.weight", {64, 128});
  set_config({{"num_nextn_predict_layers", 1}});
  expect_near(logits(folder_), expected);
  refused({{"num_nextn_predict_layers", 0}}, {"model.layers.4.eh_proj.weight", "not part of"});
}

TEST_F(RemoteMixtures, WhatLingCannotHaveIsNamed) {
  write("ling2");
  refuses("score_function", "softmax");
  refuses("norm_topk_prob", false);
  refuses("use_qk_norm", false);
  refuses("use_rmsnorm", false);
  refuses("num_shared_experts", 0);
  refuses("moe_shared_expert_intermediate_size", 40);
  refuses("n_group", 3);
  for (const char* name : {"use_bias", "use_qkv_bias", "use_sliding_window", "norm_head"}) {
    refuses(name, true);
  }
  write("ling1");
  refuses("norm_softmax", true);
  refuses("first_k_dense_replace", 1);
  refused({{"tie_word_embeddings", true}}, {"norm_head", "tie_word_embeddings"});
}

TEST_F(RemoteMixtures, TwoSharedExpertsOfLing2AreCounted) {
  write("ling2");
  EXPECT_EQ(open().get_uint("bailingmoe2.expert_shared_feed_forward_length"), 32u);
  for (auto& [name, shape] : golden_.at("files").begin().value().items()) {
    if (name.find("shared_experts") == std::string::npos) continue;
    for (Json& size : shape) size = size == 32 ? Json(64) : size;
  }
  write_oracle_folder(folder_, golden_);
  set_config({{"num_shared_experts", 2}});
  // which llama.cpp would multiply by their number
  const GgufFile file = open();
  EXPECT_FALSE(file.metadata().contains("bailingmoe2.expert_shared_feed_forward_length"));
  EXPECT_EQ(file.get_uint("bailingmoe2.expert_shared_count"), 2u);
}

TEST_F(RemoteMixtures, WhatDeepseekCannotHaveIsNamed) {
  write("deepseek_moe");
  refuses("norm_topk_prob", true);
  refuses("scoring_func", "sigmoid");
  refuses("moe_layer_freq", 2);
  refuses("attention_bias", true);
  write("deepseek_ocr");
  refuses("use_mla", true);
  refuses("use_mla", nullptr);
  refuses("topk_method", "noaux_tc");
  refuses("scoring_func", "sigmoid");
  refuses("sliding_window_size", 128);
  refuses("num_key_value_heads", 2);
  refused({{"norm_topk_prob", true}, {"routed_scaling_factor", 2.0}}, {"routed_scaling_factor"});
}

TEST_F(RemoteMixtures, WhatGroveCannotHaveIsNamed) {
  write("grove_moe");
  refuses("norm_topk_prob", false);
  refuses("num_experts", 7);
  refuses("decoder_sparse_step", 2);
  refuses("mlp_only_layers", Json::array({0}));
  refuses("use_sliding_window", true);
}

TEST_F(RemoteMixtures, LayoutsOfSmallThinkerThatGgufCannotSayAreNamed) {
  write("smallthinker");
  refuses("sliding_window_layout", Json::array({1, 1, 1, 1, 0}));
  refuses("sliding_window_layout", Json::array({0, 1, 1, 1}));
  refuses("rope_layout", Json::array({1, 1, 1, 1, 1}));
  refuses("rope_layout", Json::array({0, 1, 2, 1, 0}));
  refuses("moe_enable_secondary_experts", true);
  refuses("moe_num_active_primary_experts", 9);
  set_config({{"sliding_window_size", 16}});
  EXPECT_EQ(converted().get_uint("smallthinker.attention.sliding_window"), 16u);
  write("smallthinker-softmax");
  refuses("rope_layout", Json::array({1, 1, 0, 1}));
}

TEST_F(RemoteMixtures, WhatArcticCannotHaveIsNamed) {
  write("arctic");
  refuses("moe_layer_frequency", 2);
  refuses("moe_layer_frequency", nullptr);
  refuses("parallel_attn_mlp_res", false);
  refuses("use_residual", false);
  refuses("sliding_window", 128);
}

TEST_F(RemoteMixtures, WhatPlmCannotHaveIsNamed) {
  write("plm");
  refuses("hidden_act", "silu");
  refuses("q_lora_rank", 16);
  refuses("num_key_value_heads", 2);
  refuses("attention_bias", true);
  refuses("tie_word_embeddings", false);
  refuses("rope_scaling", Json{{"type", "linear"}, {"factor", 2.0}});
}

TEST_F(RemoteMixtures, WindowsOfPlamo3AreRead) {
  write("plamo3");
  const std::vector<float> expected = logits(folder_);
  const Json list = Json::array({16, 16, nullptr, 16});  // as older folders have them
  set_config({{"window_size", nullptr},
              {"sliding_window", list},
              {"rope_theta", nullptr},
              {"rope_global_theta", 1000000.0}});
  EXPECT_EQ(logits(folder_), expected);
  set_config({{"window_size", 17}});
  EXPECT_NE(logits(folder_), expected);
  refused({{"window_size", nullptr}, {"sliding_window", Json::array({16, 8, nullptr, 16})}},
          {"sliding_window", "8"});
  refuses("window_size", nullptr);
  refuses("scale_embedding", true);
  refuses("hidden_activation", "gelu");
  refuses("head_dim", nullptr);
  refused({{"rope_scaling_factor", 2.0}}, {"initial_context_length"});
  refuses("layer_types", Json::array({"sliding_attention", "full_attention", "full_attention",
                                      "sliding_attention"}));
}

TEST_F(RemoteMixtures, WindowsOfPlamo2BoundTheContext) {
  write("plamo2");
  set_config({{"attention_window_size", 64}});
  EXPECT_EQ(open().get_uint("plamo2.context_length"), 64u);
  refuses("full_attention_idx", Json::array({1}));
  refuses("mamba_enabled", false);
  refuses("mamba_step", 1);
  refuses("hidden_size_per_head", nullptr);
}

TEST_F(RemoteMixtures, BlocksOfDeciThatAreNotSupportedAreNamed) {
  write("nemotron_nas");
  const auto with = [&](const char* part, const Json& fields) {
    Json blocks = golden_.at("config").at("block_configs");
    blocks[0][part].merge_patch(fields);
    return Json{{"block_configs", blocks}};
  };
  refused(with("attention", {{"window_length", 16}}), {"block_configs.0.attention.window_length"});
  refused(with("attention", {{"num_sink_tokens", 4}}), {"num_sink_tokens"});
  refused(with("attention", {{"unshifted_sink", true}}), {"unshifted_sink"});
  refused(with("attention", {{"no_op", true}}), {"n_heads_in_group", "no_op"});
  refused(with("attention", {{"n_heads_in_group", 3}}), {"n_heads_in_group", "3"});
  refused(with("ffn", {{"ffn_mult", nullptr}}), {"block_configs.0.ffn.ffn_mult", "missing"});
  refused(with("ffn", {{"ffn_mult", nullptr}, {"no_op", true}}), {"no_op", "attention"});
  refused(with("ffn", {{"ffn_mult", 1e9}}), {"ffn_mult"});
  refused(with("ffn", {{"replace_with_linear", true}}), {"ffn.replace_with_linear"});
  refused(with("ffn", {{"sparsify", Json::array({"2:4"})}}), {"ffn.sparsify"});
  refused({{"block_configs", Json::array()}}, {"block_configs", "6"});
  refused({{"block_configs", nullptr}, {"intermediate_size", 160}},
          {"block_configs", "num_key_value_heads_per_layer"});
  refuses("position_embedding_type", "mistral_yarn");
  write("decilm");
  refuses("num_key_value_heads_per_layer", Json::array({4, 3, 1, 2}));
}

TEST_F(RemoteMixtures, NumbersOfTalkieAreChecked) {
  write("talkie");
  refuses("tie_word_embeddings", true);
  refuses("num_key_value_heads", 2);
  const auto without = [&](const char* name, const std::vector<int64_t>& shape) {
    Json& tensors = golden_.at("files").begin().value();
    tensors.erase(name);
    if (!shape.empty()) tensors[name] = shape;
    write_oracle_folder(folder_, golden_);
    expect_error(ErrorCode::kBadModel, {name}, [&] { Model::load({.path = folder_}); });
  };
  without("lm_head_gain.w_g", {2});
  without("lm_head_gain.w_g", {});
}

TEST_F(RemoteMixtures, WhatRwkvCannotHaveIsNamed) {
  write("rwkv7");
  refuses("attn", Json{{"layers", Json::array({1})}});
  refuses("value_dim", 128);
  refuses("norm_first", false);
  refuses("head_dim", 48);
  refuses("hidden_act", "relu");
  refused({{"intermediate_size", nullptr}, {"hidden_ratio", 3.5}}, {"hidden_ratio", "3.5"});
  write("rwkv6");
  refuses("head_size_divisor", 4);
  refuses("attention_hidden_size", 128);
  write("arwkv7-bare");
  refuses("wkv_version", 6);
  refuses("wkv_layers", Json::array({0, 1}));
  refused({{"wkv_has_gate", true}}, {"time_mixer.x_g", "missing"});
  refused({{"wkv_has_group_norm", true}}, {"time_mixer.ln_x.weight", "missing"});
  write("qrwkv6");
  refuses("num_attention_heads", 3);
  refuses("use_rope", true);
}

TEST_F(RemoteMixtures, ScaledMatricesOfRwkv6AreWrittenToFilesOnly) {
  write("rwkv6");
  EXPECT_EQ(open().get_uint("rwkv6.rescale_every_n_layers"), 0u);
  const GgufFile file = converted();
  EXPECT_EQ(file.get_uint("rwkv6.rescale_every_n_layers"), 2u);
  const std::string name = "rwkv.blocks.3.attention.output.weight";
  const Tensor& written = file.find_tensor("blk.3.time_mix_output.weight")->tensor;
  EXPECT_EQ(*written.at<const float>(5, 7), oracle_values(name, 64 * 64, false)[5 * 64 + 7] / 2);
}

}  // namespace remote_mixtures_tests
}  // namespace snapkv::test
