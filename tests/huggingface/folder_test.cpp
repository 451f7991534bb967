// SPDX-License-Identifier: MIT
// Folders of transformers: the keys and tensors they become, and an error that names the file, the
// field, and the expected and actual value for whatever is missing, wrong or not supported.
#include "huggingface/folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "snapkv/log.h"
#include "tests/huggingface/folder_fixture.h"
#include "tests/support/expect_error.h"
#include "tests/support/hf_folder.h"

namespace snapkv::test {
namespace {

TEST_F(FolderTest, HasTheKeysOfGguf) {
  const GgufFile file = open();
  EXPECT_EQ(file.get_string("general.architecture"), "llama");
  EXPECT_EQ(file.get_string("general.name"), "model");
  EXPECT_EQ(file.get_uint("llama.block_count"), 4u);
  EXPECT_EQ(file.get_uint("llama.embedding_length"), 64u);
  EXPECT_EQ(file.get_uint("llama.feed_forward_length"), 160u);
  EXPECT_EQ(file.get_uint("llama.attention.head_count"), 4u);
  EXPECT_EQ(file.get_uint("llama.attention.head_count_kv"), 2u);
  EXPECT_EQ(file.get_uint("llama.attention.key_length"), 16u);
  EXPECT_EQ(file.get_uint("llama.context_length"), 256u);
  EXPECT_EQ(file.get_uint("llama.vocab_size"), 320u);
  EXPECT_EQ(file.get_float("llama.attention.layer_norm_rms_epsilon"), double{1e-6f});
  EXPECT_EQ(file.get_float("llama.rope.freq_base"), 10000.0);
  EXPECT_EQ(file.get_string("tokenizer.ggml.model"), "llama");
  EXPECT_EQ(file.get_strings("tokenizer.ggml.tokens").size(), 320u);
  EXPECT_EQ(file.get_strings("tokenizer.ggml.tokens")[319], "[PAD319]");
  const auto types = file.get_ints("tokenizer.ggml.token_type");
  EXPECT_EQ(types[0], 2);    // unknown
  EXPECT_EQ(types[1], 3);    // control
  EXPECT_EQ(types[3], 6);    // byte
  EXPECT_EQ(types[260], 1);  // normal
  EXPECT_EQ(types[319], 5);  // unused
  const auto scores = file.get_floats("tokenizer.ggml.scores");
  EXPECT_EQ(scores[263], -1);  // "ab" is the first merge
  EXPECT_EQ(scores[264], -3);  // "abc"
  EXPECT_EQ(scores[266], -4);  // the first of the two merges that make it
  EXPECT_LT(scores[260], -5);  // no merge makes it
  EXPECT_EQ(file.get_uint("tokenizer.ggml.bos_token_id"), 1u);
  EXPECT_EQ(file.get_uint("tokenizer.ggml.eos_token_id"), 2u);
  EXPECT_TRUE(file.get_bool("tokenizer.ggml.add_bos_token", false));
  EXPECT_FALSE(file.get_bool("tokenizer.ggml.add_eos_token", true));
  EXPECT_TRUE(file.get_bool("tokenizer.ggml.add_space_prefix", false));
}

TEST_F(FolderTest, TensorsStayInTheFile) {
  const GgufFile file = open();
  EXPECT_EQ(file.tensors().size(), 3u + 4 * 9);
  for (const GgufTensor& t : file.tensors()) EXPECT_EQ(t.part, 0) << t.name;
  EXPECT_EQ(file.get_string("snapkv.rope.layout"), "neox");
  const auto expected =
      oracle_values("model.layers.1.self_attn.k_proj.weight", 32 * 64, /*one_plus=*/false);
  EXPECT_EQ(*file.find_tensor("blk.1.attn_k.weight")->tensor.at<float>(13, 5),
            expected[13 * 64 + 5]);
}

TEST_F(FolderTest, KnowsGgufsOrderOfRows) {
  const huggingface::Folder folder = huggingface::open_folder(path_);
  const auto k = std::find_if(folder.tensors.begin(), folder.tensors.end(),
                              [](const auto& t) { return t.name == "blk.1.attn_k.weight"; });
  ASSERT_NE(k, folder.tensors.end());
  for (int64_t head = 0; head < 2; ++head) {
    for (int64_t j = 0; j < 8; ++j) {
      EXPECT_EQ(k->source_row(16 * head + 2 * j), 16 * head + j);
      EXPECT_EQ(k->source_row(16 * head + 2 * j + 1), 16 * head + 8 + j);
    }
  }
  EXPECT_EQ(folder.tensors[0].source_row(17), 17);
}

TEST_F(FolderTest, GemmasNormsAreOnePlus) {
  write("gemma3");
  const GgufFile file = open();
  EXPECT_EQ(file.get_string("general.architecture"), "gemma3");
  EXPECT_EQ(file.get_uint("gemma3.attention.sliding_window"), 16u);
  EXPECT_EQ(file.get_float("gemma3.rope.freq_base"), 1e6);
  EXPECT_EQ(file.get_float("gemma3.rope.freq_base_swa"), 1e4);
  const auto values =
      oracle_values("model.layers.3.self_attn.q_norm.weight", 32, /*one_plus=*/true);
  const Tensor norm = file.find_tensor("blk.3.attn_q_norm.weight")->tensor;
  for (int64_t i = 0; i < 32; ++i) EXPECT_EQ(*norm.at<float>(i), values[i] + 1.0f);
  EXPECT_NE(file.find_tensor("blk.3.post_ffw_norm.weight"), nullptr);
  EXPECT_EQ(file.find_tensor("output.weight"), nullptr);
}

TEST_F(FolderTest, Phi3KeepsItsFusedTensors) {
  write("phi3-longrope");
  const GgufFile file = open();
  EXPECT_EQ(file.find_tensor("blk.0.attn_qkv.weight")->tensor.shape[0], (4 + 2 * 2) * 16);
  EXPECT_EQ(file.find_tensor("blk.0.ffn_up.weight")->tensor.shape[0], 2 * 160);
  EXPECT_EQ(*file.find_tensor("rope_factors_long.weight")->tensor.at<float>(7), 4.5f);
  EXPECT_EQ(*file.find_tensor("rope_factors_short.weight")->tensor.at<float>(1), 1.05f);
  EXPECT_EQ(file.get_string("phi3.rope.scaling.type"), "longrope");
  EXPECT_NEAR(file.get_float("phi3.rope.scaling.attn_factor"),
              std::sqrt(1 + std::log(4.0) / std::log(64.0)), 1e-6);
  EXPECT_EQ(file.get_uint("phi3.rope.scaling.original_context_length"), 64u);
}

// As transformers computes it: `factor` and `attention_factor` come before what the sizes say.
TEST_F(FolderTest, LongRopeMayNameItsFactors) {
  write("phi3-longrope");
  std::string warnings;
  set_log_sink([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::kWarn) warnings += text;
  });
  open();
  set_log_sink({});
  EXPECT_NE(warnings.find("exceeds 64 tokens"), std::string::npos) << warnings;
  const std::string key = "phi3.rope.scaling.attn_factor";
  Json rope = golden_.at("config").at("rope_parameters");
  rope["factor"] = 16;
  set_config({{"rope_parameters", rope}});
  EXPECT_NEAR(open().get_float(key), std::sqrt(1 + std::log(16.0) / std::log(64.0)), 1e-6);
  rope["factor"] = 0.5;
  set_config({{"rope_parameters", rope}});
  EXPECT_EQ(open().get_float(key), 1.0f);
  rope["attention_factor"] = 1.25;
  set_config({{"rope_parameters", rope}});
  EXPECT_EQ(open().get_float(key), 1.25f);
}

TEST_F(FolderTest, OriginalContextsMustAgree) {
  write("phi3-longrope");
  const Json rope = golden_.at("config").at("rope_parameters");
  EXPECT_EQ(rope.at("original_max_position_embeddings"), 64);
  set_config({{"original_max_position_embeddings", 64}});
  EXPECT_EQ(open().get_uint("phi3.rope.scaling.original_context_length"), 64u);
  expect_bad_config({{"original_max_position_embeddings", 128}},
                    {"rope_parameters.original_max_position_embeddings is 64", "128"});
}

// With tie_word_embeddings, a matrix of its own would be ignored.
TEST_F(FolderTest, TiedEmbeddingsHaveNoOtherOutput) {
  write("llama3");
  EXPECT_NE(open().find_tensor("output.weight"), nullptr);
  set_config({{"tie_word_embeddings", true}});
  expect_bad({"lm_head.weight", "model.embed_tokens.weight", "tie_word_embeddings is true"});
  write("qwen2");
  EXPECT_EQ(open().find_tensor("output.weight"), nullptr);
}

TEST_F(FolderTest, OlderFilesNameTheRotationOtherwise) {
  Json scaling = read_golden("llama3").at("config").at("rope_parameters");
  scaling.erase("rope_theta");
  set_config({{"rope_parameters", nullptr}, {"rope_theta", 5e5}, {"rope_scaling", scaling}});
  const GgufFile file = open();
  EXPECT_EQ(file.get_float("llama.rope.freq_base"), 5e5);
  const Tensor factors = file.find_tensor("rope_freqs.weight")->tensor;
  EXPECT_EQ(factors.shape[0], 8);
  EXPECT_EQ(*factors.at<float>(0), 1.0f);
  EXPECT_EQ(*factors.at<float>(7), 8.0f);
  scaling = {{"type", "linear"}, {"factor", 4}};
  set_config({{"rope_parameters", nullptr}, {"rope_scaling", scaling}});
  EXPECT_EQ(open().get_string("llama.rope.scaling.type"), "linear");
  EXPECT_EQ(open().get_float("llama.rope.scaling.factor"), 4);
}

TEST_F(FolderTest, ModelsOfSeveralPartsHaveTheirTextModelRead) {
  write("gemma3");
  Json config = {{"architectures", {"Gemma3ForConditionalGeneration"}},
                 {"text_config", golden_.at("config")},
                 {"vision_config", Json::object()}};
  config["text_config"].erase("tie_word_embeddings");
  write_text(path_ + "/config.json", config.dump());
  std::vector<HfTensor> tensors;
  for (const auto& [name, shape] : golden_.at("files").at("model.safetensors").items()) {
    int64_t n = 1;
    for (const int64_t size : shape) n *= size;
    tensors.push_back(f32_tensor("language_model." + name, shape, oracle_values(name, n, true)));
  }
  tensors.push_back(f32_tensor("vision_tower.embedding.weight", {3}, {1, 2, 3}));
  write_bytes(path_ + "/model.safetensors", safetensors_bytes(tensors));
  const GgufFile file = open();
  EXPECT_EQ(file.get_uint("gemma3.block_count"), 7u);
  EXPECT_NE(file.find_tensor("blk.6.ffn_down.weight"), nullptr);
  tensors.push_back(f32_tensor("audio_tower.embedding.weight", {3}, {1, 2, 3}));
  write_bytes(path_ + "/model.safetensors", safetensors_bytes(tensors));
  expect_bad({"audio_tower.embedding.weight", "is not part of"});
}

TEST_F(FolderTest, MisalignedTensorsAreCopied) {
  std::vector<HfTensor> tensors;
  for (const auto& [name, shape] : golden_.at("files").at("model.safetensors").items()) {
    int64_t n = 1;
    for (const int64_t size : shape) n *= size;
    tensors.push_back(f32_tensor(name, shape, oracle_values(name, n, false)));
  }
  write_bytes(path_ + "/model.safetensors", safetensors_bytes(tensors));
  std::ifstream in(path_ + "/model.safetensors", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  bytes[0] += 1;  // the header is a byte longer, so all data lie at odd offsets
  bytes.insert(bytes.find("}}") + 2, " ");
  write_text(path_ + "/model.safetensors", bytes);
  const GgufFile file = open();
  for (const GgufTensor& t : file.tensors()) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t.tensor.data) % 4, 0u) << t.name;
  }
  EXPECT_EQ(*file.find_tensor("output_norm.weight")->tensor.at<float>(3),
            oracle_values("model.norm.weight", 64, false)[3]);
}

