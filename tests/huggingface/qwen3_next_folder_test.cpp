// SPDX-License-Identifier: MIT
// Folders of Qwen 3.5 and Qwen3-Next beside what hf_oracle_test.cpp compares with transformers: the
// order of heads in memory and in converted files, experts in one tensor, and what is refused.
// llama.cpp computes the same with the converted files (tools/hf_llama_check.py).
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "format/gguf.h"
#include "huggingface/folder.h"
#include "model/model_spec.h"
#include "snapkv/convert.h"
#include "snapkv/engine.h"
#include "tests/huggingface/oracle_folder.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/hf_folder.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace qwen3_next_folder_tests {

class Qwen3NextFolder : public OracleFolder {
 protected:
  static const float* values(const GgufFile& file, std::string_view name) {
    return static_cast<const float*>(file.find_tensor(name)->tensor.data);
  }
};

// 2 heads of keys and 6 of values, all with 32 values

TEST_F(Qwen3NextFolder, HasTheKeysOfGguf) {
  write("qwen35-picture");
  const GgufFile file = open();
  EXPECT_EQ(file.get_string("general.architecture"), "qwen35");
  EXPECT_EQ(file.get_uint("qwen35.ssm.conv_kernel"), 4u);
  EXPECT_EQ(file.get_uint("qwen35.ssm.state_size"), 32u);
  EXPECT_EQ(file.get_uint("qwen35.ssm.group_count"), 2u);
  EXPECT_EQ(file.get_uint("qwen35.ssm.time_step_rank"), 6u);
  EXPECT_EQ(file.get_uint("qwen35.ssm.inner_size"), 192u);
  EXPECT_EQ(file.get_uint("qwen35.full_attention_interval"), 4u);
  EXPECT_EQ(file.get_uint("qwen35.rope.dimension_count"), 8u);
  EXPECT_EQ(file.get_ints("qwen35.rope.dimension_sections"), (std::vector<int64_t>{2, 1, 1, 0}));
  write("qwen35-bf16");
  const GgufFile irregular = open();
  EXPECT_FALSE(irregular.has("qwen35.full_attention_interval"));
  const auto it = irregular.metadata().find("qwen35.attention.recurrent_layers");
  EXPECT_EQ(std::get<std::vector<bool>>(it->second.value),
            (std::vector<bool>{false, true, true, false}));
}

TEST_F(Qwen3NextFolder, HeadsStayGroupedInMemory) {
  write("qwen35");
  const GgufFile file = open();
  EXPECT_EQ(file.get_string("snapkv.delta_net.value_heads"), "grouped");
  for (const char* name :
       {"attn_qkv", "attn_gate", "ssm_beta", "ssm_alpha", "ssm_conv1d", "ssm_out"}) {
    EXPECT_EQ(file.find_tensor(fmt::format("blk.0.{}.weight", name))->part, 0) << name;
  }
  const auto a = oracle_values("model.layers.0.linear_attn.A_log", 6, true);
  for (int h = 0; h < 6; ++h) EXPECT_EQ(values(file, "blk.0.ssm_a")[h], -std::exp(a[h])) << h;
  // norms compute with 1 + w, but for that of linear attention
  const auto norm = oracle_values("model.layers.0.input_layernorm.weight", 64, true);
  EXPECT_EQ(values(file, "blk.0.attn_norm.weight")[9], norm[9] + 1.0f);
  const auto of_heads = oracle_values("model.layers.0.linear_attn.norm.weight", 32, true);
  EXPECT_EQ(values(file, "blk.0.ssm_norm.weight")[9], of_heads[9]);
}

