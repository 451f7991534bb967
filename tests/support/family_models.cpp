// SPDX-License-Identifier: MIT
#include "tests/support/family_models.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/check.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/spm_vocab.h"

namespace snapkv::test {
namespace {

/// Nearly normal, mean 0, deviation 1: the sum of eight 16-bit numbers of splitmix64, so that every
/// machine computes the same.
float normal(uint64_t key, uint64_t index) {
  int32_t sum = -4 * 65535;
  for (uint64_t word = 0; word < 2; ++word) {
    uint64_t z = key + (2 * index + word + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    for (int i = 0; i < 4; ++i, z >>= 16) sum += static_cast<int32_t>(z & 0xffffu);
  }
  return static_cast<float>(sum) / 53509.92f;  // 65536 * sqrt(8 / 12)
}

uint64_t key_of(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

/// One model: sizes, and which tensors it has. The defaults are Llama's.
struct Shape {
  const char* name;
  const char* architecture;
  int64_t n_embd = 64, n_layer = 3, n_head = 4, n_head_kv = 2, head_dim = 16, n_ff = 96;
  int64_t n_rot = 0;  // 0: head_dim
  int64_t n_ctx = 4096;

  bool layer_norm = false, norm_bias = false;
  bool norm_before = true, norm_after = false;
  bool ffn_norm = true;
  int64_t qk_norm = 0;  // 1: of each head, 2: with own weights, 3: all heads together
  bool qkv_bias = false, output_bias = false, ffn_bias = false, logits_bias = false;
  bool fused_qkv = false, gated = true, fused_gate = false;
  bool own_output = false;
  bool rope_freqs = false, long_factors = false, learned_positions = false;

  int64_t window = 0;
  float embedding_gain = 0.35f;  // deviation of the embeddings
  float ffn_gain = 1.2f;         // deviation of the feed-forward matrices, times sqrt(n_in)
  float ffn_post_norm = 1.0f;    // mean weight of the norm after the feed-forward network
  /// More metadata; keys without the architecture's name.
  std::function<void(const std::function<void(const char*, double)>& number,
                     const std::function<void(const char*, const char*)>& text)>
      metadata = {};
};

using Number = std::function<void(const char*, double)>;
using Text = std::function<void(const char*, const char*)>;

// llama.cpp looks GELU up in a table of f16 (errors of 2^-11), so feed-forward networks with GELU
// add little to the residual stream here: their errors stay below the oracle's 1e-3.
constexpr float kGeluGain = 0.5f;

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {
      {.name = "llama-freqs", .architecture = "llama", .own_output = true, .rope_freqs = true},
      {.name = "llama-linear",
       .architecture = "llama",
       .metadata =
           [](const Number& number, const Text& text) {
             text("rope.scaling.type", "linear");
             number("rope.scaling.factor", 4.0);
           }},
      {.name = "llama-yarn",
       .architecture = "llama",
       .metadata =
           [](const Number& number, const Text& text) {
             text("rope.scaling.type", "yarn");
             number("rope.scaling.factor", 8.0);
             number("rope.scaling.original_context_length", 512);
           }},
      {.name = "llama-longrope",
       .architecture = "llama",
       .long_factors = true,
       .metadata =
           [](const Number& number, const Text& text) {
             text("rope.scaling.type", "longrope");
             number("rope.scaling.attn_factor", 1.25);
             number("rope.scaling.original_context_length", 64);
           }},
      {.name = "mistral3",
       .architecture = "mistral3",
       .head_dim = 32,
       .metadata =
           [](const Number& number, const Text& text) {
             text("rope.scaling.type", "yarn");
             number("rope.scaling.factor", 16.0);
             number("rope.scaling.original_context_length", 16);
             number("rope.scaling.yarn_log_multiplier", 1.0);
             number("attention.temperature_scale", 0.3);
           }},
      {.name = "qwen2", .architecture = "qwen2", .qkv_bias = true},
      {.name = "qwen3", .architecture = "qwen3", .head_dim = 32, .qk_norm = 1},
      {.name = "phi3",
       .architecture = "phi3",
       .fused_qkv = true,
       .fused_gate = true,
       .own_output = true},
      {.name = "phi3-long",
       .architecture = "phi3",
       .n_rot = 12,
       .fused_qkv = true,
       .fused_gate = true,
       .long_factors = true,
       .metadata =
           [](const Number& number, const Text&) {
             number("rope.scaling.attn_factor", 1.19);
             number("rope.scaling.original_context_length", 64);
           }},
      {.name = "phi3-short",
       .architecture = "phi3",
       .fused_qkv = true,
       .fused_gate = true,
       .long_factors = true,
       .metadata =
           [](const Number& number, const Text&) {
             number("rope.scaling.attn_factor", 1.19);
             number("rope.scaling.original_context_length", 4096);
           }},
      {.name = "gemma",
       .architecture = "gemma",
       .n_head_kv = 1,
       .head_dim = 32,
       .embedding_gain = 0.25f,
       .ffn_gain = kGeluGain},
      {.name = "gemma2",
       .architecture = "gemma2",
       .n_layer = 4,
       .head_dim = 32,
       .norm_after = true,
       .window = 16,
       .embedding_gain = 0.25f,
       .ffn_gain = kGeluGain,
       .ffn_post_norm = 0.25f,
       .metadata =
           [](const Number& number, const Text&) {
             number("attn_logit_softcapping", 3.0);
             number("final_logit_softcapping", 5.0);
           }},
      {.name = "gemma3",
       .architecture = "gemma3",
       .n_layer = 7,
       .head_dim = 32,
       .norm_after = true,
       .qk_norm = 1,
       .window = 16,
       .embedding_gain = 0.25f,
       .ffn_gain = kGeluGain,
       .ffn_post_norm = 0.25f,
       .metadata =
           [](const Number& number, const Text& text) {
             number("rope.freq_base", 1e6);
             text("rope.scaling.type", "linear");
             number("rope.scaling.factor", 8.0);
           }},
      {.name = "smollm3", .architecture = "smollm3", .n_layer = 4},
      {.name = "granite",
       .architecture = "granite",
       .metadata =
           [](const Number& number, const Text&) {
             number("attention.scale", 0.4);
             number("embedding_scale", 3.0);
             number("residual_scale", 0.5);
             number("logit_scale", 2.0);
           }},
      {.name = "olmo2",
       .architecture = "olmo2",
       .norm_before = false,
       .norm_after = true,
       .ffn_norm = false,
       .qk_norm = 3,
       .own_output = true},
      {.name = "olmo3",
       .architecture = "olmo2",
       .n_layer = 5,
       .norm_before = false,
       .norm_after = true,
       .ffn_norm = false,
       .qk_norm = 3,
       .own_output = true,
       .window = 16,
       .metadata =
           [](const Number& number, const Text& text) {
             text("rope.scaling.type", "yarn");
             number("rope.scaling.factor", 8.0);
             number("rope.scaling.original_context_length", 512);
           }},
      {.name = "starcoder2",
       .architecture = "starcoder2",
       .layer_norm = true,
       .norm_bias = true,
       .qkv_bias = true,
       .output_bias = true,
       .ffn_bias = true,
       .gated = false,
       .ffn_gain = kGeluGain},
      {.name = "stablelm",
       .architecture = "stablelm",
       .n_rot = 4,
       .layer_norm = true,
       .norm_bias = true,
       .qkv_bias = true,
       .own_output = true},
      {.name = "stablelm-12b",
       .architecture = "stablelm",
       .n_rot = 4,
       .layer_norm = true,
       .norm_bias = true,
       .ffn_norm = false,
       .qk_norm = 2,
       .own_output = true},
      {.name = "command-r",
       .architecture = "command-r",
       .layer_norm = true,
       .ffn_norm = false,
       .metadata = [](const Number& number, const Text&) { number("logit_scale", 0.5); }},
      {.name = "cohere2",
       .architecture = "cohere2",
       .n_layer = 5,
       .layer_norm = true,
       .ffn_norm = false,
       .window = 16,
       .metadata = [](const Number& number, const Text&) { number("logit_scale", 0.5); }},
      {.name = "gpt2",
       .architecture = "gpt2",
       .n_head_kv = 4,
       .n_ctx = 256,
       .layer_norm = true,
       .norm_bias = true,
       .qkv_bias = true,
       .output_bias = true,
       .ffn_bias = true,
       .fused_qkv = true,
       .gated = false,
       .learned_positions = true,
       .ffn_gain = kGeluGain},
      {.name = "internlm2", .architecture = "internlm2", .own_output = true},
  };
  return all;
}

class Writer {
 public:
  Writer(const Shape& shape, const std::string& omitted) : s_(shape), omitted_(omitted) {}

  GgufWriter write() {
    add_metadata();
    matrix("token_embd", kFamilyVocab, s_.n_embd, s_.embedding_gain * root(s_.n_embd));
    if (s_.learned_positions) matrix("position_embd", s_.n_ctx, s_.n_embd, root(s_.n_embd));
    norm("output_norm", s_.n_embd);
    if (s_.own_output) matrix("output", kFamilyVocab, s_.n_embd, 3.0f, s_.logits_bias);
    const int64_t n_pairs = n_rot() / 2;
    if (s_.rope_freqs) factors("rope_freqs.weight", n_pairs, 8.0f);
    if (s_.long_factors) {
      factors("rope_factors_long.weight", n_pairs, 6.0f);
      factors("rope_factors_short.weight", n_pairs, 1.5f);
    }
    for (int64_t il = 0; il < s_.n_layer; ++il) add_layer(fmt::format("blk.{}.", il));
    return std::move(writer_);
  }

 private:
  static float root(int64_t n) { return std::sqrt(static_cast<float>(n)); }
  int64_t n_rot() const { return s_.n_rot > 0 ? s_.n_rot : s_.head_dim; }
  std::string key(std::string_view name) const {
    return fmt::format("{}.{}", s_.architecture, name);
  }

  void add_metadata() {
    const auto size = [&](const char* name, int64_t n) {
      writer_.add(key(name), static_cast<uint32_t>(n));
    };
    writer_.add("general.architecture", s_.architecture);
    writer_.add("general.name", "random");  // llama.cpp patches vocabularies by some names
    size("context_length", s_.n_ctx);
    size("embedding_length", s_.n_embd);
    size("block_count", s_.n_layer);
    size("feed_forward_length", s_.n_ff);
    size("attention.head_count", s_.n_head);
    size("attention.head_count_kv", s_.n_head_kv);
    size("attention.key_length", s_.head_dim);
    size("attention.value_length", s_.head_dim);
    size("rope.dimension_count", n_rot());
    size("vocab_size", kFamilyVocab);
    if (s_.window > 0) size("attention.sliding_window", s_.window);
    writer_.add(
        key(s_.layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"),
        1e-5f);
    if (s_.metadata) {
      const auto number = [&](const char* name, double value) {
        if (std::string_view(name).ends_with("_length")) {
          writer_.add(key(name), static_cast<uint32_t>(value));
        } else {
          writer_.add(key(name), static_cast<float>(value));
        }
      };
      const auto text = [&](const char* name, const char* value) { writer_.add(key(name), value); };
      s_.metadata(number, text);
    }
    SpmVocab vocab;
    for (int64_t i = std::ssize(vocab.tokens); i < kFamilyVocab; ++i) {
      vocab.add(fmt::format("\xe2\x96\x81w{}", i), -static_cast<float>(i));
    }
    vocab.write_to(writer_)
        .add("tokenizer.ggml.bos_token_id", uint32_t{1})
        .add("tokenizer.ggml.eos_token_id", uint32_t{2})
        .add("tokenizer.ggml.unknown_token_id", uint32_t{0});
  }

  void add_layer(const std::string& blk) {
    const int64_t n_q = s_.n_head * s_.head_dim, n_kv = s_.n_head_kv * s_.head_dim;
    if (s_.norm_before) norm(blk + "attn_norm", s_.n_embd);
    if (s_.fused_qkv) {
      matrix(blk + "attn_qkv", n_q + 2 * n_kv, s_.n_embd, 1.3f, s_.qkv_bias);
    } else {
      matrix(blk + "attn_q", n_q, s_.n_embd, 1.3f, s_.qkv_bias);
      matrix(blk + "attn_k", n_kv, s_.n_embd, 1.3f, s_.qkv_bias);
      matrix(blk + "attn_v", n_kv, s_.n_embd, 1.3f, s_.qkv_bias);
    }
    if (s_.qk_norm == 1) {
      vector(blk + "attn_q_norm.weight", {s_.head_dim}, 1.4f, 0.3f);
      vector(blk + "attn_k_norm.weight", {s_.head_dim}, 1.4f, 0.3f);
    } else if (s_.qk_norm == 2) {
      vector(blk + "attn_q_norm.weight", {s_.n_head, s_.head_dim}, 1.4f, 0.3f);
      vector(blk + "attn_k_norm.weight", {s_.n_head_kv, s_.head_dim}, 1.4f, 0.3f);
    } else if (s_.qk_norm == 3) {
      vector(blk + "attn_q_norm.weight", {n_q}, 1.4f, 0.3f);
      vector(blk + "attn_k_norm.weight", {n_kv}, 1.4f, 0.3f);
    }
    matrix(blk + "attn_output", s_.n_embd, n_q, 1.2f, s_.output_bias);
    if (s_.norm_after) norm(blk + "post_attention_norm", s_.n_embd);
    if (s_.ffn_norm) norm(blk + "ffn_norm", s_.n_embd);
    const int64_t n_up = s_.fused_gate ? 2 * s_.n_ff : s_.n_ff;
    if (s_.gated && !s_.fused_gate) {
      matrix(blk + "ffn_gate", s_.n_ff, s_.n_embd, s_.ffn_gain, s_.ffn_bias);
    }
    matrix(blk + "ffn_up", n_up, s_.n_embd, s_.ffn_gain, s_.ffn_bias);
    matrix(blk + "ffn_down", s_.n_embd, s_.n_ff, s_.ffn_gain, s_.ffn_bias);
    if (s_.norm_after) norm(blk + "post_ffw_norm", s_.n_embd, s_.ffn_post_norm);
  }

  /// A matrix [n_out, n_in] of deviation gain / sqrt(n_in).
  void matrix(const std::string& name, int64_t n_out, int64_t n_in, float gain, bool bias = false) {
    vector(name + ".weight", {n_out, n_in}, 0.0f, gain / root(n_in));
    if (bias) vector(name + ".bias", {n_out}, 0.0f, 0.4f);
  }
  void norm(const std::string& name, int64_t n, float mean = 1.0f) {
    vector(name + ".weight", {n}, mean, 0.2f * mean);
    if (s_.norm_bias) vector(name + ".bias", {n}, 0.0f, 0.2f);
  }
  /// From 1 to `last`.
  void factors(const std::string& name, int64_t n, float last) {
    if (name == omitted_) return;
    std::vector<float> values;
    for (int64_t i = 0; i < n; ++i) {
      values.push_back(1.0f + (last - 1.0f) * static_cast<float>(i) / static_cast<float>(n));
    }
    writer_.add_f32(name, {n}, values);
  }
  void vector(const std::string& name, const std::vector<int64_t>& shape, float mean, float gain) {
    if (name == omitted_) return;
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    const uint64_t key = key_of(name);
    std::vector<float> values;
    for (int64_t i = 0; i < n; ++i) values.push_back(mean + gain * normal(key, i));
    writer_.add_f32(name, shape, values);
  }

  const Shape& s_;
  const std::string& omitted_;
  GgufWriter writer_;
};

}  // namespace

const std::vector<FamilyModel>& family_models() {
  static const std::vector<FamilyModel> models = [] {
    std::vector<FamilyModel> all;
    for (const Shape& s : shapes()) all.push_back({s.name, s.architecture, s.window});
    return all;
  }();
  return models;
}

void write_family_model(const std::string& name, const std::string& path,
                        const std::string& omitted) {
  const auto shape = std::find_if(shapes().begin(), shapes().end(),
                                  [&](const Shape& s) { return name == s.name; });
  SNAPKV_CHECK(shape != shapes().end());
  Writer(*shape, omitted).write().write(path);
}

}  // namespace snapkv::test
