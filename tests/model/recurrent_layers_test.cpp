// SPDX-License-Identifier: MIT
// Loading of models with recurrent layers: their sizes are checked, and errors name what is wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "snapkv/engine.h"
#include "tests/support/expect_error.h"
#include "tests/support/family_models.h"
#include "tests/support/test_models.h"
#include "tests/support/tiny_file.h"

namespace snapkv::test {
namespace {

/// An LFM2 of one layer with attention and one with a convolution.
TinyFile lfm2_file() {
  TinyFile file = file_of("lfm2");
  file.set("lfm2.block_count", uint32_t{2});
  file.set("lfm2.attention.head_count_kv", std::vector<int32_t>{2, 0});
  file.set("lfm2.shortconv.l_cache", uint32_t{3});
  for (const char* name : {"attn_norm", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"}) {
    const std::string tensor = std::string(name) + ".weight";
    file.tensors["blk.1." + tensor] = file.tensors["blk.0." + tensor];
  }
  file.tensors.erase("output_norm.weight");
  file.tensors.insert({{"token_embd_norm.weight", {32}},
                       {"blk.0.attn_q_norm.weight", {8}},
                       {"blk.0.attn_k_norm.weight", {8}},
                       {"blk.1.shortconv.in_proj.weight", {96, 32}},
                       {"blk.1.shortconv.conv.weight", {32, 3}},
                       {"blk.1.shortconv.out_proj.weight", {32, 32}}});
  return file;
}

TEST(RecurrentLayers, SizesOfLinearAttentionAreChecked) {
  const auto file = [] {
    TinyFile tiny = file_of("qwen35");
    tiny.set("qwen35.block_count", uint32_t{4});
    tiny.set("qwen35.ssm.conv_kernel", uint32_t{4});
    tiny.set("qwen35.ssm.state_size", uint32_t{8});
    tiny.set("qwen35.ssm.group_count", uint32_t{2});
    tiny.set("qwen35.ssm.time_step_rank", uint32_t{4});
    tiny.set("qwen35.ssm.inner_size", uint32_t{32});
    return tiny;
  };
  expect_mentions(load_error(file()), {"blk.0.attn_qkv.weight", "missing"});
  const auto refused = [&](const char* key, auto value, std::initializer_list<const char*> words) {
    TinyFile changed = file();
    changed.set(key, value);
    const std::string message = load_error(changed);
    expect_mentions(message, {key});
    expect_mentions(message, words);
  };
  refused("qwen35.ssm.conv_kernel", uint32_t{1}, {"between 2 and 16", "it is 1"});
  refused("qwen35.ssm.group_count", uint32_t{3}, {"time_step_rank = 4", "group_count = 3"});
  refused("qwen35.ssm.inner_size", uint32_t{33}, {"inner_size = 33", "time_step_rank = 4"});
  refused("qwen35.ssm.state_size", uint32_t{0}, {"0"});
  refused("qwen35.full_attention_interval", uint32_t{5}, {"none of 4 layers"});
  refused("qwen35.attention.recurrent_layers", uint32_t{1}, {"array of 4 bools"});
  refused("qwen35.nextn_predict_layers", uint32_t{4}, {"fewer than the 4"});
  TinyFile old = file();
  old.tensors["blk.0.ssm_in.weight"] = {96, 32};
  expect_mentions(load_error(old), {"blk.0.ssm_in.weight", "convert the model again"});
}

TEST(RecurrentLayers, SizesOfMambaMixersAreChecked) {
  const auto file = [] {
    TinyFile tiny = file_of("jamba");
    tiny.set("jamba.block_count", uint32_t{2});
    tiny.set("jamba.ssm.conv_kernel", uint32_t{4});
    tiny.set("jamba.ssm.state_size", uint32_t{8});
    tiny.set("jamba.ssm.time_step_rank", uint32_t{4});
    tiny.set("jamba.ssm.inner_size", uint32_t{64});
    tiny.set("jamba.attention.head_count_kv", std::vector<int32_t>{2, 0});
    return tiny;
  };
  const auto refused = [&](const char* key, auto value, std::initializer_list<const char*> words) {
    TinyFile changed = file();
    changed.set(key, value);
    const std::string message = load_error(changed);
    expect_mentions(message, {key});
    expect_mentions(message, words);
  };
  refused("jamba.ssm.conv_kernel", uint32_t{1}, {"between 2 and 16", "it is 1"});
  refused("jamba.ssm.conv_kernel", uint32_t{17}, {"17"});
  refused("jamba.ssm.state_size", uint32_t{0}, {"0"});
  refused("jamba.ssm.time_step_rank", uint32_t{0}, {"0"});
  refused("jamba.ssm.inner_size", uint32_t{1 << 21}, {"2097152"});
  using Ints = std::vector<int32_t>;
  refused("jamba.attention.head_count_kv", Ints{0, 0}, {"none of 2 layers"});

  TinyFile whole = file();
  for (const char* name : {"attn_norm", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"}) {
    const std::string tensor = std::string(name) + ".weight";
    whole.tensors["blk.1." + tensor] = whole.tensors["blk.0." + tensor];
  }
  const std::map<std::string, std::vector<int64_t>> mixer = {
      {"ssm_in.weight", {128, 32}}, {"ssm_conv1d.weight", {64, 4}},
      {"ssm_x.weight", {20, 64}},   {"ssm_dt.weight", {64, 4}},
      {"ssm_dt.bias", {64}},        {"ssm_dt_norm.weight", {4}},
      {"ssm_b_norm.weight", {8}},   {"ssm_c_norm.weight", {8}},
      {"ssm_a", {64, 8}},           {"ssm_d", {64}},
      {"ssm_out.weight", {32, 64}}};
  for (const auto& [name, shape] : mixer) whole.tensors["blk.1." + name] = shape;
  for (const auto& [name, shape] : mixer) {
    TinyFile less = whole;
    const std::string full = "blk.1." + name;
    less.tensors.erase(full);
    expect_mentions(load_error(less), {full.c_str(), "missing"});
  }
  // a state that grows
  expect_mentions(load_error(whole), {"blk.1.ssm_a", "holds 0.01", "numbers up to 0"});
  whole.tensors["blk.1.ffn_gate_inp.weight"] = {4, 32};
  expect_mentions(load_error(whole),
                  {"jamba.expert_count", "missing", "blk.1.ffn_gate_inp.weight"});
}

TEST(RecurrentLayers, SizesOfMixersOfPlamo2AreChecked) {
  const auto refused = [](const char* key, auto value, std::initializer_list<const char*> words) {
    TinyFile file = file_of("plamo2");
    file.set("plamo2.ssm.conv_kernel", uint32_t{4});
    file.set("plamo2.ssm.state_size", uint32_t{8});
    file.set("plamo2.ssm.time_step_rank", uint32_t{4});
    file.set("plamo2.ssm.inner_size", uint32_t{64});
    file.set("plamo2.attention.head_count_kv", std::vector<int32_t>{0});
    file.set(key, value);
    expect_mentions(load_error(file), words);
  };
  refused("plamo2.ssm.time_step_rank", uint32_t{3},
          {"plamo2.ssm.time_step_rank = 3", "plamo2.ssm.inner_size = 64"});
  refused("plamo2.ssm.conv_kernel", uint32_t{1}, {"plamo2.ssm.conv_kernel", "it is 1"});
  refused("plamo2.ssm.state_size", uint32_t{8}, {"none of 1 layers"});
}

TEST(RecurrentLayers, SizesOfMamba2MixersAreChecked) {
  const auto file = [](const std::string& architecture) {
    TinyFile tiny = file_of(architecture);
    const auto key = [&](const char* name) { return architecture + "." + name; };
    tiny.set(key("block_count"), uint32_t{4});
    tiny.set(key("ssm.conv_kernel"), uint32_t{4});
    tiny.set(key("ssm.state_size"), uint32_t{8});
    tiny.set(key("ssm.group_count"), uint32_t{2});
    tiny.set(key("ssm.time_step_rank"), uint32_t{4});
    tiny.set(key("ssm.inner_size"), uint32_t{32});
    tiny.set(key("attention.head_count_kv"), std::vector<int32_t>{0, 0, 2, 0});
    return tiny;
  };
  expect_mentions(load_error(file("granitehybrid")), {"blk.0.ssm_in.weight", "missing"});
  const auto refused = [&](const std::string& architecture, const char* name, auto value,
                           std::initializer_list<const char*> words) {
    TinyFile changed = file(architecture);
    changed.set(architecture + "." + name, value);
    const std::string message = load_error(changed);
    expect_mentions(message, {name});
    expect_mentions(message, words);
  };
  using Ints = std::vector<int32_t>;
  const char* const granite = "granitehybrid";
  refused(granite, "ssm.conv_kernel", uint32_t{1}, {"between 2 and 16", "it is 1"});
  refused(granite, "ssm.conv_kernel", uint32_t{17}, {"17"});
  refused(granite, "ssm.group_count", uint32_t{3}, {"time_step_rank = 4", "group_count = 3"});
  refused(granite, "ssm.inner_size", uint32_t{33}, {"inner_size = 33", "time_step_rank = 4"});
  refused(granite, "ssm.state_size", uint32_t{0}, {"0"});
  refused(granite, "attention.head_count_kv", Ints{0, 0, 0, 0}, {"none of 4 layers"});
  refused(granite, "attention.head_count_kv", Ints{0, 2}, {"2 entries", "4 layers"});
  refused("nemotron_h", "feed_forward_length", Ints{0, 0, 64}, {"3 entries", "4 layers"});
  refused("nemotron_h", "attention.head_count_kv", Ints{0, 0, 0, 0}, {"none of 4 layers"});
  refused("nemotron_h", "feed_forward_length", Ints{0, -1, 0, 0}, {"feed_forward_length"});
  // which has attention and a mixer in every layer
  const char* const falcon = "falcon-h1";
  refused(falcon, "attention.head_count_kv", Ints{2, 0, 2, 2}, {"between 1 and 16384"});
  refused(falcon, "attention.head_count_kv", Ints{2, 3, 2, 2}, {"4", "3"});
  refused(falcon, "ssm.conv_kernel", uint32_t{1}, {"between 2 and 16", "it is 1"});
  refused(falcon, "ssm.group_count", uint32_t{3}, {"time_step_rank = 4", "group_count = 3"});
  refused(falcon, "ssm.inner_size", uint32_t{33}, {"inner_size = 33", "time_step_rank = 4"});
  refused(falcon, "ssm.state_size", uint32_t{0}, {"0"});
  for (const auto& factors : {std::vector<float>(11, 1.0f), std::vector<float>(12, 0.0f)}) {
    TinyFile odd = file(falcon);
    odd.metadata.erase("falcon-h1.attention.head_count_kv");
    odd.set("snapkv.falcon_h1.factors", factors);
    expect_mentions(load_error(odd), {"snapkv.falcon_h1.factors", "12 positive numbers"});
  }
  TinyFile both = file(falcon);
  both.metadata.erase("falcon-h1.attention.head_count_kv");
  expect_mentions(load_error(both), {"blk.0.ssm_in.weight", "missing"});
  both.metadata.erase("falcon-h1.ssm.time_step_rank");
  expect_mentions(load_error(both), {"falcon-h1.ssm.time_step_rank"});
}

TEST(RecurrentLayers, SizesOfKimiLinearAreChecked) {
  const auto file = [] {
    TinyFile tiny = file_of("kimi-linear");
    const auto set = [&](const char* name, auto value) {
      tiny.set(std::string("kimi-linear.") + name, value);
    };
    set("block_count", uint32_t{4});
    set("attention.head_count_kv", std::vector<int32_t>{0, 0, 0, 1});
    set("attention.kv_lora_rank", uint32_t{32});
    set("attention.key_length_mla", uint32_t{16});
    set("attention.value_length_mla", uint32_t{8});
    set("rope.dimension_count", uint32_t{8});
    set("kda.head_dim", uint32_t{8});
    set("ssm.conv_kernel", uint32_t{4});
    set("expert_count", uint32_t{4});
    set("expert_used_count", uint32_t{2});
    set("expert_feed_forward_length", uint32_t{16});
    set("leading_dense_block_count", uint32_t{1});
    tiny.tensors["output.weight"] = {259, 32};
    tiny.tensors["blk.0.attn_k.weight"] = tiny.tensors["blk.0.attn_v.weight"] = {32, 32};
    return tiny;
  };
  expect_mentions(load_error(file()), {"blk.0.ssm_beta.weight", "missing"});
  const auto refused = [&](const char* name, auto value, std::initializer_list<const char*> words) {
    TinyFile changed = file();
    changed.set(std::string("kimi-linear.") + name, value);
    const std::string message = load_error(changed);
    expect_mentions(message, {name});
    expect_mentions(message, words);
  };
  using Ints = std::vector<int32_t>;
  refused("ssm.conv_kernel", uint32_t{1}, {"between 2 and 16", "it is 1"});
  refused("ssm.conv_kernel", uint32_t{17}, {"17"});
  refused("kda.head_dim", uint32_t{0}, {"0"});
  refused("kda.head_dim", uint32_t{1025}, {"1025"});
  refused("attention.head_count_kv", Ints{0, 0, 0, 0}, {"none of 4 layers"});
  refused("attention.head_count_kv", Ints{0, 1}, {"2 entries", "4 layers"});
  refused("attention.head_count_kv", Ints{0, 0, 0, -1}, {"between 0 and 4096"});
  refused("attention.kv_lora_rank", uint32_t{40}, {"40", "multiples of 32"});
  refused("rope.dimension_count", uint32_t{16}, {"16", "the width of a query, 16"});
  refused("rope.dimension_count", uint32_t{4}, {"4", "multiples of 32 and of 8"});
  refused("expert_count", uint32_t{0}, {"the number of experts"});
  refused("leading_dense_block_count", uint32_t{4}, {"less than 4"});
  for (const char* name :
       {"kda.head_dim", "ssm.conv_kernel", "attention.kv_lora_rank", "attention.key_length_mla",
        "attention.value_length_mla", "attention.head_count_kv"}) {
    TinyFile without = file();
    without.metadata.erase(std::string("kimi-linear.") + name);
    expect_mentions(load_error(without), {name});
  }
}

TEST(RecurrentLayers, SizesOfRwkvAreChecked) {
  const auto file = [](const std::string& architecture) {
    TinyFile tiny = file_of(architecture);
    const auto set = [&](const char* name, uint32_t value) {
      tiny.set(architecture + "." + name, value);
    };
    set("wkv.head_size", 8);
    set("attention.decay_lora_rank", 4);
    set("attention.iclr_lora_rank", 4);
    set("attention.value_residual_mix_lora_rank", 4);
    set("attention.gate_lora_rank", 4);
    set("time_mix_extra_dim", 4);
    set("time_decay_extra_dim", 4);
    set("token_shift_count", architecture == "rwkv6" || architecture == "rwkv7" ? 2 : 1);
    tiny.metadata.erase(architecture + ".attention.head_count_kv");
    tiny.tensors["output.weight"] = {259, 32};
    return tiny;
  };
  const auto refused = [&](const std::string& architecture, const char* name, auto value,
                           std::initializer_list<const char*> words) {
    TinyFile changed = file(architecture);
    changed.set(architecture + "." + name, value);
    const std::string message = load_error(changed);
    expect_mentions(message, {name});
    expect_mentions(message, words);
  };
  for (const char* name : {"rwkv7", "arwkv7", "rwkv6", "rwkv6qwen2"}) {
    SCOPED_TRACE(name);
    refused(name, "wkv.head_size", uint32_t{0}, {"0"});
    refused(name, "wkv.head_size", uint32_t{12}, {"head_size = 12", "embedding_length = 32"});
    refused(name, "wkv.head_size", uint32_t{1025}, {"1025"});
    refused(name, "token_shift_count", uint32_t{3}, {"is 3", "expected", name});
    TinyFile without = file(name);
    without.metadata.erase(std::string(name) + ".wkv.head_size");
    expect_mentions(load_error(without), {"wkv.head_size", "missing"});
  }
  for (const char* name : {"rwkv7", "arwkv7"}) {
    refused(name, "attention.decay_lora_rank", uint32_t{0}, {"0"});
    refused(name, "attention.iclr_lora_rank", uint32_t{1 << 17}, {"131072"});
    refused(name, "attention.value_residual_mix_lora_rank", uint32_t{0}, {"0"});
    TinyFile gated = file(name);
    gated.tensors["blk.0.time_mix_g1.weight"] = {4, 32};
    gated.metadata.erase(std::string(name) + ".attention.gate_lora_rank");
    expect_mentions(load_error(gated), {"attention.gate_lora_rank", "missing"});
  }
  for (const char* name : {"rwkv6", "rwkv6qwen2"}) {
    refused(name, "time_mix_extra_dim", uint32_t{0}, {"0"});
    refused(name, "time_decay_extra_dim", uint32_t{0}, {"0"});
  }
  refused("rwkv6qwen2", "attention.head_count_kv", uint32_t{3}, {"= 3", "number of heads, 4"});
}

TEST(RecurrentLayers, TensorsOfRwkv7AreChecked) {
  const std::map<std::string, std::vector<int64_t>> mixer = {
      {"time_mix_lerp_fused.weight", {5, 1, 1, 32}},
      {"time_mix_receptance.weight", {32, 32}},
      {"time_mix_key.weight", {32, 32}},
      {"time_mix_value.weight", {32, 32}},
      {"time_mix_w0.weight", {32}},
      {"time_mix_w1.weight", {4, 32}},
      {"time_mix_w2.weight", {32, 4}},
      {"time_mix_a0.weight", {32}},
      {"time_mix_a1.weight", {4, 32}},
      {"time_mix_a2.weight", {32, 4}},
      {"time_mix_k_k.weight", {32}},
      {"time_mix_k_a.weight", {32}},
      {"time_mix_r_k.weight", {32}},
      {"time_mix_output.weight", {32, 32}}};
  TinyFile whole = file_of("arwkv7");
  whole.set("arwkv7.wkv.head_size", uint32_t{8});
  for (const char* name : {"decay", "iclr", "value_residual_mix"}) {
    whole.set(std::string("arwkv7.attention.") + name + "_lora_rank", uint32_t{4});
  }
  whole.tensors["output.weight"] = {259, 32};
  for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
    whole.tensors.erase(std::string("blk.0.") + name + ".weight");
  }
  for (const auto& [name, shape] : mixer) whole.tensors["blk.0." + name] = shape;
  const TempDir folder;
  EXPECT_EQ(Model::load({.path = whole.write(folder)})->info().layers[0].n_head_kv, 0);
  for (const auto& [name, shape] : mixer) {
    TinyFile less = whole;
    const std::string full = "blk.0." + name;
    less.tensors.erase(full);
    expect_mentions(load_error(less), {full.c_str(), "missing"});
    TinyFile other = whole;
    other.tensors[full].back() = 40;
    expect_mentions(load_error(other), {full.c_str(), "shape"});
  }
  TinyFile half = whole;  // gates need both of their matrices
  half.tensors["blk.0.time_mix_g1.weight"] = {4, 32};
  half.tensors["blk.0.time_mix_lerp_fused.weight"] = {6, 1, 1, 32};
  half.set("arwkv7.attention.gate_lora_rank", uint32_t{4});
  expect_mentions(load_error(half), {"blk.0.time_mix_g2.weight", "missing"});
}

TEST(RecurrentLayers, FloorsOfDecaysAreChecked) {
  const auto refused = [](double floor, std::initializer_list<std::string_view> words) {
    FamilyModel m = *std::find_if(family_models().begin(), family_models().end(),
                                  [](const FamilyModel& f) { return f.name == "bailingmoe3"; });
    m.shape.family.kimi_delta.log_floor = floor;
    const TempDir folder;
    const std::string path = folder / "model.gguf";
    write_random_model(path, m.shape, m.options);
    expect_error(ErrorCode::kBadModel, words, [&] { Model::load({.path = path}); });
  };
  refused(-1e-6, {"kda.gate_lower_bound", "-1000 to -0.001"});
  refused(-1e6, {"kda.gate_lower_bound", "-1000000", "-1000 to -0.001"});
}

TEST(RecurrentLayers, WhichLayersHaveAttentionIsChecked) {
  const TempDir folder;
  const auto model = Model::load({.path = lfm2_file().write(folder)});
  EXPECT_EQ(model->info().layers[0].n_head_kv, 2);
  EXPECT_EQ(model->info().layers[1].n_head_kv, 0);
  const auto refused = [](const char* key, auto value, std::initializer_list<const char*> words) {
    TinyFile file = lfm2_file();
    file.set(key, value);
    const std::string message = load_error(file);
    expect_mentions(message, {key});
    expect_mentions(message, words);
  };
  const char* const heads = "lfm2.attention.head_count_kv";
  refused(heads, std::vector<int32_t>{2}, {"1 entries", "2 layers"});
  refused(heads, std::vector<int32_t>{2, -1}, {"between 0 and 16384"});
  refused(heads, std::vector<int32_t>{3, 0}, {"3", "4"});
  refused(heads, std::vector<int32_t>{0, 0}, {"without attention"});
  refused(heads, std::vector<float>{2, 0}, {"a whole number or an array of them"});
  refused("lfm2.shortconv.l_cache", uint32_t{1}, {"between 2 and 16", "it is 1"});
  refused("lfm2.shortconv.l_cache", uint32_t{17}, {"between 1 and 16", "17"});
  TinyFile swapped = lfm2_file();  // the tensors say otherwise
  swapped.set(heads, std::vector<int32_t>{0, 2});
  expect_mentions(load_error(swapped), {"blk.0.shortconv.in_proj.weight", "missing"});
  TinyFile kernel = lfm2_file();
  kernel.tensors["blk.1.shortconv.conv.weight"] = {32, 4};
  expect_mentions(load_error(kernel), {"blk.1.shortconv.conv.weight", "shape"});
  TinyFile missing = lfm2_file();
  missing.metadata.erase("lfm2.shortconv.l_cache");
  expect_mentions(load_error(missing), {"lfm2.shortconv.l_cache"});
  TinyFile llama;  // which has attention in every layer
  llama.set("llama.attention.head_count_kv", std::vector<int32_t>{0});
  expect_mentions(load_error(llama), {"llama.attention.head_count_kv", "between 1"});
}

}  // namespace
}  // namespace snapkv::test
