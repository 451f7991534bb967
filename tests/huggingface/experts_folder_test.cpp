// SPDX-License-Identifier: MIT
// Folders whose experts' matrices lie in one tensor, beside what hf_oracle_test.cpp compares with
// transformers: gpt-oss (transposed, or in MXFP4), Granite 3 and OLMoE, in memory and converted.
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/block_types.h"
#include "format/gguf.h"
#include "huggingface/folder.h"
#include "snapkv/convert.h"
#include "snapkv/engine.h"
#include "snapkv/log.h"
#include "snapkv/model_info.h"
#include "tests/huggingface/oracle_folder.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/hf_folder.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace experts_folder_tests {

class ExpertsFolder : public OracleFolder {};

TEST_F(ExpertsFolder, TheFileComputesWhatTheFolderComputes) {
  for (const char* name :
       {"gpt-oss", "gpt-oss-bf16", "gpt-oss-mxfp4", "olmoe", "granitemoe", "granitemoe-shared"}) {
    SCOPED_TRACE(name);
    write(name);
    converted(DType::f32);
    const std::vector<float> of_folder = logits(folder_), of_file = logits(file_);
    ASSERT_EQ(of_folder.size(), of_file.size());
    for (size_t i = 0; i < of_file.size(); ++i) ASSERT_NEAR(of_folder[i], of_file[i], 1e-4) << i;
  }
}

/// Of pairs of gate and up, and transposed.
TEST_F(ExpertsFolder, GptOssMatricesAreTakenApart) {
  write("gpt-oss");
  const GgufFile file = open();
  const std::string at = "model.layers.2.mlp.experts.";  // 5 experts: 64 values, 96 between
  const auto gate_up = oracle_values(at + "gate_up_proj", 5 * 64 * 192, false);
  const auto down = oracle_values(at + "down_proj", 5 * 96 * 64, false);
  const auto bias = oracle_values(at + "gate_up_proj_bias", 5 * 192, false);
  const auto tensor = [&](const char* name) { return file.find_tensor(name)->tensor; };
  const Tensor gate = tensor("blk.2.ffn_gate_exps.weight");
  EXPECT_EQ(gate.shape_string(), "[5, 96, 64]");
  EXPECT_EQ(*gate.at<float>(3, 17, 9), gate_up[(3 * 64 + 9) * 192 + 2 * 17]);
  EXPECT_EQ(*tensor("blk.2.ffn_up_exps.weight").at<float>(3, 17, 9),
            gate_up[(3 * 64 + 9) * 192 + 2 * 17 + 1]);
  EXPECT_EQ(*tensor("blk.2.ffn_down_exps.weight").at<float>(3, 17, 9),
            down[(3 * 96 + 9) * 64 + 17]);
  EXPECT_EQ(*tensor("blk.2.ffn_gate_exps.bias").at<float>(3, 17), bias[3 * 192 + 2 * 17]);
  EXPECT_EQ(*tensor("blk.2.ffn_up_exps.bias").at<float>(3, 17), bias[3 * 192 + 2 * 17 + 1]);
  EXPECT_EQ(file.get_uint("gpt-oss.attention.sliding_window"), 16u);
  EXPECT_EQ(file.get_uint("gpt-oss.expert_feed_forward_length"), 96u);
}

/// transformers need not round the pairs between which YaRN's mix changes; GGUF's key says it.
TEST_F(ExpertsFolder, YarnsPairsNeedNotBeWhole) {
  write("gpt-oss");
  std::string warnings;
  set_log_sink([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::kWarn) warnings += text;
  });
  EXPECT_FALSE(converted().get_bool("snapkv.rope.yarn_truncate", true));
  set_log_sink({});
  EXPECT_NE(warnings.find("llama.cpp rounds them"), std::string::npos) << warnings;
  const std::vector<float> expected = logits(folder_);
  set_config({{"rope_parameters", {{"truncate", true}}}});
  EXPECT_FALSE(open().has("snapkv.rope.yarn_truncate"));
  EXPECT_NE(logits(folder_), expected);
}

