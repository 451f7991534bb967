// SPDX-License-Identifier: MIT
// Folders of Gemma 3n, Gemma 4, GLM 4.5, EXAONE 4, Hunyuan, Mellum 2, OLMo and Qwen 2 VL: what
// published ones have and those that save_pretrained writes (hf_oracle_test.cpp) do not, and what
// is refused.
#include <gtest/gtest.h>

#include "snapkv/engine.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/hf_folder.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace more_folders {

/// Loads the folder of a golden file, after `change`.
template <typename F>
std::shared_ptr<const Model> load_changed(const char* name, F change) {
  Json golden = read_golden(name);
  change(golden);
  const TempDir folder;
  write_oracle_folder(folder / "", golden);
  return Model::load({.path = folder / "", .compute = Compute::f32});
}

std::shared_ptr<const Model> load_as_saved(const char* name) {
  return load_changed(name, [](Json&) {});
}

std::vector<float> logits_of(std::shared_ptr<const Model> model) {
  SessionOptions options;
  options.kv.name = "full";
  options.kv_type = DType::f32;
  Session session(std::move(model), options);
  session.prefill(generated_ids(40, 320, 1));
  return {session.logits().begin(), session.logits().end()};
}

Json& tensors_of(Json& golden) { return golden["files"]["model.safetensors"]; }

TEST(MoreFoldersTest, LayersOfGlmThatGuessFurtherTokensAreLeftOut) {
  const auto add_layer = [](Json& golden) {
    tensors_of(golden)["model.layers.4.eh_proj.weight"] = {64, 128};
    tensors_of(golden)["model.layers.4.input_layernorm.weight"] = {64};
  };
  EXPECT_EQ(logits_of(load_changed("glm4moe", add_layer)), logits_of(load_as_saved("glm4moe")));
  expect_error(ErrorCode::kBadModel, {"model.layers.4.", "not part of Glm4ForCausalLM"},
               [&] { load_changed("glm4", add_layer); });
}

TEST(MoreFoldersTest, LayersOfMellumWithoutExpertsAreNamed) {
  const auto set = [](Json& golden) { golden["config"]["mlp_layer_types"][1] = "dense"; };
  expect_error(ErrorCode::kBadModel, {"mlp_layer_types", "dense", "sparse"},
               [&] { load_changed("mellum", set); });
}

TEST(MoreFoldersTest, TheLimitOfOlmoIsRead) {
  const auto without = [](Json& golden) { golden["config"].erase("clip_qkv"); };
  EXPECT_NE(logits_of(load_changed("olmo", without)), logits_of(load_as_saved("olmo")));
  const auto negative = [](Json& golden) { golden["config"]["clip_qkv"] = -1.0; };
  expect_error(ErrorCode::kBadModel, {"clip_qkv", "-1"}, [&] { load_changed("olmo", negative); });
}

TEST(MoreFoldersTest, ExpertsOfGlmThatDoNotFitAreNamed) {
  const auto set = [](const char* key, int value) {
    return [=](Json& golden) { golden["config"][key] = value; };
  };
  expect_error(ErrorCode::kBadModel, {"first_k_dense_replace", "4"},
               [&] { load_changed("glm4moe", set("first_k_dense_replace", 4)); });
  expect_error(ErrorCode::kBadModel, {"mlp.shared_experts.gate_proj", "[64, 64]", "[128, 64]"},
               [&] { load_changed("glm4moe", set("n_shared_experts", 2)); });
  expect_error(ErrorCode::kBadModel, {"topk_group"},
               [&] { load_changed("glm4moe-groups", set("topk_group", 4)); });
}