/// GGUF's head 1 of values is the first one of the second head of keys: the folder's head 3.
TEST_F(Qwen3NextFolder, HeadsTakeTurnsInFiles) {
  write("qwen35");
  const GgufFile file = converted();
  EXPECT_FALSE(file.has("snapkv.delta_net.value_heads"));
  const std::string at = "model.layers.0.linear_attn.";
  const auto qkv = oracle_values(at + "in_proj_qkv.weight", 320 * 64, true);
  const auto z = oracle_values(at + "in_proj_z.weight", 192 * 64, true);
  const auto b = oracle_values(at + "in_proj_b.weight", 6 * 64, true);
  const auto alpha = oracle_values(at + "in_proj_a.weight", 6 * 64, true);
  const auto conv = oracle_values(at + "conv1d.weight", 320 * 4, true);
  const auto out = oracle_values(at + "out_proj.weight", 64 * 192, true);
  const auto a = oracle_values(at + "A_log", 6, true), dt = oracle_values(at + "dt_bias", 6, true);
  constexpr int kHeads[] = {0, 3, 1, 4, 2, 5};
  for (int i = 0; i < 128; ++i) {  // queries and keys
    ASSERT_EQ(values(file, "blk.0.attn_qkv.weight")[i * 64 + 5], qkv[i * 64 + 5]) << i;
  }
  for (int h = 0; h < 6; ++h) {
    SCOPED_TRACE(h);
    const int to = 32 * h + 7, from = 32 * kHeads[h] + 7;
    EXPECT_EQ(values(file, "blk.0.attn_qkv.weight")[(128 + to) * 64 + 5],
              qkv[(128 + from) * 64 + 5]);
    EXPECT_EQ(values(file, "blk.0.attn_gate.weight")[to * 64 + 5], z[from * 64 + 5]);
    EXPECT_EQ(values(file, "blk.0.ssm_beta.weight")[h * 64 + 5], b[kHeads[h] * 64 + 5]);
    EXPECT_EQ(values(file, "blk.0.ssm_alpha.weight")[h * 64 + 5], alpha[kHeads[h] * 64 + 5]);
    EXPECT_EQ(values(file, "blk.0.ssm_conv1d.weight")[(128 + to) * 4 + 1],
              conv[(128 + from) * 4 + 1]);
    EXPECT_EQ(values(file, "blk.0.ssm_out.weight")[5 * 192 + to], out[5 * 192 + from]);
    EXPECT_EQ(values(file, "blk.0.ssm_a")[h], -std::exp(a[kHeads[h]]));
    EXPECT_EQ(values(file, "blk.0.ssm_dt.bias")[h], dt[kHeads[h]]);
  }
}

TEST_F(Qwen3NextFolder, TheFileComputesWhatTheFolderComputes) {
  for (const char* name : {"qwen35", "qwen35-bf16", "qwen35-picture", "qwen35moe", "qwen3next"}) {
    SCOPED_TRACE(name);
    write(name);
    converted(DType::f32);
    expect_near(logits(file_), logits(folder_));
  }
}

/// Vectors, convolutions and routers stay f32 whatever the type of the file.
TEST_F(Qwen3NextFolder, TypesOfAFile) {
  write("qwen35moe");
  const GgufFile file = converted(DType::q8_0);
  for (const GgufTensor& t : file.tensors()) {
    const bool small = t.tensor.rank == 1 || t.name.find("ssm_conv1d") != std::string::npos ||
                       t.name.find("ffn_gate_inp") != std::string::npos;
    EXPECT_EQ(t.tensor.dtype, small ? DType::f32 : DType::q8_0) << t.name;
  }
  Model::load({.path = file_});
}

/// Qwen3-Next's joined projections become two matrices, with a copy in memory.
TEST_F(Qwen3NextFolder, TakesGroupedProjectionsApart) {
  write("qwen3next");
  const GgufFile file = open();
  EXPECT_FALSE(file.has("snapkv.delta_net.value_heads"));
  const GgufTensor& qkv = *file.find_tensor("blk.0.attn_qkv.weight");
  EXPECT_EQ(qkv.part, GgufTensor::kNoFile);
  EXPECT_EQ(qkv.tensor.shape_string(), "[320, 64]");
  const auto all = oracle_values("model.layers.0.linear_attn.in_proj_qkvz.weight", 512 * 64, true);
  // of each head of keys: 32 queries, 32 keys, 3 * 32 values, 3 * 32 gates
  const auto row = [&](const char* name, int64_t i) { return values(file, name)[i * 64 + 3]; };
  EXPECT_EQ(row("blk.0.attn_qkv.weight", 32 + 5), all[(256 + 5) * 64 + 3]);             // query
  EXPECT_EQ(row("blk.0.attn_qkv.weight", 64 + 5), all[(32 + 5) * 64 + 3]);              // key
  EXPECT_EQ(row("blk.0.attn_qkv.weight", 128 + 96 + 5), all[(256 + 64 + 5) * 64 + 3]);  // value
  EXPECT_EQ(row("blk.0.attn_gate.weight", 96 + 5), all[(256 + 160 + 5) * 64 + 3]);
  EXPECT_EQ(file.find_tensor("blk.0.ssm_ba.weight")->part, 0);
}

TEST_F(Qwen3NextFolder, RefusesCopiesThatDoNotFit) {
  write("qwen3next");
  const ReadOptions little{.most_copied = 3 << 16};
  expect_error(ErrorCode::kDoesNotFit, {folder_, "0 MiB of memory are free", "snapkv convert"},
               [&] { huggingface::to_model(huggingface::open_folder(folder_), little); });
  write("qwen35");  // is read in place, but for vectors
  EXPECT_FALSE(huggingface::to_model(huggingface::open_folder(folder_), little).tensors().empty());
}