/// gpt-oss' config.json is of before rope_parameters.
TEST_F(ExpertsFolder, ReadsOlderConfigurations) {
  write("gpt-oss");
  const std::vector<float> expected = logits(folder_);
  const Json rope = golden_.at("config").at("rope_parameters");
  Json fields = {{"rope_parameters", nullptr},
                 {"rope_theta", 10000.0},
                 {"rope_scaling", rope},
                 {"experts_per_token", 2},
                 {"layer_types", nullptr}};
  fields["rope_scaling"].erase("rope_theta");
  set_config(fields);
  EXPECT_EQ(logits(folder_), expected);
  fields["rope_scaling"] = nullptr;
  refused(fields, {"rope_parameters", "missing"});
}

/// Descriptions do without copies of large matrices: here every expert tensor has 1.25 MiB.
TEST_F(ExpertsFolder, DescriptionsDoNotCopyExperts) {
  write("gpt-oss");
  Json wide = golden_;
  wide["config"]["intermediate_size"] = 1024;
  for (auto& [name, shape] : wide["files"]["model.safetensors"].items()) {
    for (auto& n : shape) n = n == 192 ? Json(2048) : n == 96 ? Json(1024) : n;
  }
  write_oracle_folder(folder_, wide);
  const GgufFile file = huggingface::to_model(huggingface::open_folder(folder_),
                                              {.most_copied = UINT64_MAX, .copies_values = false});
  const Tensor gate = file.find_tensor("blk.0.ffn_gate_exps.weight")->tensor;
  const Tensor down = file.find_tensor("blk.3.ffn_down_exps.weight")->tensor;
  EXPECT_EQ(gate.shape_string(), "[5, 1024, 64]");
  EXPECT_EQ(gate.data, down.data);
  const GgufFile filled = open();
  EXPECT_NE(filled.find_tensor("blk.0.ffn_gate_exps.weight")->tensor.data,
            filled.find_tensor("blk.3.ffn_down_exps.weight")->tensor.data);
  const ModelDescription d = describe_model(folder_);
  EXPECT_TRUE(d.problems.empty());
  EXPECT_EQ(d.info.weight_bytes, Model::load({.path = folder_})->info().weight_bytes);
}

/// Experts in MXFP4 stay what they are, whatever the type of the file.
TEST_F(ExpertsFolder, Mxfp4IsReordered) {
  write("gpt-oss-mxfp4");
  for (const GgufFile& file : {open(), converted(DType::q8_0)}) {
    const Tensor up = file.find_tensor("blk.1.ffn_up_exps.weight")->tensor;
    EXPECT_EQ(up.dtype, DType::mxfp4);
    EXPECT_EQ(up.shape_string(), "[5, 96, 64]");
    EXPECT_EQ(file.find_tensor("blk.1.ffn_gate_exps.bias")->tensor.dtype,
              file.version() == 0 ? DType::bf16 : DType::f32);
    const auto scales = mxfp4_bytes("model.layers.1.mlp.experts.gate_up_proj_scales", 5 * 192 * 2);
    const auto pairs = mxfp4_bytes("model.layers.1.mlp.experts.gate_up_proj_blocks", 5 * 192 * 32);
    const int64_t row = 4 * 192 + 2 * 7 + 1;  // of expert 4, the up in pair 7
    const auto& block = static_cast<const BlockMXFP4*>(up.data)[(4 * 96 + 7) * 2 + 1];
    EXPECT_EQ(block.e, static_cast<uint8_t>(scales[row * 2 + 1]));
    const auto* bytes = reinterpret_cast<const uint8_t*>(&pairs[(row * 2 + 1) * 16]);
    for (int i = 0; i < 32; ++i) {
      const int number = bytes[i / 2] >> (i % 2 * 4) & 15;
      EXPECT_EQ(block.level(i), BlockMXFP4::kLevels[number]) << i;
    }
  }
  EXPECT_EQ(GgufFile::open(file_).find_tensor("blk.1.attn_q.weight")->tensor.dtype, DType::q8_0);
}

