// SPDX-License-Identifier: MIT
// Loading of models: errors name what is missing, wrong or not supported.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "model/family.h"
#include "model/model_spec.h"
#include "snapkv/engine.h"
#include "tests/support/expect_error.h"
#include "tests/support/family_models.h"
#include "tests/support/test_models.h"
#include "tests/support/tiny_file.h"

namespace snapkv::test {
namespace {

TEST(ModelTest, AValidFileLoads) {
  const TempDir folder;
  const auto model = Model::load({.path = TinyFile().write(folder)});
  EXPECT_EQ(model->info().n_layer, 1);
  EXPECT_EQ(model->info().n_head, 4);
  EXPECT_EQ(model->info().n_head_kv, 2);
  EXPECT_EQ(model->info().head_dim, 8);
  EXPECT_EQ(model->info().n_vocab, 259);
  EXPECT_EQ(model->info().file_type, "f32");
  Session session(model, {.n_ctx = 40});
  session.prefill(model->tokenize("a short text"));
  EXPECT_EQ(session.logits().size(), 259u);
}

TEST(ModelTest, TheFileNamesItsMixtureOfTypes) {
  const TempDir folder;
  const auto quantization = [&](const TinyFile& file) {
    return describe_model(file.write(folder)).info.quantization;
  };
  TinyFile file;
  EXPECT_EQ(quantization(file), "F32") << "of the weights";
  file.set("general.file_type", uint32_t{15});
  EXPECT_EQ(quantization(file), "Q4_K_M");
  file.set("general.file_type", uint32_t{1000});
  EXPECT_EQ(quantization(file), "F32");
  file.set("general.file_type", std::string("x"));
  EXPECT_EQ(quantization(file), "F32");
}

TEST(ModelTest, NumbersThatF32CannotHoldAreNamed) {
  for (const char* key : {"llama.attention.layer_norm_rms_epsilon", "llama.rope.freq_base",
                          "llama.rope.scale_linear"}) {
    for (const double value : {1e300, 1e-60, -1.0, 0.0, std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()}) {
      TinyFile file;
      file.set(key, value);
      expect_mentions(load_error(file), {key, "f32"});
    }
  }
  for (const double value : {1e300, 1e-60, -1.0}) {  // 0 means that scores are not capped
    TinyFile file;
    file.set("llama.attn_logit_softcapping", value);
    expect_mentions(load_error(file), {"llama.attn_logit_softcapping", "f32"});
  }
  for (const char* key : {"llama.attn_logit_softcapping", "llama.final_logit_softcapping"}) {
    for (const double value : {1e-31, 2e30}) {
      TinyFile file;
      file.set(key, value);
      expect_mentions(load_error(file), {key, "from 1e-30 to 1e30", "it is"});
    }
  }
}

TEST(ModelTest, EveryMissingTensorIsNamed) {
  for (const auto& [name, shape] : TinyFile().tensors) {
    TinyFile file;
    file.tensors.erase(name);
    expect_mentions(load_error(file), {name.c_str(), "missing"});
  }
}

TEST(ModelTest, EveryWrongShapeIsNamed) {
  for (const auto& [name, shape] : TinyFile().tensors) {
    TinyFile file;
    file.tensors[name].back() += 32;
    expect_mentions(load_error(file), {name.c_str(), "shape"});
  }
}

TEST(ModelTest, AnUnknownTensorIsAnError) {
  TinyFile file;
  file.tensors["blk.0.attn_q_norm.weight"] = {8};
  expect_mentions(load_error(file), {"blk.0.attn_q_norm.weight", "llama"});
}

TEST(ModelTest, MissingAndWrongMetadataIsNamed) {
  for (const char* key :
       {"general.architecture", "llama.block_count", "llama.embedding_length",
        "llama.feed_forward_length", "llama.attention.head_count", "llama.context_length",
        "tokenizer.ggml.tokens", "tokenizer.ggml.model"}) {
    TinyFile file;
    file.metadata.erase(key);
    expect_mentions(load_error(file), {key});
    TinyFile wrong;
    wrong.set(key, 1.5f);
    expect_mentions(load_error(wrong), {key});
  }
  TinyFile zero;
  zero.set("llama.block_count", uint32_t{0});
  expect_mentions(load_error(zero), {"llama.block_count", "0"});
  TinyFile heads;
  heads.set("llama.attention.head_count_kv", uint32_t{3});
  expect_mentions(load_error(heads), {"llama.attention.head_count_kv", "3", "4"});
  TinyFile rot;
  rot.set("llama.rope.dimension_count", uint32_t{3});
  expect_mentions(load_error(rot), {"llama.rope.dimension_count", "3"});
}

TEST(ModelTest, WhatIsNotSupportedIsNamed) {
  TinyFile architecture;
  architecture.set("general.architecture", std::string("gemma9"));
  expect_mentions(load_error(architecture), {"gemma9", "llama"});
  TinyFile scaling;
  scaling.set("llama.rope.scaling.type", std::string("dynamic"));
  expect_mentions(load_error(scaling), {"llama.rope.scaling.type", "dynamic", "yarn"});
  TinyFile longrope;
  longrope.set("llama.rope.scaling.type", std::string("longrope"));
  expect_mentions(load_error(longrope), {"longrope", "rope_factors_long.weight"});
  TinyFile head;
  head.set("llama.attention.key_length", uint32_t{12});
  head.set("llama.attention.value_length", uint32_t{12});
  expect_mentions(load_error(head), {"head size", "12"});
  TinyFile value;
  value.set("llama.attention.value_length", uint32_t{16});
  expect_mentions(load_error(value), {"llama.attention.value_length", "16", "8"});
}

// Keys of other kinds of models explain more than the name of an architecture.
TEST(ModelTest, KeysThatMeanAnotherComputationAreNamed) {
  const struct {
    const char* architecture;
    const char* key;
    uint32_t value;
    const char* meaning;
  } cases[] = {{"llama", "expert_shared_count", 8, "experts that every token passes"},
               {"hy_v4", "attention.kv_lora_rank", 512, "multi-head latent attention"},
               {"rwkv6", "ssm.state_size", 16, "recurrent"},
               {"rwkv8", "wkv.head_size", 64, "recurrent"},
               {"gemma3", "attention.shared_kv_layers", 15, "share keys and values"}};
  for (const auto& c : cases) {
    TinyFile file;
    file.set("general.architecture", std::string(c.architecture));
    const std::string key = std::string(c.architecture) + "." + c.key;
    file.set(key, c.value);
    expect_mentions(load_error(file), {key.c_str(), std::to_string(c.value).c_str(), c.meaning});
    file.set(key, uint32_t{0});  // as good as absent
    if (c.architecture == std::string("llama")) {
      const TempDir folder;
      Model::load({.path = file.write(folder)});
    }
  }
  TinyFile causal;
  causal.set("llama.attention.causal", false);
  expect_mentions(load_error(causal), {"llama.attention.causal", "false"});
}

TEST(ModelTest, ScalesAndCapsMustBeNumbers) {
  for (const char* key : {"llama.embedding_scale", "llama.residual_scale", "llama.attention.scale",
                          "llama.attn_logit_softcapping", "llama.final_logit_softcapping",
                          "llama.rope.freq_base", "llama.rope.scaling.attn_factor"}) {
    for (const float value : {-1.0f, std::numeric_limits<float>::quiet_NaN()}) {
      TinyFile file;
      file.set(key, value);
      expect_mentions(load_error(file), {key});
    }
  }
  TinyFile logits;  // the family decides which of two meanings the key has
  logits.set("llama.logit_scale", 2.0f);
  expect_mentions(load_error(logits), {"llama.logit_scale"});
}

template <typename T>
void expect_refused(const char* architecture, const std::string& key, T value,
                    std::initializer_list<const char*> words) {
  TinyFile file = file_of(architecture);
  file.set(architecture + ("." + key), value);
  SCOPED_TRACE(key);
  expect_mentions(load_error(file), words);
}

TEST(ModelTest, KeysOfSomeFamiliesAreChecked) {
  expect_refused("bitnet", "hidden_activation", std::string("gelu"),
                 {"bitnet.hidden_activation", "gelu", "relu2"});
  expect_refused("gpt2", "hidden_activation", std::string("silu"),
                 {"gpt2.hidden_activation", "silu", "gelu_pytorch_tanh"});
  expect_refused("qwen", "feed_forward_length", uint32_t{97}, {"qwen.feed_forward_length", "97"});
  expect_refused("hunyuan_vl", "rope.scaling.alpha", -1.0f, {"hunyuan_vl.rope.scaling.alpha"});
  expect_refused("olmo", "attention.clamp_kqv", -2.0f, {"olmo.attention.clamp_kqv", "-2"});
  expect_refused("llama", "attention.clamp_kqv", 2.0f, {"llama.attention.clamp_kqv", "clamped"});
  TinyFile granite = file_of("granite_swa");
  granite.set("granite_swa.logit_scale", 2.0f);
  granite.set("granite_swa.attention.rope_pattern", uint32_t{1});
  expect_mentions(load_error(granite), {"granite_swa.attention.rope_pattern", "array of 1 bools"});
}

// A layer has no attention without heads, and a matrix in its place without heads of keys.
TEST(ModelTest, LayersOfDeciAreAsTheirNumbersSay) {
  const auto refused = [](const char* key, std::vector<int32_t> value,
                          std::initializer_list<const char*> words) {
    expect_refused("deci", key, std::move(value), words);
  };
  refused("attention.head_count_kv", {0}, {"deci.attention.head_count_kv", "without attention"});
  refused("attention.head_count", {0}, {"deci.attention.head_count_kv", "without attention"});
  refused("feed_forward_length", {48, 48}, {"deci.feed_forward_length", "2 entries", "1 layers"});
  refused("feed_forward_length", {-1}, {"deci.feed_forward_length", "between 0"});
  refused("feed_forward_length", {0}, {"blk.0.ffn_", "deci"});  // tensors that the layer lacks
}

TEST(ModelTest, ScalesOfMatricesAreChecked) {
  TinyFile several;
  several.tensors["blk.0.ffn_up.scale"] = {2};
  expect_mentions(load_error(several), {"blk.0.ffn_up.scale", "[2]", "expected [1]"});
  TinyFile unused;
  unused.tensors["output.scale"] = {1};
  expect_mentions(load_error(unused), {"output.scale", "scales a matrix", "NVFP4"});
  TinyFile of_activations;
  of_activations.tensors["blk.0.attn_q.input_scale"] = {1};
  const TempDir folder;
  Model::load({.path = of_activations.write(folder)});
}

TEST(ModelTest, RotationsOfStepAreChecked) {
  const auto mixture = [](const std::string& name) {
    TinyFile file = file_of(name);
    file.set(name + ".expert_count", uint32_t{2});
    file.set(name + ".expert_used_count", uint32_t{1});
    return file;
  };
  TinyFile odd = mixture("step35");
  odd.set("step35.rope.dimension_count", uint32_t{6});
  expect_mentions(load_error(odd), {"step35.rope.dimension_count = 6", "multiple of 4"});
  TinyFile wide = mixture("laguna");
  wide.set("laguna.attention.sliding_window", uint32_t{16});
  wide.set("laguna.attention.sliding_window_pattern", uint32_t{0});  // all layers
  wide.set("laguna.rope.dimension_count_swa", uint32_t{16});
  expect_mentions(load_error(wide), {"laguna.rope.dimension_count_swa = 16", "head size, 8"});
}

TEST(ModelTest, NumbersOfActivationsAreChecked) {
  const auto file = [] {
    TinyFile tiny = file_of("apertus");
    tiny.tensors.erase("blk.0.ffn_gate.weight");
    tiny.tensors.insert({{"blk.0.attn_q_norm.weight", {8}}, {"blk.0.attn_k_norm.weight", {8}}});
    for (const char* name : {"alpha_p", "alpha_n", "beta", "eps"}) {
      tiny.set("xielu." + std::string(name), std::vector<float>{0.5f});
    }
    return tiny;
  };
  const TempDir folder;
  Model::load({.path = file().write(folder)});
  TinyFile one = file();  // for all layers
  one.set("xielu.beta", 0.25f);
  const ModelInfo info = describe_model(one.write(folder)).info;
  EXPECT_EQ(info.spec->layers[0].ffn.front().xielu.beta, 0.25f);
  TinyFile missing = file();
  missing.metadata.erase("xielu.alpha_n");
  expect_mentions(load_error(missing), {"xielu.alpha_n"});
  TinyFile two = file();
  two.set("xielu.alpha_p", std::vector<float>{0.5f, 0.5f});
  expect_mentions(load_error(two), {"xielu.alpha_p has 2 entries", "1 layers"});
  TinyFile nan = file();
  nan.set("xielu.eps", std::vector<float>{std::numeric_limits<float>::quiet_NaN()});
  expect_mentions(load_error(nan), {"xielu.eps", "finite", "nan"});
}

TEST(ModelTest, ScalesThatAFamilyNeedsMustBeThere) {
  for (const char* missing : {"embedding_scale", "residual_scale", "logit_scale"}) {
    TinyFile file = file_of("minicpm");
    for (const char* key : {"embedding_scale", "residual_scale", "logit_scale"}) {
      if (std::string(key) != missing) file.set("minicpm." + std::string(key), 2.0f);
    }
    expect_mentions(load_error(file), {missing, "minicpm."});
  }
}

TEST(ModelTest, DamagedFilesOfChameleonAndTalkieAreRefused) {
  TinyFile small = file_of("chameleon");
  expect_mentions(load_error(small), {"token_embd.weight has 259 rows", "at least 8196"});
  TinyFile text = file_of("chameleon");
  text.set("chameleon.swin_norm", std::string("yes"));
  expect_mentions(load_error(text), {"chameleon.swin_norm"});
  TinyFile talkie = file_of("talkie");
  expect_mentions(load_error(talkie), {"talkie.logit_scale"});
}

/// Whether a family's file may lack a tensor.
bool may_be_missing(const Family& f, const std::string& name) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  if ((has("rope_freqs") && f.name != "gemma4") || has(".nextn.")) return true;
  if (name == "output.weight") return f.shared_output != SharedOutput::never;
  if (has("ffn_norm.weight")) return false;  // the list has models without it
  if (has("_norm.bias") && f.qk_layer_norm) return true;
  if (has("indexer.")) return false;
  if (has("attn_q_norm") || has("attn_k_norm")) return f.qk_norm_weights == Presence::optional;
  if (has("attn_v.weight")) return f.values_of_keys;  // made by the matrix of the keys
  if (has("layer_output_scale")) return f.layer_scales;
  if (name.ends_with(".scale") && !has("ffn_gate_inp")) return true;          // of a matrix
  if (has("post_attention_norm") && f.name == "nemotron_h_moe") return true;  // in a draft layer
  if (has("attn_gate")) return f.attention_gate == AttentionGate::heads_if_there;
  if (has("attn_sinks")) return f.layer_sinks == Presence::optional;
  if (has("exp_probs_b")) return f.choice_bias == Presence::optional;
  for (const char* part : {"blk.0.time_mix_v0", "blk.0.time_mix_v1", "blk.0.time_mix_v2"}) {
    if (has(part)) return true;  // nothing uses them in the first layer
  }
  if (!name.ends_with(".bias") || has("time_mix_ln")) return false;
  if (has("norm")) return f.norm_bias == Presence::optional;
  if (has("ssm_dt")) return false;
  if (name == "output.bias") return f.logits_bias == Presence::optional;
  if (has("attn_output")) return f.output_bias == Presence::optional;
  if (has("_exps.") || has("ffn_gate_inp")) return f.expert_bias == Presence::optional;
  if (has("attn_")) return f.qkv_bias == Presence::optional;
  return f.ffn_bias == Presence::optional;
}

/// The name in the message where a tensor is missing: what it is in files that have several tensors
/// in its place. Missing long factors are reported for the short ones.
std::string missed_instead(const RandomFamily& family, const std::string& name) {
  const bool joined = family.fused_qkv || family.kimi_delta.joined_qkv;
  if (joined && name.ends_with("attn_qkv.weight")) return "attn_q.";
  if (name.ends_with("ssm_ba.weight")) return "ssm_beta.";
  // a layer without a router is taken for one without experts
  const std::string& architecture = family.architecture;
  const bool counts_routers =
      architecture == "mimo2" || architecture == "step35" || architecture == "jamba";
  if (counts_routers && name.ends_with("ffn_gate_inp.weight")) return "ffn_gate.";
  // a layer without this matrix is taken for one without a network beside the experts
  if (architecture == "grok" && name.ends_with("ffn_up.weight")) return "ffn_";
  if (name.ends_with("layer_output_norm.weight")) return "post_ffw_norm.";
  if (name.ends_with("ffn_gate_up_exps.weight")) return "ffn_gate_exps.";
  // the first layer says whether there are gates, and each whether there are norms of heads
  if (name == "blk.0.time_mix_g1.weight") return "blk.0.time_mix_g2.";
  if (family.rwkv.in_qwen && name.ends_with("time_mix_ln.weight")) return "time_mix_ln.bias";
  if (name.ends_with("time_mix_lerp_w.weight")) return "time_mix_lerp_fused.";
  if (name == "rope_factors_long.weight") return "rope_factors";
  if (name == "blk.0.ffn_norm.weight") return "ffn_norm";
  if (name == "blk.0.attn_norm_2.weight") return "attn_norm_2.";  // other layers have it
  return name;
}

TEST(ModelTest, EveryMissingTensorOfEveryFamilyIsNamed) {
  const TempDir folder;
  for (const FamilyModel& m : family_models()) {
    const auto family = std::find_if(families().begin(), families().end(), [&](const Family& f) {
      return f.name == m.shape.family.architecture;
    });
    ASSERT_NE(family, families().end());
    const std::vector<TensorEntry> tensors = describe_model(model_path(m.name)).tensors;
    std::set<std::string> tried;  // names without the layer
    for (const TensorEntry& t : tensors) {
      const bool in_layer = t.name.starts_with("blk.");
      if (!tried.insert(in_layer ? t.name.substr(t.name.find('.', 4)) : t.name).second) continue;
      SCOPED_TRACE(m.name + " " + t.name);
      const std::string path = folder / "model.gguf";
      write_family_model(m.name, path, t.name);
      // where layers choose tokens together, nothing uses the indexers
      const bool unused = !m.shape.family.latent.index_layers.empty() &&
                          t.name.find("indexer.") != std::string::npos;
      if (unused || may_be_missing(*family, t.name)) {
        EXPECT_NO_THROW(Model::load({.path = path}));
      } else {
        const std::string missed = missed_instead(m.shape.family, t.name);
        expect_error(ErrorCode::kBadModel, {missed, path}, [&] { Model::load({.path = path}); });
      }
    }
  }
}

TEST(ModelTest, EveryFamilyHasAModel) {
  for (const Family& f : families()) {
    EXPECT_TRUE(
        std::any_of(family_models().begin(), family_models().end(),
                    [&](const FamilyModel& m) { return m.shape.family.architecture == f.name; }))
        << f.name;
  }
}

TEST(ModelTest, LayersAreDescribedFromTheHeader) {
  const ModelInfo gemma = describe_model(model_path("gemma3")).info;
  ASSERT_EQ(gemma.layers.size(), 7u);
  for (int il = 0; il < 7; ++il) {
    const bool full = il == 5;  // the last of every six
    EXPECT_EQ(gemma.layers[il].attention,
              full ? AttentionKind::full : AttentionKind::sliding_window);
    EXPECT_EQ(gemma.layers[il].window, full ? 0 : 16);
    EXPECT_EQ(gemma.layers[il].compressed, full);
  }
  EXPECT_EQ(gemma.n_compressed(), 1);
  EXPECT_EQ(gemma.full_rows(0, 100), 16);
  EXPECT_EQ(gemma.full_rows(5, 100), 100);
  const ModelInfo smollm = describe_model(model_path("smollm3")).info;
  EXPECT_TRUE(smollm.layers[2].rotated);
  EXPECT_FALSE(smollm.layers[3].rotated);
}

TEST(ModelTest, VocabularyAndEmbeddingMustAgree) {
  TinyFile file;
  file.tensors["token_embd.weight"] = {300, 32};
  expect_mentions(load_error(file), {"tokenizer.ggml.tokens", "259", "300"});
}

TEST(ModelTest, DescribesAFileWithoutLoadingIt) {
  const ModelDescription d = describe_model(model_path("needle"));
  EXPECT_EQ(d.info.name, "needle");
  EXPECT_EQ(d.info.n_layer, 6);
  EXPECT_EQ(d.info.n_head_kv, 3);
  EXPECT_EQ(d.info.file_type, "f16");
  EXPECT_EQ(d.tensors.size(), 6u * 9 + 2);
  size_t bytes = 0;
  for (const TensorEntry& t : d.tensors) bytes += t.bytes;
  EXPECT_EQ(bytes, d.info.weight_bytes);
  bool found = false;
  for (const MetadataEntry& m : d.metadata) {
    if (m.key != "tokenizer.ggml.tokens") continue;
    found = true;
    EXPECT_EQ(m.type, "array<string>[1024]");
    EXPECT_LT(m.value.size(), 200u);
  }
  EXPECT_TRUE(found);
}

TEST(ModelTest, LoadingReportsProgressAndCanBeCancelled) {
  double last = -1;
  ModelOptions options;
  options.path = model_path("needle");
  options.progress = [&](const Progress& p) {
    EXPECT_EQ(p.phase, Phase::load);
    EXPECT_GE(p.fraction, last);
    last = p.fraction;
    return true;
  };
  Model::load(options);
  EXPECT_EQ(last, 1.0);
  options.progress = [](const Progress&) { return false; };
  try {
    Model::load(options);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kCancelled);
  }
}

}  // namespace
}  // namespace snapkv::test
