// SPDX-License-Identifier: MIT
// Mixtures of experts: what a file must have, and what its header may say. What such models compute
// is compared with llama.cpp in llama_oracle_test.cpp, the ops in tests/backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "model/architecture.h"
#include "model/blocks/expert_names.h"
#include "model/model_spec.h"
#include "tests/support/family_models.h"
#include "tests/support/tiny_file.h"

namespace snapkv::test {
namespace {

TEST(ExpertNamesTest, PartsOfMergedTensors) {
  const auto part = parse_expert_part("blk.12.ffn_down.7.weight");
  ASSERT_TRUE(part);
  EXPECT_EQ(part->merged, "blk.12.ffn_down_exps.weight");
  EXPECT_EQ(part->expert, 7);
  const auto adjugate = parse_expert_part("blk.12.ffn_down_ch.7.weight");
  ASSERT_TRUE(adjugate);
  EXPECT_EQ(adjugate->merged, "blk.12.ffn_down_chexps.weight");
  EXPECT_EQ(adjugate->expert, 7);
  for (const char* name : {"blk.0.ffn_down.weight", "blk.0.ffn_down_exps.weight", "output.weight",
                           "blk.0.attn_q.3.weight", "blk.0.ffn_gate.x.weight", "ffn_up.1.weight"}) {
    EXPECT_FALSE(parse_expert_part(name)) << name;
  }
  EXPECT_TRUE(is_of_experts("blk.0.ffn_up_exps.weight"));
  EXPECT_TRUE(is_of_experts("blk.0.ffn_up.0.weight"));
  EXPECT_TRUE(is_of_experts("blk.0.ffn_up_chexps.weight"));
  EXPECT_FALSE(is_of_experts("blk.0.ffn_gate_inp.weight"));
  EXPECT_FALSE(is_of_experts("blk.0.ffn_up_shexp.weight"));  // every token passes it
  EXPECT_TRUE(is_router("blk.0.ffn_gate_inp.weight"));
  EXPECT_TRUE(is_router("blk.0.ffn_gate_inp_shexp.weight"));
  EXPECT_FALSE(is_router("blk.0.ffn_gate_shexp.weight"));
}

TinyFile of_architecture(const std::string& name, TinyFile file) {
  const auto llama = std::move(file.metadata);
  file.metadata.clear();
  for (const auto& [key, add] : llama) {
    file.metadata[key.starts_with("llama.") ? name + key.substr(5) : key] = add;
  }
  file.set("general.architecture", name);
  return file;
}

/// A file of one layer with four experts, two of each token.
TinyFile experts_file(bool merged = true) {
  TinyFile file;
  file.set("llama.expert_count", uint32_t{4});
  file.set("llama.expert_used_count", uint32_t{2});
  file.tensors["blk.0.ffn_gate_inp.weight"] = {4, 32};
  for (const auto& [name, shape] :
       std::map<std::string, std::vector<int64_t>>{{"blk.0.ffn_gate", {48, 32}},
                                                   {"blk.0.ffn_up", {48, 32}},
                                                   {"blk.0.ffn_down", {32, 48}}}) {
    file.tensors.erase(name + ".weight");
    if (merged) file.tensors[name + "_exps.weight"] = {4, shape[0], shape[1]};
    for (int e = 0; !merged && e < 4; ++e) {
      file.tensors[name + "." + std::to_string(e) + ".weight"] = shape;
    }
  }
  return file;
}

TEST(ExpertsFileTest, BothFormsLoadAndAreDescribed) {
  for (const bool merged : {true, false}) {
    const TempDir folder;
    const std::string path = experts_file(merged).write(folder);
    const ModelInfo info = describe_model(path).info;
    EXPECT_EQ(info.n_expert, 4);
    EXPECT_EQ(info.n_expert_used, 2);
    EXPECT_EQ(info.n_params - info.n_active_params, 2 * 3 * 48 * 32);
    EXPECT_EQ(info.weight_bytes - info.active_weight_bytes, size_t{2 * 3 * 48 * 32 * 4});
    EXPECT_EQ(Model::load({.path = path})->info().n_active_params, info.n_active_params);
  }
  const ModelInfo dense = describe_model(model_path("llama-freqs")).info;
  EXPECT_EQ(dense.n_expert, 0);
  EXPECT_EQ(dense.n_active_params, dense.n_params);
}

TEST(ExpertsFileTest, EveryMissingOrMisshapenTensorIsNamed) {
  for (const bool merged : {true, false}) {
    for (const auto& [name, shape] : experts_file(merged).tensors) {
      TinyFile missing = experts_file(merged), wrong = missing;
      missing.tensors.erase(name);
      expect_mentions(load_error(missing), {name.c_str(), "missing"});
      wrong.tensors[name].back() += 32;
      expect_mentions(load_error(wrong), {name.c_str(), "shape"});
    }
  }
  TinyFile fewer = experts_file();
  fewer.tensors["blk.0.ffn_up_exps.weight"] = {3, 48, 32};
  expect_mentions(load_error(fewer), {"blk.0.ffn_up_exps.weight", "[3, 48, 32]", "[4, 48, 32]"});
  TinyFile more = experts_file(false);
  more.tensors["blk.0.ffn_up.4.weight"] = {48, 32};
  expect_mentions(load_error(more), {"blk.0.ffn_up.4.weight", "not part of"});
  TinyFile both = experts_file();
  both.tensors["blk.0.ffn_up.0.weight"] = {48, 32};
  expect_mentions(load_error(both), {"blk.0.ffn_up.0.weight", "not part of"});
}

TEST(ExpertsFileTest, ImpossibleCountsAreNamed) {
  TinyFile none = experts_file();
  none.set("llama.expert_count", uint32_t{0});
  expect_mentions(load_error(none), {"llama.expert_count is 0", "expected the number of experts",
                                     "blk.0.ffn_gate_inp.weight"});
  TinyFile unsaid = experts_file();
  unsaid.metadata.erase("llama.expert_count");
  expect_mentions(load_error(unsaid), {"llama.expert_count is missing"});
  TinyFile many = experts_file();
  many.set("llama.expert_count", uint32_t{5000});
  expect_mentions(load_error(many), {"llama.expert_count", "5000", "1024"});
  for (const uint32_t used : {0u, 5u}) {
    TinyFile file = experts_file();
    file.set("llama.expert_used_count", used);
    const std::string found = "llama.expert_used_count is " + std::to_string(used);
    expect_mentions(load_error(file), {found.c_str(), "expected 1 to 4", "llama.expert_count"});
  }
  TinyFile used = experts_file();
  used.metadata.erase("llama.expert_used_count");
  expect_mentions(load_error(used), {"llama.expert_used_count"});
}

TEST(ExpertsFileTest, OtherKindsOfExpertsAreNamed) {
  TinyFile gating = experts_file();
  gating.set("llama.expert_gating_func", uint32_t{4});
  expect_mentions(load_error(gating), {"llama.expert_gating_func is 4", "2 (sigmoid)"});
  TinyFile scale = experts_file();
  scale.set("llama.expert_weights_scale", -1.0f);
  expect_mentions(load_error(scale), {"llama.expert_weights_scale", "-1"});
  TinyFile groups = experts_file();
  groups.set("llama.expert_group_count", uint32_t{3});
  expect_mentions(load_error(groups), {"llama.expert_group_count = 3", "llama.expert_count = 4"});
  TinyFile few = experts_file();  // two groups of two, of which one has to have three
  few.set("llama.expert_group_count", uint32_t{2});
  few.set("llama.expert_used_count", uint32_t{3});
  expect_mentions(load_error(few), {"llama.expert_group_used_count = 1", "expert_used_count = 3"});
  TinyFile shared = experts_file();
  shared.set("llama.expert_shared_count", uint32_t{1});
  expect_mentions(load_error(shared), {"llama.expert_shared_count = 1", "every token"});
  TinyFile dense = of_architecture("internlm2", TinyFile());
  dense.set("internlm2.expert_count", uint32_t{8});
  expect_mentions(load_error(dense), {"internlm2.expert_count = 8", "mixtures of experts"});
}

/// Two layers, of which the second has experts of width 16.
TinyFile half_dense_file() {
  const TinyFile dense, experts = experts_file();
  TinyFile file;
  file.metadata = experts.metadata;
  file.set("llama.block_count", uint32_t{2});
  file.set("llama.leading_dense_block_count", uint32_t{1});
  file.set("llama.expert_feed_forward_length", uint32_t{16});
  for (const auto& [name, shape] : experts.tensors) {
    if (!name.starts_with("blk.0.")) continue;
    std::vector<int64_t>& second = file.tensors["blk.1." + name.substr(6)] = shape;
    if (name.find("_exps") != std::string::npos) {
      std::replace(second.begin(), second.end(), int64_t{48}, int64_t{16});
    }
  }
  return file;
}

TEST(ExpertsFileTest, TheSparseMixerHasRulesOfItsOwn) {
  const auto refused = [](const char* key, const auto& value,
                          std::initializer_list<const char*> words) {
    TinyFile file = of_architecture("phimoe", experts_file());
    file.set(key, value);
    expect_mentions(load_error(file), words);
  };
  refused("phimoe.expert_used_count", uint32_t{3},
          {"phimoe.expert_used_count is 3, expected 2", "sparse mixer"});
  refused("phimoe.expert_gating_func", uint32_t{2}, {"phimoe.expert_gating_func is 2, expected 1"});
  refused("phimoe.expert_group_count", uint32_t{2}, {"phimoe.expert_group_count is 2, expected 1"});
  refused("phimoe.expert_weights_norm", true, {"phimoe.expert_weights_norm is true"});
  refused("snapkv.router_jitter_noise", 0.5f, {"snapkv.router_jitter_noise is 0.5", "less than"});
  refused("snapkv.router_jitter_noise", -0.1f, {"snapkv.router_jitter_noise is -0.1"});
}

TEST(ExpertsFileTest, AdjugatesHaveSizesOfTheirOwn) {
  const auto file = [] {
    TinyFile grove = of_architecture("grovemoe", experts_file());
    grove.set("grovemoe.experts_per_group", uint32_t{2});
    grove.set("grovemoe.expert_chunk_feed_forward_length", uint32_t{16});
    grove.set("grovemoe.expert_group_scale", 0.05f);
    grove.tensors.insert({{"output.weight", {259, 32}},
                          {"blk.0.attn_q_norm.weight", {8}},
                          {"blk.0.attn_k_norm.weight", {8}},
                          {"blk.0.ffn_gate_chexps.weight", {2, 16, 32}},
                          {"blk.0.ffn_up_chexps.weight", {2, 16, 32}},
                          {"blk.0.ffn_down_chexps.weight", {2, 32, 16}}});
    return grove;
  };
  const TempDir folder;
  Session session(Model::load({.path = file().write(folder)}), {.n_ctx = 40});
  session.prefill(generated_ids(20, 259, 3));
  session.decode(7);
  TinyFile three = file();
  three.set("grovemoe.experts_per_group", uint32_t{3});
  expect_mentions(load_error(three),
                  {"grovemoe.experts_per_group = 3", "grovemoe.expert_count = 4"});
  for (const char* key :
       {"experts_per_group", "expert_chunk_feed_forward_length", "expert_group_scale"}) {
    TinyFile less = file();
    less.metadata.erase(std::string("grovemoe.") + key);
    expect_mentions(load_error(less), {key});
  }
  TinyFile missing = file();
  missing.tensors.erase("blk.0.ffn_up_chexps.weight");
  expect_mentions(load_error(missing), {"blk.0.ffn_up_chexps.weight", "missing"});
}

/// What a random model's experts get of a router whose logits are capped.
TEST(ExpertsFileTest, TheRoutersLogitsMayHaveACap) {
  FamilyModel grok = *std::find_if(family_models().begin(), family_models().end(),
                                   [](const FamilyModel& m) { return m.name == "grok-1"; });
  const TempDir folder;
  const std::string path = folder / "m.gguf";
  const auto logits = [&](std::vector<RandomKey> keys) {
    grok.shape.family.keys = std::move(keys);
    write_random_model(path, grok.shape, grok.options);
    Session session(Model::load({.path = path, .compute = Compute::f32}), {.n_ctx = 40});
    session.prefill(generated_ids(20, kFamilyVocab, 3));
    return std::vector<float>(session.logits().begin(), session.logits().end());
  };
  const auto difference = [](const std::vector<float>& a, const std::vector<float>& b) {
    float most = 0.0f;
    for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
    return most;
  };
  const std::vector<float> without = logits({});
  EXPECT_LT(difference(logits({{"router_logit_softcapping", 1e5}}), without), 1e-4f);
  EXPECT_GT(difference(logits({{"router_logit_softcapping", 0.5}}), without), 1e-2f);
  const auto spec = describe_model(path).info.spec;
  EXPECT_EQ(spec->config.router_softcap, 0.5f);
}

TEST(ExpertsFileTest, WindowsBesidePicturesAreNamed) {
  TinyFile ocr = of_architecture("deepseek2-ocr", experts_file());
  ocr.set("deepseek2-ocr.attention.sliding_window", uint32_t{128});
  expect_mentions(load_error(ocr), {"deepseek2-ocr.attention.sliding_window = 128", "picture"});
}

TEST(ExpertsFileTest, GroupsAreChosenByOneScoreOrTwo) {
  TinyFile file = experts_file();
  file.set("snapkv.expert_group_best", uint32_t{3});
  expect_mentions(load_error(file), {"snapkv.expert_group_best is 3", "1 or 2"});
}

TEST(ExpertsFileTest, TheFirstLayersMayHaveNone) {
  const TempDir folder;
  const ModelInfo info = describe_model(half_dense_file().write(folder)).info;
  EXPECT_EQ(info.n_ff, 16);
  EXPECT_EQ(info.n_params - info.n_active_params, 2 * 3 * 16 * 32);
  EXPECT_NE(info.decoder->layer_kind(0), info.decoder->layer_kind(1));
  EXPECT_EQ(info.spec->layers[0].ffn.front().kind, FeedForwardKind::dense);
  EXPECT_EQ(info.spec->layers[0].ffn.front().n_ff, 48);
  EXPECT_EQ(info.spec->layers[1].ffn.front().kind, FeedForwardKind::experts);
  Session session(Model::load({.path = info.path}), {.n_ctx = 40});
  session.prefill(generated_ids(20, 259, 3));
  session.decode(7);

  TinyFile all = half_dense_file();
  all.set("llama.leading_dense_block_count", uint32_t{2});
  expect_mentions(load_error(all), {"llama.leading_dense_block_count is 2", "less than 2"});
  TinyFile none = half_dense_file();
  none.metadata.erase("llama.leading_dense_block_count");
  expect_mentions(load_error(none), {"blk.0.ffn_gate_inp.weight", "missing"});
  TinyFile text = half_dense_file();
  text.set("llama.leading_dense_block_count", std::string("one"));
  expect_mentions(load_error(text), {"llama.leading_dense_block_count"});
  TinyFile width = half_dense_file();  // the width of dense layers is another
  width.metadata.erase("llama.expert_feed_forward_length");
  expect_mentions(load_error(width), {"blk.1.ffn_gate_exps.weight", "[4, 16, 32]", "[4, 48, 32]"});
  TinyFile neither = half_dense_file();
  neither.metadata.erase("llama.feed_forward_length");
  expect_mentions(load_error(neither), {"llama.feed_forward_length"});
}

TEST(ExpertsFileTest, OnlyTheLastOfSeveralLayersMayHaveSome) {
  TinyFile file = half_dense_file();
  file.metadata.erase("llama.leading_dense_block_count");
  file.set("llama.interleave_moe_layer_step", uint32_t{2});
  const TempDir folder;
  const ModelInfo info = describe_model(file.write(folder)).info;
  EXPECT_EQ(info.spec->layers[0].ffn.front().kind, FeedForwardKind::dense);
  EXPECT_EQ(info.spec->layers[1].ffn.front().kind, FeedForwardKind::experts);
  file.set("llama.interleave_moe_layer_step", uint32_t{0});
  expect_mentions(load_error(file), {"llama.interleave_moe_layer_step", "0"});
}

TEST(ExpertsFileTest, ANormOfTheSumNeedsASharedOne) {
  TinyFile file = of_architecture("afmoe", experts_file());
  file.set("afmoe.attention.sliding_window", uint32_t{16});
  expect_mentions(load_error(file), {"afmoe.expert_shared_count is 0 or missing", "shared"});
}

TEST(ExpertsFileTest, ASharedOneIsAsWideAsTheHeaderSays) {
  const auto width = [](const char* model) {
    const FeedForwardPart part = describe_model(model_path(model)).info.spec->layers[1].ffn[1];
    EXPECT_EQ(part.kind, FeedForwardKind::shared_expert);
    return part.n_ff;
  };
  EXPECT_EQ(width("glm4moe"), 2 * 96);  // as two experts
  EXPECT_EQ(width("ernie4_5-moe"), 192);
}

/// A layer with attention and a dense network, then one with a convolution and experts.
TinyFile lfm2moe_file() {
  TinyFile file = of_architecture("lfm2moe", half_dense_file());
  file.set("lfm2moe.attention.head_count_kv", std::vector<int32_t>{2, 0});
  file.set("lfm2moe.shortconv.l_cache", uint32_t{3});
  for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
    file.tensors.erase("blk.1." + std::string(name) + ".weight");
  }
  file.tensors.erase("output_norm.weight");
  file.tensors.insert({{"token_embd_norm.weight", {32}},
                       {"blk.0.attn_q_norm.weight", {8}},
                       {"blk.0.attn_k_norm.weight", {8}},
                       {"blk.1.exp_probs_b.bias", {4}},
                       {"blk.1.shortconv.in_proj.weight", {96, 32}},
                       {"blk.1.shortconv.conv.weight", {32, 3}},
                       {"blk.1.shortconv.out_proj.weight", {32, 32}}});
  return file;
}

TEST(ExpertsFileTest, WhatAnLfm2WithExpertsNeedsIsNamed) {
  const TempDir folder;
  Model::load({.path = lfm2moe_file().write(folder)});
  for (const auto& [name, shape] : lfm2moe_file().tensors) {
    TinyFile missing = lfm2moe_file(), wrong = missing;
    missing.tensors.erase(name);
    expect_mentions(load_error(missing), {name.c_str(), "missing"});
    wrong.tensors[name].back() += 32;
    expect_mentions(load_error(wrong), {name.c_str(), "shape"});
  }
  for (const char* key : {"lfm2moe.expert_count", "lfm2moe.expert_used_count",
                          "lfm2moe.shortconv.l_cache", "lfm2moe.feed_forward_length"}) {
    TinyFile missing = lfm2moe_file(), wrong = missing;
    missing.metadata.erase(key);
    expect_mentions(load_error(missing), {key});
    wrong.set(key, std::string("some"));
    expect_mentions(load_error(wrong), {key});
  }
  TinyFile all_experts = lfm2moe_file();
  all_experts.metadata.erase("lfm2moe.leading_dense_block_count");
  expect_mentions(load_error(all_experts), {"blk.0.ffn_gate_inp.weight", "missing"});
}

/// Four experts and one that every token passes, 80 wide.
TinyFile shared_expert_file() {
  TinyFile file = of_architecture("qwen2moe", experts_file());
  file.set("qwen2moe.expert_shared_feed_forward_length", uint32_t{80});
  file.tensors.insert({{"output.weight", {259, 32}},
                       {"blk.0.attn_q.bias", {32}},
                       {"blk.0.attn_k.bias", {16}},
                       {"blk.0.attn_v.bias", {16}},
                       {"blk.0.ffn_gate_shexp.weight", {80, 32}},
                       {"blk.0.ffn_up_shexp.weight", {80, 32}},
                       {"blk.0.ffn_down_shexp.weight", {32, 80}},
                       {"blk.0.ffn_gate_inp_shexp.weight", {32}}});
  return file;
}

TEST(ExpertsFileTest, ASharedExpertIsPassedByEveryToken) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{32}, {1, 32}}) {
    TinyFile file = shared_expert_file();
    file.tensors["blk.0.ffn_gate_inp_shexp.weight"] = shape;
    const TempDir folder;
    const auto model = Model::load({.path = file.write(folder)});
    EXPECT_EQ(model->info().n_ff, 48);
    EXPECT_EQ(model->info().n_params - model->info().n_active_params, 2 * 3 * 48 * 32);
  }
  TinyFile as_dense = shared_expert_file();  // 48 wide
  as_dense.metadata.erase("qwen2moe.expert_shared_feed_forward_length");
  expect_mentions(load_error(as_dense), {"blk.0.ffn_gate_shexp.weight", "[80, 32]", "[48, 32]"});
  TinyFile text = shared_expert_file();
  text.set("qwen2moe.expert_shared_feed_forward_length", std::string("80"));
  expect_mentions(load_error(text), {"qwen2moe.expert_shared_feed_forward_length"});
  for (const auto& [name, shape] : shared_expert_file().tensors) {
    TinyFile missing = shared_expert_file(), wrong = missing;
    missing.tensors.erase(name);
    expect_mentions(load_error(missing), {name.c_str(), "missing"});
    wrong.tensors[name].back() += 32;
    expect_mentions(load_error(wrong), {name.c_str(), "shape"});
  }
  TinyFile other = experts_file();  // whose family has none
  other.tensors["blk.0.ffn_up_shexp.weight"] = {80, 32};
  expect_mentions(load_error(other), {"blk.0.ffn_up_shexp.weight", "not part of"});
}

