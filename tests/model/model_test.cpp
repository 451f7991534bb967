// SPDX-License-Identifier: MIT
// Loading of architecture `llama`: what is missing, wrong or not supported is named.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>

#include "snapkv/engine.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace {

/// A valid model of one layer, to be changed before it is written.
struct TinyFile {
  std::map<std::string, std::function<void(GgufWriter&, const std::string&)>> metadata;
  std::map<std::string, std::vector<int64_t>> tensors;

  template <typename T>
  void set(const std::string& key, T value) {
    metadata[key] = [value](GgufWriter& w, const std::string& k) { w.add(k, value); };
  }

  TinyFile() {
    set("general.architecture", std::string("llama"));
    set("llama.block_count", uint32_t{1});
    set("llama.context_length", uint32_t{64});
    set("llama.embedding_length", uint32_t{32});
    set("llama.feed_forward_length", uint32_t{48});
    set("llama.attention.head_count", uint32_t{4});
    set("llama.attention.head_count_kv", uint32_t{2});
    set("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    set("tokenizer.ggml.model", std::string("llama"));
    std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
    std::vector<int32_t> types = {2, 3, 3};
    std::vector<float> scores = {0, 0, 0};
    for (int i = 0; i < 256; ++i) {
      char byte[8];
      std::snprintf(byte, sizeof(byte), "<0x%02X>", i);
      tokens.emplace_back(byte);
      types.push_back(6);
      scores.push_back(0);
    }
    set("tokenizer.ggml.tokens", tokens);
    set("tokenizer.ggml.token_type", types);
    set("tokenizer.ggml.scores", scores);
    set("tokenizer.ggml.bos_token_id", uint32_t{1});
    set("tokenizer.ggml.eos_token_id", uint32_t{2});
    set("tokenizer.ggml.unknown_token_id", uint32_t{0});
    tensors = {{"token_embd.weight", {259, 32}},       {"output_norm.weight", {32}},
               {"blk.0.attn_norm.weight", {32}},       {"blk.0.attn_q.weight", {32, 32}},
               {"blk.0.attn_k.weight", {16, 32}},      {"blk.0.attn_v.weight", {16, 32}},
               {"blk.0.attn_output.weight", {32, 32}}, {"blk.0.ffn_norm.weight", {32}},
               {"blk.0.ffn_gate.weight", {48, 32}},    {"blk.0.ffn_up.weight", {48, 32}},
               {"blk.0.ffn_down.weight", {32, 48}}};
  }

  std::string write(const TempDir& folder) const {
    GgufWriter writer;
    for (const auto& [key, add] : metadata) add(writer, key);
    for (const auto& [name, shape] : tensors) {
      size_t n = 1;
      for (int64_t d : shape) n *= static_cast<size_t>(d);
      writer.add_f32(name, shape, std::vector<float>(n, 0.01f));
    }
    const std::string path = folder / "model.gguf";
    writer.write(path);
    return path;
  }
};

/// The message of the kBadModel error that loading gives.
std::string load_error(const TinyFile& file) {
  const TempDir folder;
  const std::string path = file.write(folder);
  try {
    Model::load({.path = path});
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kBadModel) << e.what();
    EXPECT_NE(std::string(e.what()).find(path), std::string::npos) << "no file name: " << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

void expect_mentions(const std::string& message, std::initializer_list<const char*> words) {
  for (const char* word : words) {
    EXPECT_NE(message.find(word), std::string::npos) << "\"" << word << "\" not in: " << message;
  }
}

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
  TinyFile experts;
  experts.set("llama.expert_count", uint32_t{8});
  expect_mentions(load_error(experts), {"llama.expert_count", "8"});
  TinyFile yarn;
  yarn.set("llama.rope.scaling.type", std::string("yarn"));
  expect_mentions(load_error(yarn), {"llama.rope.scaling.type", "yarn"});
  TinyFile head;
  head.set("llama.attention.key_length", uint32_t{12});
  head.set("llama.attention.value_length", uint32_t{12});
  expect_mentions(load_error(head), {"head size", "12"});
  TinyFile value;
  value.set("llama.attention.value_length", uint32_t{16});
  expect_mentions(load_error(value), {"llama.attention.value_length", "16", "8"});
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