TEST_F(ExpertsFolder, RefusesDamagedMxfp4) {
  write("gpt-oss-mxfp4");
  const std::string name = "model.layers.1.mlp.experts.down_proj_scales";
  const auto damage = [&](const Json& shape, std::initializer_list<std::string_view> words) {
    SCOPED_TRACE(shape.dump());
    Json golden = golden_;
    Json& tensors = golden["files"]["model.safetensors"];
    shape.is_null() ? void(tensors.erase(name)) : void(tensors[name] = shape);
    write_oracle_folder(folder_, golden);
    expect_error(ErrorCode::kBadModel, words, [&] { open(); });
  };
  damage({}, {name, "missing"});
  damage({5, 64, 2}, {name, "[5, 64, 2]", "[5, 64, 3]"});
  write_oracle_folder(folder_, golden_);
  refused({{"quantization_config", nullptr}}, {"experts.gate_up_proj'", "missing"});
  refused({{"quantization_config", {{"quant_method", "fp8"}}}}, {"quantization_config", "fp8"});
  Json narrow = golden_;
  Json& tensors = narrow["files"]["model.safetensors"];
  tensors["model.layers.0.mlp.experts.gate_up_proj_blocks"] = {5, 160, 2, 16};
  tensors["model.layers.0.mlp.experts.gate_up_proj_scales"] = {5, 160, 2};
  write_oracle_folder(folder_, narrow);
  refused({{"intermediate_size", 80}}, {"layers.0.mlp.experts.down_proj", "a multiple of 32"});
}

/// Matrices that lie one after another are read in place, as those of single experts.
TEST_F(ExpertsFolder, GranitesMatricesAreViews) {
  write("granitemoe-shared");
  const GgufFile file = open();
  for (const char* name : {"blk.1.ffn_gate.4.weight", "blk.1.ffn_up.4.weight",
                           "blk.1.ffn_down.4.weight", "blk.1.ffn_up_shexp.weight"}) {
    EXPECT_EQ(file.find_tensor(name)->part, 0) << name;
  }
  const auto both =
      oracle_values("model.layers.1.block_sparse_moe.input_linear.weight", 6 * 128 * 64, false);
  const GgufTensor& up = *file.find_tensor("blk.1.ffn_up.4.weight");
  EXPECT_EQ(*up.tensor.at<float>(9, 5), both[(4 * 128 + 64 + 9) * 64 + 5]);
  EXPECT_EQ(up.n_bytes, 64u * 64 * 4);
  EXPECT_EQ(up.file_offset - file.find_tensor("blk.1.ffn_gate.4.weight")->file_offset, up.n_bytes);
  EXPECT_EQ(file.get_float("granitemoe.attention.scale"), double{0.4f});
  EXPECT_EQ(file.get_float("granitemoe.logit_scale"), 2.0);
  EXPECT_EQ(file.get_uint("granitemoe.expert_shared_feed_forward_length"), 96u);
}

TEST_F(ExpertsFolder, RefusesWhatItCannotCompute) {
  write("gpt-oss");
  refused({{"swiglu_limit", 5.0}}, {"swiglu_limit", "supported is 7"});
  refused({{"swiglu_alpha", 1.0}}, {"swiglu_alpha", "supported is 1.702"});
  refused({{"sliding_window", 0}}, {"sliding_window", "0"});
  refused(
      {{"layer_types", {"full_attention", "full_attention", "full_attention", "full_attention"}}},
      {"layer_types", "layer 0"});
  refused({{"intermediate_size", 64}}, {"experts.gate_up_proj", "[5, 64, 192]", "[5, 64, 128]"});
  write("olmoe");
  refused({{"clip_qkv", 8.0}}, {"clip_qkv", "supported is null"});
  write("granitemoe");
  refused({{"logits_scaling", 0.0}}, {"logits_scaling", "0"});
  refused({{"shared_intermediate_size", 96}}, {"shexp"});
}

}  // namespace experts_folder_tests
}  // namespace snapkv::test