TEST_F(FolderTest, ACopyAndFingerprints) {
  const uint64_t fingerprint = open().fingerprint();
  EXPECT_EQ(
      huggingface::to_model(huggingface::open_folder(path_, {FileAccess::copied})).fingerprint(),
      fingerprint);
  set_config({{"rms_norm_eps", 2e-6}});
  EXPECT_NE(open().fingerprint(), fingerprint);
  set_config(Json::object());
  EXPECT_EQ(open().fingerprint(), fingerprint);
  expect_error(ErrorCode::kDoesNotFit, {"copy"}, [&] {
    huggingface::open_folder(path_, {FileAccess::copied, false, 1000});
  });
}

// If only the weights counted, a cache saved with one vocabulary could be loaded with another.
TEST_F(FolderTest, TheVocabularyIsPartOfTheFingerprint) {
  const uint64_t fingerprint = open().fingerprint();
  set_tokenizer([](Json&) {});
  EXPECT_EQ(open().fingerprint(), fingerprint);
  set_tokenizer([](Json& tokenizer) {
    Json& vocab = tokenizer["model"]["vocab"];
    std::swap(vocab["a"], vocab["b"]);
  });
  EXPECT_NE(open().fingerprint(), fingerprint);
  set_tokenizer([](Json& tokenizer) {
    Json& merges = tokenizer["model"]["merges"];
    std::swap(merges[0], merges[1]);
  });
  EXPECT_NE(open().fingerprint(), fingerprint);
}

