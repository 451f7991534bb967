// SPDX-License-Identifier: MIT
// LFM2's folders, whose layers are not all alike: the same weights under transformers' names
// compute what the GGUF file of tests/support/family_models.cpp does, which llama.cpp confirms.
#include <gtest/gtest.h>

#include <utility>

#include "format/gguf.h"
#include "snapkv/convert.h"
#include "snapkv/engine.h"
#include "tests/huggingface/gguf_folder.h"
#include "tests/support/expect_error.h"
#include "tests/support/family_models.h"

namespace snapkv::test {
namespace lfm2_folder_tests {

/// transformers' name of a tensor.
std::string name_in_folder(std::string name) {
  const NamePart parts[] = {{"blk.", "model.layers."},
                            {"token_embd_norm", "model.embedding_norm"},
                            {"token_embd", "model.embed_tokens"},
                            {"attn_norm", "operator_norm"},
                            {"attn_q_norm", "self_attn.q_layernorm"},
                            {"attn_k_norm", "self_attn.k_layernorm"},
                            {"attn_q", "self_attn.q_proj"},
                            {"attn_k", "self_attn.k_proj"},
                            {"attn_v", "self_attn.v_proj"},
                            {"attn_output", "self_attn.out_proj"},
                            {"shortconv", "conv"},
                            {"ffn_gate_inp", "feed_forward.gate"},
                            {"exp_probs_b.bias", "feed_forward.expert_bias"},
                            {"ffn_gate", "feed_forward.w1"},
                            {"ffn_down", "feed_forward.w2"},
                            {"ffn_up", "feed_forward.w3"}};
  return replaced(std::move(name), parts);
}

Json config() {
  return {{"architectures", {"Lfm2ForCausalLM"}},
          {"model_type", "lfm2"},
          {"vocab_size", kFamilyVocab},
          {"hidden_size", 64},
          {"intermediate_size", 96},
          {"block_auto_adjust_ff_dim", false},
          {"num_hidden_layers", 5},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"max_position_embeddings", 4096},
          {"layer_types", {"conv", "full_attention", "conv", "full_attention", "conv"}},
          {"conv_L_cache", 3},
          {"conv_bias", false},
          {"norm_eps", 1e-5},
          {"rope_theta", 10000.0},
          {"tie_word_embeddings", true},
          {"bos_token_id", 1},
          {"eos_token_id", 2}};
}

Json moe_config() {
  Json all = config();
  all.update({{"architectures", {"Lfm2MoeForCausalLM"}},
              {"model_type", "lfm2_moe"},
              {"intermediate_size", 128},
              {"moe_intermediate_size", 96},
              {"num_dense_layers", 2},
              {"num_experts", 8},
              {"num_experts_per_tok", 3},
              {"norm_topk_prob", true},
              {"use_expert_bias", true},
              {"routed_scaling_factor", 1.0}});
  return all;
}

class Lfm2Folder : public GgufFolder {
 protected:
  void write(const std::string& model) { GgufFolder::write(model, name_in_folder); }
};

TEST_F(Lfm2Folder, ComputesWhatItsGgufFileDoes) {
  write("lfm2");
  EXPECT_EQ(logits(load(config())), logits(load_model("lfm2")));
  Json older = config();  // files of before transformers' layer_types
  older.erase("layer_types");
  older["full_attn_idxs"] = {1, 3};
  older.erase("intermediate_size");
  older["intermediate_size"] = 144;  // two thirds are 96
  older["block_auto_adjust_ff_dim"] = true;
  older["block_multiple_of"] = 32;
  EXPECT_EQ(logits(load(older)), logits(load_model("lfm2")));
}

TEST_F(Lfm2Folder, ComputesWhatItsGgufFileDoesWithExperts) {
  write("lfm2moe");
  EXPECT_EQ(logits(load(moe_config())), logits(load_model("lfm2moe")));
  Json by_default = moe_config();
  for (const char* key : {"norm_topk_prob", "use_expert_bias", "routed_scaling_factor"}) {
    by_default.erase(key);
  }
  const std::vector<float> expected = logits(load(by_default));
  EXPECT_EQ(expected, logits(load_model("lfm2moe")));
  for (const auto& [key, value] :
       {std::pair<const char*, Json>{"norm_topk_prob", false}, {"routed_scaling_factor", 2.0}}) {
    Json json = moe_config();
    json[key] = value;
    EXPECT_NE(logits(load(json)), expected) << key;
  }
  const std::string path = dir_ / "lfm2moe.gguf";
  load(moe_config());
  convert_model({.from = dir_ / "", .to = path});
  EXPECT_EQ(GgufFile::open(path).get_uint("lfm2moe.expert_gating_func"), 2u);  // sigmoid
  EXPECT_EQ(logits(Model::load({.path = path, .compute = Compute::f32})), expected);
}

TEST_F(Lfm2Folder, RefusesExpertsThatItCannotCompute) {
  write("lfm2moe");
  const auto refused = [&](const char* key, const Json& value, std::string_view why) {
    Json json = moe_config();
    if (value.is_null()) {
      json.erase(key);
    } else {
      json[key] = value;
    }
    expect_error(ErrorCode::kBadModel, {key, why}, [&] { load(json); });
  };
  refused("use_expert_bias", false, "supported is true");
  refused("num_dense_layers", 5, "5");
  refused("num_dense_layers", {}, "missing");
  refused("moe_intermediate_size", {}, "missing");
  refused("num_experts", 0, "0");
  refused("num_experts_per_tok", 9, "9");
  refused("routed_scaling_factor", -1.0, "-1");
  Json json = moe_config();
  json["num_dense_layers"] = 3;
  expect_error(ErrorCode::kBadModel, {"experts", "not part of"}, [&] { load(json); });
  json["num_dense_layers"] = 1;
  expect_error(ErrorCode::kBadModel, {"layers.1.feed_forward.experts.0.w1.weight", "missing"},
               [&] { load(json); });
}

TEST_F(Lfm2Folder, RefusesWhatItCannotCompute) {
  write("lfm2");
  const auto refused = [&](const char* key, const Json& value, std::string_view why) {
    Json json = config();
    json[key] = value;
    expect_error(ErrorCode::kBadModel, {key, why}, [&] { load(json); });
  };
  refused("conv_bias", true, "not supported");
  refused("conv_L_cache", 1, "1");
  refused("layer_types", Json::array({"conv"}), "5 layers");
  refused("layer_types", Json::array({"conv", "conv", "conv", "conv", "mamba"}), "mamba");
  // a layer of another kind than the tensors'
  Json json = config();
  json["layer_types"][0] = "full_attention";
  expect_error(ErrorCode::kBadModel, {"blk.0.attn_q"}, [&] { load(json); });
}

}  // namespace lfm2_folder_tests
}  // namespace snapkv::test
