// SPDX-License-Identifier: MIT
// Folders of the dense classes in dense_mappings.h: as published instead of as transformers saves
// them, converted, and with fields that cannot be computed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/huggingface/oracle_folder.h"

namespace snapkv::test {
namespace dense_folders {

const char* const kNames[] = {"gemma",
                              "gemma2",
                              "smollm3",
                              "granite",
                              "olmo2",
                              "olmo3",
                              "cohere",
                              "cohere-norm",
                              "cohere2",
                              "ministral3",
                              "ministral",
                              "cwm",
                              "mistral3-picture",
                              "starcoder2",
                              "stablelm",
                              "phi",
                              "gpt2",
                              "stablelm-parallel",
                              "gpt2-gelu",
                              "gpt_neox",
                              "falcon",
                              "falcon-40b",
                              "falcon-heads",
                              "gpt_bigcode",
                              "gpt_bigcode-heads",
                              "nemotron",
                              "arcee",
                              "apertus",
                              "bitnet",
                              "paddleocr",
                              "hunyuan_vl",
                              "glm",
                              "exaone"};

class DenseFolderTest : public OracleFolder {
 protected:
  /// The folder of a golden after `change`.
  template <typename F>
  std::vector<float> logits_after(const std::string& name, F change) {
    write(name);
    change(golden_);
    write_oracle_folder(folder_, golden_);
    return logits(folder_);
  }
  std::vector<float> as_saved(const std::string& name) {
    return logits_after(name, [](Json&) {});
  }
  /// The folder of a golden whose tensors have the names that `rename` makes of theirs, and the
  /// same values.
  template <typename F>
  std::vector<float> logits_renamed(const std::string& name, F rename, const Json& fields = {},
                                    const std::vector<HfTensor>& further = {}) {
    write(name);
    std::vector<HfTensor> tensors = further;
    const bool one_plus = name == "nemotron";
    for (const auto& [tensor, shape] : golden_["files"]["model.safetensors"].items()) {
      const std::vector<int64_t> sizes = shape;
      int64_t n = 1;
      for (const int64_t size : sizes) n *= size;
      tensors.push_back(f32_tensor(rename(tensor), sizes, oracle_values(tensor, n, one_plus)));
    }
    write_bytes(folder_ + "/model.safetensors", safetensors_bytes(tensors));
    if (fields.is_object()) set_config(fields);
    return logits(folder_);
  }
};

TEST_F(DenseFolderTest, ConvertedFilesComputeTheSame) {
  for (const char* name : kNames) {
    SCOPED_TRACE(name);
    write(name);
    const std::vector<float> expected = logits(folder_);
    convert_model({.from = folder_, .to = file_, .overwrite = true});
    const std::vector<float> actual = logits(file_);
    ASSERT_EQ(actual.size(), expected.size());
    double most = 0;
    for (size_t i = 0; i < actual.size(); ++i) {
      most = std::max<double>(most, std::abs(actual[i] - expected[i]));
    }
    EXPECT_LT(most, 1e-3);
  }
}

TEST_F(DenseFolderTest, PublishedGpt2HasNoRootAndItsMasks) {
  const auto without_root = [](const std::string& name) {
    return name.starts_with("transformer.") ? name.substr(12) : name;
  };
  const HfTensor mask = f32_tensor("h.0.attn.bias", {1, 1, 4, 4}, std::vector<float>(16, 1.0f));
  EXPECT_EQ(logits_renamed("gpt2", without_root, {}, {mask}), as_saved("gpt2"));
}

TEST_F(DenseFolderTest, PublishedGptNeoxHasOlderKeys) {
  const Json older = {
      {"rope_parameters", nullptr}, {"rotary_pct", 0.25}, {"rotary_emb_base", 10000}};
  const auto renamed = [](const std::string& name) {
    return name == "embed_out.weight" ? "lm_head.weight" : name;
  };
  EXPECT_EQ(logits_renamed("gpt_neox", renamed, older), as_saved("gpt_neox"));
}

TEST_F(DenseFolderTest, PublishedExaoneHasOlderKeys) {
  const auto published = [](Json& golden) {
    Json& config = golden["config"];
    const std::pair<const char*, const char*> kNamesOf[] = {{"num_hidden_layers", "num_layers"},
                                                            {"rms_norm_eps", "layer_norm_epsilon"},
                                                            {"hidden_act", "activation_function"}};
    for (const auto& [name, older] : kNamesOf) {
      config[older] = config[name];
      config.erase(name);
    }
    config["architectures"] = {"ExaoneForCausalLM"};
    Json rope = config["rope_parameters"];
    config.erase("rope_parameters");
    config["rope_theta"] = rope["rope_theta"];
    rope.erase("rope_theta");
    config["rope_scaling"] = rope;
  };
  EXPECT_EQ(logits_after("exaone", published), as_saved("exaone"));
}

// Of HunyuanOCR and PaddleOCR.
TEST_F(DenseFolderTest, PublishedTextModelsHaveTheirFieldsAmongTheOthers) {
  const auto flat = [](Json& golden) {
    Json& config = golden["config"];
    const Json text = config["text_config"];
    config.erase("text_config");
    for (const auto& [key, value] : text.items()) {
      if (!config.contains(key)) config[key] = value;
    }
    Json rope = config["rope_parameters"];
    config.erase("rope_parameters");
    config["rope_theta"] = rope["rope_theta"];
    if (rope["rope_type"] == "dynamic") {
      rope["xdrope_section"] = rope["mrope_section"];
      rope.erase("mrope_section");
    }
    rope["type"] = rope["rope_type"] == "dynamic" ? "xdrope" : "mrope";
    for (const char* key : {"rope_type", "rope_theta"}) rope.erase(key);
    config["rope_scaling"] = rope;
  };
  for (const char* name : {"hunyuan_vl", "paddleocr"}) {
    EXPECT_EQ(logits_after(name, flat), as_saved(name)) << name;
  }
}

TEST_F(DenseFolderTest, PublishedCommandRSaysItsContextTwice) {
  write("cohere");
  EXPECT_EQ(open().get_uint("command-r.context_length"), 256u);
  set_config({{"model_max_length", 4096}});
  EXPECT_EQ(open().get_uint("command-r.context_length"), 4096u);
}

TEST_F(DenseFolderTest, PublishedFalconReliesOnDefaults) {
  const auto published = [](Json& golden) {
    for (const char* key : {"ffn_hidden_size", "activation", "max_position_embeddings",
                            "rope_parameters", "num_ln_in_parallel_attn"}) {
      golden["config"].erase(key);
    }
  };
  EXPECT_EQ(logits_after("falcon", published), as_saved("falcon"));
}

TEST_F(DenseFolderTest, PublishedGemmaCallsItsActivationGelu) {
  const auto published = [](Json& golden) { golden["config"]["hidden_act"] = "gelu"; };
  EXPECT_EQ(logits_after("gemma", published), as_saved("gemma"));
  EXPECT_EQ(
      logits_after("gpt2",
                   [](Json& golden) { golden["config"]["activation_function"] = "gelu_fast"; }),
      as_saved("gpt2"));
}

// GELU itself and its approximation by tanh differ little, but they differ.
TEST_F(DenseFolderTest, ExactGeluIsComputedAndConverted) {
  const auto exact = [](Json& golden) { golden["config"]["activation_function"] = "gelu"; };
  EXPECT_NE(logits_after("gpt2", exact), as_saved("gpt2"));
  write("gpt2-gelu");
  EXPECT_EQ(open().get_string("gpt2.hidden_activation"), "gelu");
  EXPECT_EQ(converted().get_string("gpt2.hidden_activation"), "gelu");
  write("gpt2");
  EXPECT_EQ(open().metadata().count("gpt2.hidden_activation"), 0);
}

TEST_F(DenseFolderTest, FieldsThatCannotBeComputedAreNamed) {
  struct Refusal {
    const char* name;
    Json fields;
    std::vector<std::string_view> words;
  };
  const Refusal refusals[] = {
      {"gemma", {{"hidden_act", "relu"}}, {"hidden_act", "relu", "gelu_pytorch_tanh"}},
      {"gemma", {{"tie_word_embeddings", false}}, {"tie_word_embeddings", "false"}},
      {"gemma2", {{"query_pre_attn_scalar", 64}}, {"query_pre_attn_scalar", "64", "32"}},
      {"smollm3", {{"use_sliding_window", true}}, {"use_sliding_window", "true"}},
      {"smollm3", {{"no_rope_layers", {1, 1, 0, 1, 1}}}, {"no_rope_layers", "every fourth"}},
      {"olmo3",
       {{"layer_types",
         {"full_attention", "full_attention", "full_attention", "full_attention",
          "full_attention"}}},
       {"layer_types", "full_attention as layer 0"}},
      {"granite",
       {{"layer_types",
         {"sliding_attention", "full_attention", "full_attention", "full_attention"}}},
       {"layer_types", "sliding_attention", "GraniteForCausalLM"}},
      {"olmo3",
       {{"rope_parameters", {{"full_attention", nullptr}}}},
       {"rope_parameters.full_attention", "missing"}},
      {"olmo3",
       {{"rope_parameters", {{"sliding_attention", {{"rope_theta", 500.0}}}}}},
       {"rope_parameters", "500", "10000"}},
      {"olmo2", {{"num_attention_heads", 5}}, {"num_attention_heads", "5", "2"}},
      {"cohere2", {{"sliding_window_pattern", 3}}, {"sliding_window_pattern", "3", "4"}},
      {"cohere", {{"use_qk_norm", true}}, {"q_norm.weight", "missing"}},
      {"cohere-norm", {{"use_qk_norm", false}}, {"k_norm.weight", "not part of"}},
      {"ministral3", {{"rope_parameters", {{"mscale", 0.7}}}}, {"mscale", "0.7"}},
      {"ministral3",
       {{"rope_parameters", {{"attention_factor", 1.5}}}},
       {"attention_factor", "1.5", "supported is 1"}},
      {"arcee", {{"rope_parameters", {{"mscale_all_dim", 1.0}}}}, {"mscale", "mscale_all_dim"}},
      {"ministral3",
       {{"rope_parameters", {{"llama_4_scaling_beta", nullptr}}}},
       {"llama_4_scaling_beta", "missing"}},
      {"mistral3-picture",
       {{"text_config", {{"model_type", "qwen3"}}}},
       {"model_type", "qwen3", "ministral3"}},
      {"mistral3-picture",
       {{"text_config", {{"model_type", "mistral4"}}}},
       {"text_config.kv_lora_rank", "missing"}},
      {"cwm", {{"rope_parameters", nullptr}}, {"rope_parameters", "missing"}},
      {"cwm", {{"layer_types", nullptr}}, {"layer_types", "missing"}},
      {"starcoder2", {{"hidden_act", "silu"}}, {"hidden_act", "silu"}},
      {"stablelm", {{"use_parallel_residual", true}}, {"post_attention_layernorm", "not part of"}},
      {"stablelm", {{"qk_layernorm", true}}, {"q_layernorm.norms.0.weight", "missing"}},
      {"stablelm-parallel",
       {{"use_parallel_residual", false}},
       {"post_attention_layernorm.weight", "missing"}},
      {"phi", {{"qk_layernorm", true}}, {"qk_layernorm", "true"}},
      {"gpt2", {{"scale_attn_by_inverse_layer_idx", true}}, {"scale_attn_by_inverse_layer_idx"}},
      {"gpt2", {{"scale_attn_weights", false}}, {"scale_attn_weights", "false"}},
      {"gpt2", {{"n_positions", 255}}, {"wpe.weight", "[256, 64]", "[255, 64]"}},
      {"gpt2", {{"n_inner", 128}}, {"mlp.c_fc.weight", "[64, 160]", "[64, 128]"}},
      {"falcon", {{"alibi", true}}, {"alibi", "true"}},
      {"falcon", {{"parallel_attn", false}}, {"parallel_attn", "false"}},
      {"falcon", {{"num_ln_in_parallel_attn", 2}}, {"num_ln_in_parallel_attn", "2"}},
      {"falcon-40b", {{"num_kv_heads", 3}}, {"num_attention_heads", "4", "3"}},
      {"falcon-40b", {{"num_ln_in_parallel_attn", 1}}, {"input_layernorm.weight", "missing"}},
      {"gpt_bigcode", {{"multi_query", false}}, {"c_attn.weight", "[96, 64]", "[192, 64]"}},
      {"apertus", {{"rope_parameters", nullptr}}, {"rope_parameters", "missing"}},
      {"bitnet",
       {{"quantization_config", {{"quant_method", "bitnet"}}}},
       {"quantization_config", "bitnet"}},
      {"bitnet", {{"hidden_act", "gelu"}}, {"hidden_act", "gelu"}},
      {"paddleocr",
       {{"text_config", {{"rope_parameters", {{"mrope_section", {4, 6, 5}}}}}}},
       {"mrope_section", "16"}},
      {"glm",
       {{"rope_parameters", {{"partial_rotary_factor", 2.0}}}},
       {"partial_rotary_factor", "2"}},
      {"nemotron", {{"hidden_act", "silu"}}, {"hidden_act", "silu", "relu2"}},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.name);
    SCOPED_TRACE(refusal.fields.dump());
    write(refusal.name);
    set_config(refusal.fields);
    try {
      Model::load({.path = folder_});
      ADD_FAILURE() << "was not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadModel);
      for (const std::string_view word : refusal.words) {
        EXPECT_NE(std::string_view(error.what()).find(word), std::string_view::npos)
            << word << " in " << error.what();
      }
    }
  }
}

// null, which merge_patch() of set_config() would remove, means that there is none.
TEST_F(DenseFolderTest, FieldsThatAreNullAreNotDefaults) {
  const auto refused = [&](const char* name, const char* key) {
    SCOPED_TRACE(key);
    expect_error(ErrorCode::kBadModel, {key, "null"}, [&] {
      logits_after(name, [&](Json& golden) { golden["config"][key] = nullptr; });
    });
  };
  refused("gemma2", "attn_logit_softcapping");
  refused("gemma2", "final_logit_softcapping");
  refused("olmo3", "sliding_window");
  refused("cohere2", "sliding_window");
  const auto without = [](Json& golden) { golden["config"]["sliding_window"] = nullptr; };
  EXPECT_NE(logits_after("ministral", without), as_saved("ministral"));
}

TEST_F(DenseFolderTest, NumbersOfXieluAreRead) {
  const auto set = [](const char* name, const Json& shape) {
    return [=](Json& golden) {
      Json& names = golden["files"]["model.safetensors"];
      const std::string tensor = std::string("model.layers.1.mlp.act_fn.") + name;
      if (shape.is_null()) {
        names.erase(tensor);
      } else {
        names[tensor] = shape;
      }
    };
  };
  expect_error(ErrorCode::kBadModel, {"act_fn.alpha_p", "missing"},
               [&] { logits_after("apertus", set("alpha_p", nullptr)); });
  expect_error(ErrorCode::kBadModel, {"act_fn.eps", "one finite number"},
               [&] { logits_after("apertus", set("eps", {2})); });
  EXPECT_NE(logits_after("apertus", set("beta", nullptr)), as_saved("apertus"));
}

}  // namespace dense_folders
}  // namespace snapkv::test