// Errors
// ------------------------------------------------------------------------------------

TEST_F(FolderTest, MissingFiles) {
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"}) {
    write("llama");
    std::filesystem::remove(path_ + "/" + name);
    expect_bad({path_, name});
  }
  write_text(path_ + "/tokenizer.json", spm_tokenizer().dump());
  std::filesystem::remove(path_ + "/model.safetensors");
  write_text(path_ + "/pytorch_model.bin", "x");
  expect_bad({path_, "pytorch_model.bin", "not supported"});
}

TEST_F(FolderTest, BrokenConfigurations) {
  write_text(path_ + "/config.json", "{");
  expect_bad({path_ + "/config.json", "JSON"});
  write_text(path_ + "/config.json", "[]");
  expect_bad({path_ + "/config.json", "expected an object"});
  write_text(path_ + "/config.json", std::string(100, '[') + std::string(100, ']'));
  expect_bad({path_ + "/config.json", "more than 32"});
  write_text(path_ + "/config.json", "{\"a\": \"" + std::string(5 << 20, 'x') + "\"}");
  expect_bad({path_ + "/config.json", "at most 4194304"});
  write_text(path_ + "/config.json", "");
  expect_bad({path_ + "/config.json", "empty"});
}

TEST_F(FolderTest, AbsurdSizes) {
  expect_bad_config({{"num_hidden_layers", 0}}, {"num_hidden_layers is 0", "1 to 4096"});
  expect_bad_config({{"num_hidden_layers", -3}}, {"num_hidden_layers is -3"});
  expect_bad_config({{"num_hidden_layers", 1e30}}, {"num_hidden_layers", "whole number"});
  expect_bad_config({{"num_hidden_layers", 18446744073709551615u}}, {"18446744073709551615"});
  expect_bad_config({{"num_hidden_layers", "4"}}, {"num_hidden_layers is \"4\"", "whole number"});
  expect_bad_config({{"num_hidden_layers", nullptr}}, {"num_hidden_layers is missing"});
  expect_bad_config({{"hidden_size", 1 << 30}}, {"hidden_size"});
  expect_bad_config({{"num_attention_heads", 5}}, {"num_attention_heads is 5", "2"});
  expect_bad_config({{"head_dim", nullptr}, {"hidden_size", 66}},
                    {"hidden_size is 66", "head_dim"});
  expect_bad_config({{"head_dim", 1}}, {"head_dim is 1"});
  expect_bad_config({{"vocab_size", 0}}, {"vocab_size is 0"});
  expect_bad_config({{"max_position_embeddings", int64_t{1} << 40}}, {"max_position_embeddings"});
  for (const Json& bad : {Json(0), Json(-1e-6), Json(1e300), Json(1e-300), Json("1e-6")}) {
    expect_bad_config({{"rms_norm_eps", bad}}, {"rms_norm_eps is"});
    expect_bad_config({{"rope_parameters", {{"rope_theta", bad}}}}, {"rope_parameters.rope_theta"});
  }
}

