// SPDX-License-Identifier: MIT
// What Llama 4's headers say, and what they may not say. llama_oracle_test.cpp has what the model
// computes, and model_test.cpp the tensors that must be there.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/model_spec.h"
#include "snapkv/engine.h"
#include "tests/support/expect_error.h"
#include "tests/support/family_models.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace llama4_tests {

using Change = std::function<void(FamilyModel&)>;

/// A changed model's description, which load() agrees with.
ModelInfo describe_changed(const Change& change) {
  FamilyModel m =
      *std::find_if(family_models().begin(), family_models().end(),
                    [](const FamilyModel& model) { return model.name == "llama4-chunks"; });
  change(m);
  const TempDir folder;
  const std::string path = folder / "m.gguf";
  write_random_model(path, m.shape, m.options);
  return Model::load({.path = path})->info();
}

Change with_key(const char* name, decltype(RandomKey::value) value) {
  return [=](FamilyModel& m) {
    std::vector<RandomKey>& keys = m.shape.family.keys;
    std::erase_if(keys, [&](const RandomKey& key) { return key.name == name; });
    keys.push_back({name, value});
  };
}

TEST(Llama4HeaderTest, ThreeOfFourLayersAttendInChunks) {
  const ModelInfo info = describe_changed([](FamilyModel&) {});
  for (int il = 0; il < info.n_layer; ++il) {
    const LayerInfo& layer = info.layers[il];
    const bool full = il == 3;
    EXPECT_EQ(layer.attention, full ? AttentionKind::full : AttentionKind::chunked);
    EXPECT_EQ(layer.window, full ? 0 : 16);
    EXPECT_EQ(layer.compressed, full);
    EXPECT_EQ(layer.rotated, !full);
    const LayerSpec& spec = info.spec->layers[il];
    EXPECT_EQ(spec.plain_qk_norm, !full);
    EXPECT_EQ(spec.has_temperature, full);
    EXPECT_EQ(spec.ffn.size(), il % 2 == 0 ? 1u : 2u);
    for (const auto& [n_tokens, rows] : {std::pair{0, 0}, {1, 1}, {16, 16}, {17, 1}, {100, 4}}) {
      EXPECT_EQ(info.full_rows(il, n_tokens), full ? n_tokens : rows);
    }
  }
}

TEST(Llama4HeaderTest, AChunkAsLongAsTheContextHidesNothing) {
  const auto kind = [](int64_t chunk) {
    return describe_changed(with_key("attention.sliding_window", chunk)).layers[0].attention;
  };
  EXPECT_EQ(kind(4095), AttentionKind::chunked);
  EXPECT_EQ(kind(4096), AttentionKind::full);  // the context
}

/// As llama.cpp tells Maverick from Scout.
TEST(Llama4HeaderTest, ModelsOf128ExpertsHaveNoNorms) {
  const ModelInfo info = describe_changed([](FamilyModel& m) { m.shape.family.n_expert = 128; });
  EXPECT_FALSE(info.spec->layers[0].plain_qk_norm);
}

TEST(Llama4HeaderTest, WhatIsNotComputedIsRefused) {
  const auto refused = [](std::initializer_list<std::string_view> words, const Change& change) {
    expect_error(ErrorCode::kBadModel, words, [&] { describe_changed(change); });
  };
  refused({"llama4.expert_used_count is 2", "supported is 1"},
          [](FamilyModel& m) { m.shape.family.n_expert_used = 2; });
  refused({"llama4.attention.sliding_window is 0", "chunks"},
          with_key("attention.sliding_window", int64_t{0}));
  refused({"llama4.attention.sliding_window_pattern is 3", "supported is 4"},
          with_key("attention.sliding_window_pattern", int64_t{3}));
  refused({"llama4.expert_gating_func", "2 (sigmoid)"}, with_key("expert_gating_func", int64_t{1}));
  refused({"llama4.expert_weights_norm", "false"}, with_key("expert_weights_norm", true));
  refused({"llama4.attention.temperature_length"},
          with_key("attention.temperature_length", int64_t{0}));
  refused({"llama4.attention.temperature_scale"}, with_key("attention.temperature_scale", -1.0));
  refused({"llama4.interleave_moe_layer_step", "0"}, [](FamilyModel& m) {
    with_key("interleave_moe_layer_step", int64_t{0})(m);
    m.shape.family.expert_step = 0;
  });
}

}  // namespace llama4_tests
}  // namespace snapkv::test
