// SPDX-License-Identifier: MIT
// ModelOptions::rope_scaling: an option does what the same keys in the file do, which
// llama_oracle_test compares with llama.cpp.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/session_support.h"
#include "tests/support/expect_error.h"
#include "tests/support/family_models.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace rope_scaling_tests {

constexpr double kFactor = 8;
constexpr int64_t kTrained = 512;

/// The model "llama-yarn" without the keys of YaRN: trained with 512 tokens.
const std::string& plain_path() {
  static const std::string path = [] {
    const auto& models = family_models();
    FamilyModel m = *std::find_if(models.begin(), models.end(), [](const FamilyModel& each) {
      return each.name == "llama-yarn";
    });
    EXPECT_EQ(m.options.n_ctx, kFactor * kTrained);
    m.shape.family.keys.clear();
    m.options.n_ctx = kTrained;
    std::string file = testing::TempDir() + "/plain.gguf";
    write_random_model(file, m.shape, m.options);
    return file;
  }();
  return path;
}

ModelOptions options_for(const std::string& path) {
  ModelOptions options;
  options.path = path;
  options.compute = Compute::f32;
  options.n_threads = 2;
  return options;
}

ModelOptions yarn_options() {
  ModelOptions options = options_for(plain_path());
  options.rope_scaling = RopeScaling::yarn;
  options.yarn_factor = kFactor;
  return options;
}

std::vector<float> logits_of(const std::shared_ptr<const Model>& model) {
  Session session(model, full_options());
  session.prefill(generated_ids(600, kFamilyVocab, 3));
  return copy(session.logits());
}

TEST(RopeScaling, YarnByOptionsIsYarnOfTheFile) {
  const auto of_file = load_model("llama-yarn");
  const std::vector<float> expected = logits_of(of_file);
  const auto by_options = Model::load(yarn_options());
  EXPECT_EQ(logits_of(by_options), expected);
  for (const ModelInfo& info : {of_file->info(), by_options->info()}) {
    EXPECT_EQ(info.n_ctx_train, kFactor * kTrained);
    EXPECT_EQ(info.yarn_factor, kFactor);
    EXPECT_EQ(info.yarn_orig_ctx, kTrained);
  }
  const ModelInfo described = describe_model(yarn_options()).info;
  EXPECT_EQ(described.n_ctx_train, kFactor * kTrained);
  EXPECT_EQ(describe_model(plain_path()).info.n_ctx_train, kTrained);
  EXPECT_EQ(describe_model(plain_path()).info.yarn_factor, 0);
  // the factor alone says that it is YaRN, and the trained context may be named
  ModelOptions other = options_for(plain_path());
  other.yarn_factor = 4;
  other.yarn_orig_ctx = 1024;
  const ModelInfo info = describe_model(other).info;
  EXPECT_EQ(info.n_ctx_train, 4096);
  EXPECT_EQ(info.yarn_orig_ctx, 1024);
}

TEST(RopeScaling, NoneIsTheModelAsItWasTrained) {
  ModelOptions none = options_for(model_path("llama-yarn"));
  none.rope_scaling = RopeScaling::none;
  const auto without = Model::load(none);
  EXPECT_EQ(without->info().n_ctx_train, kTrained);
  EXPECT_EQ(without->info().yarn_factor, 0);
  const std::vector<int32_t> prompt = generated_ids(300, kFamilyVocab, 3);
  std::vector<std::vector<float>> logits;
  for (const auto& model : {without, Model::load(options_for(plain_path()))}) {
    Session each(model, full_options());
    each.prefill(prompt);
    logits.push_back(copy(each.logits()));
  }
  EXPECT_EQ(logits[0], logits[1]);
}

TEST(RopeScaling, SavedCachesBelongToIt) {
  const auto plain = Model::load(options_for(plain_path()));
  const auto by_options = Model::load(yarn_options());
  EXPECT_NE(plain->fingerprint(), by_options->fingerprint());
  EXPECT_EQ(by_options->fingerprint(), Model::load(yarn_options())->fingerprint());
  ModelOptions twice = yarn_options();
  twice.yarn_factor = 4;
  EXPECT_NE(Model::load(twice)->fingerprint(), by_options->fingerprint());
  const std::string path = testing::TempDir() + "/scaled.session";
  Session session(by_options, full_options());
  session.prefill(generated_ids(20, kFamilyVocab, 3));
  session.save(path);
  for (const auto& [model, label] :
       {std::pair(plain, plain->info().name),
        std::pair(Model::load(twice), std::string("YaRN, 4 times 512 tokens"))}) {
    Session other(model, full_options());
    expect_error(ErrorCode::kUsage,
                 {"another model", "YaRN, 8 times 512 tokens", std::string_view(label)},
                 [&] { other.load(path); });
  }
  Session same(Model::load(yarn_options()), full_options());
  same.load(path);
  EXPECT_EQ(same.n_past(), 20);
}

TEST(RopeScaling, WhatCannotWorkIsRefused) {
  const auto refused = [](ModelOptions options, std::initializer_list<std::string_view> words) {
    expect_error(ErrorCode::kUsage, words, [&] { (void)Model::load(options); });
  };
  ModelOptions options = options_for(plain_path());
  options.rope_scaling = RopeScaling::yarn;
  refused(options, {"yarn_factor", "how many times"});
  options.yarn_factor = 0.5;
  refused(options, {"yarn_factor is 0.5", "at least 1"});
  options.rope_scaling = RopeScaling::none;
  options.yarn_factor = 2;
  refused(options, {"rope_scaling is none"});
  ModelOptions longrope = options_for(model_path("llama-longrope"));
  longrope.yarn_factor = 2;
  refused(longrope, {"rope_factors_long", "of its own"});
}

}  // namespace rope_scaling_tests
}  // namespace snapkv::test