TEST(MoreFoldersTest, LayersOfLlama4ThatDoNotFitAreNamed) {
  const auto set = [](const char* key, const Json& value) {
    return [=](Json& golden) { golden["config"][key] = value; };
  };
  const auto refused = [&](const char* key, const Json& value,
                           std::initializer_list<std::string_view> words) {
    expect_error(ErrorCode::kBadModel, words, [&] { load_changed("llama4", set(key, value)); });
  };
  refused("num_experts_per_tok", 2, {"num_experts_per_tok", "2", "supported is 1"});
  refused("attention_chunk_size", nullptr, {"attention_chunk_size", "null"});
  refused("no_rope_layers", {1, 1, 0, 1, 1, 0}, {"no_rope_layers", "0 for every fourth"});
  refused("no_rope_layer_interval", 3, {"no_rope_layer_interval", "3", "supported is 4"});
  refused("moe_layers", {1, 3}, {"moe_layers", "an array of 2", "the last of every 2"});
  refused("interleave_moe_layer_step", 7, {"interleave_moe_layer_step", "7", "at most 6"});
  refused("layer_types", Json::array({"full_attention"}), {"layer_types", "chunked_attention"});
  refused("intermediate_size_mlp", 96, {"feed_forward.gate_proj", "[160, 64]", "[96, 64]"});
  refused("num_local_experts", 7, {"feed_forward.router.weight", "[6, 64]", "[7, 64]"});
  // as published: a number, and no layers by name
  const auto published = [](Json& golden) {
    Json& config = golden["config"];
    config["attn_temperature_tuning"] = 4;
    config["no_rope_layers"] = Json::array();
    for (const char* key : {"layer_types", "moe_layers"}) config.erase(key);
  };
  EXPECT_EQ(logits_of(load_changed("llama4", published)), logits_of(load_as_saved("llama4")));
  const std::vector<float> cold = logits_of(load_changed("llama4", set("attn_scale", 0.3)));
  EXPECT_NE(cold, logits_of(load_as_saved("llama4")));
}

TEST(MoreFoldersTest, RoutersOfPhiThatDoNotFitAreNamed) {
  const auto refused = [](const char* key, const Json& value,
                          std::initializer_list<std::string_view> words) {
    expect_error(ErrorCode::kBadModel, words, [&] {
      load_changed("phimoe-long", [&](Json& golden) { golden["config"][key] = value; });
    });
  };
  refused("num_experts_per_tok", 3, {"num_experts_per_tok", "3", "supported is 2"});
  refused("router_jitter_noise", 0.5, {"router_jitter_noise", "0.5", "less than 0.5"});
  const auto rope = [&](const char* key, const Json& value,
                        std::initializer_list<std::string_view> words) {
    Json changed = read_golden("phimoe-long")["config"]["rope_parameters"];
    changed[key] = value;
    refused("rope_parameters", changed, words);
  };
  rope("long_mscale", 1.5, {"long_mscale is 1.5", "supported is 1.3", "short_mscale"});
  rope("short_mscale", nullptr, {"short_mscale", "missing"});
  expect_error(ErrorCode::kBadModel, {"model.norm.bias", "missing"}, [] {
    load_changed("phimoe", [](Json& golden) { tensors_of(golden).erase("model.norm.bias"); });
  });
}

TEST(MoreFoldersTest, WindowsOfExaoneNeedTheirLayers) {
  expect_error(ErrorCode::kBadModel, {"layer_types", "is missing", "sliding_window"}, [&] {
    load_changed("exaone4-window", [](Json& golden) { golden["config"].erase("layer_types"); });
  });
}

TEST(MoreFoldersTest, AFixedStretchOfTheBaseIsHunyuans) {
  expect_error(ErrorCode::kBadModel, {"alpha"}, [&] {
    load_changed("hunyuan",
                 [](Json& golden) { golden["config"]["rope_parameters"].erase("alpha"); });
  });
  expect_error(ErrorCode::kBadModel, {"rope_type", "dynamic"}, [&] {
    load_changed("seed_oss", [](Json& golden) {
      golden["config"]["rope_parameters"]["rope_type"] = "dynamic";
      golden["config"]["rope_parameters"]["alpha"] = 50.0;
    });
  });
}

TEST(MoreFoldersTest, PublishedQwenVlHasTheTextModelsFieldsAmongTheOthers) {
  const auto flat = [](Json& golden) {
    Json& config = golden["config"];
    const Json text = config["text_config"];
    config.erase("text_config");
    for (const auto& [key, value] : text.items()) {
      if (!config.contains(key)) config[key] = value;
    }
    config.erase("rope_parameters");
    config["rope_theta"] = text["rope_parameters"]["rope_theta"];
    config["rope_scaling"] = {{"type", "mrope"},
                              {"mrope_section", text["rope_parameters"]["mrope_section"]}};
  };
  EXPECT_EQ(logits_of(load_changed("qwen2vl", flat)), logits_of(load_as_saved("qwen2vl")));
  expect_error(ErrorCode::kBadModel, {"text_config", "is missing"},
               [&] { load_changed("qwen3vl", flat); });
}

