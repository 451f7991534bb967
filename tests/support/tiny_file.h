// SPDX-License-Identifier: MIT
// TinyFile: a GGUF file of one small layer, for tests of damaged and unusual files.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "snapkv/engine.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/test_models.h"

namespace snapkv::test {

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

  GgufWriter writer() const {
    GgufWriter writer;
    for (const auto& [key, add] : metadata) add(writer, key);
    for (const auto& [name, shape] : tensors) {
      size_t n = 1;
      for (int64_t d : shape) n *= static_cast<size_t>(d);
      writer.add_f32(name, shape, std::vector<float>(n, 0.01f));
    }
    return writer;
  }

  std::string write(const TempDir& folder) const {
    const std::string path = folder / "model.gguf";
    writer().write(path);
    return path;
  }
};

/// The metadata of a tiny Llama, as another architecture's.
inline TinyFile file_of(const std::string& architecture) {
  TinyFile file;
  const auto llama = std::move(file.metadata);
  file.metadata.clear();
  for (const auto& [key, add] : llama) {
    file.metadata[key.starts_with("llama.") ? architecture + key.substr(5) : key] = add;
  }
  file.set("general.architecture", architecture);
  return file;
}

/// The message of the kBadModel error that loading gives.
inline std::string load_error(const TinyFile& file) {
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

inline void expect_mentions(const std::string& message, std::initializer_list<const char*> words) {
  for (const char* word : words) {
    EXPECT_NE(message.find(word), std::string::npos) << "\"" << word << "\" not in: " << message;
  }
}

}  // namespace snapkv::test
