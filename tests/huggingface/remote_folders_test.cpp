// SPDX-License-Identifier: MIT
// Folders of dense classes that bring their own Python code (remote_mappings.h), or have position
// biases (biased_mappings.h): converted, as published, and with fields that cannot be computed.
#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/huggingface/oracle_folder.h"

namespace snapkv::test {
namespace remote_folders {

/// Goldens of tools/hf_llama_oracle.py.
const char* const kRemote[] = {
    "internlm2",     "internlm2-bf16", "baichuan", "baichuan-13b",   "minicpm", "minicpm-longrope",
    "orion",         "xverse",         "qwen",     "codeshell",      "plamo",   "openelm",
    "maincoder",     "pangu",          "chatglm3", "chatglm3-heads", "jais",    "jais-family",
    "mpt-published", "mpt-bias"};

class RemoteFolderTest : public OracleFolder {
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
  uint64_t number(const GgufFile& file, const char* key) const { return file.get_uint(key); }

  /// Adds a tensor to the folder of a golden, and gives those that `rename` renames other names.
  template <typename F>
  void write_renamed(const std::string& name, F rename, const std::vector<HfTensor>& further = {}) {
    write(name);
    std::vector<HfTensor> tensors = further;
    for (const auto& [tensor, shape] : golden_["files"]["model.safetensors"].items()) {
      const std::vector<int64_t> sizes = shape;
      int64_t n = 1;
      for (const int64_t size : sizes) n *= size;
      tensors.push_back(f32_tensor(rename(tensor), sizes, oracle_values(tensor, n, false)));
    }
    write_bytes(folder_ + "/model.safetensors", safetensors_bytes(tensors));
  }
};

TEST_F(RemoteFolderTest, ConvertedFilesComputeTheSame) {
  for (const char* name : kRemote) {
    SCOPED_TRACE(name);
    write(name);
    converted(DType::f32);
    expect_near(logits(file_), logits(folder_));
  }
}

TEST_F(RemoteFolderTest, ConvertedFilesWithBiasesComputeTheSame) {
  expect_same_if_converted({"bloom", "bloom-heads", "mpt", "mpt-heads"});
}

// What llama.cpp's converter says of the model, `convert` says too, but for what nothing reads.
TEST_F(RemoteFolderTest, MetadataIsThatOfLlamaCppsConverter) {
  const std::set<std::string> kOthers = {
      // not read, or what is so anyway
      "baichuan.tensor_data_layout", "orion.tensor_data_layout", "xverse.tensor_data_layout",
      "qwen.attention.layer_norm_epsilon", "codeshell.rope.scaling.type",
      "codeshell.rope.scaling.factor", "pangu-embedded.attention.key_length",
      "pangu-embedded.attention.value_length",
      // always 4096 there
      "plamo.context_length"};
  const size_t n_keys = expect_metadata_of_goldens(kRemote, kOthers);
  EXPECT_GT(n_keys, 180u);
}

// Only some rows of a group of heads are queries', and these are reordered.
TEST_F(RemoteFolderTest, GroupsOfInternLm2AreTakenApart) {
  write("internlm2");
  const GgufFile file = converted();
  const std::vector<float> all =
      oracle_values("model.layers.1.attention.wqkv.weight", 128 * 64, false);
  const auto expect_row = [&](const char* name, int64_t row, int64_t in_folder) {
    const Tensor& t = file.find_tensor(name)->tensor;
    for (int64_t j = 0; j < 64; ++j) EXPECT_EQ(*t.at<const float>(row, j), all[in_folder * 64 + j]);
  };
  // groups of 4 heads of 16 rows: two queries, key, value; GGUF's row 1 of a head is the folder's 8
  expect_row("blk.1.attn_q.weight", 1, 8);
  expect_row("blk.1.attn_q.weight", 32 + 3, 64 + 9);
  expect_row("blk.1.attn_k.weight", 16 + 1, 64 + 32 + 8);
  expect_row("blk.1.attn_v.weight", 16 + 5, 64 + 48 + 5);
}

TEST_F(RemoteFolderTest, MatrixOfBaichuan2sLogitsHasRowsOfLength1) {
  write("baichuan");
  golden_["config"]["vocab_size"] = 125696;
  Json& tensors = golden_["files"]["model.safetensors"];
  for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"}) {
    tensors[name] = {125696, 32};
  }
  write_oracle_folder(folder_, golden_);
  const std::vector<float> rows = oracle_values("lm_head.weight", 125696 * 32, false);
  for (const GgufFile& file : {open(), converted(DType::f32)}) {
    const Tensor& output = file.find_tensor("output.weight")->tensor;
    for (const int64_t i : {0, 77, 125695}) {
      double squares = 0;
      for (int64_t j = 0; j < 32; ++j) squares += std::pow(rows[i * 32 + j], 2);
      for (int64_t j = 0; j < 32; ++j) {
        EXPECT_NEAR(*output.at<const float>(i, j), rows[i * 32 + j] / std::sqrt(squares), 1e-6);
      }
    }
    EXPECT_EQ(*file.find_tensor("token_embd.weight")->tensor.at<const float>(5, 0),
              oracle_values("model.embed_tokens.weight", 5 * 32 + 1, false).back());
  }
}

// Beyond these lengths the published models compute otherwise.
TEST_F(RemoteFolderTest, ContextsEndWhereScalingBegins) {
  write("qwen");
  set_config({{"seq_length", 128}});
  EXPECT_EQ(number(open(), "qwen.context_length"), 128u);
  set_config({{"seq_length", 128}, {"use_dynamic_ntk", false}, {"use_logn_attn", false}});
  EXPECT_EQ(number(open(), "qwen.context_length"), 256u);
  write("minicpm");
  set_config({{"sparse_config", {{"dense_len", 96}, {"block_size", 64}}}});
  EXPECT_EQ(number(open(), "minicpm.context_length"), 96u);
}

TEST_F(RemoteFolderTest, LongRopeOfMiniCpmKeepsItsContext) {
  write("minicpm-longrope");
  Json rope = golden_["config"]["rope_scaling"];
  rope["original_max_position_embeddings"] = 64;
  set_config({{"rope_scaling", rope}});
  const GgufFile file = open();
  EXPECT_EQ(number(file, "minicpm.rope.scaling.original_context_length"), 64u);
  // the square root of 1 + ln(4096 / 64) / ln(64)
  EXPECT_NEAR(file.get_float("minicpm.rope.scaling.attn_factor"), std::sqrt(2.0), 1e-6);
}

TEST_F(RemoteFolderTest, PublishedBloomHasNoRootAndOlderKeys) {
  const std::vector<float> expected = as_saved("bloom");
  write_renamed("bloom", [](const std::string& name) {
    return name.starts_with("transformer.") ? name.substr(12) : name;
  });
  set_config({{"hidden_size", nullptr},
              {"n_embed", 64},
              {"n_head", nullptr},
              {"num_attention_heads", 4},
              {"n_inner", nullptr},
              {"seq_length", 512}});
  EXPECT_EQ(logits(folder_), expected);
  EXPECT_EQ(number(open(), "bloom.context_length"), 512u);
}

TEST_F(RemoteFolderTest, PublishedMaincoderMayCallItsNetworkOtherwise) {
  const std::vector<float> expected = as_saved("maincoder");
  write_renamed("maincoder", [](std::string name) {
    const size_t at = name.find("mlp.");
    return at == std::string::npos ? name : name.replace(at, 4, "feed_forward.");
  });
  EXPECT_EQ(logits(folder_), expected);
}

TEST_F(RemoteFolderTest, PublishedJaisSaysItsSlopesAndMasks) {
  const std::vector<float> expected = as_saved("jais");
  const auto same = [](const std::string& name) { return name; };
  const HfTensor mask =
      f32_tensor("transformer.h.0.attn.bias", {1, 1, 4, 4}, std::vector<float>(16, 1.0f));
  const auto slopes = [](std::vector<float> values) {
    const auto n = static_cast<int64_t>(values.size());
    return f32_tensor("transformer.relative_pe.slopes", {n, 1}, values);
  };
  write_renamed("jais", same, {mask, slopes({0.25f, 0.0625f, 1.0f / 64, 1.0f / 256})});
  EXPECT_EQ(logits(folder_), expected);
  write_renamed("jais", same, {slopes({0.25f, 0.0625f, 1.0f / 64, 1.0f / 128})});
  refused(Json::object(), {"relative_pe.slopes", "4 slopes"});
  write_renamed("jais", same, {slopes({0.25f, 0.0625f})});
  refused(Json::object(), {"relative_pe.slopes", "4 slopes"});
}

// The matrix of the logits is that of the embeddings, each times another factor.
TEST_F(RemoteFolderTest, JaisMayShareItsEmbeddings) {
  const auto shared = [](Json& golden) {
    golden["config"]["tie_word_embeddings"] = true;
    golden["files"]["model.safetensors"].erase("lm_head.weight");
  };
  const std::vector<float> in_place = logits_after("jais", shared);
  const GgufFile file = converted(DType::f32);
  const float value = oracle_values("transformer.wte.weight", 1, false)[0];
  EXPECT_EQ(*file.find_tensor("token_embd.weight")->tensor.at<const float>(0, 0), value * 2.5f);
  EXPECT_EQ(*file.find_tensor("output.weight")->tensor.at<const float>(0, 0), value * 0.4f);
  expect_near(logits(file_), in_place);
}

// GGUF files of these architectures must have the matrix of the logits.
TEST_F(RemoteFolderTest, SharedEmbeddingsAreWrittenTwice) {
  for (const auto& [name, embeddings] : {std::pair{"codeshell", "transformer.wte.weight"},
                                         std::pair{"xverse", "model.embed_tokens.weight"}}) {
    SCOPED_TRACE(name);
    const std::vector<float> in_place = logits_after(name, [](Json& golden) {
      golden["config"]["tie_word_embeddings"] = true;
      golden["files"]["model.safetensors"].erase("lm_head.weight");
    });
    const GgufFile file = converted(DType::f32);
    EXPECT_EQ(*file.find_tensor("output.weight")->tensor.at<const float>(3, 1),
              oracle_values(embeddings, 3 * 64 + 2, false).back());
    expect_near(logits(file_), in_place);
  }
}

TEST_F(RemoteFolderTest, FieldsThatCannotBeComputedAreNamed) {
  struct Refusal {
    const char* name;
    Json fields;
    std::vector<std::string_view> words;
  };
  const Refusal refusals[] = {
      {"internlm2", {{"bias", true}}, {"bias", "true"}},
      {"internlm2", {{"rope_scaling", {{"type", "ntk"}}}}, {"rope_type", "ntk"}},
      {"internlm2", {{"num_key_value_heads", 4}}, {"wqkv.weight", "[128, 64]", "[192, 64]"}},
      {"baichuan", {{"max_position_embeddings", nullptr}}, {"max_position_embeddings", "missing"}},
      {"baichuan", {{"hidden_act", "gelu"}}, {"hidden_act", "gelu", "silu"}},
      {"minicpm", {{"scale_emb", nullptr}}, {"scale_emb", "missing"}},
      {"minicpm", {{"scale_depth", nullptr}}, {"scale_depth", "missing"}},
      {"minicpm", {{"dim_model_base", 0}}, {"dim_model_base", "0"}},
      {"minicpm", {{"num_experts", 8}}, {"num_experts", "8"}},
      {"minicpm", {{"attention_bias", true}}, {"attention_bias", "true"}},
      {"minicpm",
       {{"sparse_config", {{"block_size", 64}}}},
       {"sparse_config.dense_len", "missing"}},
      {"orion", {{"attention_bias", true}}, {"attention_bias", "true"}},
      {"orion", {{"rope_scaling", {{"type", "ntk"}, {"factor", 2}}}}, {"rope_type", "ntk"}},
      {"qwen", {{"kv_channels", 32}}, {"kv_channels", "32", "16"}},
      {"qwen", {{"intermediate_size", 321}}, {"intermediate_size", "321", "even"}},
      {"qwen", {{"no_bias", false}}, {"no_bias", "false"}},
      {"qwen", {{"scale_attn_weights", false}}, {"scale_attn_weights", "false"}},
      {"qwen", {{"rotary_pct", 0.5}}, {"rotary_pct", "0.5", "supported is 1"}},
      {"qwen", {{"seq_length", nullptr}}, {"seq_length", "missing"}},
      {"codeshell", {{"position_embedding_type", "alibi"}}, {"position_embedding_type", "alibi"}},
      {"codeshell", {{"scale_attn_weights", false}}, {"scale_attn_weights", "false"}},
      {"plamo", {{"n_shared_head", 3}}, {"n_shared_head", "3", "4"}},
      {"openelm", {{"ffn_with_glu", false}}, {"ffn_with_glu", "false"}},
      {"openelm", {{"normalize_qk_projections", false}}, {"normalize_qk_projections"}},
      {"openelm", {{"share_input_output_layers", false}}, {"share_input_output_layers"}},
      {"openelm", {{"normalization_layer_name", "layer_norm"}}, {"normalization_layer_name"}},
      {"openelm", {{"activation_fn_name", "gelu"}}, {"activation_fn_name", "gelu"}},
      {"openelm", {{"num_query_heads", {2, 4}}}, {"num_query_heads", "4 numbers"}},
      {"openelm", {{"num_kv_heads", {1, 0, 2, 3}}}, {"num_kv_heads", "4 numbers"}},
      {"openelm", {{"num_kv_heads", {1, 1, 3, 3}}}, {"num_query_heads", "layer 2", "3"}},
      {"openelm", {{"ffn_multipliers", {1, 2, -1, 1}}}, {"ffn_multipliers", "4 numbers"}},
      {"openelm", {{"ffn_multipliers", {1, 2, 2, 2}}}, {"ffn.proj_1.weight", "[64, 64]"}},
      {"maincoder", {{"use_qk_norm", false}}, {"use_qk_norm", "false"}},
      {"maincoder", {{"attention_bias", true}}, {"attention_bias", "true"}},
      {"pangu", {{"bias", false}}, {"bias", "false"}},
      {"chatglm3", {{"rmsnorm", false}}, {"rmsnorm", "false"}},
      {"chatglm3", {{"post_layer_norm", false}}, {"post_layer_norm", "false"}},
      {"chatglm3", {{"original_rope", false}}, {"original_rope", "false"}},
      {"chatglm3", {{"add_bias_linear", true}}, {"add_bias_linear", "true"}},
      {"chatglm3",
       {{"apply_residual_connection_post_layernorm", true}},
       {"apply_residual_connection_post_layernorm", "true"}},
      {"chatglm3", {{"kv_channels", 32}}, {"kv_channels", "32", "16"}},
      {"chatglm3", {{"multi_query_group_num", 3}}, {"multi_query_group_num", "3", "4"}},
      {"chatglm3", {{"pre_seq_len", 128}}, {"pre_seq_len", "128"}},
      {"chatglm3", {{"quantization_bit", 4}}, {"quantization_bit", "4"}},
      {"chatglm3", {{"multi_query_attention", false}}, {"[128, 64]", "[192, 64]"}},
      {"bloom",
       {{"apply_residual_connection_post_layernorm", true}},
       {"apply_residual_connection_post_layernorm", "true"}},
      {"mpt", {{"attn_config", {{"alibi", false}}}}, {"attn_config.alibi", "false"}},
      {"mpt", {{"attn_config", {{"qk_ln", true}}}}, {"attn_config.qk_ln", "true"}},
      {"mpt", {{"attn_config", {{"prefix_lm", true}}}}, {"attn_config.prefix_lm", "true"}},
      {"mpt", {{"attn_config", {{"softmax_scale", 0.5}}}}, {"softmax_scale", "0.5", "0.25"}},
      {"mpt", {{"attn_config", {{"attn_type", "other"}}}}, {"attn_config.attn_type", "other"}},
      // transformers computes with 8 whatever it is
      {"mpt", {{"attn_config", {{"alibi_bias_max", 16}}}}, {"alibi_bias_max", "16", "8"}},
      {"mpt", {{"logit_scale", 0.5}}, {"logit_scale", "0.5"}},
      {"mpt", {{"norm_type", "rmsnorm"}}, {"norm_type", "rmsnorm"}},
      {"mpt", {{"expansion_ratio", 2}}, {"ffn.up_proj.weight", "[256, 64]", "[128, 64]"}},
      {"mpt-published", {{"attn_config", {{"rope", true}}}}, {"attn_config.rope", "true"}},
      {"mpt-published", {{"attn_config", {{"alibi", nullptr}}}}, {"attn_config.alibi", "false"}},
      {"mpt-published", {{"ffn_config", {{"ffn_type", "mptglu"}}}}, {"ffn_config.ffn_type"}},
      {"mpt-published",
       {{"attn_config", {{"sliding_window_size", 64}}}},
       {"attn_config.sliding_window_size", "64"}},
      {"mpt-bias", {{"attn_config", {{"kv_n_heads", 3}}}}, {"attn_config.kv_n_heads", "3", "4"}},
      {"jais", {{"scale_qk_dot_by_d", false}}, {"scale_qk_dot_by_d", "false"}},
      {"jais", {{"alibi_scaling", {{"factor", 2}}}}, {"alibi_scaling", "null"}},
      {"jais", {{"position_embedding_type", "learned"}}, {"position_embedding_type", "learned"}},
      {"jais", {{"activation_function", "gelu"}}, {"activation_function", "gelu", "swiglu"}},
      {"jais", {{"activation_function", nullptr}}, {"activation_function", "missing"}},
      {"jais", {{"add_cross_attention", true}}, {"add_cross_attention", "true"}},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.name);
    write(refusal.name);
    SCOPED_TRACE(refusal.fields.dump());
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

}  // namespace remote_folders
}  // namespace snapkv::test
