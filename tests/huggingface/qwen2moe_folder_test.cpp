// SPDX-License-Identifier: MIT
// Folders of Qwen 2's mixtures, which have a shared expert, compute what the GGUF file of the same
// weights does, which llama.cpp confirms.
#include <gtest/gtest.h>

#include <utility>

#include "snapkv/convert.h"
#include "tests/huggingface/gguf_folder.h"
#include "tests/support/expect_error.h"

namespace snapkv::test {
namespace qwen2moe_folder_tests {

/// transformers' name of a tensor.
std::string name_in_folder(std::string name) {
  const NamePart parts[] = {{"blk.", "model.layers."},
                            {"output_norm", "model.norm"},
                            {"token_embd", "model.embed_tokens"},
                            {"attn_norm", "input_layernorm"},
                            {"ffn_norm", "post_attention_layernorm"},
                            {"attn_q", "self_attn.q_proj"},
                            {"attn_k", "self_attn.k_proj"},
                            {"attn_v", "self_attn.v_proj"},
                            {"attn_output", "self_attn.o_proj"},
                            {"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
                            {"ffn_gate_inp", "mlp.gate"},
                            {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
                            {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
                            {"ffn_down_shexp", "mlp.shared_expert.down_proj"},
                            {"ffn_gate", "mlp.gate_proj"},
                            {"ffn_up", "mlp.up_proj"},
                            {"ffn_down", "mlp.down_proj"}};
  if (name == "output.weight") return "lm_head.weight";
  return replaced(std::move(name), parts);
}

Json config() {
  return {{"architectures", {"Qwen2MoeForCausalLM"}},
          {"model_type", "qwen2_moe"},
          {"vocab_size", kFamilyVocab},
          {"hidden_size", 64},
          {"intermediate_size", 192},
          {"moe_intermediate_size", 96},
          {"shared_expert_intermediate_size", 160},
          {"num_hidden_layers", 3},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"num_experts", 10},
          {"num_experts_per_tok", 4},
          {"norm_topk_prob", false},
          {"decoder_sparse_step", 1},
          {"mlp_only_layers", Json::array()},
          {"max_position_embeddings", 4096},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 10000.0},
          {"sliding_window", 4096},
          {"use_sliding_window", false},
          {"tie_word_embeddings", false},
          {"bos_token_id", 1},
          {"eos_token_id", 2}};
}

class Qwen2MoeFolder : public GgufFolder {
 protected:
  Qwen2MoeFolder() { write("qwen2moe", name_in_folder); }
};

TEST_F(Qwen2MoeFolder, ComputesWhatItsGgufFileDoes) {
  const std::vector<float> expected = logits(load_model("qwen2moe"));
  EXPECT_EQ(logits(load(config())), expected);
  Json normalized = config();
  normalized["norm_topk_prob"] = true;
  EXPECT_NE(logits(load(normalized)), expected);
}

/// The shared expert's gate stays f32 whatever the type of the file.
TEST_F(Qwen2MoeFolder, IsConverted) {
  write_text(dir_ / "config.json", config().dump());
  const std::string path = dir_ / "qwen2moe.gguf", rounded = dir_ / "rounded.gguf";
  convert_model({.from = dir_ / "", .to = path});
  EXPECT_EQ(logits(Model::load({.path = path, .compute = Compute::f32})),
            logits(load_model("qwen2moe")));
  convert_model({.from = dir_ / "", .to = rounded, .type = DType::q8_0});
  const GgufFile file = GgufFile::open(rounded);
  EXPECT_EQ(file.find_tensor("blk.0.ffn_up_shexp.weight")->tensor.dtype, DType::q8_0);
  const Tensor gate = file.find_tensor("blk.0.ffn_gate_inp_shexp.weight")->tensor;
  EXPECT_EQ(gate.dtype, DType::f32);
  EXPECT_EQ(gate.shape_string(), "[64]");
  Model::load({.path = rounded});
}

TEST_F(Qwen2MoeFolder, RefusesWhatItCannotCompute) {
  const auto refused = [&](const char* key, const Json& value, std::string_view why) {
    Json json = config();
    if (value.is_null()) {
      json.erase(key);
    } else {
      json[key] = value;
    }
    expect_error(ErrorCode::kBadModel, {key, why}, [&] { load(json); });
  };
  refused("shared_expert_intermediate_size", {}, "missing");
  refused("shared_expert_intermediate_size", 0, "0");
  refused("moe_intermediate_size", {}, "missing");
  refused("decoder_sparse_step", 2, "supported is 1");
  refused("mlp_only_layers", {0}, "supported is []");
  refused("use_sliding_window", true, "not supported");
  Json json = config();
  json["shared_expert_intermediate_size"] = 128;
  expect_error(ErrorCode::kBadModel, {"mlp.shared_expert.gate_proj.weight", "[160, 64]"},
               [&] { load(json); });
}

}  // namespace qwen2moe_folder_tests
}  // namespace snapkv::test
