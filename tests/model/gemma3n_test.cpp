// SPDX-License-Identifier: MIT
// What Gemma 3n's headers may not say. llama_oracle_test.cpp has what the model computes, and
// model_test.cpp the tensors that must be there.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
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
void expect_gemma3n_refused(const std::vector<const char*>& parts,
                            const std::function<void(FamilyModel&)>& change) {
  FamilyModel m = *std::find_if(family_models().begin(), family_models().end(),
                                [](const FamilyModel& model) { return model.name == "gemma3n"; });
  m.shape.n_layer = 10;
  m.shape.family.gemma3n.n_shared = 4;
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

TEST(Gemma3nHeaderTest, SharedRowsMustBeThere) {
  expect_gemma3n_refused(
      {"gemma3n.attention.shared_kv_layers is 10", "less than 10, the number of layers"},
      [](FamilyModel& m) { m.shape.family.gemma3n.n_shared = 10; });
  expect_gemma3n_refused({"gemma3n.attention.shared_kv_layers is 6", "layer 4",
                          "without a sliding window", "none among the first 4"},
                         [](FamilyModel& m) { m.shape.family.gemma3n.n_shared = 6; });
}

TEST(Gemma3nHeaderTest, StreamsAreAsTheyAreComputed) {
  expect_gemma3n_refused({"gemma3n.altup.active_idx is 1", "supported is 0"},
                         [](FamilyModel& m) { m.shape.family.gemma3n.active = 1; });
  expect_gemma3n_refused({"gemma3n.altup.num_inputs", "between 1 and 8", "it is 9"},
                         [](FamilyModel& m) { m.shape.family.gemma3n.n_streams = 9; });
  expect_gemma3n_refused({"gemma3n.activation_sparsity_scale holds inf", "numbers and -inf"},
                         [](FamilyModel& m) {
                           m.shape.family.gemma3n.peaks = std::numeric_limits<double>::infinity();
                         });
}

}  // namespace
}  // namespace snapkv::test