TEST_F(FolderTest, UnsupportedModels) {
  expect_bad_config({{"architectures", nullptr}}, {"architectures is missing"});
  expect_bad_config({{"architectures", {"A", "B"}}}, {"architectures", "one text"});
  expect_bad_config({{"architectures", {"RwkvForCausalLM"}}},
                    {"RwkvForCausalLM", "LlamaForCausalLM", "Phi3ForCausalLM"});
  expect_bad_config({{"architectures", {"Gemma3ForConditionalGeneration"}}},
                    {"text_config is missing"});
  expect_bad_config({{"quantization_config", {{"quant_method", "gptq"}}}},
                    {"quantization_config", "gptq", "not supported"});
  expect_bad_config({{"num_local_experts", 8}}, {"num_local_experts is 8"});
  const Json mixtral = {{"architectures", {"MixtralForCausalLM"}}, {"num_local_experts", 4}};
  const auto expect_bad_experts = [&](Json fields, std::initializer_list<std::string_view> words) {
    Json all = mixtral;
    all.update(fields);
    expect_bad_config(all, words);
  };
  expect_bad_experts({{"num_experts_per_tok", 5}}, {"num_experts_per_tok is 5", "4"});
  expect_bad_experts({{"num_experts_per_tok", 0}}, {"num_experts_per_tok is 0"});
  expect_bad_experts(Json::object(), {"num_experts_per_tok is missing"});
  expect_bad_experts({{"num_local_experts", 0}}, {"num_local_experts is 0"});
  Json complete = mixtral;
  complete["num_experts_per_tok"] = 2;
  set_config(complete);
  expect_bad({"block_sparse_moe.gate.weight", "missing", "MixtralForCausalLM"});
  const Json qwen = {{"architectures", {"Qwen3MoeForCausalLM"}},
                     {"num_experts_per_tok", 2},
                     {"moe_intermediate_size", 32}};
  Json sparse = qwen, dense = qwen;
  sparse["decoder_sparse_step"] = 2;
  dense["mlp_only_layers"] = {0};
  expect_bad_experts(sparse, {"decoder_sparse_step is 2", "supported is 1"});
  expect_bad_experts(dense, {"mlp_only_layers is an array of 1", "supported is []"});
  expect_bad_config({{"hidden_act", "relu"}}, {"hidden_act is \"relu\"", "silu"});
  expect_bad_config({{"partial_rotary_factor", 0.5}}, {"partial_rotary_factor is 0.5"});
  const auto rope = [&](const Json& fields, std::initializer_list<std::string_view> words) {
    expect_bad_config({{"rope_parameters", fields}}, words);
  };
  rope({{"rope_type", "dynamic"}}, {"rope_type is \"dynamic\"", "llama3"});
  rope({{"rope_type", "longrope"}}, {"rope_type is \"longrope\""});
  rope({{"rope_type", "linear"}}, {"factor is missing"});
  rope({{"rope_type", "linear"}, {"factor", -2}}, {"factor is -2"});
  rope({{"rope_type", "llama3"}, {"factor", 8}}, {"low_freq_factor is missing"});
  rope({{"rope_type", "llama3"}, {"factor", 8}, {"low_freq_factor", 4}, {"high_freq_factor", 4}},
       {"high_freq_factor is 4"});
  rope({{"rope_type", "yarn"}, {"factor", 4}, {"attention_factor", 2}}, {"attention_factor is 2"});
  expect_bad_config({{"rope_parameters", "x"}}, {"rope_parameters is \"x\"", "an object"});
}

