// SPDX-License-Identifier: MIT
// Folders of Jamba beside what hf_oracle_test.cpp compares with transformers: GGUF's keys and
// shapes, converted files, and what is refused.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "format/gguf.h"
#include "tests/huggingface/oracle_folder.h"
#include "tests/support/hf_folder.h"

namespace snapkv::test {
namespace jamba_folder_tests {

using JambaFolder = OracleFolder;

TEST_F(JambaFolder, HasTheKeysAndShapesOfGguf) {
  write("jamba");
  const GgufFile dense = open();
  EXPECT_EQ(dense.get_string("general.architecture"), "jamba");
  EXPECT_EQ(dense.get_uint("jamba.ssm.inner_size"), 128u);
  EXPECT_EQ(dense.get_uint("jamba.ssm.state_size"), 16u);
  EXPECT_EQ(dense.get_uint("jamba.ssm.time_step_rank"), 4u);
  EXPECT_EQ(dense.get_ints("jamba.attention.head_count_kv"), (std::vector<int64_t>{0, 2, 0, 0}));
  EXPECT_FALSE(dense.has("jamba.expert_count"));
  expect_decay_rates(dense, "model.layers.0.mamba.A_log", {128, 16});
  EXPECT_EQ(dense.find_tensor("blk.0.ssm_d")->tensor.rank, 1);
  write("jamba-moe");
  const GgufFile experts = open();
  EXPECT_EQ(experts.get_uint("jamba.expert_count"), 6u);
  EXPECT_EQ(experts.get_uint("jamba.ssm.time_step_rank"), 24u);
  for (int il = 0; il < 4; ++il) {
    const std::string router = "blk." + std::to_string(il) + ".ffn_gate_inp.weight";
    EXPECT_EQ(experts.find_tensor(router) != nullptr, il % 2 == 1) << il;
  }
}

TEST_F(JambaFolder, TheRankOfStepsMayFollowFromTheWidth) {
  write("jamba");
  const std::vector<float> expected = logits(folder_);
  for (const Json& rank : {Json("auto"), Json(nullptr)}) {
    set_config({{"mamba_dt_rank", rank}});
    EXPECT_EQ(logits(folder_), expected);
  }
}

TEST_F(JambaFolder, ConvertedFilesComputeTheSame) {
  expect_same_if_converted({"jamba", "jamba-moe"});
}

TEST_F(JambaFolder, WhatIsNotSupportedIsNamed) {
  write("jamba-moe");
  refused({{"attn_layer_offset", 4}}, {"attn_layer_offset", "4", "attn_layer_period"});
  refused({{"attn_layer_period", 0}}, {"attn_layer_period", "0"});
  refused({{"attn_layer_period", 9}, {"attn_layer_offset", 8}}, {"none of 4 layers"});
  refused({{"expert_layer_offset", 2}}, {"expert_layer_offset", "2", "expert_layer_period"});
  refused({{"mamba_d_state", 8}}, {"x_proj", "[56, 128]", "[40, 128]"});
  refused({{"mamba_dt_rank", "all"}}, {"mamba_dt_rank", "all"});
  refused({{"mamba_d_conv", 1}}, {"mamba_d_conv", "1"});
  refused({{"hidden_act", "gelu"}}, {"hidden_act", "gelu", "silu"});
  refused({{"num_experts", 0}}, {"num_experts", "0"});
}

}  // namespace jamba_folder_tests
}  // namespace snapkv::test
