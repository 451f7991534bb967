// SPDX-License-Identifier: MIT
// LFM2's folders, whose layers are not all alike: the same weights under transformers' names
// compute what the GGUF file of tests/support/family_models.cpp does, which llama.cpp confirms.
#include <gtest/gtest.h>

#include "format/gguf.h"
#include "snapkv/engine.h"
#include "tests/support/expect_error.h"
#include "tests/support/family_models.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/hf_folder.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace lfm2_folder_tests {

/// transformers' name of a tensor.
std::string name_in_folder(std::string name) {
  const std::pair<const char*, const char*> parts[] = {{"blk.", "model.layers."},
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
                                                       {"ffn_gate", "feed_forward.w1"},
                                                       {"ffn_down", "feed_forward.w2"},
                                                       {"ffn_up", "feed_forward.w3"}};
  for (const auto& [gguf, folder] : parts) {
    const size_t at = name.find(gguf);
    if (at != std::string::npos) name.replace(at, std::string_view(gguf).size(), folder);
  }
  return name;
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

class Lfm2Folder : public testing::Test {
 protected:
  Lfm2Folder() {
    const GgufFile file = GgufFile::open(model_path("lfm2"));
    std::vector<HfTensor> tensors;
    for (const GgufTensor& t : file.tensors()) {
      const auto* values = static_cast<const float*>(t.tensor.data);
      std::vector<int64_t> shape(t.tensor.shape.begin(), t.tensor.shape.begin() + t.tensor.rank);
      const std::string name = name_in_folder(t.name);
      if (name.ends_with("conv.conv.weight")) shape = {shape[0], 1, shape[1]};
      tensors.push_back(f32_tensor(name, shape, {values, values + t.tensor.numel()}));
    }
    write_bytes(dir_ / "model.safetensors", safetensors_bytes(tensors));
    write_spm_tokenizer(dir_ / "");
  }
  std::shared_ptr<const Model> load(const Json& json) {
    write_text(dir_ / "config.json", json.dump());
    return Model::load({.path = dir_ / "", .compute = Compute::f32});
  }
  static std::vector<float> logits(std::shared_ptr<const Model> model) {
    SessionOptions options;
    options.kv.name = "full";
    options.kv_type = DType::f32;
    Session session(std::move(model), options);
    session.prefill(generated_ids(40, kFamilyVocab, 1));
    session.decode(7);
    return {session.logits().begin(), session.logits().end()};
  }

  const TempDir dir_;
};

TEST_F(Lfm2Folder, ComputesWhatItsGgufFileDoes) {
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

TEST_F(Lfm2Folder, RefusesWhatItCannotCompute) {
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
