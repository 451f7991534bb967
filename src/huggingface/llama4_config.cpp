// SPDX-License-Identifier: MIT
#include "huggingface/llama4_config.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "huggingface/window_config.h"

namespace snapkv::huggingface {
namespace {

constexpr int64_t kFullEvery = 4;  // as in GGUF: the last of four layers sees all tokens
// What GGUF files mean and llama.cpp computes.
constexpr int64_t kUsualChunk = 8192, kUsualStep = 8192;
constexpr double kUsualTemperature = 0.1;
constexpr int64_t kExpertsWithoutNorms = 128;

/// The field, if it is there and not empty, must be this array, which `words` describe.
template <typename Value>
void expect_layers(const JsonFields& c, const char* key, const std::vector<Value>& expected,
                   const std::string& words) {
  const Json* list = c.find(key);
  if (list == nullptr || list->empty()) return;
  if (*list != Json(expected)) {
    c.bad(key, "is {}, supported is {}", shown(*list), words);
  }
}

/// A flag; older folders have a number in its place.
bool has_temperature(const JsonFields& c) {
  const Json* value = c.find("attn_temperature_tuning");
  if (value != nullptr && value->is_number()) return *value != Json(0);
  return c.flag("attn_temperature_tuning", true);
}

}  // namespace

void read_llama4_experts(const JsonFields& c, Config& config) {
  if (config.n_expert_used != 1) {
    c.bad("num_experts_per_tok", "is {}, supported is 1", config.n_expert_used);
  }
  config.n_ff_dense = c.integer("intermediate_size_mlp", 1, 1 << 22, 16384);
  config.n_ff_shared = config.n_ff;
  config.normalizes_experts = false;
  config.sigmoid_scores = true;
  const int64_t step = c.integer("interleave_moe_layer_step", 1, 4096, 1);
  config.llama4.expert_step = step;
  std::vector<int64_t> with_experts;
  for (int64_t il = step - 1; il < config.n_layer; il += step) with_experts.push_back(il);
  if (with_experts.empty()) {
    c.bad("interleave_moe_layer_step", "is {}, expected at most {}, the number of layers", step,
          config.n_layer);
  }
  expect_layers(c, "moe_layers", with_experts,
                fmt::format("the last of every {}, as interleave_moe_layer_step is", step));
}

void read_llama4_attention(const JsonFields& c, Config& config) {
  Llama4Config& l = config.llama4;
  l.chunk = c.integer("attention_chunk_size", 1, kMaxContext, kUsualChunk);
  if (const Json& all = c.json();
      all.contains("attention_chunk_size") && all["attention_chunk_size"].is_null()) {
    c.bad("attention_chunk_size", "is null; models without attention in chunks are not supported");
  }
  if (const int64_t every = c.integer("no_rope_layer_interval", 1, 4096, kFullEvery);
      every != kFullEvery) {
    c.bad("no_rope_layer_interval", "is {}, supported is {}", every, kFullEvery);
  }
  std::vector<int> rotated;
  std::vector<std::string> types;
  for (int64_t il = 0; il < config.n_layer; ++il) {
    const bool is_full = (il + 1) % kFullEvery == 0;
    rotated.push_back(is_full ? 0 : 1);
    types.push_back(is_full ? "full_attention" : "chunked_attention");
  }
  expect_layers(c, "no_rope_layers", rotated, "0 for every fourth of all layers, else 1");
  expect_layers(c, "layer_types", types,
                "full_attention for every fourth of all layers, else chunked_attention");
  l.qk_norm = c.flag("use_qk_norm", true);
  if (has_temperature(c)) {
    l.temperature = c.positive("attn_scale", kUsualTemperature);
    l.temperature_step = c.integer("floor_scale", 1, kMaxContext, kUsualStep);
  }
}

void add_llama4_keys(const Config& config, Keys& keys) {
  const Llama4Config& l = config.llama4;
  keys.u32("llama4.interleave_moe_layer_step", l.expert_step);
  const bool has_norms = config.n_expert != kExpertsWithoutNorms;
  if (l.chunk != kUsualChunk) keys.u32("llama4.attention.sliding_window", l.chunk);
  if (l.temperature != kUsualTemperature) {
    keys.f32("llama4.attention.temperature_scale", l.temperature);
  }
  if (l.temperature > 0 && l.temperature_step != kUsualStep) {
    keys.u32("llama4.attention.temperature_length", l.temperature_step);
  }
  if (l.qk_norm != has_norms) keys.flag("snapkv.attention.qk_norm", l.qk_norm);
}

}  // namespace snapkv::huggingface