std::vector<float> logits_of(const RandomModelShape& shape, const RandomModelOptions& options) {
  const TempDir folder;
  const std::string path = folder / "model.gguf";
  write_random_model(path, shape, options);
  Session session(Model::load({.path = path}), {.n_ctx = 64});
  session.prefill(generated_ids(20, kFamilyVocab, 3));
  return {session.logits().begin(), session.logits().end()};
}

const FamilyModel& model_named(const std::string& name) {
  return *std::find_if(family_models().begin(), family_models().end(),
                       [&](const FamilyModel& m) { return m.name == name; });
}

/// What a header says of experts changes what is computed, the scale of residuals included.
TEST(ExpertsFileTest, EveryKeyOfTheChoiceMatters) {
  const FamilyModel& mixtral = model_named("mixtral");
  const std::vector<RandomKey> keys[] = {
      {},
      {{"expert_gating_func", int64_t{2}}},
      {{"expert_weights_scale", 2.5}},
      {{"expert_group_count", int64_t{4}}, {"expert_group_used_count", int64_t{1}}},
      {{"residual_scale", 0.5}}};
  std::vector<std::vector<float>> all;
  for (const std::vector<RandomKey>& some : keys) {
    RandomModelShape shape = mixtral.shape;
    shape.family.keys = some;
    all.push_back(logits_of(shape, mixtral.options));
    for (size_t i = 0; i + 1 < all.size(); ++i) EXPECT_NE(all[i], all.back()) << some[0].name;
  }
}

/// Experts that a token has not chosen add nothing: with all of them the result is another one.
TEST(ExpertsFileTest, TheNumberOfChosenExpertsMatters) {
  const FamilyModel& mixtral = model_named("mixtral");
  std::vector<std::vector<float>> logits;
  for (const int64_t n_used : {1, 2, 8}) {
    RandomModelShape shape = mixtral.shape;
    shape.family.n_expert_used = n_used;
    logits.push_back(logits_of(shape, mixtral.options));
  }
  EXPECT_NE(logits[0], logits[1]);
  EXPECT_NE(logits[1], logits[2]);
}

}  // namespace
}  // namespace snapkv::test