TEST_F(FolderTest, UnsupportedKindsOfGemma3AndPhi3) {
  write("gemma3");
  expect_bad_config({{"query_pre_attn_scalar", 168}}, {"query_pre_attn_scalar is 168", "32"});
  expect_bad_config({{"attn_logit_softcapping", 50.0}}, {"attn_logit_softcapping is 50"});
  expect_bad_config({{"use_bidirectional_attention", true}}, {"use_bidirectional_attention"});
  expect_bad_config({{"sliding_window_pattern", 2}}, {"sliding_window_pattern is 2"});
  Json types = golden_.at("config").at("layer_types");
  types[2] = "full_attention";
  expect_bad_config({{"layer_types", types}}, {"layer_types", "full_attention as layer 2"});
  types[2] = "chunked_attention";
  expect_bad_config({{"layer_types", types}}, {"layer_types", "chunked_attention"});
  types.erase(0);
  expect_bad_config({{"layer_types", types}}, {"layer_types", "an array of 7"});
  write("phi3-longrope");
  Json rope = golden_.at("config").at("rope_parameters");
  rope["long_factor"].erase(0);
  expect_bad_config({{"rope_parameters", rope}}, {"long_factor", "an array of 8"});
  rope["long_factor"].push_back(0);
  expect_bad_config({{"rope_parameters", rope}}, {"long_factor holds 0"});
}

