// SPDX-License-Identifier: MIT
// What Gemma 4's headers may not say. llama_oracle_test.cpp and shared_rows_test.cpp have what the
// models compute.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "snapkv/engine.h"
#include "tests/support/expect_error.h"
#include "tests/support/family_models.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace {

/// Expects a changed model to be refused with a message that has these parts.
void expect_gemma4_refused(const std::vector<const char*>& parts,
                           const std::function<void(FamilyModel&)>& change,
                           const std::string& name = "gemma4-e") {
  FamilyModel m = *std::find_if(family_models().begin(), family_models().end(),
                                [&](const FamilyModel& model) { return model.name == name; });
  change(m);
  const TempDir folder;
  const std::string path = folder / "m.gguf";
  write_random_model(path, m.shape, m.options);
  try {
    Model::load({.path = path});
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kBadModel);
    for (const char* part : parts) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << part << "\n" << e.what();
    }
  }
}

TEST(Gemma4HeaderTest, SharedRowsMustBeThere) {
  expect_gemma4_refused(
      {"gemma4.attention.shared_kv_layers is 9", "less than 9, the number of layers"},
      [](FamilyModel& m) { m.shape.family.gemma4.n_shared = 9; });
  expect_gemma4_refused({"gemma4.attention.shared_kv_layers is 8", "layer 2",
                         "without a sliding window", "none among the first 1"},
                        [](FamilyModel& m) { m.shape.family.gemma4.n_shared = 8; });
}

TEST(Gemma4HeaderTest, ImpossibleSizesAreNamed) {
  expect_gemma4_refused({"gemma4.attention.key_length_swa = 12", "multiples of 8"},
                        [](FamilyModel& m) { m.shape.family.gemma4.head_dim_window = 12; });
  expect_gemma4_refused({"gemma4.attention.head_count = 4", "head_count_kv = 3", "in layer 2"},
                        [](FamilyModel& m) { m.shape.family.gemma4.n_head_kv_full = 3; });
}

TEST(Gemma4HeaderTest, MissingTensorsAreNamed) {
  for (const char* name : {"rope_freqs", "per_layer_token_embd", "per_layer_model_proj",
                           "per_layer_proj_norm", "blk.0.attn_k", "blk.2.attn_k_norm",
                           "blk.4.attn_q", "blk.4.inp_gate", "blk.4.proj", "blk.8.post_norm"}) {
    const std::string tensor = std::string(name) + ".weight";
    expect_gemma4_refused({tensor.c_str(), "missing"},
                          [&](FamilyModel& m) { m.options.omitted = tensor; });
  }
  for (const char* name : {"blk.1.ffn_gate_inp.scale", "blk.1.post_ffw_norm_1.weight",
                           "blk.1.pre_ffw_norm_2.weight", "blk.1.ffn_gate.weight"}) {
    expect_gemma4_refused(
        {name, "missing"}, [&](FamilyModel& m) { m.options.omitted = name; }, "gemma4-moe");
  }
}

}  // namespace
}  // namespace snapkv::test
