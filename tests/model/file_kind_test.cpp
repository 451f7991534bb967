// SPDX-License-Identifier: MIT
// GGUF files that are no model which writes text say what they are, when they are loaded and when
// they are described.
#include <gtest/gtest.h>

#include <string>

#include "snapkv/engine.h"
#include "tests/support/test_models.h"
#include "tests/support/tiny_file.h"

namespace snapkv::test {
namespace {

/// Loading and describing give the same, single reason, which has these words.
void expect_kind(const TinyFile& file, std::initializer_list<const char*> words) {
  const std::string message = load_error(file);
  expect_mentions(message, {"not a model that writes text"});
  expect_mentions(message, words);
  const TempDir folder;
  const ModelDescription d = describe_model(file.write(folder));
  ASSERT_EQ(d.problems.size(), 1u);
  expect_mentions(d.problems.front(), words);
  EXPECT_EQ(d.info.decoder, nullptr);
}

TinyFile with(const char* key, const std::string& value) {
  TinyFile file;
  file.set(key, value);
  return file;
}

TEST(FileKindTest, AdaptersNameTheirModel) {
  TinyFile file = with("general.type", "adapter");
  expect_kind(file, {"an adapter", "general.type", "merge it into its model first"});
  file.set("adapter.type", std::string("lora"));
  file.set("general.base_model.0.name", std::string("Llama 3 8B"));
  file.tensors = {{"blk.0.attn_q.weight.lora_a", {4, 32}}, {"blk.0.attn_q.weight.lora_b", {32, 4}}};
  expect_kind(file, {"a LoRA adapter", "adapter.type is \"lora\"", "merge it into Llama 3 8B",
                     "llama-export-lora"});
}

TEST(FileKindTest, ProjectorsOfPictures) {
  TinyFile file = with("general.architecture", "clip");
  file.tensors = {{"v.patch_embd.weight", {4, 3, 2, 2}}};
  expect_kind(file, {"a projector of pictures", "general.architecture is \"clip\""});
  file.set("general.type", std::string("mmproj"));
  expect_kind(file, {"a projector of pictures", "general.type is \"mmproj\""});
}

TEST(FileKindTest, EmbeddingModelsAndRerankers) {
  TinyFile bert = with("general.architecture", "bert");
  expect_kind(bert, {"an embedding model", "general.architecture is \"bert\"", "Qwen"});
  bert.set("bert.attention.causal", false);  // as real ones say; the kind is the better reason
  expect_kind(bert, {"an embedding model"});
  bert.set("bert.pooling_type", uint32_t{4});
  expect_kind(bert, {"a reranker", "bert.pooling_type is 4"});
  TinyFile decoder;
  decoder.set("llama.pooling_type", uint32_t{3});
  expect_kind(decoder, {"an embedding model", "llama.pooling_type is 3"});
  decoder.set("llama.pooling_type", uint32_t{4});
  expect_kind(decoder, {"a reranker"});
  decoder.set("llama.pooling_type", uint32_t{0});  // none
  const TempDir folder;
  EXPECT_EQ(Model::load({.path = decoder.write(folder)})->info().n_layer, 1);
}

TEST(FileKindTest, OtherModels) {
  expect_kind(with("general.architecture", "controlvector"), {"a control vector"});
  expect_kind(with("general.architecture", "t5"), {"an encoder-decoder model"});
  expect_kind(with("general.architecture", "t5encoder"), {"an embedding model"});
  expect_kind(with("general.architecture", "llada"), {"a diffusion language model"});
  expect_kind(with("general.architecture", "flux"), {"draws pictures"});
  expect_kind(with("general.architecture", "wavtokenizer-dec"), {"speech"});
}

TEST(FileKindTest, FilesWithoutAModel) {
  TinyFile matrix = with("general.type", "imatrix");
  matrix.metadata.erase("general.architecture");  // importance matrices have none
  expect_kind(matrix, {"an importance matrix", "general.type is \"imatrix\""});
  TinyFile vocabulary;
  vocabulary.tensors.clear();
  expect_kind(vocabulary, {"a vocabulary (no tensors)", "name a file with weights"});
}

TEST(FileKindTest, AnArchitectureThatNobodyKnowsIsNamedAsBefore) {
  const std::string message = load_error(with("general.architecture", "brandnew"));
  expect_mentions(message, {"general.architecture is \"brandnew\"", "supported: llama"});
}

TEST(FileKindTest, WrongTypesOfKeysDoNotMislead) {
  TinyFile file;
  file.set("general.type", uint32_t{7});
  file.set("llama.pooling_type", std::string("mean"));
  const TempDir folder;
  EXPECT_EQ(Model::load({.path = file.write(folder)})->info().n_layer, 1);
}

}  // namespace
}  // namespace snapkv::test