TEST_F(FolderTest, SlidingWindows) {
  write("mistral");
  set_config({{"sliding_window", 100}});
  EXPECT_EQ(open().get_uint("llama.attention.sliding_window"), 100u);
  EXPECT_FALSE(open().has("llama.attention.sliding_window_pattern"));  // in all layers
  EXPECT_EQ(open().get_uint("llama.context_length"), 256u);
  set_config({{"sliding_window", nullptr}});
  EXPECT_FALSE(open().has("llama.attention.sliding_window"));
  write("qwen3");
  set_config({{"sliding_window", 100}});  // without use_sliding_window: no window
  EXPECT_FALSE(open().has("qwen3.attention.sliding_window"));
  Json types = golden_.at("config").at("layer_types");
  types[3] = "sliding_attention";
  const auto pattern = [&](const Json& fields) {
    set_config(fields);
    const GgufFile file = open();
    EXPECT_EQ(file.get_uint("qwen3.attention.sliding_window"), 100u);
    const GgufValue& value = file.metadata().at("qwen3.attention.sliding_window_pattern");
    return std::get<std::vector<bool>>(value.value);
  };
  Json fields = {{"sliding_window", 100}, {"use_sliding_window", true}, {"layer_types", types}};
  EXPECT_EQ(pattern(fields), (std::vector<bool>{false, false, false, true}));
  fields["layer_types"] = nullptr;
  fields["max_window_layers"] = 1;
  EXPECT_EQ(pattern(fields), (std::vector<bool>{false, true, true, true}));
}