// Published ones say the heads of layers without a window once, and may have matrices for keys and
// values in layers that do not use them.
TEST(MoreFoldersTest, PublishedGemma4SaysItsSizesOnce) {
  const auto published = [](Json& golden) {
    Json& config = golden["config"];
    const Json layer = config["per_layer_config"]["2"];
    config.erase("per_layer_config");
    config["global_head_dim"] = layer["head_dim"];
    config["num_global_key_value_heads"] = layer.value("num_key_value_heads", 2);
    config["use_bidirectional_attention"] = "vision";
    for (const auto& [file, names] : golden["files"].items()) {
      const std::string source = "model.layers.2.self_attn.k_proj.weight";
      if (config["num_kv_shared_layers"] == 0 || !names.contains(source)) continue;
      names["model.layers.5.self_attn.k_proj.weight"] = names[source];
      names["model.layers.5.self_attn.v_proj.weight"] = names[source];
    }
  };
  for (const char* name : {"gemma4-e", "gemma4", "gemma4-moe"}) {
    EXPECT_EQ(logits_of(load_changed(name, published)), logits_of(load_as_saved(name))) << name;
  }
}

TEST(MoreFoldersTest, WhatGemma4CannotDoHereIsNamed) {
  const auto refused = [](const char* key, const Json& value,
                          std::initializer_list<std::string_view> parts) {
    expect_error(ErrorCode::kBadModel, parts, [&] {
      load_changed("gemma4-e", [&](Json& golden) { golden["config"][key] = value; });
    });
  };
  refused("use_bidirectional_attention", "all", {"use_bidirectional_attention", "all"});
  refused("vocab_size_per_layer_input", 300, {"vocab_size_per_layer_input", "300", "320"});
  refused("num_kv_shared_layers", 6, {"num_kv_shared_layers", "6"});
  refused("per_layer_config", {{"2", {{"head_dim", 64}}}}, {"per_layer_config", "lacks layer 5"});
  refused("per_layer_config", {{"2", {{"head_dim", 64}}}, {"5", {{"head_dim", 32}}}},
          {"per_layer_config", "other sizes for layer 5"});
}

// Published ones have one width for all layers, or a list, and rows of embeddings for pictures and
// sound, whose tokens have no inputs for each layer.
TEST(MoreFoldersTest, PublishedGemma3nHasMoreEmbeddingsThanTextNeeds) {
  const auto published = [](Json& golden) {
    Json& config = golden["config"];
    config["intermediate_size"] = config["intermediate_size"][0];
    config["vocab_size"] = 330;
    for (const auto& [file, names] : golden["files"].items()) {
      if (names.contains("model.embed_tokens.weight")) {
        names["model.embed_tokens.weight"][0] = 330;
      }
    }
  };
  EXPECT_EQ(logits_of(load_changed("gemma3n", published)), logits_of(load_as_saved("gemma3n")));
}

TEST(MoreFoldersTest, WhatGemma3nCannotDoHereIsNamed) {
  const auto refused = [](const char* key, const Json& value,
                          std::initializer_list<std::string_view> parts) {
    expect_error(ErrorCode::kBadModel, parts, [&] {
      load_changed("gemma3n", [&](Json& golden) { golden["config"][key] = value; });
    });
  };
  refused("altup_active_idx", 1, {"altup_active_idx", "1", "supported is 0"});
  refused("altup_correct_scale", false, {"altup_correct_scale", "false"});
  refused("activation_sparsity_pattern", {0.95, 0.0},
          {"activation_sparsity_pattern", "an array of 10 numbers"});
  refused("activation_sparsity_pattern", Json::array({1, 0, 0, 0, 0, 0, 0, 0, 0, 0}),
          {"activation_sparsity_pattern", "holds 1", "0 to below 1"});
  refused("intermediate_size", {160, 160}, {"intermediate_size", "2 entries", "10 layers"});
  refused("num_kv_shared_layers", 10, {"num_kv_shared_layers", "10"});
}

}  // namespace more_folders
}  // namespace snapkv::test