/// Published folders of Qwen 3.5 have all experts of a layer in two tensors.
TEST_F(Qwen3NextFolder, ReadsExpertsInOneTensor) {
  write("qwen35moe");
  const std::vector<float> expected = logits(folder_);
  std::vector<HfTensor> tensors;
  for (const auto& [name, shape] : golden_.at("files").at("model.safetensors").items()) {
    int64_t n = 1;
    for (const int64_t size : shape) n *= size;
    if (name.find(".experts.") == std::string::npos) {
      tensors.push_back(f32_tensor(name, shape, oracle_values(name, n, true)));
    }
  }
  for (int il = 0; il < 4; ++il) {
    const std::string prefix = fmt::format("model.layers.{}.mlp.experts.", il);
    std::vector<float> gate_up, down;
    const auto append = [&](std::vector<float>& to, int e, const char* name) {
      const auto part =
          oracle_values(fmt::format("{}{}.{}.weight", prefix, e, name), 64 * 64, true);
      to.insert(to.end(), part.begin(), part.end());
    };
    for (int e = 0; e < 6; ++e) {
      append(gate_up, e, "gate_proj");
      append(gate_up, e, "up_proj");
      append(down, e, "down_proj");
    }
    tensors.push_back(f32_tensor(prefix + "gate_up_proj", {6, 128, 64}, gate_up));
    tensors.push_back(f32_tensor(prefix + "down_proj", {6, 64, 64}, down));
  }
  tensors.push_back(f32_tensor("mtp.fc.weight", {1}, {1.0f}));  // guesses further tokens: left out
  write_bytes(folder_ + "/model.safetensors", safetensors_bytes(tensors));
  set_config({{"intermediate_size", nullptr}});  // published folders have none
  EXPECT_EQ(logits(folder_), expected);
  EXPECT_EQ(open().find_tensor("blk.3.ffn_up.5.weight")->part, 0);  // not copied
  const GgufFile file = converted();
  EXPECT_EQ(file.find_tensor("blk.3.ffn_up_exps.weight")->tensor.shape_string(), "[6, 64, 64]");
  expect_near(logits(file_), expected);
  std::find_if(tensors.begin(), tensors.end(), [](const HfTensor& t) {
    return t.name.ends_with("2.mlp.experts.down_proj");
  })->name += "s";
  write_bytes(folder_ + "/model.safetensors", safetensors_bytes(tensors));
  expect_error(ErrorCode::kBadModel, {"model.layers.2.mlp.experts.down_proj'", "missing"},
               [&] { open(); });
}

/// Qwen3-Next's config.json is of before layer_types and rope_parameters.
TEST_F(Qwen3NextFolder, ReadsOlderConfigurations) {
  write("qwen3next");
  const std::vector<float> expected = logits(folder_);
  set_config({{"layer_types", nullptr},
              {"rope_parameters", nullptr},
              {"full_attention_interval", 4},
              {"partial_rotary_factor", 0.25},
              {"rope_scaling", nullptr},
              {"rope_theta", 10000.0}});
  EXPECT_EQ(logits(folder_), expected);
  set_config({{"layer_types", nullptr}, {"full_attention_interval", 2}});
  expect_error(ErrorCode::kBadModel, {"blk.1.attn_q"}, [&] { Model::load({.path = folder_}); });
}

TEST_F(Qwen3NextFolder, RefusesWhatItCannotCompute) {
  write("qwen35");
  const auto refused = [&](const char* key, const Json& value, std::string_view why) {
    set_config({{key, value}});
    expect_error(ErrorCode::kBadModel, {key, why}, [&] { Model::load({.path = folder_}); });
  };
  refused("linear_num_value_heads", 5, "not a multiple of linear_num_key_heads, 2");
  refused("linear_num_key_heads", 0, "0");
  refused("linear_conv_kernel_dim", 1, "1");
  refused("attn_output_gate", false, "supported is true");
  refused("layer_types", Json::array({"full_attention"}), "4 layers");
  refused("layer_types", Json::array({"conv", "conv", "conv", "conv"}), "linear_attention");
  set_config({{"rope_parameters", {{"mrope_section", {2, 1}}}}});
  expect_error(ErrorCode::kBadModel, {"mrope_section", "add up to 4"}, [&] { open(); });
  set_config({{"linear_value_head_dim", 16}});
  expect_error(ErrorCode::kBadModel, {"linear_attn.in_proj_qkv.weight", "[320, 64]", "[224, 64]"},
               [&] { open(); });
  set_config({{"layer_types",
               {"full_attention", "linear_attention", "linear_attention", "full_attention"}}});
  expect_error(ErrorCode::kBadModel, {"blk.0.attn_q"}, [&] { Model::load({.path = folder_}); });
}

TEST_F(Qwen3NextFolder, RefusesAnUnknownOrderOfHeads) {
  write("qwen35");
  GgufFile file = open();
  file.replace("snapkv.delta_net.value_heads", {GgufType::string, GgufType::u32, "mixed"});
  expect_error(ErrorCode::kBadModel, {"snapkv.delta_net.value_heads", "mixed", "grouped"},
               [&] { read_model_spec(file); });
}

}  // namespace qwen3_next_folder_tests
}  // namespace snapkv::test