TEST_F(FolderTest, WrongTensors) {
  const std::string norm = "model.norm.weight";
  const auto write_with = [&](const std::vector<HfTensor>& instead) {
    std::vector<HfTensor> tensors;
    for (const auto& [name, shape] : golden_.at("files").at("model.safetensors").items()) {
      if (name == norm) continue;
      int64_t n = 1;
      for (const int64_t size : shape) n *= size;
      tensors.push_back(f32_tensor(name, shape, oracle_values(name, n, false)));
    }
    tensors.insert(tensors.end(), instead.begin(), instead.end());
    write_bytes(path_ + "/model.safetensors", safetensors_bytes(tensors));
  };
  write_with({});
  expect_bad({path_, norm, "is missing", "LlamaForCausalLM"});
  write_with({f32_tensor(norm, {63}, std::vector<float>(63))});
  expect_bad({"model.safetensors", norm, "[63]", "[64]"});
  write_with({f32_tensor(norm, {64, 1}, std::vector<float>(64))});
  expect_bad({norm, "[64, 1]", "[64]"});
  write_with({{norm, "F64", {64}, std::vector<std::byte>(512)}});
  expect_bad({norm, "F64", "F32, F16, BF16"});
  const HfTensor right = f32_tensor(norm, {64}, std::vector<float>(64));
  write_with({right, f32_tensor("model.layers.9.mlp.up_proj.weight", {1}, {1})});
  expect_bad({"model.layers.9.mlp.up_proj.weight", "is not part of LlamaForCausalLM"});
  write_with({right, f32_tensor("model.layers.2.self_attn.rotary_emb.inv_freq", {1}, {1})});
  EXPECT_EQ(open().tensors().size(), 39u);
}

TEST_F(FolderTest, WrongIndexes) {
  std::filesystem::remove(path_ + "/model.safetensors");
  write("llama-bf16");
  const std::string index_path = path_ + "/model.safetensors.index.json";
  std::ifstream in(index_path);
  const Json index = Json::parse(in);
  ASSERT_EQ(golden_.at("files").size(), 3u);
  const auto with = [&](const char* tensor, const Json& file) {
    Json changed = index;
    if (file.is_null()) {
      changed["weight_map"].erase(tensor);
    } else {
      changed["weight_map"][tensor] = file;
    }
    write_text(index_path, changed.dump());
  };
  for (const char* outside :
       {"../model.safetensors", "/etc/a.safetensors", "a/b.safetensors", "..", ".", "",
        "a\\b.safetensors", "a\nb.safetensors", "a b.safetensors", "part-1.bin"}) {
    with("model.norm.weight", outside);
    expect_bad({index_path, "weight_map.model.norm.weight", "same folder"});
  }
  with("model.norm.weight", "model-00004-of-00003.safetensors");
  expect_bad({index_path, "model-00004-of-00003.safetensors", "not in"});
  with("model.norm.weight", 7);
  expect_bad({index_path, "weight_map.model.norm.weight is 7", "a text"});
  with("model.norm.weight", nullptr);
  expect_bad({index_path, "lacks tensor 'model.norm.weight'"});
  with("model.norm.bias", "model-00001-of-00003.safetensors");
  expect_bad({index_path, "model.norm.bias", "which lacks it"});
  with("model.embed_tokens.weight", "model-00003-of-00003.safetensors");
  expect_bad({index_path, "'model.embed_tokens.weight'", "it is in"});
  write_text(index_path, R"({"weight_map": {}})");
  expect_bad({"model.embed_tokens.weight", "is missing"});
  write_text(index_path, "{}");
  expect_bad({index_path, "weight_map is missing"});
  // A tensor is in two shards.
  write_text(index_path, index.dump());
  std::filesystem::copy_file(path_ + "/model-00001-of-00003.safetensors",
                             path_ + "/model-00002-of-00003.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  expect_bad({"model-00002-of-00003.safetensors", "is in", "too"});
}

}  // namespace
}  // namespace snapkv::test
